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

package catalog

import (
	"cmp"
	"go/ast"
	"go/token"
	"maps"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-base/featuregate"
	"k8s.io/feature-lifecycle/lifecycle/task"
)

// asksWithoutStorage lists gates that are queried where code decides what is
// stored, with the reason why they store nothing of their own.
var asksWithoutStorage = map[featuregate.Feature]string{
	"ClearingNominatedNodeNameAfterBinding":        "refuses to set an older field of bound pods",
	"DRAResourceClaimGranularStatusAuthorization":  "the strategy asks who may change a status",
	"DRAFractionalCapacityRange":                   "validation reckons with fractions in an older field",
	"ExcludeAdmissionWebhookVirtualResources":      "the strategy warns of rules",
	"InPlacePodVerticalScalingInitContainers":      "permits the resize of init containers, whose fields are older",
	"InPlacePodVerticalScalingMemoryBackedVolumes": "permits the change of an older field",
	"ManifestBasedAdmissionControlConfig":          "refuses names with the suffix of static objects, which are not stored",
	"MutablePVNodeAffinity":                        "permits the change of an older field",
	"MutablePodResourcesForSuspendedJobs":          "permits the change of an older field",
	"MutableSchedulingDirectivesForSuspendedJobs":  "permits the change of an older field",
	"PodDeletionCost":                              "refuses values of an annotation that every client may write while it is off",
	"PodLevelResourcesFixDefaulting":               "fills older fields in another way",
	"PodLogsQuerySplitStreams":                     "a parameter of pods/log has a default",
	"StrictIPCIDRValidation":                       "refuses values of older fields",
}

// ask is a query of gates in upstream's code.
type ask struct {
	// gates has one gate, or for drops those of the condition.
	gates []featuregate.Feature
	at    string
	// drops are the names of the Go fields that are emptied while they are off.
	drops []string
	// resource names, for storage providers, the one that is served only while
	// the gate is on.
	resource string
}

// constants are the gates of kube-apiserver by the import path that declares them.
func constants(t *testing.T) map[string]map[string]featuregate.Feature {
	t.Helper()
	return map[string]map[string]featuregate.Feature{
		kubernetes + "/pkg/features":       gateConstants(t, kubernetes, "pkg/features"),
		apiserver + "/pkg/features":        gateConstants(t, apiserver, "pkg/features"),
		apiextensions + "/pkg/features":    gateConstants(t, apiextensions, "pkg/features"),
		componentBase + "/zpages/features": gateConstants(t, componentBase, "zpages/features"),
	}
}

// reader finds the asks in one file.
type reader struct {
	file      sourceFile
	constants map[string]map[string]featuregate.Feature
	functions map[string]*ast.FuncDecl
	asks      []ask
}

func readAsks(t *testing.T, files []sourceFile) []ask {
	t.Helper()
	constants := constants(t)
	var asks []ask
	for _, file := range files {
		r := reader{file: file, constants: map[string]map[string]featuregate.Feature{}, functions: map[string]*ast.FuncDecl{}}
		for _, spec := range file.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			name := imported[strings.LastIndexByte(imported, '/')+1:]
			if spec.Name != nil {
				name = spec.Name.Name
			}
			if known := constants[imported]; known != nil {
				r.constants[name] = known
			}
		}
		for _, declaration := range file.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok {
				r.functions[function.Name.Name] = function
			}
		}
		for _, function := range r.functions {
			if function.Body != nil {
				r.read(function.Body, "")
			}
		}
		asks = append(asks, r.asks...)
	}
	return asks
}

// read finds the asks below a node; resource is the name that an if statement
// around it declares, as storage providers do.
func (r *reader) read(node ast.Node, resource string) {
	ast.Inspect(node, func(child ast.Node) bool {
		switch child := child.(type) {
		case *ast.BlockStmt:
			r.readDrops(child.List)
		case *ast.IfStmt:
			if declared := declaredResource(child); declared != "" && child != node {
				r.read(child, declared)
				return false
			}
			if resource != "" && child != node && servesSubresources(child.Body.List) {
				r.read(child, "")
				return false
			}
		case *ast.CallExpr:
			if gate := r.gate(child); gate != "" {
				r.asks = append(r.asks, ask{gates: []featuregate.Feature{gate}, at: r.file.at(child), resource: resource})
			}
		}
		return true
	})
}

// servesSubresources returns true for statements that only add to what a server serves
// below resources: storage[resource+"/x"] = ….
func servesSubresources(statements []ast.Stmt) bool {
	return len(statements) > 0 && !slices.ContainsFunc(statements, func(statement ast.Stmt) bool {
		assign, ok := statement.(*ast.AssignStmt)
		if !ok || len(assign.Lhs) != 1 {
			return true
		}
		place, ok := assign.Lhs[0].(*ast.IndexExpr)
		if !ok {
			return true
		}
		_, below := place.Index.(*ast.BinaryExpr)
		return !below
	})
}

