//go:build linux

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

package framework

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

// Kubectl is the real kubectl as one user of a cluster runs it, with the plugins
// beside it.
type Kubectl struct {
	// Kubeconfig is the user's.
	Kubeconfig  string
	binary      string
	environment []string
}

// Kubectl returns the kubectl of an administrator, or of the user whom that one
// impersonates.
func (c *Cluster) Kubectl(user string, groups ...string) Kubectl {
	c.t.Helper()
	config, err := clientcmd.LoadFromFile(c.Cluster.Kubeconfig("admin"))
	if err == nil {
		err = clientcmd.ResolveLocalPaths(config)
	}
	if err != nil {
		c.t.Fatalf("kubeconfig of the administrator: %v", err)
	}
	for _, info := range config.AuthInfos {
		info.Impersonate, info.ImpersonateGroups = user, groups
	}
	home := c.t.TempDir()
	file := filepath.Join(home, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		c.t.Fatal(err)
	}
	bin := BinDir(c.t)
	return Kubectl{
		Kubeconfig: file, binary: filepath.Join(bin, "kubectl"),
		environment: append(os.Environ(), "HOME="+home, "KUBECONFIG="+file, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH")),
	}
}

// Run returns what kubectl printed to its output and, when it failed, why and what
// it printed to its error stream.
func (k Kubectl) Run(t testing.TB, args ...string) (output, complaint string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), k.binary, args...)
	cmd.Env = k.environment
	var errors strings.Builder
	cmd.Stderr = &errors
	data, err := cmd.Output()
	if err != nil {
		return string(data), err.Error() + ": " + errors.String()
	}
	return string(data), ""
}

// Output is what kubectl printed. It must not fail.
func (k Kubectl) Output(t testing.TB, args ...string) string {
	t.Helper()
	output, complaint := k.Run(t, args...)
	if complaint != "" {
		t.Errorf("kubectl %s: %s\n%s", strings.Join(args, " "), complaint, output)
	}
	return output
}
