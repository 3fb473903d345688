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
	"flag"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// interval is the time between two readings of the files, and between two checks of
// an endpoint.
const interval = time.Second

func main() {
	file := flag.String("c", "envoy.yaml", "the configuration, in the form of Envoy's bootstrap")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *file); err != nil {
		slog.Error("The balancer cannot run", "err", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, file string) error {
	files, err := readBootstrap(file)
	if err != nil {
		return err
	}
	b := newBalancer()
	defer b.close()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	b.follow(ctx, files, tick.C)
	return nil
}