// declaredResource is "x" for: if resource := "x"; … { }.
func declaredResource(statement *ast.IfStmt) string {
	assign, ok := statement.Init.(*ast.AssignStmt)
	if !ok || len(assign.Lhs) != 1 || len(assign.Rhs) != 1 {
		return ""
	}
	name, isName := assign.Lhs[0].(*ast.Ident)
	value, isText := assign.Rhs[0].(*ast.BasicLit)
	if !isName || !isText || name.Name != "resource" {
		return ""
	}
	text, _ := strconv.Unquote(value.Value)
	return text
}

// gate returns the one that a call of Enabled queries, "" for other calls.
func (r *reader) gate(call *ast.CallExpr) featuregate.Feature {
	function, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || function.Sel.Name != "Enabled" || len(call.Args) != 1 {
		return ""
	}
	constant, ok := call.Args[0].(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	from, ok := constant.X.(*ast.Ident)
	if !ok {
		return ""
	}
	return r.constants[from.Name][constant.Sel.Name]
}

// readDrops finds what statements empty while a gate is off, in the two forms
// that upstream has:
//
//	if !Enabled(gate) && … { drop }
//	if Enabled(gate) || … { return }; drop
func (r *reader) readDrops(statements []ast.Stmt) {
	for i, statement := range statements {
		guard, ok := statement.(*ast.IfStmt)
		if !ok {
			continue
		}
		on, off := r.asked(guard.Cond)
		r.addDrops(off, guard, guard.Body.List)
		if len(guard.Body.List) > 0 {
			if _, returns := guard.Body.List[len(guard.Body.List)-1].(*ast.ReturnStmt); returns {
				r.addDrops(on, guard, statements[i+1:])
			}
		}
	}
}

// asked returns the gates that a condition wants on, and those that it wants
// off.
func (r *reader) asked(condition ast.Expr) (on, off []featuregate.Feature) {
	switch condition := condition.(type) {
	case *ast.ParenExpr:
		return r.asked(condition.X)
	case *ast.UnaryExpr:
		if condition.Op == token.NOT {
			off, on = r.asked(condition.X)
		}
	case *ast.BinaryExpr:
		on, off = r.asked(condition.X)
		moreOn, moreOff := r.asked(condition.Y)
		on, off = append(on, moreOn...), append(off, moreOff...)
	case *ast.CallExpr:
		if gate := r.gate(condition); gate != "" {
			on = append(on, gate)
		}
	}
	return on, off
}

func (r *reader) addDrops(gates []featuregate.Feature, guard ast.Node, statements []ast.Stmt) {
	if drops := r.emptied(statements, sets.New[string]()); len(gates) > 0 && len(drops) > 0 {
		r.asks = append(r.asks, ask{gates: gates, at: r.file.at(guard), drops: drops})
	}
}

// emptied are the fields to which statements assign nothing, and the functions of
// the file that they call and that are called drop….
func (r *reader) emptied(statements []ast.Stmt, seen sets.Set[string]) []string {
	var fields []string
	for _, statement := range statements {
		ast.Inspect(statement, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.AssignStmt:
				for i, left := range node.Lhs {
					if field, ok := left.(*ast.SelectorExpr); ok && len(node.Lhs) == len(node.Rhs) && isZero(node.Rhs[i]) {
						fields = append(fields, field.Sel.Name)
					}
				}
			case *ast.CallExpr:
				name, ok := node.Fun.(*ast.Ident)
				if ok && strings.HasPrefix(strings.ToLower(name.Name), "drop") && r.functions[name.Name] != nil && !seen.Has(name.Name) {
					seen.Insert(name.Name)
					fields = append(fields, r.emptied(r.functions[name.Name].Body.List, seen)...)
				}
			}
			return true
		})
	}
	return fields
}

func isZero(value ast.Expr) bool {
	switch value := value.(type) {
	case *ast.Ident:
		return value.Name == "nil" || value.Name == "false"
	case *ast.BasicLit:
		return value.Value == `""` || value.Value == "0"
	default:
		return false
	}
}

