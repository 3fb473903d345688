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
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
)

// CheckLocal returns an error where the networks of the daemon that the environment names are
// not this machine's: it is on another one, or rootless. Nodes then run, and their addresses
// and their gateway are not reached from here.
func CheckLocal(ctx context.Context) error {
	return docker{os.Environ()}.checkLocal(ctx)
}

func (d docker) checkLocal(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	// The client has the environment, and the context that was chosen without it, in one
	// answer.
	out, err := d.output(ctx, nil, "context", "inspect", "--format", "{{.Endpoints.docker.Host}}")
	if err != nil {
		return err
	}
	const needed = "tests reach nodes by their addresses, and nodes reach a registry of the tests, so"
	if address := string(bytes.TrimSpace(out)); isRemote(address) {
		return fmt.Errorf("%s the Docker daemon has to be on this machine, and is at %s; unset DOCKER_HOST and DOCKER_CONTEXT, and run \"docker context use default\" if that is not enough", needed, address)
	}
	out, err = d.output(ctx, nil, "info", "--format", "{{range .SecurityOptions}}{{println .}}{{end}}")
	if err != nil {
		return err
	}
	rootless := func(option string) bool { return slices.Contains(strings.Split(option, ","), "name=rootless") }
	if slices.ContainsFunc(strings.Fields(string(out)), rootless) {
		return fmt.Errorf("%s the Docker daemon must not be rootless, which has networks of its own; start one as root, and unset DOCKER_HOST and DOCKER_CONTEXT", needed)
	}
	return nil
}

// isRemote returns true for the address of a daemon that is on another machine: neither a
// socket nor an address of loopback.
func isRemote(address string) bool {
	u, err := url.Parse(address)
	if err != nil || !slices.Contains([]string{"tcp", "ssh", "http", "https"}, u.Scheme) {
		return false
	}
	host := u.Hostname()
	ip := net.ParseIP(host)
	return host != "" && host != "localhost" && (ip == nil || !ip.IsLoopback())
}
