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

package module

import (
	"errors"
	"strings"
	"testing"
)

// TestRead: each way in which the go command may fail is told with its cause.
func TestRead(t *testing.T) {
	const name = "example.com/lamp@v1.2.3"
	failed := errors.New("exit status 1")
	for what, test := range map[string]struct {
		output, stderr string
		failed         error
		// want is a part of the error; wantDir is the folder, or dirError a part of its error.
		want, wantDir, dirError string
	}{
		"downloaded": {
			output:  `{"Dir":"/cache/lamp","Zip":"/cache/lamp.zip","Sum":"h1:x"}`,
			wantDir: "/cache/lamp",
		},
		"of a newer Go": {
			output: `{"Zip":"/cache/lamp.zip","Sum":"h1:x","Error":"requires go >= 1.99"}`, failed: failed,
			dirError: "requires go >= 1.99",
		},
		"not published": {
			output: `{"Error":"unknown revision v1.2.3"}`, failed: failed,
			want: "unknown revision v1.2.3",
		},
		"an error and exit status 0": {
			output: `{"Error":"no matching versions"}`,
			want:   "no matching versions",
		},
		"no answer": {
			stderr: "go: cannot find GOROOT\n", failed: failed,
			want: "go: cannot find GOROOT",
		},
	} {
		t.Run(what, func(t *testing.T) {
			m, err := read(name, []byte(test.output), test.stderr, test.failed)
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), name) {
					t.Errorf("the error is %v, want %q and the module in it", err, test.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			dir, err := m.Dir()
			if dir != test.wantDir || (err != nil) != (test.dirError != "") || err != nil && !strings.Contains(err.Error(), test.dirError) {
				t.Errorf("the folder is %q, and the error %v; want %q and %q in it", dir, err, test.wantDir, test.dirError)
			}
		})
	}
}
