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

package upstream

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestVersion(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, string(Previous), "go.mod")
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ content, want, complaint string }{
		{"module m\n\nrequire k8s.io/kubernetes v1.36.3 // indirect\n", "v1.36.3", ""},
		{"module m\n\nrequire (\n\tk8s.io/kubectl v0.37.2\n\tk8s.io/kubernetes v1.37.2\n)\n", "v1.37.2", ""},
		{"module m\n", "", "requires no k8s.io/kubernetes"},
		{"module m\n\nrequire k8s.io/kubernetes main\n", "", "requires no k8s.io/kubernetes"},
	} {
		if err := os.WriteFile(file, []byte(test.content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := Previous.Version(root)
		if string(got) != test.want || (err != nil) != (test.complaint != "") || err != nil && !strings.Contains(err.Error(), test.complaint) {
			t.Errorf("%q: got %s, %v, want %s, %q", test.content, got, err, test.want, test.complaint)
		}
	}
}

func TestProgramsTellTheirVersion(t *testing.T) {
	p := Previous.program("kubelet", "v1.36.3")
	for _, want := range []string{"k8s.io/component-base/version.gitVersion=v1.36.3", "k8s.io/client-go/pkg/version.gitMinor=36"} {
		if !strings.Contains(p.Flags, want) {
			t.Errorf("the flags %q lack %s", p.Flags, want)
		}
	}
}
