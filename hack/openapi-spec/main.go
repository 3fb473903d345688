/*
Copyright 2026 The Kubernetes Authors.

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
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes-features/cmd/local-up/cluster"
	"k8s.io/kubernetes-features/hack/apispec"
)

const (
	// gates are those of upstream's script: the documents of all gates, and no
	// enums, which generators of clients do not understand yet
	// (kubernetes/kubernetes#109177).
	gates = "AllAlpha=true,AllBeta=true,OpenAPIEnums=false"
	// removed has the server keep what a release is going to remove.
	removed = "KUBE_APISERVER_STRICT_REMOVED_API_HANDLING_IN_ALPHA"
	// aggregated is the form of discovery that has all groups in one document.
	aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	// patience bounds the end of the servers.
	patience = time.Minute
)

func main() {
	bin := flag.String("bin-dir", "_output/bin", "Where kube-apiserver and local-up (for etcd) are.")
	out := flag.String("output-dir", "api", "Directory to write.")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *bin, *out)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "openapi-spec:", err)
		os.Exit(1)
	}
}

// run starts a server, asks it and ends it.
func run(ctx context.Context, bin, out string) (err error) {
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
	servers, err := cluster.Open(cluster.Config{
		DataDir: data, BinDir: bin, FeatureGates: gates, DieWithParent: true, Progress: os.Stderr,
		Only:      []string{cluster.Etcd, cluster.APIServer},
		ExtraArgs: map[string][]string{cluster.APIServer: {"--runtime-config=api/all=true"}},
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
		return fmt.Errorf("%w\n%s", err, servers.Log(cluster.APIServer, 20))
	}
	config, err := servers.RESTConfig("admin")
	if err != nil {
		return err
	}
	files, err := collect(ctx, config)
	if err != nil {
		return err
	}
	return write(out, files)
}

// collect asks the server for all files, by their names below api/.
func collect(ctx context.Context, config *rest.Config) (map[string]apispec.Document, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	get := func(path, accept string) (apispec.Document, error) {
		body, err := client.Discovery().RESTClient().Get().AbsPath(path).SetHeader("Accept", accept).Do(ctx).Raw()
		if err != nil {
			return nil, fmt.Errorf("GET %s: %w", path, err)
		}
		d, err := apispec.Decode(body)
		if err != nil {
			return nil, fmt.Errorf("GET %s: %w", path, err)
		}
		d.Unversioned()
		return d, nil
	}
	files := map[string]apispec.Document{}
	for name, path := range apispec.Own {
		if files[name], err = get(path, "application/json"); err != nil {
			return nil, err
		}
	}
	for _, shared := range []struct {
		name, path, accept string
		cut                func(apispec.Document) error
	}{
		{apispec.Swagger, "/openapi/v2", "application/json", apispec.Document.CutSwagger},
		{apispec.Aggregated, "/apis", aggregated, func(d apispec.Document) error { return d.CutList("items") }},
		{apispec.Groups, "/apis", "application/json", func(d apispec.Document) error { return d.CutList("groups") }},
	} {
		d, err := get(shared.path, shared.accept)
		if err != nil {
			return nil, err
		}
		if err := shared.cut(d); err != nil {
			return nil, fmt.Errorf("GET %s: %w", shared.path, err)
		}
		files[shared.name] = d
	}
	return files, nil
}

// write replaces the directory's files by these. What cannot be encoded leaves
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
