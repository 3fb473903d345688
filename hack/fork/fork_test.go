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
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// forkVariable turns TestAFork on; "make test-fork" sets it. The test
// compiles all of Kubernetes, which takes 10 to 25 minutes and 4 GB the first time.
const forkVariable = "KUBE_FEATURES_TEST_FORK"

// treeVariable names a directory for the tree of TestAFork, which stays there
// for inspection; it must not exist. Without it the tree is a temporary one.
const treeVariable = "KUBE_FEATURES_FORK_TREE"

// mains are the binaries that are ours in a fork.
var mains = []string{"./cmd/kube-apiserver", "./cmd/kube-controller-manager", "./cmd/kube-scheduler", "./cmd/kubelet", "./cmd/kube-proxy", "./cmd/kubectl-feature"}

// binaries are those that a fork builds for the integration test.
var binaries = append([]string{"./cmd/kubectl", "./cmd/local-up", "./test/utils/localcluster/kubemark"}, mains...)

// TestAFork lands in the tree of the version as the Go modules have it, builds
// the binaries there and runs an integration test of theirs.
func TestAFork(t *testing.T) {
	whole := os.Getenv(forkVariable) != ""
	if !whole && os.Getenv("KUBE_FEATURES_REQUIRE_ALL") == "" {
		t.Skipf("copies and compiles all of Kubernetes; \"make test-fork\" runs it (%s)", forkVariable)
	}
	identity(t)
	base, err := findUpstream(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	tree := scratch(t, base)
	if !t.Run("lands", func(t *testing.T) { landsTwice(t, tree) }) {
		t.FailNow()
	}
	t.Run("passes upstream's checks", func(t *testing.T) { passesChecks(t, tree) })
	if !whole {
		t.Log("Left out: generators, and what compiles all of Kubernetes; \"make test-fork\" runs both")
		return
	}
	t.Run("regenerates", func(t *testing.T) { regenerates(t, tree) })
	t.Run("builds and works", func(t *testing.T) { works(t, tree, base.version) })
}

// landsTwice lands in both ways, which must come to the same.
func landsTwice(t *testing.T, tree string) {
	o := options{source: root, kubeRoot: tree}
	series := filepath.Join(t.TempDir(), "series")
	if err := run(t.Context(), options{source: root, kubeRoot: tree, patch: series}, t.Output()); err != nil {
		t.Fatal(err)
	}
	put(t, tree, map[string]string{"pkg/mine.txt": "mine\n"})
	if err := run(t.Context(), o, t.Output()); err == nil || !strings.Contains(err.Error(), "pkg/mine.txt") {
		t.Errorf("a tree with changes: %v", err)
	}
	git(t, tree, "clean", "-fdq")
	if err := run(t.Context(), o, t.Output()); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(t.Context(), o, &out); err != nil || !strings.Contains(out.String(), "nothing changed") {
		t.Errorf("the second time: %v\n%s", err, out.String())
	}
	git(t, tree, "add", "-A")
	landed := git(t, tree, "write-tree")
	git(t, tree, "reset", "-q", "--hard")
	patches, err := filepath.Glob(filepath.Join(series, "*.patch"))
	if err != nil {
		t.Fatal(err)
	}
	git(t, tree, append([]string{"am", "-q"}, patches...)...)
	if applied := git(t, tree, "rev-parse", "HEAD^{tree}"); applied != landed {
		t.Errorf("the series makes another tree than landing:\n%s", git(t, tree, "diff", "--stat", landed, applied))
	}
	out.Reset()
	if err := run(t.Context(), o, &out); err != nil || !strings.Contains(out.String(), "nothing changed") {
		t.Errorf("after the series: %v\n%s", err, out.String())
	}
}

// landed are the packages of the root module that have landed or import such.
var landed = []string{
	"./cmd/kube-apiserver/...", "./cmd/kubectl-feature/...", "./cmd/local-up/...", "./pkg/apis/features/...", "./pkg/featurelifecycle/...",
	"./pkg/kubectl/...", "./pkg/registry/features/...", "./" + testsDir + "/...", "./test/utils/...",
}

// passesChecks runs upstream's own checks of what it has lists and rules for, as
// far as they run without a network and without vendor/. (Its check of aliases of
// imports covers test/e2e only; the one of the publishing bot's rules is in a
// module that is not published, and TestRules compares them.)
func passesChecks(t *testing.T, tree string) {
	library := "./" + libraryDir + "/..."
	goIn(t, tree, "run", "test/compatibility_lifecycle/main.go", "feature-gates", "verify")
	goIn(t, tree, "run", "./cmd/import-boss", "./pkg/...", "./cmd/kube-apiserver/...", "./"+testsDir+"/...", library)
	own := filepath.Join(t.TempDir(), "import-restrictions.yaml")
	if err := os.WriteFile(own, []byte(restrictions), 0o644); err != nil {
		t.Fatal(err)
	}
	goIn(t, tree, "run", "./cmd/importverifier", "k8s.io/", own)
	goIn(t, tree, slices.Concat([]string{"run", "./test/typecheck", "--serial", "--platform", "linux/amd64,windows/amd64,darwin/arm64"}, landed, []string{library})...)
	for _, check := range []string{
		"verify-api-groups.sh", "verify-file-sizes.sh", "verify-non-mutating-validation.sh", "verify-pkg-names.sh", "verify-staging-meta-files.sh", "verify-test-featuregates.sh",
	} {
		if output, err := command(t.Context(), tree, nil, nil, "bash", "hack/"+check); err != nil {
			t.Errorf("%v\n%s", err, output)
		}
	}
	// As hack/verify-testing-import.sh, for the binaries that are ours, too.
	args := append([]string{"list", "-f", `{{.ImportPath}}{{range .Deps}}{{if eq . "testing"}} imports testing{{end}}{{end}}`}, mains...)
	if output := goIn(t, tree, args...); strings.Contains(output, "imports testing") {
		t.Errorf("code for tests is in binaries:\n%s", output)
	}
	stableMetrics(t, tree)
	// boilerplate.py prints the files whose license is wrong.
	if wrong, err := command(t.Context(), tree, nil, nil, "python3", "hack/boilerplate/boilerplate.py"); err != nil || len(wrong) > 0 {
		t.Errorf("licenses: %v\n%s", err, wrong)
	}
	// The library alone, as the publishing bot builds it.
	if output, err := command(t.Context(), filepath.Join(tree, filepath.FromSlash(libraryDir)), nil, []string{"GOWORK=off"}, "go", "list", "-deps", "./..."); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}

// stableMetrics reports metrics that are stable or beta, which upstream has in a list. Its
// tool that writes the list is a module of its own since 1.37 (hack/tools/instrumentation),
// and is not published.
func stableMetrics(t *testing.T, tree string) {
	t.Helper()
	added := git(t, tree, "diff", "--name-only", "--diff-filter=A", "HEAD~"+strconv.Itoa(len(parts)), "HEAD", "--", ":(glob)**/*.go", ":!:*/*_test.go", ":!:*/testdata/*")
	files := strings.Fields(added)
	if !slices.Contains(files, libraryDir+"/agent/metrics.go") {
		t.Fatalf("of %d files that have landed none has the reporter's metrics", len(files))
	}
	alpha := 0
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(tree, file))
		if err != nil {
			t.Fatal(err)
		}
		levels, err := stabilityLevels(file, content)
		if err != nil {
			t.Fatal(err)
		}
		for _, level := range levels {
			if level == "ALPHA" {
				alpha++
			} else {
				t.Errorf("%s has a metric that is %s and not in upstream's list", file, level)
			}
		}
	}
	if alpha == 0 {
		t.Error("no metric was found")
	}
}

