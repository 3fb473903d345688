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

// kubectl-feature is a plugin: with it in the PATH, kubectl has the command
// "kubectl feature".
package main

import (
	"os"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // cloud providers' kubeconfig plugins

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubernetes-features/pkg/kubectl/feature"
)

func main() {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	os.Exit(feature.Run(os.Args[1:], streams))
}
