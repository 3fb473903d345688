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
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// event is one of a daemon, as its client prints it.
type event struct {
	Type, Action string
	Actor        struct {
		ID         string
		Attributes map[string]string
	}
}

// volumes are those that containers of the command have had. A volume whose container is
// gone belongs to nothing, and its name does not show whose it was, so volumes are noted
// while the command runs.
type volumes struct {
	docker  docker
	options Options
	// since is when the command has begun, by the daemon's clock.
	since string
	// end ends the client that follows the daemon, ended is closed then, and err is how
	// it ended.
	end   context.CancelFunc
	ended chan struct{}
	err   error

	mu         sync.Mutex
	containers map[string]bool
	names      map[string]bool
}

// followVolumes notes volumes until stop.
func (d docker) followVolumes(ctx context.Context, o Options) (*volumes, error) {
	since, err := d.clock(ctx)
	if err != nil {
		return nil, err
	}
	// Volumes are noted while an interrupted command ends, too.
	ctx, end := context.WithCancel(context.WithoutCancel(ctx))
	v := &volumes{docker: d, options: o, since: since, end: end, ended: make(chan struct{}), containers: map[string]bool{}, names: map[string]bool{}}
	go func() {
		defer close(v.ended)
		// The client gets SIGKILL at the end of the thread that has started it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		v.err = v.follow(ctx)
	}()
	return v, nil
}

// clock returns the daemon's time. "docker info" does not fail without a daemon, in every
// version of the client.
func (d docker) clock(ctx context.Context) (string, error) {
	lines, err := d.lines(ctx, "info", "--format", "{{.SystemTime}}")
	if err == nil && len(lines) != 1 {
		err = fmt.Errorf("the Docker daemon gives the time as %q", lines)
	}
	return strings.Join(lines, " "), err
}

// follow reads events as they happen.
func (v *volumes) follow(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "docker", v.events()...)
	// An interrupt at a terminal does not end it, the end of this process does.
	cmd.Env, cmd.SysProcAttr = v.docker.env, &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	read := v.read(out)
	ended := cmd.Wait()
	if read != nil || ctx.Err() != nil {
		return read
	}
	if ended == nil {
		ended = errors.New("exit code 0")
	}
	return fmt.Errorf("volumes of the command may be unknown: \"docker events\" ended before the command: %w: %s", ended, bytes.TrimSpace(stderr.Bytes()))
}

// events are the client's arguments that have it print events since the command began.
func (v *volumes) events(more ...string) []string {
	args := []string{
		"events", "--since", v.since, "--format", "{{json .}}",
		"--filter", "type=container", "--filter", "event=create", "--filter", "type=volume", "--filter", "event=mount",
	}
	return append(args, more...)
}

// read notes the volumes of events.
func (v *volumes) read(events io.Reader) error {
	for decoder := json.NewDecoder(events); ; {
		var e event
		if err := decoder.Decode(&e); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("cannot read an event of the Docker daemon: %w", err)
		}
		v.note(e)
	}
}

// note notes the command's containers, and volumes that these mount.
func (v *volumes) note(e event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch of := e.Actor.Attributes; e.Type + " " + e.Action {
	case "container create":
		if v.options.made(of["name"], of[clusterLabel], of["image"]) {
			v.containers[e.Actor.ID] = true
		}
	case "volume mount":
		if v.containers[of["container"]] {
			v.names[e.Actor.ID] = true
		}
	}
}

// made returns true for a container of the command's cluster, and one in which a node image
// was built.
func (o Options) made(name, cluster, image string) bool {
	return o.Cluster != "" && cluster == o.Cluster || o.Base != "" && image == o.Base && strings.HasPrefix(name, builderName)
}

// stop returns the names of volumes that were noted. Events of the last moment may not have
// been read, so the daemon repeats its last ones.
func (v *volumes) stop(ctx context.Context) ([]string, error) {
	var last []byte
	until, err := v.docker.clock(ctx)
	if err == nil {
		last, err = v.docker.output(ctx, nil, v.events("--until", until)...)
	}
	v.end()
	<-v.ended
	err = errors.Join(err, v.err, v.read(bytes.NewReader(last)))
	return slices.Sorted(maps.Keys(v.names)), err
}