// stabilityLevels returns the levels of component-base/metrics that a file names.
func stabilityLevels(name string, content []byte) ([]string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), name, content, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	imported := ""
	for _, spec := range file.Imports {
		if spec.Path.Value == `"k8s.io/component-base/metrics"` {
			imported = "metrics"
			if spec.Name != nil {
				imported = spec.Name.Name
			}
		}
	}
	var levels []string
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == imported && slices.Contains([]string{"ALPHA", "BETA", "STABLE"}, s.Sel.Name) {
				levels = append(levels, s.Sel.Name)
			}
		}
		return true
	})
	return levels, nil
}

// TestStabilityLevels: whatever the package is called in a file.
func TestStabilityLevels(t *testing.T) {
	for content, want := range map[string][]string{
		"import \"k8s.io/component-base/metrics\"\nvar o = metrics.Opts{StabilityLevel: metrics.STABLE}": {"STABLE"},
		"import m \"k8s.io/component-base/metrics\"\nvar a, b = m.ALPHA, m.BETA":                         {"ALPHA", "BETA"},
		"import \"example.com/metrics\"\nvar a = metrics.STABLE":                                         nil,
	} {
		got, err := stabilityLevels("a.go", []byte("package a\n"+content))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got)\n%s", content, err, diff)
		}
	}
}

