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

package reporting

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/feature-lifecycle/agent"
)

const (
	fileFlag    = "feature-values-file"
	timeoutFlag = "feature-values-timeout"
	// fileName is the file's in a kubelet's root directory.
	fileName = "feature-values.json"
	// proxyFile is kube-proxy's: its own directory is often a read-only volume.
	proxyFile = "/var/lib/kube-feature-values/kube-proxy.json"
	// defaultRoot is kubelet's default of --root-dir.
	defaultRoot = "/var/lib/kubelet"
)

// valueFlags configure how a binary takes the values of features that are set centrally.
type valueFlags struct {
	*pflag.FlagSet
	policy  agent.ChangePolicy
	window  time.Duration
	timeout time.Duration
	file    string
	// takenOut is true if the command does not know the flags.
	takenOut bool
}

// notNegative is a duration of at least 0. It implements pflag.Value.
type notNegative struct{ *time.Duration }

// Set implements pflag.Value.
func (d notNegative) Set(text string) error {
	duration, err := time.ParseDuration(text)
	if err != nil {
		return err
	}
	if duration < 0 {
		return errors.New("must not be negative")
	}
	*d.Duration = duration
	return nil
}

// Type implements pflag.Value.
func (notNegative) Type() string { return "duration" }

// newValueFlags returns the flags with the defaults of a component.
func newValueFlags(component Component) *valueFlags {
	f := &valueFlags{FlagSet: pflag.NewFlagSet("feature values", pflag.ContinueOnError), policy: agent.PolicyReport}
	f.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	// A supervisor gives a control plane component minutes to become healthy (kubeadm:
	// four). A node has to start without a server.
	f.window, f.timeout = time.Minute, 2*time.Minute
	if component.Node {
		f.window, f.timeout = 5*time.Minute, 5*time.Second
	}
	file, ok := map[string]string{"kubelet": fileName + " in --root-dir", "kube-proxy": proxyFile}[component.Name]
	if !ok {
		file = "none"
	}
	f.Var(&f.policy, "feature-change-policy", "What to do when a feature that is set centrally has another value than the process started with: Report shows it in logs, metrics and reports; Restart also ends the process in order, so that its supervisor starts it again. A value that is set on the process itself never causes a restart.")
	f.Var(notNegative{&f.window}, "feature-restart-window", "With --feature-change-policy=Restart, the time over which the restarts of all instances are spread: each waits for a random part of it.")
	f.Var(notNegative{&f.timeout}, timeoutFlag, "How long the process waits at start for the features that are set centrally, before it continues with the last known values or its own. It does not wait where kube-apiserver does not have the API, or with --feature-gates=FeatureLifecycle=false. Without this flag a kubelet that has a kube-apiserver among its static pods does not wait either.")
	f.StringVar(&f.file, fileFlag, "", "File with the last known values of features that are set centrally, for a start without kube-apiserver; empty for none. It exists only while there are such values. (default: "+file+")")
	return f
}

// addTo makes a command accept the flags. A kubelet parses its command line itself and would
// refuse them, so addTo removes them from it.
func (f *valueFlags) addTo(command *cobra.Command, args []string) error {
	if command.DisableFlagParsing {
		f.takenOut = true
		own, rest := f.split(args)
		if err := f.Parse(own); err != nil {
			return err
		}
		// Without any, cobra would take the process's.
		command.SetArgs(append([]string{}, rest...))
	} else {
		command.Flags().AddFlagSet(f.FlagSet)
	}
	help := command.HelpFunc()
	command.SetHelpFunc(func(command *cobra.Command, args []string) {
		// Most commands list sets of flags that they know, kube-proxy all.
		out := command.OutOrStdout()
		var text bytes.Buffer
		command.SetOut(&text)
		help(command, args)
		command.SetOut(out)
		if !strings.Contains(text.String(), "--"+fileFlag) {
			fmt.Fprintf(&text, "\nFeature values flags:\n\n%s", f.FlagUsages())
		}
		fmt.Fprint(out, text.String())
	})
	return nil
}

// split takes these flags, with their values, out of a command line.
func (f *valueFlags) split(args []string) (own, rest []string) {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			return own, append(rest, args[i:]...)
		}
		name, _, hasValue := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if !strings.HasPrefix(arg, "--") || f.Lookup(name) == nil {
			rest = append(rest, arg)
			continue
		}
		own = append(own, arg)
		// None of them is a switch.
		if !hasValue && i+1 < len(args) {
			i++
			own = append(own, args[i])
		}
	}
	return own, rest
}

// path returns the file of a component; "" means none. Several hollow nodes share a machine
// and its TMPDIR: they have a file only if each is given its own.
func (f *valueFlags) path(component Component, rootDir string) string {
	switch {
	case f.Changed(fileFlag):
		return f.file
	case component.Name == "kubelet":
		if rootDir == "" {
			rootDir = defaultRoot
		}
		return filepath.Join(rootDir, fileName)
	case component.Name == "kube-proxy":
		return proxyFile
	}
	return ""
}
