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

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"k8s.io/kubernetes-features/build/release/archive"
)

const (
	// permitsCgroupV1 is the patch without which kubelet refuses cgroup v1.
	permitsCgroupV1 = "kind: KubeletConfiguration\nfailCgroupV1: false\n"
	// patchesKey is where kind's description of a cluster has patches for kubeadm.
	patchesKey = "kubeadmConfigPatches"
	// oneNode is the description without a file.
	oneNode = "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\n"
)

// cgroup1 writes config.yaml into the directory: kind's description of a cluster that is
// named, or that of one node, for a machine with cgroup v1.
func (o options) cgroup1(context.Context) error {
	if len(o.args) > 1 {
		return errors.New("cgroup1 takes one file, kind's description of a cluster")
	}
	described, of := []byte(oneNode), "that of one node"
	if len(o.args) == 1 {
		content, err := os.ReadFile(o.args[0])
		if err != nil {
			return fmt.Errorf("cannot read kind's description of the cluster: %w", err)
		}
		described, of = content, "a copy of "+o.args[0]
	}
	content, err := permitCgroupV1(described)
	if err != nil {
		return fmt.Errorf("cannot have kubelet run on cgroup v1: %s: %w", of, err)
	}
	file := filepath.Join(o.dir, "config.yaml")
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return err
	}
	if err := archive.WriteData(file, content); err != nil {
		return err
	}
	log("Docker has cgroup v1, which kubelet refuses by default: the cluster's description is %s, %s with failCgroupV1: false", file, of)
	return nil
}

// permitCgroupV1 adds the patch before those of a description: kind merges patches in their
// order, so that one which sets failCgroupV1 itself wins. All else stays, with its comments.
func permitCgroupV1(described []byte) ([]byte, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(described, &document); err != nil {
		return nil, err
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("it describes no cluster")
	}
	patch := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.LiteralStyle, Value: permitsCgroupV1}
	if err := addPatch(document.Content[0], patch); err != nil {
		return nil, err
	}
	var content bytes.Buffer
	encoder := yaml.NewEncoder(&content)
	encoder.SetIndent(2)
	err := errors.Join(encoder.Encode(&document), encoder.Close())
	return content.Bytes(), err
}

// addPatch puts a patch in front of those of a cluster.
func addPatch(cluster, patch *yaml.Node) error {
	for i := 0; i+1 < len(cluster.Content); i += 2 {
		if cluster.Content[i].Value != patchesKey {
			continue
		}
		patches := cluster.Content[i+1]
		switch {
		case patches.Kind == yaml.SequenceNode:
			patches.Content = append([]*yaml.Node{patch}, patches.Content...)
			return nil
		case patches.Tag == "!!null":
			cluster.Content[i+1] = &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{patch}}
			return nil
		}
		return fmt.Errorf("line %d: %s is no list", patches.Line, patchesKey)
	}
	key := &yaml.Node{Kind: yaml.ScalarNode, Value: patchesKey}
	cluster.Content = append(cluster.Content, key, &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{patch}})
	return nil
}
