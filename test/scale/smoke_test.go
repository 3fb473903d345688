//go:build linux

/*
Copyright 2026 The Kubernetes Authors.

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
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/kubernetes-features/test/scale/result"
)

// smoke are the smallest sizes of each benchmark, with which it takes seconds.
var smoke = map[string][]string{
	"featuregate": {"--repetitions=2", "--time=1ms"},
	"clear":       {"--sizes=300", "--large=100", "--repetitions=1", "--workers=16", "--sweep=4", "--rate=100", "--rest=500ms", "--touch", "--settle=1s"},
	"reporters":   {"--nodes=5,10", "--budget-nodes=10", "--rest=2s", "--compaction=0s", "--template=1s", "--together=5", "--lists=3", "--more=5"},
	"start":       {"--repetitions=1", "--quiet=200ms"},
	"flip":        {"--processes=4", "--changes=2", "--warm=100ms", "--rest=1s", "--window=500ms", "--template=1s", "--settle=1s"},
	"transition":  {"--servers=1", "--settle=1s", "--processes=2", "--objects=3", "--object-processes=2", "--repetitions=2", "--template=1s"},
}

// TestSmoke runs every benchmark with its smallest sizes on real processes and looks
// at what it writes. What it measures does not matter here.
func TestSmoke(t *testing.T) {
	for _, b := range benchmarks {
		t.Run(b.name, func(t *testing.T) {
			args, ok := smoke[b.name]
			if !ok {
				t.Fatal("the benchmark has no smallest sizes; add them to smoke")
			}
			file := filepath.Join(t.TempDir(), "result.json")
			var out bytes.Buffer
			cmd := newCommand(&out)
			cmd.SetArgs(append([]string{b.name, "--root=" + root, "--output=" + file}, args...))
			if err := cmd.ExecuteContext(t.Context()); err != nil {
				t.Fatalf("%v; it printed:\n%s", err, out.String())
			}
			r, err := result.Read(file)
			if err != nil {
				t.Fatal(err)
			}
			again := filepath.Join(t.TempDir(), "again.json")
			if err := r.Write(again); err != nil {
				t.Fatal(err)
			}
			if same, err := result.Read(again); err != nil {
				t.Error(err)
			} else if diff := cmp.Diff(r, same, cmp.AllowUnexported(result.Cell{})); diff != "" {
				t.Errorf("written and read again the result differs:\n%s", diff)
			}
			for _, table := range r.Tables {
				if !bytes.Contains(out.Bytes(), []byte(table.Title)) {
					t.Errorf("the table %q was not printed", table.Title)
				}
			}
			if e := r.Environment; e.Processor == "" || e.Cores == 0 || e.Memory == 0 || e.Kernel == "" || e.OS == "" || e.Commit == "" || e.Kubernetes == "" || e.Etcd == "" {
				t.Errorf("the environment has gaps: %+v", e)
			}
			t.Log("\n" + out.String())
		})
	}
}
