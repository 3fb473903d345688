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
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// wording is a text of a file here, and its text in a fork.
type wording struct{ here, there string }

// wordings has the texts that differ in a fork, by the files' paths here. They
// are about parts that are composed from outside here, and are upstream's own
// there, and about things that a fork does not have.
var wordings = map[string][]wording{
	"cmd/kube-apiserver/controlplane/server.go": {
		// Upstream's definitions have the group's: see editOpenAPI. Nothing refers
		// to them while the gate is off.
		{"	\"k8s.io/kubernetes-features/pkg/generated/openapi\"\n", ""},
		{"	definitions := upstreamopenapi.GetOpenAPIDefinitions\n	if c.lifecycleEnabled {\n		definitions = openapi.GetAllOpenAPIDefinitions\n	}\n", ""},
		{"schemes, resources, definitions, opts.InformerName)", "schemes, resources, upstreamopenapi.GetOpenAPIDefinitions, opts.InformerName)"},
	},
	"test/utils/localcluster/hints.go": {
		// Upstream's make puts binaries there.
		{`"_output/local"`, `"_output/features"`},
	},
	"test/e2e_features/disruption/main_test.go": {
		{`FAULTS_SHORT=true; \"make test-faults\" runs the whole`, `FAULTS_SHORT=true; FAULTS_SHORT=false runs the whole`},
	},
	"test/e2e_features/framework/framework.go": {
		{`from "make upstream".`, `which is in
// _output/upstream when it was built from upstream's tag.`},
		{`build it with \"make upstream\"`, `build it from upstream's tag, and put it there`},
	},
	"test/e2e_features/framework/previous.go": {
		{` hack/verify
// compares it with go.mod.`, ``},
		{`is the version of hack/previous/go.mod, which
// "make upstream-previous" builds.`, `is the patch version of the minor version before
// that clusters come from.`},
		{`from
// "make upstream-previous". The`, `which is
// in _output/previous when it was built from upstream's tag. The`},
		{`minor version before, from "make features-previous".`, `minor version before.`},
		{`a minor version, from "make upstream-kubelets".
// It`, `a minor version, which
// is in _output/kubelets when it was built from upstream's tag. It`},
		{`a minor version, from "make
// upstream-servers". It`, `a minor version,
// which is in _output/servers when it was built from upstream's tag. It`},
		{`a binary that a target of the Makefile builds beside those of "make all".`, `a binary in a folder beside those of make.`},
		{`build it with \"make %s\"", what, err, target)`, `build it from its tag, and put it there", what, err)`},
	},
}

var (
	// page is a page of docs, which go to kubernetes/website.
	page = regexp.MustCompile(`\bdocs/(?:contributors/)?([a-z-]+)\.md\b`)
	// localUp are targets for people that a fork does not have.
	localUp = regexp.MustCompile(`\bmake (up|down|demo)\b`)
)

// reword replaces the texts of a file that differ in a fork.
func reword(file string, data []byte) ([]byte, error) {
	for _, w := range wordings[file] {
		if n := bytes.Count(data, []byte(w.here)); n != 1 {
			return nil, fmt.Errorf("%s has %q %d times, not once; change the table in hack/fork/wordings.go to what it says now", file, w.here, n)
		}
		data = bytes.Replace(data, []byte(w.here), []byte(w.there), 1)
	}
	if bytes.IndexByte(data, 0) >= 0 {
		return data, nil
	}
	data = page.ReplaceAll(data, []byte("the page $1"))
	if strings.HasPrefix(file, "cmd/local-up/") || strings.HasPrefix(file, "test/") {
		data = localUp.ReplaceAll(data, []byte("local-up $1"))
	}
	return data, nil
}
