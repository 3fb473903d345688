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
	"go/format"
	"path"
	"regexp"
	"slices"
	"strings"
)

const (
	// ours and theirs are the prefixes of import paths.
	ours   = "k8s.io/kubernetes-features"
	theirs = "k8s.io/kubernetes"
	// libraryDir is the directory of the staging module, here and there.
	libraryDir = "staging/src/" + libraryPath
	// exampleDir is the operator that shows what the staging module is for.
	exampleDir = libraryDir + "/examples/widget-operator"
	// libraryPath is its module path.
	libraryPath = "k8s.io/feature-lifecycle"
	// libraryName is the name of its repository once published.
	libraryName = "feature-lifecycle"
)

// part is one step of landing and one patch of the series. Each builds with the
// parts before it.
type part struct {
	// title is the subject of the patch.
	title string
	// why is its text.
	why string
	// paths are the directories and files of this repository that it has, as
	// slash-separated paths from the root. They keep their paths in a fork.
	paths []string
	// edits are the files of upstream that it edits.
	edits []edit
}

// testsDir is apart from test/integration, all of which upstream's "make
// test-integration" runs: these tests start processes that have to be built first.
const testsDir = "test/e2e_features"

// parts are in the order of dependencies, which is also the order in which
// docs/contributors/fork.md advises to land.
var parts = []part{
	{
		title: "Add the staging module k8s.io/feature-lifecycle",
		why:   "The library of KEP-3920: API types, clients, the layer in front of feature gates, and the server flow.",
		paths: []string{libraryDir},
		edits: libraryEdits,
	},
	{
		title: "Add the API group features.k8s.io",
		why:   "Internal types, conversion, validation and storage of Feature and FeatureReport, their OpenAPI definitions, and the gate FeatureLifecycle.",
		paths: []string{"pkg/apis/features", "pkg/features", "pkg/registry/features"},
		edits: groupEdits,
	},
	{
		title: "Say what the features of Kubernetes leave behind",
		why:   "The catalog: for each gate its clean-up, upgrade and control, to be taken over by the SIGs that own the gates.",
		paths: []string{"pkg/featurelifecycle/catalog"},
	},
	{
		title: "Report which gates every component uses",
		why:   "The reporting layer stands in front of the gates of each binary; its main says so before it builds the command.",
		paths: []string{
			"cmd/kube-controller-manager", "cmd/kube-proxy", "cmd/kube-scheduler", "cmd/kubelet", "pkg/featurelifecycle/reporting",
		},
	},
	{
		title: "kube-apiserver: finish feature flags",
		why:   "The server with the group, the server flow and its flags. It composes what cmd/kube-apiserver/app exports and therefore is beside it.",
		paths: []string{"pkg/featurelifecycle/rawobject", "cmd/kube-apiserver"},
	},
	{
		title: "Add kubectl feature",
		why:   "A plugin that shows, explains, plans and changes features.",
		paths: []string{"cmd/kubectl-feature", "pkg/featurelifecycle/ahead", "pkg/featurelifecycle/history", "pkg/kubectl/feature", "pkg/kubectl/gatefiles", "pkg/kubectl/observe"},
		edits: pluginEdits,
	},
	{
		title: "Test features with real processes",
		why:   "Clusters of real processes with real etcd, and hollow nodes that report.",
		paths: []string{"cmd/local-up", testsDir, "test/utils/examplegates", "test/utils/localcluster"},
		edits: testEdits,
	},
	{
		title: "Add features.k8s.io to the API specs",
		why:   "What hack/update-openapi-spec.sh writes for the group.",
		edits: specEdits,
	},
	{
		title: "Record what landing wrote",
		why:   "make fork of a later version lands over this one: it may change and remove what still is as recorded.",
	},
}

// stays are the directories and files that do not go to kubernetes/kubernetes,
// with the reason.
var stays = map[string]string{
	"build":                         "upstream makes its releases with its own",
	"docs":                          "pages go to kubernetes/website, the KEP to kubernetes/enhancements",
	"findings":                      "is about public packages as they are published, and needs the network",
	"hack":                          "upstream has its own code generation and checks",
	".ci":                           "upstream has its own",
	".gitignore":                    "upstream has its own",
	".golangci.yml":                 "upstream has its own",
	"CHANGELOG.md":                  "release notes come from the pull requests",
	"LICENSE":                       "the same there",
	"Makefile":                      "upstream has its own",
	"OWNERS":                        "upstream has its own",
	"README.md":                     "is about this repository",
	"go.mod":                        "edited there (editRootModule)",
	"go.sum":                        "edited there (editSums)",
	"go.work":                       "edited there with the go command",
	"go.work.sum":                   "upstream's stays as it is",
	"cmd/kubeadm":                   "is upstream's, unchanged",
	"cmd/kubectl":                   "is upstream's, unchanged",
	"api":                           "merged into upstream's files of the same names",
	"pkg/generated/openapi":         "merged into upstream's file of all definitions",
	gateFile:                        "is a constant and an entry of upstream's lists of gates",
	"BENCHMARKS.md":                 "is about this repository",
	exampleDir:                      "is a module of its own with controller-runtime, which requires published staging modules",
	"test/benchmark":                "writes BENCHMARKS.md; upstream measures with kubernetes/perf-tests",
	"test/docs":                     "runs the commands of the pages",
	"test/external":                 "is a module of its own; test/external/helm goes with the example chart",
	"test/e2e_features/clients":     "goes with test/external/clients",
	"test/e2e_kind":                 "starts nodes of kind by the targets of this Makefile",
	"test/e2e_features/api/readers": "goes with test/external/helm",
	"test/e2e_features/operators/example_test.go": "goes with the example",
	"cmd/kubectl-feature/binary_test.go":          "builds the plugin as a release of this repository does; upstream's unit tests build no binaries",
}

