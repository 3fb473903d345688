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

// renamed compares the API types of two minor versions of Kubernetes and lists what the
// newer one no longer reads of what the older one stored: kinds whose version is gone,
// fields whose JSON key is gone, and fields whose protobuf number changed or now has
// another meaning. Upstream renames alpha fields in place. Nothing fails then: the value
// is lost when the object is decoded.
//
//	go run ./hack/renamed v0.36.3 v0.37.2
//
// The versions are those of k8s.io/api and the other modules, which "go mod download"
// brings. With the
// versions exchanged it lists what the older one does not read of what the newer one
// stores.
package main

import (
	"context"
	"fmt"
	"os"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "renamed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: renamed v0.36.3 v0.37.2: the older and the newer version of k8s.io/api")
	}
	older, err := load(ctx, args[0])
	if err != nil {
		return err
	}
	newer, err := load(ctx, args[1])
	if err != nil {
		return err
	}
	for _, change := range compare(older, newer) {
		fmt.Println(change)
	}
	return nil
}
