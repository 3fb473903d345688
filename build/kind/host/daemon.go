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
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	socket = "/run/docker.sock"
	// starting is the time that a daemon has until it answers: one with many images
	// takes some.
	starting = 2 * time.Minute
	// cleaning is the time that a daemon has to remove what the command has left.
	cleaning = 5 * time.Minute
)

func logFile(dir string) string { return filepath.Join(dir, "dockerd.log") }

// runDaemon starts a daemon, runs the command with it, and ends it.
func runDaemon(told string) (got result, err error) {
	var r request
	if err := json.Unmarshal([]byte(told), &r); err != nil {
		return got, fmt.Errorf("cannot read what to do: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	d, err := startDaemon(r)
	if err != nil {
		return got, err
	}
	after := context.WithoutCancel(ctx)
	defer func() { err = errors.Join(err, d.stop(after)) }()
	if err := d.ready(ctx); err != nil {
		return got, err
	}
	env := environment(os.Environ())
	// A run that was killed has left its containers.
	if _, err := (docker{env}).removeAll(ctx); err != nil {
		return got, err
	}
	err = runCommand(ctx, r.Command, env, r.streams())
	var exit *ExitError
	if errors.As(err, &exit) {
		got.Exit, err = exit.Code, nil
	}
	limited, done := context.WithTimeout(after, cleaning)
	defer done()
	thawed := thawAll(r.Cgroup)
	left, removed := docker{env}.removeAll(limited)
	// The namespaces end with their last process, which one may be that was killed frozen.
	return got, errors.Join(err, left.left(), removed, thawed, thawAll(r.Cgroup))
}

// environment names the daemon's socket in place of any other daemon.
func environment(env []string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return slices.Contains([]string{"DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_TLS", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"}, name)
	})
	return append(env, "DOCKER_HOST=unix://"+socket)
}

// configuration is the daemon's. It replaces that of the machine, all of it.
func configuration(r request) map[string]any {
	c := map[string]any{
		"data-root":     filepath.Join(r.Dir, "docker"),
		"exec-root":     "/run/docker",
		"pidfile":       "/run/docker.pid",
		"hosts":         []string{"unix://" + socket},
		"cgroup-parent": r.Cgroup,
		// systemd's driver needs the machine's bus, which the namespaces hide.
		"exec-opts": []string{"native.cgroupdriver=cgroupfs"},
		"log-level": "info",
	}
	if r.Runtime != "" {
		c["runtimes"] = map[string]any{"capless": map[string]string{"path": r.Runtime}}
		c["default-runtime"] = "capless"
	}
	return c
}

// daemon is a process dockerd.
type daemon struct {
	cmd *exec.Cmd
	dir string
	// ended is closed when the process has.
	ended chan struct{}
	err   error
}

func startDaemon(r request) (*daemon, error) {
	content, err := json.MarshalIndent(configuration(r), "", "  ")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(r.Dir, "daemon.json")
	if err := os.WriteFile(file, content, 0o644); err != nil {
		return nil, fmt.Errorf("cannot write the configuration of the Docker daemon: %w", err)
	}
	log, err := os.Create(logFile(r.Dir))
	if err != nil {
		return nil, fmt.Errorf("cannot write the log of the Docker daemon: %w", err)
	}
	defer log.Close()
	d := &daemon{cmd: exec.Command(r.Dockerd, "--config-file", file), dir: r.Dir, ended: make(chan struct{})}
	d.cmd.Stdout, d.cmd.Stderr = log, log
	// The daemon outlives signals that are the command's.
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := d.cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start the Docker daemon: %w", err)
	}
	go func() {
		defer close(d.ended)
		d.err = d.cmd.Wait()
	}()
	return d, nil
}

// ready waits until the daemon answers.
func (d *daemon) ready(ctx context.Context) error {
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}
	defer client.CloseIdleConnections()
	err := poll(ctx, starting, func() bool { return d.hasEnded() || answers(ctx, client) })
	switch {
	case d.hasEnded():
		return fmt.Errorf("the Docker daemon ended: %w; %s ends with:\n%s", d.err, logFile(d.dir), tail(logFile(d.dir)))
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("the Docker daemon does not answer on %s: %w; %s ends with:\n%s", socket, err, logFile(d.dir), tail(logFile(d.dir)))
	}
	return nil
}

func answers(ctx context.Context, client *http.Client) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://docker/_ping", nil)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}

func (d *daemon) hasEnded() bool {
	select {
	case <-d.ended:
		return true
	default:
		return false
	}
}

// stop ends the daemon. The namespaces' end ends one that does not.
func (d *daemon) stop(ctx context.Context) error {
	if d.hasEnded() {
		return nil
	}
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot stop the Docker daemon: %w", err)
	}
	ctx, done := context.WithTimeout(ctx, grace)
	defer done()
	select {
	case <-d.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the Docker daemon was killed: it did not end within %s of SIGTERM; read %s", grace, logFile(d.dir))
	}
}

// tail returns the end of a log.
func tail(file string) string {
	const lines = 10
	content, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
