#!/usr/bin/env bash
# client-go's dynamic fake client hands a LIST of one namespace to its reactors with limit
# and continue token, and a LIST of all namespaces without both.
#
# Expected: a reactor sees the ListOptions of the call, as the function's name and its
#   parameter say, whatever the scope is.
# Happens: testing.NewRootListActionWithOptions stores the options and then writes others
#   over them, which have only the two selectors. NewListActionWithOptions keeps them. The
#   dynamic fake calls the first for a LIST without namespace; the typed fake keeps the
#   options of all. So the same reactor pages Pods for the typed client, and gives the
#   dynamic client the first page again for each token.
# Versions: k8s.io/client-go v0.37.2.
# Matters: code that pages cannot be tested with these: a reactor that answers with a
#   token is asked for the first page for ever.
# Here: pkg/kubectl/feature/visible_test.go counts calls instead of reading tokens.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

module fakes k8s.io/client-go@v0.37.2 k8s.io/api@v0.37.2
cat >fakes/main.go <<'GO'
package main

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func main() {
	ctx, options := context.Background(), metav1.ListOptions{Limit: 2, Continue: "token"}
	seen := func(what string, actions []clienttesting.Action) {
		got := actions[len(actions)-1].(clienttesting.ListActionImpl).GetListOptions()
		fmt.Printf("%s: limit %d, continue %q\n", what, got.Limit, got.Continue)
	}

	typed := fake.NewClientset()
	if _, err := typed.CoreV1().Pods("shop").List(ctx, options); err != nil {
		panic(err)
	}
	seen("typed, Pods of a namespace", typed.Actions())
	if _, err := typed.CoreV1().Pods("").List(ctx, options); err != nil {
		panic(err)
	}
	seen("typed, Pods of all namespaces", typed.Actions())
	if _, err := typed.CoreV1().Nodes().List(ctx, options); err != nil {
		panic(err)
	}
	seen("typed, Nodes", typed.Actions())

	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	dynamic := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{pods: "PodList"})
	if _, err := dynamic.Resource(pods).Namespace("shop").List(ctx, options); err != nil {
		panic(err)
	}
	seen("dynamic, Pods of a namespace", dynamic.Actions())
	if _, err := dynamic.Resource(pods).List(ctx, options); err != nil {
		panic(err)
	}
	seen("dynamic, Pods of all namespaces", dynamic.Actions())
}
GO
program fakes
conclude "the dynamic fake client loses limit and continue token of a LIST of all namespaces" <<'OUT'
typed, Pods of a namespace: limit 2, continue "token"
typed, Pods of all namespaces: limit 2, continue "token"
typed, Nodes: limit 2, continue "token"
dynamic, Pods of a namespace: limit 2, continue "token"
dynamic, Pods of all namespaces: limit 0, continue ""
OUT
