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

package agent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzFile reads whatever is on disk. Given is the file itself or, since hardly any
// bytes have the checksum that they name, the payload that one is made for. It is
// refused with a message, or its values survive being written and read.
func FuzzFile(f *testing.F) {
	foundFile(f)
	whole, err := fileOf("").encode(map[string]choice{"A": {Value: true}, "B": {Dynamic: true}}, saved)
	if err != nil {
		f.Fatal(err)
	}
	var e envelope
	if err := json.Unmarshal(whole, &e); err != nil {
		f.Fatal(err)
	}
	const owner = `"namespace":"kube-system","component":"kubelet","instance":"node-1"`
	f.Add(whole, false)
	f.Add(whole[:len(whole)-9], false)
	f.Add([]byte(e.Payload), true)
	for _, text := range []string{
		"", "null", "{}", "[]", `"\ud800"`,
		`{` + owner + `,"values":[{"name":"A","value":true},{"name":"A"},{"name":"","control":"Dynamic"},{"name":"a\u0000b"}]}`,
		`{` + owner + `,"savedAt":"2026-11-01T02:03:04Z","values":[null]}`,
		`{` + owner + `,"savedAt":"9999-12-31T23:59:59.999999999+23:59"}`,
		`{` + owner + `,"values":[{"name":"A","value":"true"}]}`,
		strings.ReplaceAll(`{`+owner+`}`, "node-1", "node-2"),
	} {
		f.Add([]byte(text), true)
		f.Add([]byte(text), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, isPayload bool) {
		path := filepath.Join(t.TempDir(), "values.json")
		if isPayload {
			sum, err := checksum(data)
			if err != nil {
				return
			}
			if data, err = json.Marshal(envelope{FormatVersion: formatVersion, Checksum: sum, Payload: data}); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		known, _, err := fileOf(path).load()
		if err != nil {
			if known != nil || err.Error() == "" {
				t.Fatalf("it is refused (%v) and has %v", err, known)
			}
			return
		}
		if !fileOf(path).has(known) {
			t.Fatalf("%q is read and not recognized", data)
		}
		again := fileOf(filepath.Join(t.TempDir(), "again.json"))
		if err := again.save(known, saved); err != nil {
			t.Fatalf("the values of %q cannot be saved: %v", data, err)
		}
		read, at, err := again.load()
		if len(known) == 0 && os.IsNotExist(err) {
			return
		}
		if diff := cmp.Diff(known, read); err != nil || diff != "" || !at.Equal(saved) {
			t.Fatalf("written and read again at %v, %v (-want +got):\n%s", at, err, diff)
		}
	})
}
