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

// Package main looks ahead to the next minor version of Kubernetes: it lists the gates of a published
// version, most often a pre-release, against this build's and the catalog, or writes them as the data of
// pkg/featurelifecycle/ahead (hack/update-ahead.sh). It reads upstream's modules and builds nothing of them.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	"k8s.io/kubernetes-features/pkg/featurelifecycle/ahead"
)

func main() {
	version := flag.String("version", "", "The version to read, for example v1.38.0-beta.0; that of the committed data without it.")
	asData := flag.Bool("data", false, "Write the data of pkg/featurelifecycle/ahead instead of the list.")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *version, *asData); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// run reads a version and writes the data or the list.
func run(ctx context.Context, out io.Writer, version string, asData bool) error {
	if version == "" {
		next, err := ahead.Next()
		if err != nil {
			return err
		}
		version = next.Version()
	}
	release, err := fetch(ctx, version)
	if err != nil {
		return err
	}
	if !asData {
		return list(out, release)
	}
	data, err := release.Marshal()
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	return err
}
