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
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// predecessor is the staging module before ours in upstream's sorted lists.
const predecessor = "externaljwt"

// libraryEdits are upstream's lists of staging modules.
var libraryEdits = []edit{
	{"go.work", editWork},
	{"go.mod", editRootModule},
	{"go.sum", editSums},
	{libraryDir + "/go.mod", editLibraryModule},
	{"staging/README.md", editReadme},
	{"staging/publishing/rules.yaml", editRules},
	{"staging/publishing/import-restrictions.yaml", editRestrictions},
	{libraryDir + "/LICENSE", fromRoot("LICENSE")},
	// hack/verify-staging-meta-files.sh wants these.
	{libraryDir + "/code-of-conduct.md", fromRoot("code-of-conduct.md")},
	{libraryDir + "/SECURITY_CONTACTS", fromRoot("SECURITY_CONTACTS")},
	{libraryDir + "/.github/PULL_REQUEST_TEMPLATE.md", fromSibling(".github/PULL_REQUEST_TEMPLATE.md")},
}

// groupEdits are upstream's lists of gates and API groups.
var groupEdits = []edit{
	{"pkg/features/kube_features.go", editGates},
	{gateLists + "versioned_feature_list.yaml", editGateList},
	{gateLists + "feature_list.md", editGateTable},
	{"pkg/controlplane/import_known_versions.go", after("\t_ \"k8s.io/kubernetes/pkg/apis/extensions/install\"\n", "\t_ \"k8s.io/kubernetes/pkg/apis/features/install\"\n")},
	{openAPI, editOpenAPI},
	{"hack/update-codegen.sh", after("        staging/src/k8s.io/kube-aggregator\n", "        "+libraryDir+"\n")},
	{"hack/lib/init.sh", editGroupVersions},
}

// editGroupVersions has hack/verify-api-groups.sh find the group, in the list of
// those without generated code in k8s.io/api and k8s.io/client-go: the groups of
// the other list have to be in k8s.io/api for hack/update-codegen.sh.
func editGroupVersions(ctx context.Context, p *plan, base []byte) ([]byte, error) {
	const begin = "KUBE_NONSERVER_GROUP_VERSIONS=\"\n"
	base, err := insert(base, begin, "# features.k8s.io is served, with the types and clients of "+libraryDir+",\n"+
		"# whose hack/update-codegen.sh generates them.\n"+begin)
	if err != nil {
		return nil, err
	}
	return after(" componentconfig/v1alpha1 \\\n", " features.k8s.io/v1alpha1 \\\n")(ctx, p, base)
}

// pluginEdits have upstream's builds and releases make the plugin of kubectl.
var pluginEdits = []edit{
	{"hack/lib/golang.sh", func(ctx context.Context, p *plan, base []byte) ([]byte, error) {
		base, err := after("  cmd/kubectl-convert\n", "  cmd/kubectl-feature\n")(ctx, p, base)
		if err != nil {
			return nil, err
		}
		return after("  kubectl\n  kubectl-convert\n", "  kubectl-feature\n")(ctx, p, base)
	}},
}

// testEdits have upstream's "make test" leave out tests that start processes.
var testEdits = []edit{
	{"hack/make-rules/test.sh", after("            -e '^k8s.io/kubernetes/test/e2e_dra$' \\\n", "            -e '^k8s.io/kubernetes/"+testsDir+"(/.*)?$' \\\n")},
}

// after adds text behind the one place that has another.
func after(mark, text string) func(context.Context, *plan, []byte) ([]byte, error) {
	return func(_ context.Context, _ *plan, base []byte) ([]byte, error) {
		return insert(base, mark, mark+text)
	}
}

// insert replaces the only occurrence of a mark.
func insert(base []byte, mark, replacement string) ([]byte, error) {
	if n := bytes.Count(base, []byte(mark)); n != 1 {
		return nil, fmt.Errorf("upstream's file has %q %d times, not once; look where the entry belongs now and change hack/fork/edits.go", mark, n)
	}
	return bytes.Replace(base, []byte(mark), []byte(replacement), 1), nil
}

// fromRoot is a copy of a file of the root, as each staging module has one.
func fromRoot(file string) func(context.Context, *plan, []byte) ([]byte, error) {
	return func(_ context.Context, p *plan, _ []byte) ([]byte, error) { return p.base.read(file) }
}

// fromSibling is a copy of a file that all staging modules have alike.
func fromSibling(file string) func(context.Context, *plan, []byte) ([]byte, error) {
	return func(_ context.Context, p *plan, _ []byte) ([]byte, error) {
		return os.ReadFile(filepath.Join(p.base.staging["k8s.io/component-base"], filepath.FromSlash(file)))
	}
}

// editReadme adds the library to the sorted list of repositories.
func editReadme(_ context.Context, _ *plan, base []byte) ([]byte, error) {
	const entry = "- [`k8s.io/%s`](https://github.com/kubernetes/%s)\n"
	before := fmt.Sprintf(entry, predecessor, predecessor)
	return insert(base, before, before+fmt.Sprintf(entry, libraryName, libraryName))
}

// editRules has the publishing bot publish the library: from master, and from
// the release branch of this version.
func editRules(_ context.Context, p *plan, base []byte) ([]byte, error) {
	library, ok := p.files[libraryDir+"/go.mod"]
	if !ok {
		return nil, fmt.Errorf("%s/go.mod is missing", libraryDir)
	}
	direct, err := required(library.data)
	if err != nil {
		return nil, err
	}
	dependencies, err := p.base.closure(direct)
	if err != nil {
		return nil, err
	}
	minor := strings.Join(strings.Split(strings.TrimPrefix(p.base.version, "v"), ".")[:2], ".")
	var rule strings.Builder
	fmt.Fprintf(&rule, "- destination: %s\n  branches:\n", libraryName)
	for _, branch := range []string{"master", "release-" + minor} {
		fmt.Fprintf(&rule, "  - name: %s\n    dependencies:\n", branch)
		for _, module := range dependencies {
			fmt.Fprintf(&rule, "    - repository: %s\n      branch: %s\n", strings.TrimPrefix(module, "k8s.io/"), branch)
		}
		fmt.Fprintf(&rule, "    source:\n      branch: %s\n      dirs:\n      - %s\n", branch, libraryDir)
	}
	rule.WriteString("  library: true\n")
	// The rules end where the settings of the bot begin.
	const settings = "recursive-delete-patterns:\n"
	return insert(base, settings, rule.String()+settings)
}

// restrictions are the roots that the library may import from: never
// k8s.io/kubernetes, so that any operator can use it.
const restrictions = `
- baseImportPath: "./` + libraryDir + `"
  allowedImports:
  - k8s.io/api
  - k8s.io/apimachinery
  - k8s.io/client-go
  - k8s.io/component-base
  - ` + libraryPath + `
  - k8s.io/klog
  - k8s.io/kube-openapi
  - k8s.io/utils
`

func editRestrictions(_ context.Context, _ *plan, base []byte) ([]byte, error) {
	return append(bytes.TrimRight(base, "\n"), "\n"+restrictions...), nil
}
