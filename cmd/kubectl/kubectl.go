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

// Package main runs kubectl, unchanged.
package main

import (
	"os"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // cloud providers' kubeconfig plugins
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	// The command's construction logs (plugins, .kuberc), so verbosity must
	// be known before the flags are parsed. An unreadable -v is left for the
	// flag parser to report.
	_, _ = logs.GlogSetter(cmd.GetLogVerbosity(os.Args))
	util.CheckErr(cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()))
}
