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

package kindcluster

import (
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"k8s.io/kubernetes-features/test/e2e_kind/kindcluster/registry"
)

// certsDir is where containerd looks for hosts of registries each time it pulls, so that
// it need not start again. The folder is the default where nothing is configured.
const certsDir = "/etc/containerd/certs.d/"

// ServeRegistry serves a registry where nodes reach it, until the test ends, and has
// their runtimes ask it without TLS. They ask it for images of the registries that it
// mirrors, too, and do not ask these. It returns the registry's host.
func (c *Cluster) ServeRegistry(handler http.Handler, mirrored ...string) string {
	c.t.Helper()
	route := strings.Fields(c.Exec(c.ControlPlanes[0], "ip", "-4", "route", "show", "default"))
	if len(route) < 3 || route[1] != "via" {
		c.t.Fatalf("the node %s has no gateway, but the route %q", c.ControlPlanes[0], route)
	}
	listener, err := (&net.ListenConfig{}).Listen(c.t.Context(), "tcp", net.JoinHostPort(route[2], "0"))
	if err != nil {
		c.t.Fatalf("listening where nodes reach it: %v", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	c.t.Cleanup(func() { _ = server.Close() })
	host := listener.Addr().String()
	for _, node := range c.Nodes() {
		for _, name := range append([]string{host}, mirrored...) {
			c.ExecInput(node, []byte("server = \"http://"+host+"\"\n"), "sh", "-ec", `mkdir -p "$1"; cat >"$1/hosts.toml"`, "sh", certsDir+name)
		}
	}
	return host
}

// ServeTestImages lets nodes pull the images of upstream's tests that are made where no
// registry is reachable, under their own names.
func (c *Cluster) ServeTestImages() {
	c.t.Helper()
	files := list(os.Getenv(testImagesVariable))
	if len(files) == 0 {
		return
	}
	images := registry.New()
	for _, file := range files {
		if err := images.AddArchive(file); err != nil {
			c.t.Fatal(err)
		}
	}
	c.ServeRegistry(images, images.Registries()...)
}
