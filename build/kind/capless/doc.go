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

// Command capless is an OCI runtime for machines that withhold capabilities from
// root. It takes these out of what a container asks for, then executes runc with the
// same arguments.
//
// "docker run --privileged" asks for all capabilities that the kernel has, and runc
// fails when one of them is not to be had ("unable to apply caps: operation not
// permitted"). A container gets nothing by capless that the machine withholds.
//
// As "capless print-withheld" it is no runtime, but prints the capabilities that its
// container lacks. As "capless settings" it reads and writes settings of the kernel for a
// user who may start containers, and not change these (package kernel).
//
// The runtime is runc in the PATH, or what the variable CAPLESS_RUNTIME names.
package main
