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

// openapi-spec writes api/discovery and api/openapi-spec for this repository's
// group from a running kube-apiserver, laid out as upstream's
// hack/update-openapi-spec.sh lays out all groups.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes-features/hack/apispec"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

const (
	// gates are those of upstream's script: the documents of all gates, and no
	// enums, which generators of clients do not understand yet
	// (kubernetes/kubernetes#109177).
	gates = "AllAlpha=true,AllBeta=true,OpenAPIEnums=false"
	// removed has the server keep what a release is going to remove.
	removed = "KUBE_APISERVER_STRICT_REMOVED_API_HANDLING_IN_ALPHA"
	// patience bounds the end of the servers.
	patience = time.Minute
)

func main() {
	bin := flag.String("bin-dir", "_output/bin", "Where kube-apiserver and local-up (for etcd) are.")
	out := flag.String("output-dir", "api", "Directory to write.")
	all := flag.Bool("all-groups", false, "Write the documents of all groups, as upstream's script does in a fork, not those of this repository's group.")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *bin, *out, *all)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "openapi-spec:", err)
		os.Exit(1)
	}
}

// run starts a server, asks it and ends it.
func run(ctx context.Context, bin, out string, all bool) (err error) {
	data, err := os.MkdirTemp("", "spec")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(data)) }()
	if os.Getenv(removed) == "" {
		if err := os.Setenv(removed, "true"); err != nil {
			return err
		}
	}
	args := []string{"--runtime-config=api/all=true"}
	if all {
		// Upstream's script has this document, too.
		args = append(args, "--enable-logs-handler=true")
	}
	servers, err := localcluster.Open(localcluster.Config{
		DataDir: data, BinDir: bin, FeatureGates: gates, DieWithParent: true, Progress: os.Stderr,
		Only:      []string{localcluster.Etcd, localcluster.APIServer},
		ExtraArgs: map[string][]string{localcluster.APIServer: args},
	})
	if err != nil {
		return err
	}
	defer servers.Close()
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		err = errors.Join(err, servers.Down(ending))
	}()
	if err := servers.Up(ctx); err != nil {
		return fmt.Errorf("%w\n%s", err, servers.Log(localcluster.APIServer, 20))
	}
	config, err := servers.RESTConfig("admin")
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ask := server{client.Discovery().RESTClient()}
	files, err := ask.ownGroup(ctx)
	if all {
		files, err = ask.allGroups(ctx)
	}
	if err != nil {
		return err
	}
	return write(out, files)
}

// write replaces the directory's files by these. An error of encoding leaves
// them as they are.
func write(dir string, files map[string]apispec.Document) error {
	encoded := map[string][]byte{}
	for name, d := range files {
		data, err := d.Encode()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		encoded[name] = data
	}
	for _, folder := range []string{"discovery", "openapi-spec"} {
		if err := os.RemoveAll(filepath.Join(dir, folder)); err != nil {
			return err
		}
	}
	for name, data := range encoded {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
