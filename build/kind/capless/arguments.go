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
	"path/filepath"
	"strings"
)

// valued are the flags of runc before its command that take a value.
var valued = map[string]bool{"log": true, "log-format": true, "root": true, "criu": true, "rootless": true}

// specification returns the file of an invocation of runc that says which
// capabilities a process gets: the bundle's for create and run, the process' for
// exec. It is empty for an invocation without one.
func specification(args []string) string {
	command, rest := split(args)
	switch command {
	case "create", "run", "restore":
		dir := flagValue(rest, "bundle", "b")
		if dir == "" {
			dir = "."
		}
		return filepath.Join(dir, "config.json")
	case "exec":
		return flagValue(rest, "process", "p")
	}
	return ""
}

// split finds the command among the arguments, after the global flags.
func split(args []string) (command string, rest []string) {
	for i := 0; i < len(args); i++ {
		if !strings.HasPrefix(args[i], "-") {
			return args[i], args[i+1:]
		}
		if valued[strings.TrimLeft(args[i], "-")] {
			i++
		}
	}
	return "", nil
}

// flagValue returns the value of a flag that has a long and a short name, in the
// forms that runc reads. Arguments after the container's name are no flags of runc, but
// exec with a file of the process has no such arguments.
func flagValue(args []string, long, short string) string {
	for i, arg := range args {
		if arg == "--" {
			return ""
		}
		name, value, joined := strings.Cut(arg, "=")
		switch name {
		case "--" + long, "-" + long, "-" + short, "--" + short:
			if joined {
				return value
			}
			if i+1 < len(args) {
				return args[i+1]
			}
		}
	}
	return ""
}
