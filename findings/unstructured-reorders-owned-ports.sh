#!/usr/bin/env bash
# An object that goes through unstructured and back has other bytes in its managed fields.
#
# Expected: runtime.DefaultUnstructuredConverter and its way back give the same object, byte for byte
#   where nothing was changed.
# Happens: managed fields name elements of a list by their keys, and structured-merge-diff writes
#   these in the order of the values: port 80 before 443. FieldsV1 is raw JSON in the typed object
#   and a map in unstructured, whose keys come back in the order of their text: 443 before 80. Both
#   mean the same set; bytes, hashes and DeepEqual of the objects differ.
# Versions: k8s.io/apimachinery v0.37.2, sigs.k8s.io/structured-merge-diff v6 as it requires.
# Matters: code that takes an object through unstructured to change one field, and then compares what
#   it changed, finds a second change in every object that has two ports of different length.
# Here: cmd/kube-apiserver/controlplane/registryupdate.go, sameManagedFields, gives the object that
#   came back the managed fields that it had.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

module trip k8s.io/apimachinery@v0.37.2 k8s.io/api@v0.37.2
cat >trip/main.go <<'GO'
package main

import (
	"bytes"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	ports := func(port int) fieldpath.Path {
		return fieldpath.MakePathOrDie("ports", fieldpath.KeyByFields("containerPort", port, "protocol", "TCP"))
	}
	owned, err := fieldpath.NewSet(ports(80), ports(443)).ToJSON()
	must(err)
	pod := &corev1.Pod{}
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m", FieldsV1: metav1.NewFieldsV1(string(owned))}}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
	must(err)
	back := &corev1.Pod{}
	must(runtime.DefaultUnstructuredConverter.FromUnstructured(content, back))
	fmt.Printf("before %s\n", owned)
	fmt.Printf("after  %s\n", back.ManagedFields[0].FieldsV1.GetRawBytes())
	before, after := &fieldpath.Set{}, &fieldpath.Set{}
	must(before.FromJSON(bytes.NewReader(owned)))
	must(after.FromJSON(bytes.NewReader(back.ManagedFields[0].FieldsV1.GetRawBytes())))
	fmt.Println("the sets are equal:", before.Equals(after))
}
GO
(cd trip && go mod tidy) >"$work/log" 2>&1 || cannot "go mod tidy"
program trip

conclude "owned ports are ordered by number; through unstructured and back they are ordered as text" <<'SEEN'
before {"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{},"k:{\"containerPort\":443,\"protocol\":\"TCP\"}":{}}}
after  {"f:ports":{"k:{\"containerPort\":443,\"protocol\":\"TCP\"}":{},"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{}}}
the sets are equal: true
SEEN
