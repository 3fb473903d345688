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

// Package host runs a command where a Docker daemon can run kind's nodes, and leaves
// the machine as it was.
//
// Where the caller's daemon can run privileged containers, the command uses it. Others may
// use it, too, so only what the command can have made counts there: containers of its
// cluster, their volumes, kind's network, and settings of the kernel that nodes change.
// These a privileged container restores where the process itself may not.
//
// Without such a daemon, Run starts one of its own in mount, network and process
// namespaces, where the command runs, too: ports, bridges and rules of a firewall are
// apart from the machine's, and all processes end with the first one. Run cleans up what
// namespaces do not keep apart: cgroups, settings of the kernel, and directories that
// Docker makes.
//
// There is no way from those namespaces to other networks. The command has to have on
// the disk what it needs.
package host