// plans are lists of what is to be done, which come and go.
const plans = "TODO-*.md"

// lands returns true for a file that goes to a fork, with the number of its
// part; err is set for files that the tables do not have.
func lands(file string) (number int, ok bool, err error) {
	longest := ""
	for n, part := range parts {
		for _, dir := range part.paths {
			if below(file, dir) && len(dir) > len(longest) {
				longest, number, ok = dir, n, true
			}
		}
	}
	for dir := range stays {
		if below(file, dir) && len(dir) > len(longest) {
			longest, ok = dir, false
		}
	}
	if plan, err := path.Match(plans, file); plan || err != nil {
		return 0, false, err
	}
	if longest == "" {
		return 0, false, fmt.Errorf("%s: no table says whether it lands; add it to a part or to what stays in hack/fork/mapping.go, and to docs/contributors/fork.md", file)
	}
	return number, ok, nil
}

// isMain is true for a main of one of upstream's binaries.
func isMain(file string) bool {
	match, err := path.Match("cmd/*/*.go", file)
	return match && err == nil
}

// below is true for a file of a directory, and for the file itself.
func below(file, dir string) bool {
	return file == dir || strings.HasPrefix(file, dir+"/")
}

// rewrite is a file's content in a fork.
func rewrite(file string, data []byte) ([]byte, error) {
	if bytes.IndexByte(data, 0) >= 0 {
		return data, nil
	}
	data = bytes.ReplaceAll(data, []byte(ours), []byte(theirs))
	if !strings.HasSuffix(file, ".go") {
		return data, nil
	}
	// Another prefix has another order among the imports.
	formatted, err := format.Source(data)
	if err != nil {
		return nil, fmt.Errorf("%s: formatting it for the fork: %w", file, err)
	}
	return formatted, nil
}

// packageClause begins what a file consists of, after license and documentation.
var packageClause = regexp.MustCompile(`(?m)^package \w+$`)

// besidePackage drops a package's documentation: the package is upstream's and
// has one. The license stays.
func besidePackage(file string, data []byte) ([]byte, error) {
	license := bytes.Index(data, []byte("*/\n"))
	begin := packageClause.FindIndex(data)
	if license < 0 || begin == nil || license > begin[0] {
		return nil, fmt.Errorf("%s: no license before the package clause", file)
	}
	return append(append(bytes.Clone(data[:license+3]), '\n'), data[begin[0]:]...), nil
}

// mainText is the main function of upstream's binaries. Other code in one would
// be lost with ours.
var mainText = regexp.MustCompile(`^func main\(\) \{
	command := app\.New\w+\((context\.Background\(\))?\)
	code := cli\.Run\(command\)
	os\.Exit\(code\)
\}\n$`)

// replaceMain gives upstream's main the code of ours and keeps upstream's
// license and documentation, so that the difference is what differs. Upstream's
// code and what it imports for their effects alone must be what ours stands for.
func replaceMain(file string, theirs, ours []byte) ([]byte, error) {
	theirBegin, ourBegin := packageClause.FindIndex(theirs), packageClause.FindIndex(ours)
	if theirBegin == nil || ourBegin == nil {
		return nil, fmt.Errorf("%s: no package clause in upstream's or our file", file)
	}
	parsed, err := parse(file, theirs)
	if err != nil {
		return nil, err
	}
	own, err := parse(file, ours)
	if err != nil {
		return nil, err
	}
	if begin := bytes.Index(theirs, []byte("\nfunc ")); begin < 0 || !mainText.Match(theirs[begin+1:]) {
		return nil, fmt.Errorf("%s: upstream's main does something else than to run the command; do the same in ours, and change mainText in hack/fork/mapping.go", file)
	}
	if theirs, ours := parsed.forEffects(), own.forEffects(); !slices.Equal(theirs, ours) {
		return nil, fmt.Errorf("%s: upstream imports %s for their effects, and ours %s; import the same in ours", file, strings.Join(theirs, ", "), strings.Join(ours, ", "))
	}
	return append(bytes.Clone(theirs[:theirBegin[0]]), ours[ourBegin[0]:]...), nil
}

// forEffects are the packages that a file imports without a name.
func (s source) forEffects() []string {
	var packages []string
	for _, spec := range s.file.Imports {
		if spec.Name != nil && spec.Name.Name == "_" {
			packages = append(packages, strings.Trim(spec.Path.Value, `"`))
		}
	}
	slices.Sort(packages)
	return packages
}