// regenerates runs the generators of hack/update-codegen.sh that write what has
// landed, with its flags: nothing changes. Protobuf is left out, for which that
// script downloads a compiler.
func regenerates(t *testing.T, tree string) {
	header := []string{"--go-header-file", "hack/boilerplate/boilerplate.generatego.txt"}
	generator := func(name string, args ...string) {
		goIn(t, tree, slices.Concat([]string{"run", name}, header, args)...)
	}
	generator("k8s.io/code-generator/cmd/deepcopy-gen", "--output-file", "zz_generated.deepcopy.go", "./pkg/apis/features", "./"+libraryDir+"/apis/features/v1alpha1")
	generator("k8s.io/code-generator/cmd/defaulter-gen", "--output-file", "zz_generated.defaults.go", "./pkg/apis/features/v1alpha1")
	generator("k8s.io/code-generator/cmd/conversion-gen", "--output-file", "zz_generated.conversion.go",
		"--extra-peer-dirs", "k8s.io/kubernetes/pkg/apis/core", "--extra-peer-dirs", "k8s.io/kubernetes/pkg/apis/core/v1", "--extra-peer-dirs", "k8s.io/api/core/v1", "./pkg/apis/features/v1alpha1")
	report := filepath.Join(t.TempDir(), "violations")
	generator("k8s.io/kube-openapi/cmd/openapi-gen", slices.Concat([]string{
		"--output-file", "zz_generated.openapi.go", "--output-model-name-file", "zz_generated.model_name.go",
		"--output-dir", "pkg/generated/openapi", "--output-pkg", "k8s.io/kubernetes/pkg/generated/openapi", "--report-filename", report,
	}, withOpenAPI(t, tree))...)
	if diff := cmp.Diff(read(t, filepath.Join(tree, "api", "api-rules", "violation_exceptions.list")), read(t, report)); diff != "" {
		t.Errorf("upstream's exceptions from rules for APIs (-) and what breaks them (+):\n%s", diff)
	}
	env := append(inTree(tree), "CODEGEN_PKG="+filepath.Join(tree, "staging/src/k8s.io/code-generator"), "GOBIN="+t.TempDir())
	if output, err := command(t.Context(), tree, nil, env, "bash", libraryDir+"/hack/update-codegen.sh"); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
	if changed := git(t, tree, "status", "--porcelain"); changed != "" {
		t.Errorf("generators write something else than what has landed:\n%s", changed)
	}
}

// withOpenAPI are the packages whose definitions hack/update-codegen.sh has in one
// file: those that say so by a tag.
func withOpenAPI(t *testing.T, tree string) []string {
	t.Helper()
	found := map[string]bool{}
	for file := range strings.Lines(git(t, tree, "grep", "-l", "-e", "^// *+k8s:openapi", "--", ":(glob)**/*.go", ":!:*/testdata/*", ":!:staging/src/k8s.io/code-generator")) {
		found["./"+path.Dir(strings.TrimSpace(file))] = true
	}
	if len(found) < 50 || !found["./"+libraryDir+"/apis/features/v1alpha1"] {
		t.Fatalf("only %d packages have OpenAPI definitions, or the group's has none", len(found))
	}
	return slices.Sorted(maps.Keys(found))
}

// works builds the binaries and runs tests with them.
func works(t *testing.T, tree, version string) {
	// As upstream's hack/lib/version.sh has it for a tag.
	minor := strings.Split(version, ".")[1]
	var flags []string
	for _, in := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags, "-X "+in+".gitVersion="+version, "-X "+in+".gitMajor=1", "-X "+in+".gitMinor="+minor, "-X "+in+".gitTreeState=clean")
	}
	goIn(t, tree, append([]string{"build", "-ldflags", strings.Join(flags, " "), "-o", "_output/bin/"}, binaries...)...)
	published(t, tree)
	goIn(t, tree, "vet", "./"+testsDir+"/...")
	goIn(t, tree, "test", "-count=1", "./pkg/features", "./pkg/controlplane", "./pkg/generated/openapi", "./pkg/registry/features/...", "./pkg/apis/features/...")
	const name = "TestEveryProcessReports"
	// The go command is content when no test has the name.
	if said := goIn(t, tree, "test", "-count=1", "-v", "-run", "^"+name+"$", "./"+testsDir+"/values/processes"); !strings.Contains(said, "--- PASS: "+name+" ") {
		t.Errorf("%s has not run:\n%s", name, said)
	}
}