// TestDropCodeIsCovered checks gates that upstream queries where it decides what
// is stored: drop code, strategies, defaults, validation. Their verdicts store
// something. With drop code, a verdict stores a field of every name that is
// dropped.
func TestDropCodeIsCovered(t *testing.T) {
	files := slices.Concat(
		parse(t, kubernetes, "pkg/api", filesNamed("util.go")),
		parse(t, kubernetes, "pkg/apis", filesNamed("defaults.go", "validation.go")),
		parse(t, kubernetes, "pkg/registry", filesNamed("strategy.go")),
		parse(t, apiextensions, "pkg/registry", filesNamed("strategy.go")),
	)
	open, entries, keys, dependencies := openGates(t), verdicts(), jsonKeys(t), knownGates(t).Dependencies()
	resources := newFolders(t)
	unused := maps.Clone(asksWithoutStorage)
	asked, dropped := map[featuregate.Feature]sets.Set[string]{}, map[featuregate.Feature]sets.Set[string]{}
	for _, a := range readAsks(t, files) {
		gates := slices.DeleteFunc(a.gates, func(gate featuregate.Feature) bool { _, ok := open[gate]; return !ok })
		for _, gate := range deciding(gates, dependencies) {
			if asksWithoutStorage[gate] != "" && len(a.drops) == 0 {
				delete(unused, gate)
				continue
			}
			if asked[gate] == nil {
				asked[gate], dropped[gate] = sets.New[string](), sets.New[string]()
			}
			asked[gate].Insert(a.at)
			for _, field := range a.drops {
				if !resources.storesKey(entries[gate], a.folder(), keys[field]) {
					dropped[gate].Insert(cmp.Or(strings.Join(sets.List(keys[field]), " or "), field) + " of " + a.folder())
				}
			}
		}
	}
	for _, gate := range slices.Sorted(maps.Keys(asked)) {
		at := strings.Join(sets.List(asked[gate]), ", ")
		if fields := strings.Join(sets.List(dropped[gate]), ", "); fields != "" {
			t.Errorf("gate %s: while it is off, upstream drops %s (%s), and its Entry in pkg/featurelifecycle/catalog has no path with that in the resource, or, for pods, in every pod template; add a task, and the field to testdata/%s.yaml", gate, fields, at, gate)
		} else if len(entries[gate].Stores()) == 0 {
			t.Errorf("gate %s: upstream asks it to decide what is stored (%s) and its verdict stores nothing; add a task or Retained to its Entry in pkg/featurelifecycle/catalog, or say in asksWithoutStorage of dropcode_test.go why nothing of it is stored", gate, at)
		}
	}
	for gate := range unused {
		t.Errorf("gate %s is not asked where upstream decides what is stored, or drops fields; remove it from asksWithoutStorage in dropcode_test.go", gate)
	}
}

// jsonKeys are the JSON keys of fields by their Go name, which internal types and
// those of all versions share.
func jsonKeys(t *testing.T) map[string]sets.Set[string] {
	t.Helper()
	keys := map[string]sets.Set[string]{}
	for _, file := range append(parse(t, api, ".", apiTypes), parse(t, apiextensions, "pkg/apis/apiextensions/v1", apiTypes)...) {
		eachDeclaredField(file.File, func(_, field, key string, _ *ast.Field) {
			if keys[field] == nil {
				keys[field] = sets.New[string]()
			}
			keys[field].Insert(key)
		})
	}
	return keys
}

// folder names what the code is about: pod for …/pkg/api/pod/util.go:12.
func (a ask) folder() string { return path.Base(path.Dir(a.at)) }

// folders know the resources that folders of upstream are about.
type folders struct {
	// resources are by the kind in lower case, which is the folder's name.
	resources map[string][]schema.GroupResource
	// templates has the path of the pod template in each resource.
	templates map[schema.GroupResource]string
}

func newFolders(t *testing.T) folders {
	t.Helper()
	f := folders{map[string][]schema.GroupResource{}, map[schema.GroupResource]string{}}
	for _, r := range storedResources(t) {
		name := strings.ToLower(r.kind.Name())
		f.resources[name] = append(f.resources[name], r.GroupResource)
		eachField(r.kind, func(_ reflect.Type, field reflect.StructField, path string) {
			if dereference(field.Type) == reflect.TypeFor[corev1.PodTemplateSpec]() {
				f.templates[r.GroupResource] = path + "."
			}
		})
	}
	return f
}

// storesKey returns true if one of the keys is in a path that the entry stores
// of the folder's resource, whatever the value: drop code keeps a field that an object has
// with any value. A folder that is not about one resource stands for
// all. Fields of a Pod's spec have to be stored of all pod templates, too.
func (f folders) storesKey(e Entry, folder string, keys sets.Set[string]) bool {
	has := func(r schema.GroupResource, prefix string) bool {
		return slices.ContainsFunc(e.Stores(), func(stored task.Field) bool {
			return stored.Resource == r && !isValue(stored) && (isCollection(stored) || strings.HasPrefix(stored.Path, prefix) &&
				slices.ContainsFunc(parsePath(stored.Path), func(s segment) bool { return keys.Has(s.key) }))
		})
	}
	if f.resources[folder] == nil {
		return slices.ContainsFunc(e.Stores(), func(stored task.Field) bool { return has(stored.Resource, "") })
	}
	if !slices.ContainsFunc(f.resources[folder], func(r schema.GroupResource) bool { return has(r, "") }) {
		return false
	}
	// A field of status may have the same key; the templates have none.
	if pods := (schema.GroupResource{Resource: "pods"}); folder == "pod" && has(pods, "spec") {
		for r, prefix := range f.templates {
			if !has(r, prefix+"spec") {
				return false
			}
		}
	}
	return true
}

