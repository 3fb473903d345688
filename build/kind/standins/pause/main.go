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

// Command pause holds the namespaces of a pod, in place of the image
// registry.k8s.io/pause. As process 1 of a shared process namespace it reaps what
// containers leave behind. It ends at SIGINT and SIGTERM.
//
// With -v it shows what it is and ends, as a Job does that kubeadm starts before an upgrade.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

func main() {
	if shown(os.Args[1:], os.Stdout) {
		return
	}
	signals := make(chan os.Signal, 1)
	// A signal that arrives while the buffer is full is not lost: reap takes all.
	signal.Notify(signals, syscall.SIGCHLD)
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	pause(signals, end, reap)
}

// shown shows what this is if one of the arguments is -v, in capitals, too.
func shown(args []string, out io.Writer) bool {
	if !slices.ContainsFunc(args, func(arg string) bool { return strings.EqualFold(arg, "-v") }) {
		return false
	}
	fmt.Fprintln(out, "pause of build/kind")
	return true
}

// pause returns at the first signal of end, and reaps at each of children.
func pause(children, end <-chan os.Signal, reap func() int) {
	for {
		select {
		case <-end:
			return
		case <-children:
			reap()
		}
	}
}

// reap waits for all children that have ended, and returns their number.
func reap() (count int) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil || pid <= 0:
			return count
		default:
			count++
		}
	}
}
