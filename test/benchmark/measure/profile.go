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

package measure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// Kinds of profiles.
const (
	// Processor looks at the processor for some seconds.
	Processor = "profile"
	// Heap is there at once.
	Heap = "heap"
	// Allocations since the start are there at once; two of them make a difference.
	Allocations = "allocs"
)

// Profiler writes profiles of the server that Client talks to into the directory
// Dir, and does nothing if that is "".
type Profiler struct {
	Dir    string
	Client rest.Interface
}

// Take writes a profile of some seconds, 0 for a kind that is there at once. The name
// of the file ends with the kind.
func (p Profiler) Take(ctx context.Context, kind string, seconds int, name string) error {
	if p.Dir == "" {
		return nil
	}
	name = strings.NewReplacer(" ", "-", ",", "").Replace(name)
	request := p.Client.Get().AbsPath("/debug/pprof/" + kind)
	if seconds > 0 {
		request = request.Param("seconds", fmt.Sprint(seconds))
	}
	data, err := request.DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("profile %s: %w", name, err)
	}
	if err := os.MkdirAll(p.Dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(p.Dir, name+"."+kind), data, 0o644)
}

// Begin is Take beside other work; wait waits for its end.
func (p Profiler) Begin(ctx context.Context, kind string, seconds int, name string) (wait func() error) {
	done := make(chan error, 1)
	go func() { done <- p.Take(ctx, kind, seconds, name) }()
	return func() error { return <-done }
}

// Own profiles the processor time of this process until stop, which writes it beside those
// of the server.
func (p Profiler) Own(name string) (stop func() error, err error) {
	if p.Dir == "" {
		return func() error { return nil }, nil
	}
	if err := os.MkdirAll(p.Dir, 0o755); err != nil {
		return nil, err
	}
	file, err := os.Create(filepath.Join(p.Dir, name+"."+Processor))
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return file.Close()
	}, nil
}

// Pause lets time pass in which something is measured.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
