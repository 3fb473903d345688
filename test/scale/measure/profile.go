//go:build linux

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

package measure

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/rest"
)

// Profile writes a profile of the server that a client talks to into a file. Kind is
// "heap" or another of net/http/pprof that is there at once, or "profile", which
// looks at the processor for as many seconds.
func Profile(ctx context.Context, client rest.Interface, kind string, seconds int, file string) error {
	request := client.Get().AbsPath("/debug/pprof/" + kind)
	if seconds > 0 {
		request = request.Param("seconds", fmt.Sprint(seconds))
	}
	data, err := request.DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("profile %s: %w", kind, err)
	}
	return os.WriteFile(file, data, 0o644)
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
