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

package localcluster

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestCommandsAreOfThisCluster: one without its directory would end, or change, the
// cluster of the current directory.
func TestCommandsAreOfThisCluster(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	called := os.Args[0]
	t.Cleanup(func() { os.Args[0] = called })
	for name, tc := range map[string]struct {
		called, data, bin string
		command           []string
		want              string
	}{
		"of the current directory":    {"local-up", DefaultDataDir, DefaultBinDir, []string{"down"}, "local-up down"},
		"called by its path":          {"_output/bin/local-up", DefaultDataDir, DefaultBinDir, []string{"restart", "--component=etcd"}, "_output/bin/local-up restart --component=etcd"},
		"by a test":                   {"/tmp/cluster.test", DefaultDataDir, DefaultBinDir, []string{"down"}, "local-up down"},
		"elsewhere":                   {"local-up", "other", DefaultBinDir, []string{"down"}, "local-up down --data-dir=" + here + "/other"},
		"elsewhere with a blank":      {"local-up", "/it's there", DefaultBinDir, []string{"down"}, `local-up down '--data-dir=/it'\''s there'`},
		"of other binaries":           {"local-up", "/d", "/b", []string{"up"}, "local-up up --data-dir=/d --bin-dir=/b"},
		"binaries are not needed for": {"local-up", DefaultDataDir, "/b", []string{"status"}, "local-up status"},
	} {
		t.Run(name, func(t *testing.T) {
			os.Args[0] = tc.called
			data, err := filepath.Abs(tc.data)
			if err != nil {
				t.Fatal(err)
			}
			bin, err := filepath.Abs(tc.bin)
			if err != nil {
				t.Fatal(err)
			}
			c := &Cluster{config: Config{DataDir: data, BinDir: bin}}
			if got := c.Command(tc.command...); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// TestCommandsOfClusterCreateNone: neither a directory nor a lock.
func TestCommandsOfClusterCreateNone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	_, err := OpenExisting(Config{DataDir: dir, BinDir: "/b"})
	if !errors.Is(err, ErrNoCluster) {
		t.Errorf("got %v", err)
	}
	says(t, err, dir, "--data-dir", "local-up up --data-dir="+dir+" --bin-dir=/b")
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory is there: %v", err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := (&state{Ports: map[string]int{Etcd: 1}}).save(dir); err != nil {
		t.Fatal(err)
	}
	c, err := OpenExisting(Config{DataDir: dir, BinDir: "/b"})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}
