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

package controlplane

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/runtime/schema"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
)

// prioritiesByVersion are the priorities of discovery.
type prioritiesByVersion = map[schema.GroupVersion]controlplaneapiserver.APIServicePriority

// upstreamPriorities returns the priorities of upstream's kube-apiserver. Its variable is
// not exported, so its literal is read where the build reads it.
func upstreamPriorities(t *testing.T) prioritiesByVersion {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", "k8s.io/kubernetes/cmd/kube-apiserver/app").Output()
	if err != nil {
		t.Fatalf("finding upstream's source with go list: %v", err)
	}
	name := filepath.Join(strings.TrimSpace(string(dir)), "aggregator.go")
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	listed, err := listedPriorities(file)
	if err != nil {
		t.Fatalf("%s: %v; teach this test how upstream has them now", name, err)
	}
	result := controlplaneapiserver.DefaultGenericAPIServicePriorities()
	maps.Copy(result, listed)
	return result
}

// listedPriorities returns those that a file of upstream adds to the priorities of every
// control plane: var apiVersionPriorities = merge(DefaultGenericAPIServicePriorities(), literal).
func listedPriorities(file *ast.File) (prioritiesByVersion, error) {
	var found *ast.CallExpr
	for _, decl := range file.Decls {
		general, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range general.Specs {
			if value, ok := spec.(*ast.ValueSpec); ok && value.Names[0].Name == "apiVersionPriorities" && len(value.Values) == 1 {
				found, _ = value.Values[0].(*ast.CallExpr)
			}
		}
	}
	if found == nil || len(found.Args) != 2 {
		return nil, errors.New("apiVersionPriorities is not a call with two arguments")
	}
	common, ok := found.Args[0].(*ast.CallExpr)
	if !ok {
		return nil, errors.New("apiVersionPriorities does not begin with the priorities of every control plane")
	}
	if from, ok := common.Fun.(*ast.SelectorExpr); !ok || from.Sel.Name != "DefaultGenericAPIServicePriorities" {
		return nil, errors.New("apiVersionPriorities does not begin with DefaultGenericAPIServicePriorities")
	}
	list, ok := found.Args[1].(*ast.CompositeLit)
	if !ok {
		return nil, errors.New("apiVersionPriorities adds no literal")
	}
	listed := prioritiesByVersion{}
	for _, element := range list.Elts {
		entry, ok := element.(*ast.KeyValueExpr)
		if !ok {
			return nil, errors.New("an element of apiVersionPriorities has no key")
		}
		key, err := namedFields(entry.Key, "Group", "Version")
		if err != nil {
			return nil, err
		}
		value, err := namedFields(entry.Value, "Group", "Version")
		if err != nil {
			return nil, err
		}
		group, err := strconv.ParseInt(value["Group"], 10, 32)
		if err != nil {
			return nil, err
		}
		version, err := strconv.ParseInt(value["Version"], 10, 32)
		if err != nil {
			return nil, err
		}
		gv := schema.GroupVersion{Group: strings.Trim(key["Group"], `"`), Version: strings.Trim(key["Version"], `"`)}
		listed[gv] = controlplaneapiserver.APIServicePriority{Group: int32(group), Version: int32(version)}
	}
	return listed, nil
}

// namedFields returns the text of a literal's fields, all of which have to be there.
func namedFields(expr ast.Expr, names ...string) (map[string]string, error) {
	literal, ok := expr.(*ast.CompositeLit)
	if !ok {
		return nil, fmt.Errorf("a part of apiVersionPriorities is %T, no literal", expr)
	}
	fields := map[string]string{}
	for _, element := range literal.Elts {
		if field, ok := element.(*ast.KeyValueExpr); ok {
			name, isName := field.Key.(*ast.Ident)
			text, isText := field.Value.(*ast.BasicLit)
			if isName && isText {
				fields[name.Name] = text.Value
			}
		}
	}
	if got := slices.Sorted(maps.Keys(fields)); !slices.Equal(got, names) {
		return nil, fmt.Errorf("a literal of apiVersionPriorities has the fields %q, want %q", got, names)
	}
	return fields, nil
}

// prioritiesThatDiffer returns what a person has to change in priorities(), one sentence
// each.
func prioritiesThatDiffer(ours, upstream prioritiesByVersion) []string {
	var findings []string
	add := func(format string, args ...any) { findings = append(findings, fmt.Sprintf(format, args...)) }
	byName := func(a, b schema.GroupVersion) int { return strings.Compare(a.String(), b.String()) }
	for _, gv := range slices.SortedFunc(maps.Keys(upstream), byName) {
		want := upstream[gv]
		got, ok := ours[gv]
		switch {
		case !ok:
			add("%s is missing; upstream has group %d, version %d", gv, want.Group, want.Version)
		case got != want:
			add("%s has group %d, version %d; upstream has group %d, version %d", gv, got.Group, got.Version, want.Group, want.Version)
		}
	}
	for _, gv := range slices.SortedFunc(maps.Keys(ours), byName) {
		if _, ok := upstream[gv]; ok {
			continue
		}
		if gv.Group != v1alpha1.GroupName {
			add("%s is none of upstream's versions any more; remove it", gv)
			continue
		}
		lowest, taken := ours[gv].Group, map[string]bool{}
		for other, priority := range upstream {
			lowest = min(lowest, priority.Group)
			if priority.Group == ours[gv].Group {
				taken[other.Group] = true
			}
		}
		if len(taken) > 0 {
			add("%s has the group priority %d of %s; take %d", gv, ours[gv].Group, strings.Join(slices.Sorted(maps.Keys(taken)), ", "), lowest-100)
		}
	}
	return findings
}

