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
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	// clusterLabel is on the containers of a cluster of kind.
	clusterLabel = "io.x-k8s.kind.cluster"
	// builderName begins the names of containers in which kind builds node images. kind
	// does not remove them when a signal ends it.
	builderName = "kind-build-"
)

// withCallers runs the command with the daemon that the environment names, in which others
// make and remove things, too. Only objects count that the command can have made: containers
// of its cluster and those in which node images were built on the base of its own, with
// their volumes, and kind's network.
func withCallers(ctx context.Context, o Options, was undo) error {
	d := docker{o.Env}
	if o.Fresh {
		if err := d.removeEarlier(ctx, o); err != nil {
			return err
		}
	}
	before, err := d.made(ctx, o)
	if err != nil {
		return err
	}
	images, err := d.images(ctx, o)
	if err != nil {
		return err
	}
	networks, err := d.lines(ctx, "network", "ls", "--format", "{{.Name}}")
	if err != nil {
		return err
	}
	// An earlier run that was killed has left the network that it made.
	network := was.Network || !slices.Contains(networks, kindNetwork)
	// Mounts and interfaces of the machine are others', too.
	o.callers = true
	o.observe = func() (observation, error) { return observation{}, nil }
	o.counts = changedByNodes
	return observed(ctx, o, undo{Network: network}, func() error {
		noted, err := d.followVolumes(ctx, o)
		if err != nil {
			return err
		}
		err = runCommand(ctx, o.Command, o.Env, o.streams())
		after, done := context.WithTimeout(context.WithoutCancel(ctx), cleaning)
		defer done()
		volumes, e := noted.stop(after)
		err = errors.Join(err, e, d.finish(after, o, before, volumes))
		if o.Unload != nil {
			err = errors.Join(err, o.Unload(after))
		}
		err = errors.Join(err, d.removeReplaced(after, o, images))
		if network {
			err = errors.Join(err, d.removeNetwork(after))
		}
		return err
	})
}

// made returns the containers that the command can have made, by their names, and their
// volumes.
func (d docker) made(ctx context.Context, o Options) (objects, error) {
	found := objects{}
	var filters [][]string
	if o.Cluster != "" {
		filters = append(filters, []string{"--filter", "label=" + clusterLabel + "=" + o.Cluster})
	}
	if o.Base != "" {
		filters = append(filters, []string{"--filter", "name=^/?" + builderName, "--filter", "ancestor=" + o.Base})
	}
	for _, filter := range filters {
		names, err := d.lines(ctx, append([]string{"ps", "--all", "--format", "{{.Names}}"}, filter...)...)
		if err != nil {
			return nil, err
		}
		found["container"] = append(found["container"], names...)
	}
	if len(found["container"]) == 0 {
		return found, nil
	}
	const volumes = `{{range .Mounts}}{{if eq .Type "volume"}}{{println .Name}}{{end}}{{end}}`
	var err error
	found["volume"], err = d.lines(ctx, append([]string{"container", "inspect", "--format", volumes}, found["container"]...)...)
	return found, err
}

// removeEarlier removes what an earlier run has left, which was killed.
func (d docker) removeEarlier(ctx context.Context, o Options) error {
	left, err := d.made(ctx, o)
	if err != nil || len(left["container"]) == 0 {
		return err
	}
	o.Log("An earlier run has left containers; removing %s", strings.Join(left["container"], ", "))
	if err := d.removeMade(ctx, left); err != nil {
		return fmt.Errorf("what an earlier run has left cannot be removed: %w", err)
	}
	return nil
}

// removeMade removes containers, and volumes that stay without them.
func (d docker) removeMade(ctx context.Context, made objects) error {
	if len(made["container"]) > 0 {
		if _, err := d.lines(ctx, append([]string{"rm", "--force", "--volumes"}, made["container"]...)...); err != nil {
			return err
		}
	}
	stay, err := d.present(ctx, made["volume"])
	if err != nil || len(stay) == 0 {
		return err
	}
	_, err = d.lines(ctx, append([]string{"volume", "rm", "--force"}, stay...)...)
	return err
}

