#!/usr/bin/env bash
# What server-side apply writes down about the owner of a list is more than the list.
#
# Expected: the documentation of server-side apply presents managed fields as metadata
#   beside the object, and listType=map as the marker for lists with keys: some bytes more.
# Happens: the set of fields of one manager, as structured-merge-diff serializes it, names
#   each item and each of its fields. For 240 items of a name and two booleans it has more
#   bytes than the list itself. The same list as atomic takes 17 bytes.
# Versions: sigs.k8s.io/structured-merge-diff v6.3.3.
# Matters: each watcher gets it with each event, etcd and watch caches keep it, and an object
#   that every process of a cluster writes is counted in thousands.
# Here: features of FeatureReportSpec in
#   staging/src/k8s.io/feature-lifecycle/apis/features/v1alpha1/types_report.go is
#   listType=atomic: one process writes it whole (docs/contributors/tried.md has what that saved).
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

module owners sigs.k8s.io/structured-merge-diff/v6@v6.3.3
cat >owners/main.go <<'GO'
package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

const schema = `types:
- name: report
  map:
    fields:
    - name: features
      type:
        list:
          elementRelationship: RELATIONSHIP
          elementType:
            namedType: feature
- name: feature
  map:
    fields:
    - {name: name, type: {scalar: string}}
    - {name: enabled, type: {scalar: boolean}}
    - {name: asked, type: {scalar: boolean}}
`

func owned(relationship string, object any) int {
	parser, err := typed.NewParser(typed.YAMLObject(strings.Replace(schema, "RELATIONSHIP", relationship, 1)))
	if err != nil {
		panic(err)
	}
	value, err := parser.Type("report").FromUnstructured(object)
	if err != nil {
		panic(err)
	}
	fields, err := value.ToFieldSet()
	if err != nil {
		panic(err)
	}
	text, err := fields.ToJSON()
	if err != nil {
		panic(err)
	}
	return len(text)
}

func main() {
	var features []any
	for i := range 240 {
		features = append(features, map[string]any{"name": fmt.Sprintf("SomeFeatureOfKubernetes%03d", i), "enabled": true, "asked": true})
	}
	object := map[string]any{"features": features}
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	fmt.Println("bytes of the object:", len(text))
	fmt.Println("bytes of one owner, a list of maps:", owned("associative\n          keys: [name]", object))
	fmt.Println("bytes of one owner, an atomic list:", owned("atomic", object))
}
GO
program owners
conclude "managed fields of a list with keys have more bytes than the list" <<'OUT'
bytes of the object: 15854
bytes of one owner, a list of maps: 22816
bytes of one owner, an atomic list: 17
OUT