// published compares the landed api/ with what the fork's server publishes, as
// upstream's hack/verify-openapi-spec.sh does.
func published(t *testing.T, tree string) {
	t.Helper()
	fresh := t.TempDir()
	bin := filepath.Join(tree, "_output", "bin")
	if _, err := command(t.Context(), root, nil, nil, "go", "run", "./hack/openapi-spec", "--all-groups", "--bin-dir", bin, "--output-dir", fresh); err != nil {
		t.Fatal(err)
	}
	documents := func(dir string) map[string]string {
		found := map[string]string{}
		for _, folder := range []string{"discovery", "openapi-spec"} {
			err := eachFile(filepath.Join(dir, folder), folder+"/", func(name, file string) error {
				if path.Ext(name) == ".json" {
					found[name] = read(t, file)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		return found
	}
	want, got := documents(filepath.Join(tree, "api")), documents(fresh)
	for name := range want {
		if _, ok := got[name]; !ok {
			t.Errorf("the server does not publish api/%s", name)
		}
	}
	for name, document := range got {
		if want[name] != document {
			t.Errorf("api/%s is not what the server publishes (-landed +published):\n%.4000s", name, cmp.Diff(strings.Split(want[name], "\n"), strings.Split(document, "\n")))
		}
	}
}

// scratch is a checkout of upstream's version as far as modules have it. A
// staging module that no module here depends on is empty: upstream's examples.
func scratch(t *testing.T, base *upstream) string {
	t.Helper()
	dir := os.Getenv(treeVariable)
	if dir == "" {
		dir = filepath.Join(t.TempDir(), "kubernetes")
	}
	if _, err := os.Stat(dir); err == nil {
		t.Fatalf("%s exists; remove it, or name another directory in %s", dir, treeVariable)
	}
	if err := os.CopyFS(dir, os.DirFS(base.dir)); err != nil {
		t.Fatal(err)
	}
	work, err := base.read("go.work")
	if err != nil {
		t.Fatal(err)
	}
	license := read(t, filepath.Join(base.dir, "hack", "boilerplate", "boilerplate.generatego.txt"))
	for line := range strings.Lines(string(work)) {
		place, ok := strings.CutPrefix(strings.TrimSpace(line), "./staging/src/")
		if !ok {
			continue
		}
		at := filepath.Join(dir, "staging", "src", filepath.FromSlash(place))
		if published, ok := base.staging[place]; ok {
			if err := os.CopyFS(at, os.DirFS(published)); err != nil {
				t.Fatal(err)
			}
			unpublish(t, base, filepath.Join(at, "go.mod"))
		} else {
			put(t, at, map[string]string{"go.mod": "module " + place + "\n\ngo 1.26.0\n", "doc.go": license + "// Package sample is empty.\npackage sample\n"})
			for _, file := range []string{".github/PULL_REQUEST_TEMPLATE.md", "code-of-conduct.md", "LICENSE", "OWNERS", "README.md", "SECURITY_CONTACTS"} {
				put(t, at, map[string]string{file: "\n"})
			}
		}
	}
	git(t, dir, "init", "-q")
	// Some of upstream's files match its .gitignore.
	git(t, dir, "add", "-A", "-f")
	git(t, dir, "commit", "-qm", base.version)
	git(t, dir, "tag", base.version)
	return dir
}

// unpublish undoes what publishing did to a staging module's go.mod.
func unpublish(t *testing.T, base *upstream, file string) {
	t.Helper()
	data, err := stagingModule(t.Context(), base, []byte(read(t, file)))
	if err == nil {
		err = os.WriteFile(file, data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// inTree returns the environment of commands in a fork, with its workspace. Builds
// have no paths, so the next run finds unchanged ones in the cache, though its
// tree is elsewhere. Tests then need the path of the binaries.
func inTree(tree string) []string {
	return []string{"GOWORK=" + filepath.Join(tree, "go.work"), "KUBE_ROOT=" + tree, "GOFLAGS=-trimpath", "KUBE_FEATURES_BIN=" + filepath.Join(tree, "_output", "bin")}
}

// goIn runs the go command in a fork, and returns what it prints.
func goIn(t *testing.T, tree string, args ...string) string {
	t.Helper()
	output, err := command(t.Context(), tree, nil, inTree(tree), "go", args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	t.Logf("go %s\n%s", strings.Join(args, " "), output)
	return string(output)
}