// present returns those of volumes that the daemon has.
func (d docker) present(ctx context.Context, volumes []string) ([]string, error) {
	if len(volumes) == 0 {
		return nil, nil
	}
	all, err := d.lines(ctx, "volume", "ls", "--quiet")
	return slices.DeleteFunc(slices.Clone(volumes), func(name string) bool { return !slices.Contains(all, name) }), err
}

// finish names containers that the command has made and left, and volumes that these or
// earlier ones of its containers have had (noted). It removes them where the cluster is the
// command's own, and containers in which images were built in any case.
func (d docker) finish(ctx context.Context, o Options, before objects, noted []string) error {
	now, err := d.made(ctx, o)
	if err != nil {
		return err
	}
	left := objects{"container": less(now["container"], before["container"])}
	left["volume"], err = d.present(ctx, less(union(now["volume"], noted), before["volume"]))
	if err != nil {
		return err
	}
	removed := left
	if !o.Fresh {
		builders := slices.DeleteFunc(slices.Clone(left["container"]), func(name string) bool { return !strings.HasPrefix(name, builderName) })
		removed = objects{"container": builders}
	}
	errs := []error{d.removeMade(ctx, removed)}
	stay, err := d.present(ctx, left["volume"])
	errs = append(errs, err)
	for _, name := range left["container"] {
		next := "it was removed"
		if !slices.Contains(removed["container"], name) {
			next = "remove it by \"kind delete cluster --name " + o.Cluster + "\""
		}
		errs = append(errs, fmt.Errorf("the command has left the container %s; %s", name, next))
	}
	for _, name := range left["volume"] {
		next := "it was removed"
		switch {
		case slices.Contains(stay, name) && slices.Contains(now["volume"], name):
			next = "it goes with its container"
		case slices.Contains(stay, name):
			next = "remove it by \"docker volume rm " + name + "\""
		}
		errs = append(errs, fmt.Errorf("the command has left the volume %s; %s", name, next))
	}
	return errors.Join(errs...)
}

// union returns the elements of both lists, each once.
func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// removeNetwork removes kind's network, unless it is gone or others have containers in it.
func (d docker) removeNetwork(ctx context.Context) error {
	all, err := d.lines(ctx, "network", "ls", "--format", "{{.Name}}")
	if err != nil || !slices.Contains(all, kindNetwork) {
		return err
	}
	used, err := d.lines(ctx, "network", "inspect", "--format", "{{range $id, $_ := .Containers}}{{println $id}}{{end}}", kindNetwork)
	if err != nil || len(used) > 0 {
		return err
	}
	_, err = d.lines(ctx, "network", "rm", kindNetwork)
	return err
}

// images returns the identifiers of images that a command may make again, by their names:
// of nodes, and what these are built on.
func (d docker) images(ctx context.Context, o Options) (map[string]string, error) {
	found := map[string]string{}
	for _, name := range []string{"kindest/node", "localhost/node", o.Base} {
		if name == "" {
			continue
		}
		lines, err := d.lines(ctx, "image", "ls", "--no-trunc", "--filter", "reference="+name, "--format", "{{.Repository}}:{{.Tag}}@{{.ID}}")
		if err != nil {
			return nil, err
		}
		for _, line := range lines {
			name, id, _ := strings.Cut(line, "@")
			found[name] = id
		}
	}
	return found, nil
}

// removeReplaced removes images that have lost their names to newer ones, unless they have
// others or a container uses them.
func (d docker) removeReplaced(ctx context.Context, o Options, before map[string]string) error {
	now, err := d.images(ctx, o)
	if err != nil {
		return err
	}
	dangling, err := d.lines(ctx, "image", "ls", "--no-trunc", "--quiet", "--filter", "dangling=true")
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		id := before[name]
		if id == "" || id == now[name] || !slices.Contains(dangling, id) {
			continue
		}
		users, err := d.lines(ctx, "ps", "--all", "--quiet", "--filter", "ancestor="+id)
		if err != nil {
			return err
		}
		if len(users) > 0 {
			continue
		}
		if _, err := d.lines(ctx, "image", "rm", id); err != nil {
			return err
		}
	}
	return nil
}
