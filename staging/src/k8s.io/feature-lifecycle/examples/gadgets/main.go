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

// The gadget operator shows, in a program that runs, what an operator with features
// of its own does with this library: it declares a feature, asks a gate that reports, takes
// its value from the API, and runs the server flow in its own namespace.
// docs/operator-authors.md explains it, and a test runs it against a real cluster with the
// permissions of rbac.yaml alone. It does nothing with gadgets but to say whether
// they may have colours. The widget operator beside it does real work.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"k8s.io/client-go/tools/clientcmd"
)

const (
	namespace = "gadgets"
	component = "gadget-operator"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := start(ctx, os.Args[1:]); err != nil && !errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func start(ctx context.Context, args []string) error {
	options, err := parse(args)
	if err != nil {
		return err
	}
	client, err := clientcmd.BuildConfigFromFlags("", options.kubeconfig)
	if err != nil {
		return err
	}
	return run(ctx, options, client)
}
