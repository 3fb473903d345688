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
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"

	"k8s.io/kubernetes-features/build/kind/capless/kernel"
	"k8s.io/kubernetes-features/build/kind/capless/withheld"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "capless:", err)
		os.Exit(1)
	}
}

// run returns only with an error where it is a runtime: runc replaces the process.
func run(args []string, out io.Writer) error {
	if len(args) > 0 && args[0] == kernel.Command {
		return kernel.Run(kernel.Dir, args[1:], out)
	}
	names, err := withheld.Capabilities(os.DirFS("/proc"))
	if err != nil {
		return err
	}
	if slices.Equal(args, []string{withheld.Command}) {
		for _, name := range names {
			fmt.Fprintln(out, name)
		}
		return nil
	}
	if file := specification(args); file != "" && len(names) > 0 {
		if err := strip(file, names); err != nil {
			return err
		}
	}
	name := os.Getenv("CAPLESS_RUNTIME")
	if name == "" {
		name = "runc"
	}
	runtime, err := exec.LookPath(name)
	if err != nil {
		return fmt.Errorf("cannot find the runtime %s: %w; install runc, or name it in CAPLESS_RUNTIME", name, err)
	}
	if err := syscall.Exec(runtime, append([]string{runtime}, args...), os.Environ()); err != nil {
		return fmt.Errorf("cannot execute %s: %w", runtime, err)
	}
	return nil
}
