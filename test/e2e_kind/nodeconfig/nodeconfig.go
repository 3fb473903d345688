/*
Copyright The Kubernetes Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package nodeconfig

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// gatesFlag is the flag of feature gates, in manifests and among extra arguments.
const gatesFlag = "feature-gates"

// SetFlag sets a flag of the first container of a static pod's manifest. An empty value
// removes the flag.
func SetFlag(manifest []byte, name, value string) ([]byte, error) {
	return editFlag(manifest, name, func(string) string { return value })
}

// SetGateFlag sets a gate in the flag --feature-gates of a static pod's manifest, and
// leaves the other gates as they are.
func SetGateFlag(manifest []byte, gate string, value bool) ([]byte, error) {
	return editFlag(manifest, gatesFlag, func(gates string) string { return withGate(gates, gate, value) })
}

// SetGate sets a gate in a KubeletConfiguration or a KubeProxyConfiguration.
func SetGate(config []byte, gate string, value bool) ([]byte, error) {
	return edit(config, func(object map[string]any) error {
		dropNull(object, "featureGates")
		return unstructured.SetNestedField(object, value, "featureGates", gate)
	})
}

// SetField sets a field of a configuration; nil removes it.
func SetField(config []byte, value any, path ...string) ([]byte, error) {
	return edit(config, func(object map[string]any) error {
		if value == nil {
			unstructured.RemoveNestedField(object, path...)
			return nil
		}
		return unstructured.SetNestedField(object, value, path...)
	})
}

// SetExtraArg sets an extra argument of a component, such as apiServer, in the
// ClusterConfiguration that kubeadm keeps in the ConfigMap kubeadm-config. kubeadm writes
// manifests of it when it upgrades. An empty value removes the argument.
func SetExtraArg(config []byte, component, name, value string) ([]byte, error) {
	return editExtraArg(config, component, name, func(string) string { return value })
}

// SetGateArg sets a gate in the extra argument feature-gates of a component, and leaves the
// other gates as they are.
func SetGateArg(config []byte, component, gate string, value bool) ([]byte, error) {
	return editExtraArg(config, component, gatesFlag, func(gates string) string { return withGate(gates, gate, value) })
}

// editExtraArg gives an extra argument the value that change makes of its value.
func editExtraArg(config []byte, component, name string, change func(string) string) ([]byte, error) {
	return edit(config, func(object map[string]any) error {
		dropNull(object, component)
		if section, ok := object[component].(map[string]any); ok {
			dropNull(section, "extraArgs")
		}
		args, _, err := unstructured.NestedSlice(object, component, "extraArgs")
		if err != nil {
			return err
		}
		var was string
		args = slices.DeleteFunc(args, func(arg any) bool {
			entry, ok := arg.(map[string]any)
			if !ok || entry["name"] != name {
				return false
			}
			was, _ = entry["value"].(string)
			return true
		})
		if value := change(was); value != "" {
			args = append(args, map[string]any{"name": name, "value": value})
		}
		return unstructured.SetNestedSlice(object, args, component, "extraArgs")
	})
}

// dropNull removes a field that is null: kubeadm writes some of those that are not set so.
func dropNull(object map[string]any, field string) {
	if object[field] == nil {
		delete(object, field)
	}
}

// withGate sets a gate in a list as "A=true,B=false".
func withGate(gates, gate string, value bool) string {
	setting := fmt.Sprintf("%s=%t", gate, value)
	if gates == "" {
		return setting
	}
	list := strings.Split(gates, ",")
	at := slices.IndexFunc(list, func(entry string) bool { return strings.HasPrefix(entry, gate+"=") })
	if at < 0 {
		return gates + "," + setting
	}
	list[at] = setting
	return strings.Join(list, ",")
}

// editFlag gives a flag of a manifest the value that change makes of its value, which is
// "" where the flag is not set.
func editFlag(manifest []byte, name string, change func(string) string) ([]byte, error) {
	return edit(manifest, func(pod map[string]any) error {
		containers, _, err := unstructured.NestedSlice(pod, "spec", "containers")
		if err != nil {
			return err
		}
		if len(containers) == 0 {
			return errors.New("the manifest has no container")
		}
		container, ok := containers[0].(map[string]any)
		if !ok {
			return fmt.Errorf("the first container is %T, want an object", containers[0])
		}
		command, _, err := unstructured.NestedStringSlice(container, "command")
		if err != nil {
			return err
		}
		if err := unstructured.SetNestedStringSlice(container, withFlag(command, "--"+name+"=", change), "command"); err != nil {
			return err
		}
		return unstructured.SetNestedSlice(pod, containers, "spec", "containers")
	})
}

// withFlag changes the argument with a prefix, or appends it.
func withFlag(command []string, prefix string, change func(string) string) []string {
	at := slices.IndexFunc(command, func(arg string) bool { return strings.HasPrefix(arg, prefix) })
	if at < 0 {
		if value := change(""); value != "" {
			command = append(command, prefix+value)
		}
		return command
	}
	value := change(strings.TrimPrefix(command[at], prefix))
	if value == "" {
		return slices.Delete(command, at, at+1)
	}
	command[at] = prefix + value
	return command
}

// edit changes an object that is written in YAML.
func edit(data []byte, change func(map[string]any) error) ([]byte, error) {
	object := map[string]any{}
	if err := yaml.Unmarshal(data, &object); err != nil {
		return nil, fmt.Errorf("reading YAML: %w", err)
	}
	if err := change(object); err != nil {
		return nil, err
	}
	return yaml.Marshal(object)
}
