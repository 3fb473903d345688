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
	"os"
	"strings"
	"testing"
)

func TestDaemonOfTestsIsHere(t *testing.T) {
	daemon := fake(t)
	for _, c := range []struct {
		about, address string
		options        []string
		want           string
	}{
		{"a socket", "unix:///var/run/docker.sock", []string{"name=seccomp,profile=builtin", "name=cgroupns"}, ""},
		{"loopback", "tcp://127.0.0.1:2375", nil, ""},
		{"loopback by IPv6", "tcp://[::1]:2375", nil, ""},
		{"loopback by name", "ssh://me@localhost", nil, ""},
		{"another machine by TCP", "tcp://192.0.2.1:2376", nil, "has to be on this machine, and is at tcp://192.0.2.1:2376; unset DOCKER_HOST"},
		{"another machine by SSH", "ssh://me@builder", nil, "has to be on this machine, and is at ssh://me@builder; unset DOCKER_HOST"},
		{"rootless", "unix:///run/user/1000/docker.sock", []string{"name=seccomp,profile=builtin", "name=rootless"}, "must not be rootless"},
	} {
		put(t, daemon, "address", c.address)
		put(t, daemon, "security", c.options...)
		err := docker{os.Environ()}.checkLocal(t.Context())
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.about, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n")):
			t.Errorf("%s: got the error %v, want one line with %q", c.about, err, c.want)
		}
	}
	t.Setenv("PATH", daemon)
	if err := CheckLocal(t.Context()); err == nil || !strings.Contains(err.Error(), "install") {
		t.Errorf("got the error %v, want the client's next step", err)
	}
}
