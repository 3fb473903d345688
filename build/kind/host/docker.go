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

package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// kindNetwork is the network that kind makes and never removes.
const kindNetwork = "kind"

// docker is Docker's client with an environment that names the daemon.
type docker struct{ env []string }

// lines returns the words that a command of the client writes, one a line.
func (d docker) lines(ctx context.Context, args ...string) ([]string, error) {
	out, err := d.output(ctx, nil, args...)
	return strings.Fields(string(out)), err
}

// output returns all that a command of the client writes.
func (d docker) output(ctx context.Context, input io.Reader, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "docker", args...)
	cmd.Env, cmd.Stdin = d.env, input
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return nil, errors.New("Docker's client is not installed; install Debian's docker.io")
		}
		return nil, fmt.Errorf("docker %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.Bytes(), nil
}

// reach is an error when no daemon answers. "docker version" fails then, in every
// version of the client; "docker info" does not.
func (d docker) reach(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	_, err := d.lines(ctx, "version", "--format", "{{.Server.Version}}")
	return err
}

// objects are what a daemon has, by kind: identifiers, or names.
type objects map[string][]string

func (d docker) objects(ctx context.Context) (objects, error) {
	found := objects{}
	var errs []error
	for kind, args := range map[string][]string{
		"container": {"ps", "--all", "--quiet", "--no-trunc"},
		"volume":    {"volume", "ls", "--quiet"},
		"network":   {"network", "ls", "--format", "{{.Name}}"},
	} {
		lines, err := d.lines(ctx, args...)
		found[kind] = lines
		errs = append(errs, err)
	}
	return found, errors.Join(errs...)
}

// left is an error for what a command has left in a daemon. kind leaves its network, too.
func (o objects) left() error {
	var errs []error
	for _, kind := range []string{"container", "volume", "network"} {
		for _, name := range o[kind] {
			if kind != "network" || !builtIn(name) && name != kindNetwork {
				errs = append(errs, fmt.Errorf("the command has left the %s %s, which ends with the Docker daemon; delete clusters in the command", kind, name))
			}
		}
	}
	return errors.Join(errs...)
}

// removeAll empties the daemon and returns what was there: containers, their volumes, and
// kind's network, whose bridge would come back with the daemon. Images stay, but for
// those that have lost their names to newer ones.
func (d docker) removeAll(ctx context.Context) (objects, error) {
	all, err := d.objects(ctx)
	if err != nil {
		return nil, err
	}
	// A volume and a network can be removed when no container uses it.
	for _, step := range []struct {
		names   []string
		command []string
	}{
		{all["container"], []string{"rm", "--force", "--volumes"}},
		{all["volume"], []string{"volume", "rm", "--force"}},
		{slices.DeleteFunc(slices.Clone(all["network"]), builtIn), []string{"network", "rm"}},
	} {
		if len(step.names) == 0 {
			continue
		}
		if _, e := d.lines(ctx, append(step.command, step.names...)...); e != nil {
			err = errors.Join(err, e)
		}
	}
	_, e := d.lines(ctx, "image", "prune", "--force")
	return all, errors.Join(err, e)
}

func builtIn(network string) bool {
	return slices.Contains([]string{"bridge", "host", "none"}, network)
}
