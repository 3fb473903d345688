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

package feature

import (
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/component-base/version"
)

// TestVersion uses the flag that all binaries have. It has no letter, which
// other binaries have for the verbosity.
func TestVersion(t *testing.T) {
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	cmd := NewCommand(streams)
	cmd.SetArgs([]string{"--version"})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := "Kubernetes " + version.Get().String() + "\n"; out.String() != want {
		t.Errorf("--version says %q, want %q", out, want)
	}
	cmd.SetArgs([]string{"-v"})
	if err := cmd.ExecuteContext(t.Context()); err == nil {
		t.Error("-v is a flag")
	}
}