// TestGatedStorageIsCovered checks resources that are served only while a gate
// is on. When it is off, their objects remain in etcd, where clients cannot
// reach them.
func TestGatedStorageIsCovered(t *testing.T) {
	open, entries := openGates(t), verdicts()
	groups := map[string]string{} // by folder
	for _, file := range parse(t, kubernetes, "pkg/apis", filesNamed("register.go")) {
		ast.Inspect(file.File, func(node ast.Node) bool {
			if value, ok := node.(*ast.ValueSpec); ok && value.Names[0].Name == "GroupName" && len(value.Values) == 1 {
				if text, ok := value.Values[0].(*ast.BasicLit); ok {
					groups[strings.TrimPrefix(file.importPath(), kubernetes+"/pkg/apis/")], _ = strconv.Unquote(text.Value)
				}
			}
			return true
		})
	}
	asks := readAsks(t, parse(t, kubernetes, "pkg/registry", func(name string) bool {
		return strings.HasPrefix(name, "storage_") && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go")
	}))
	found := false
	for _, a := range asks {
		gate := a.gates[0]
		if _, ok := open[gate]; !ok || a.resource == "" || len(a.drops) > 0 {
			continue
		}
		found = true
		folder, _, _ := strings.Cut(strings.TrimPrefix(a.at, kubernetes+"/pkg/registry/"), "/rest/")
		r := schema.GroupResource{Group: groups[folder], Resource: a.resource}
		if !storesAll(entries[gate], r) {
			t.Errorf("gate %s: upstream serves %s only while it is on (%s) and its verdict does not look after the collection; add lifecycle.ClearCollection(<%s>), or lifecycle.WaitForNone with \"metadata.name\", to the OnDisable of its Entry in pkg/featurelifecycle/catalog, and an object to testdata/%s.yaml", gate, r, a.at, r, gate)
		}
	}
	if !found {
		t.Error("no storage provider asks a gate; teach this test how upstream does it now")
	}
}

// TestBootstrapRBAC checks that verdicts declare whether bootstrap roles depend
// on the gate.
func TestBootstrapRBAC(t *testing.T) {
	files := parse(t, kubernetes, "plugin/pkg/auth/authorizer/rbac/bootstrappolicy", filesNamed("policy.go", "controller_policy.go"))
	adds, dependencies := map[featuregate.Feature]string{}, knownGates(t).Dependencies()
	for _, a := range readAsks(t, files) {
		adds[a.gates[0]] = a.at
	}
	for gate := range adds {
		for _, needed := range dependencies[gate] {
			// A rule that needs both is the one's that cannot be on without the other.
			if needed == "APIServerIdentity" {
				delete(adds, needed)
			}
		}
	}
	entries := verdicts()
	for _, gate := range slices.Sorted(maps.Keys(openGates(t))) {
		e, ok := entries[gate]
		switch {
		case !ok: // TestEveryOpenGateHasAVerdict
		case adds[gate] != "" && !e.BootstrapRBAC:
			t.Errorf("gate %s: bootstrap roles have more rules while it is on (%s); set BootstrapRBAC in its Entry in pkg/featurelifecycle/catalog", gate, adds[gate])
		case adds[gate] == "" && e.BootstrapRBAC:
			t.Errorf("gate %s: no bootstrap role depends on it; remove BootstrapRBAC from its Entry in pkg/featurelifecycle/catalog", gate)
		}
	}
}

// TestUnfinishedCollectionsHaveAVerdict: a resource without a version that is
// finished belongs to a gate that is not finished.
func TestUnfinishedCollectionsHaveAVerdict(t *testing.T) {
	resources := storedResources(t)
	for _, key := range slices.SortedFunc(maps.Keys(resources), func(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) }) {
		if resources[key].finished || slices.ContainsFunc(All(), func(e Entry) bool { return storesAll(e, key) }) {
			continue
		}
		t.Errorf("%s have only the version %s and no verdict looks after the collection; add a task or Retained for it to the Entry of the gate that it belongs to", key, resources[key].version)
	}
}

func storesAll(e Entry, r schema.GroupResource) bool {
	return slices.ContainsFunc(e.Stores(), func(stored task.Field) bool { return isCollection(stored) && stored.Resource == r })
}