// TestPrioritiesMatchUpstream compares with upstream's own list, of which ours is a copy
// with one group more. A group that upstream adds may take the priority of ours.
func TestPrioritiesMatchUpstream(t *testing.T) {
	for _, finding := range prioritiesThatDiffer(priorities(), upstreamPriorities(t)) {
		t.Errorf("priorities in cmd/kube-apiserver/controlplane/server.go: %s", finding)
	}
}

// TestPrioritiesThatDiffer changes one priority at a time.
func TestPrioritiesThatDiffer(t *testing.T) {
	upstream := upstreamPriorities(t)
	features := schema.GroupVersion(v1alpha1.SchemeGroupVersion)
	responders := schema.GroupVersion{Group: "lifecycle.k8s.io", Version: "v1alpha1"}
	apps := schema.GroupVersion{Group: "apps", Version: "v1"}
	for name, tc := range map[string]struct {
		change func(ours prioritiesByVersion)
		want   []string
	}{
		"as it is": {func(prioritiesByVersion) {}, nil},
		"the priority that a new group of 1.37 took": {
			func(ours prioritiesByVersion) {
				ours[features] = controlplaneapiserver.APIServicePriority{Group: 15700, Version: 9}
			},
			[]string{"features.k8s.io/v1alpha1 has the group priority 15700 of lifecycle.k8s.io; take 15600"},
		},
		"that, and the group is unknown here": {
			func(ours prioritiesByVersion) {
				delete(ours, responders)
				ours[features] = controlplaneapiserver.APIServicePriority{Group: 15700, Version: 9}
			},
			[]string{
				"lifecycle.k8s.io/v1alpha1 is missing; upstream has group 15700, version 1",
				"features.k8s.io/v1alpha1 has the group priority 15700 of lifecycle.k8s.io; take 15600",
			},
		},
		"another version first": {
			func(ours prioritiesByVersion) {
				ours[apps] = controlplaneapiserver.APIServicePriority{Group: 17800, Version: 16}
			},
			[]string{"apps/v1 has group 17800, version 16; upstream has group 17800, version 15"},
		},
		"a version that upstream removed": {
			func(ours prioritiesByVersion) {
				ours[schema.GroupVersion{Group: "scheduling.k8s.io", Version: "v1alpha2"}] = controlplaneapiserver.APIServicePriority{Group: 16600, Version: 2}
			},
			[]string{"scheduling.k8s.io/v1alpha2 is none of upstream's versions any more; remove it"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			ours := maps.Clone(upstream)
			ours[features] = controlplaneapiserver.APIServicePriority{Group: 15600, Version: 9}
			tc.change(ours)
			if diff := cmp.Diff(tc.want, prioritiesThatDiffer(ours, upstream)); diff != "" {
				t.Errorf("unexpected findings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestListedPriorities: a list of another form is an error, never an empty list.
func TestListedPriorities(t *testing.T) {
	for name, tc := range map[string]struct{ list, says string }{
		"as upstream has it": {`merge(c.DefaultGenericAPIServicePriorities(), map[gv]p{{Group: "a", Version: "v1"}: {Group: 10, Version: 1}})`, ""},
		"no variable":        {"", "is not a call"},
		"another variable":   {`other()`, "is not a call with two arguments"},
		"other defaults":     {`merge(c.Others(), map[gv]p{})`, "does not begin with DefaultGenericAPIServicePriorities"},
		"a literal before":   {`merge(map[gv]p{}, map[gv]p{})`, "does not begin with the priorities of every control plane"},
		"no literal":         {`merge(c.DefaultGenericAPIServicePriorities(), more())`, "adds no literal"},
		"no key":             {`merge(c.DefaultGenericAPIServicePriorities(), map[gv]p{one})`, "has no key"},
		"a name for a key":   {`merge(c.DefaultGenericAPIServicePriorities(), map[gv]p{one: {Group: 10, Version: 1}})`, "no literal"},
		"a field is missing": {`merge(c.DefaultGenericAPIServicePriorities(), map[gv]p{{Group: "a", Version: "v1"}: {Group: 10}})`, `has the fields ["Group"], want ["Group" "Version"]`},
		"no number":          {`merge(c.DefaultGenericAPIServicePriorities(), map[gv]p{{Group: "a", Version: "v1"}: {Group: "x", Version: 1}})`, "parsing"},
	} {
		t.Run(name, func(t *testing.T) {
			source := "package app\n"
			if tc.list != "" {
				source += "var apiVersionPriorities = " + tc.list + "\n"
			}
			file, err := parser.ParseFile(token.NewFileSet(), "aggregator.go", source, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			got, err := listedPriorities(file)
			if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Fatalf("got %v, %v; want an error with %q", got, err, tc.says)
			}
			want := prioritiesByVersion{{Group: "a", Version: "v1"}: {Group: 10, Version: 1}}
			if diff := cmp.Diff(want, got); err == nil && diff != "" {
				t.Errorf("unexpected priorities (-want +got):\n%s", diff)
			}
		})
	}
}
