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

package withheld

import (
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func proc(last, status string) fs.FS {
	return fstest.MapFS{
		"sys/kernel/cap_last_cap": {Data: []byte(last)},
		"self/status":             {Data: []byte(status)},
	}
}

func TestCapabilitiesThatBoundingSetLacks(t *testing.T) {
	for _, c := range []struct {
		name, last, bounding string
		want                 []string
	}{
		{"all", "40", "000001ffffffffff", nil},
		{"no SYS_RESOURCE", "40", "000001fffeffffff", []string{"CAP_SYS_RESOURCE"}},
		{"an old kernel has fewer", "37", "0000003fffffffff", nil},
		{"two", "40", "000000fffffffffe", []string{"CAP_CHOWN", "CAP_CHECKPOINT_RESTORE"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Capabilities(proc(c.last+"\n", "Name:\tx\nCapEff:\t0000000000000000\nCapBnd:\t"+c.bounding+"\nCapAmb:\t0\n"))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestCapabilitiesErrorsNameFile(t *testing.T) {
	for _, c := range []struct {
		proc fs.FS
		want string
	}{
		{fstest.MapFS{}, "cap_last_cap"},
		{proc("x", ""), "cap_last_cap"},
		{fstest.MapFS{"sys/kernel/cap_last_cap": {Data: []byte("40")}}, "self/status"},
		{proc("40", "Name:\tx\n"), "no line CapBnd"},
		{proc("40", "CapBnd:\tzz\n"), "CapBnd"},
	} {
		if _, err := Capabilities(c.proc); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v is no error with %q", err, c.want)
		}
	}
}

func TestCapabilitiesOfThisMachine(t *testing.T) {
	if _, err := Capabilities(os.DirFS("/proc")); err != nil {
		t.Error(err)
	}
}
