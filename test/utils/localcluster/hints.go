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
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Where local-up looks for a cluster and binaries, from the current directory.
const (
	DefaultDataDir = "_output/local"
	DefaultBinDir  = "_output/bin"
)

// program is what starts clusters and ends them.
const program = "local-up"

// ErrNoCluster is what errors are when a data directory has no cluster.
var ErrNoCluster = errors.New("there is no cluster")

// OpenExisting is Open for what needs a cluster that was started before, running or
// not. Where there is none it makes nothing, and the error is ErrNoCluster.
func OpenExisting(config Config) (*Cluster, error) {
	var err error
	if config.DataDir, err = filepath.Abs(config.DataDir); err != nil {
		return nil, err
	}
	if config.BinDir, err = filepath.Abs(config.BinDir); err != nil {
		return nil, err
	}
	if _, err := os.Stat(stateFile(config.DataDir)); errors.Is(err, fs.ErrNotExist) {
		return nil, (&Cluster{config: config}).noCluster()
	}
	return Open(config)
}

// Command returns the command line that does something with this cluster and no other,
// for people who are in the same directory. It names directories that are not the
// default, and the program as it was called.
func (c *Cluster) Command(args ...string) string {
	words := []string{program}
	if called := os.Args[0]; filepath.Base(called) == program {
		words[0] = quoted(called)
	}
	words = append(words, args...)
	for _, dir := range []struct{ flag, value, usual string }{
		{"--data-dir", c.config.DataDir, DefaultDataDir}, {"--bin-dir", c.config.BinDir, DefaultBinDir},
	} {
		usual, err := filepath.Abs(dir.usual)
		if dir.flag == "--bin-dir" && !startsProcesses(args[0]) || err == nil && dir.value == usual {
			continue
		}
		words = append(words, quoted(dir.flag+"="+dir.value))
	}
	return strings.Join(words, " ")
}

// Kubectl returns how a command line of kubectl begins that reaches this cluster as its
// administrator.
func (c *Cluster) Kubectl() string { return "kubectl --kubeconfig " + quoted(c.Kubeconfig("admin")) }

// DataDir is the absolute path of the data directory.
func (c *Cluster) DataDir() string { return c.config.DataDir }

// Nodes is the number of nodes the cluster has.
func (c *Cluster) Nodes() int { return c.state.Nodes }

// startsProcesses is true for commands that need binaries.
func startsProcesses(command string) bool { return command == "up" || command == "restart" }

// noCluster is the error of what needs a cluster where there is none.
func (c *Cluster) noCluster() error {
	return fmt.Errorf("%w in %s; name the directory of yours with --data-dir, or start one with \"%s\"", ErrNoCluster, c.config.DataDir, c.Command("up"))
}

// plain are words that a shell takes as they are.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./=:,@%+-]+$`)

// quoted is a word as a shell has to read it.
func quoted(word string) string {
	if plain.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
