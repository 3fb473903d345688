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

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	fakeremote "k8s.io/cri-client/pkg/fake"
)

// newRuntimeCommand serves the fake container runtime of a real kubelet, which
// is a process of its own as a real one is.
func newRuntimeCommand() *cobra.Command {
	var socket string
	cmd := &cobra.Command{
		Use:    "runtime",
		Short:  "Run a container runtime without containers",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(cmd *cobra.Command, _ []string) error { return serveRuntime(cmd.Context(), socket) },
	}
	cmd.Flags().StringVar(&socket, "socket", "", "Where it serves.")
	return cmd
}

func serveRuntime(ctx context.Context, socket string) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	// An earlier process may have left it.
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--socket: %w", err)
	}
	runtime := fakeremote.NewFakeRemoteRuntime()
	// A kubelet does not take images of no size.
	runtime.ImageService.SetFakeImageSize(1 << 20)
	if err := runtime.Start("unix://" + socket); err != nil {
		return fmt.Errorf("starting the fake container runtime: %w", err)
	}
	defer runtime.Stop()
	<-ctx.Done()
	return nil
}
