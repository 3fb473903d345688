#!/usr/bin/env bash
# client-go's mapper says of a group that does not answer what it says of one that does
# not exist.
#
# Expected: discovery reports groups that failed as an error of a type of its own
#   (ErrGroupDiscoveryFailed), and meta.IsNoMatchError in k8s.io/apimachinery stands for
#   kinds and resources that the server does not have. An outage should not be one.
# Happens: restmapper.GetAPIGroupResources drops that error. The mapper built on it answers
#   NoMatch for a kind of an aggregated API that is down, word for word as for an unknown
#   group.
# Versions: k8s.io/client-go and k8s.io/apimachinery v0.36.3.
# Matters: "no such kind" ends waits and skips clean-ups. Whoever takes it for "nothing is
#   stored" finishes turning a feature off while its objects are still in etcd.
# Here: NewMapper in staging/src/k8s.io/feature-lifecycle/lifecycle/task/mapper.go remembers
#   which groups failed and returns an error that is no NoMatch for them.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

module mapper k8s.io/client-go@v0.36.3 k8s.io/apimachinery@v0.36.3
cat >mapper/main.go <<'GO'
package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

func group(name string) metav1.APIGroup {
	only := metav1.GroupVersionForDiscovery{GroupVersion: name + "/v1", Version: "v1"}
	return metav1.APIGroup{Name: name, Versions: []metav1.GroupVersionForDiscovery{only}, PreferredVersion: only}
}

func answer(w http.ResponseWriter, r *http.Request) {
	var body any
	switch r.URL.Path {
	case "/api":
		body = metav1.APIVersions{}
	case "/apis":
		body = metav1.APIGroupList{Groups: []metav1.APIGroup{group("up.example.com"), group("down.example.com")}}
	case "/apis/up.example.com/v1":
		body = metav1.APIResourceList{GroupVersion: "up.example.com/v1", APIResources: []metav1.APIResource{{Name: "gears", Kind: "Gear"}}}
	default:
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(body); err != nil {
		panic(err)
	}
}

func main() {
	server := httptest.NewServer(http.HandlerFunc(answer))
	defer server.Close()
	client := discovery.NewDiscoveryClientForConfigOrDie(&rest.Config{Host: server.URL})
	_, _, err := client.ServerGroupsAndResources()
	fmt.Println("discovery reports a failed group:", discovery.IsGroupDiscoveryFailedError(err))
	groups, err := restmapper.GetAPIGroupResources(client)
	for _, g := range groups {
		fmt.Printf("  %q: %d versions with resources\n", g.Group.Name, len(g.VersionedResources))
	}
	fmt.Println("GetAPIGroupResources:", err)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client))
	for _, name := range []string{"up.example.com", "down.example.com", "unknown.example.com"} {
		_, err := mapper.RESTMapping(schema.GroupKind{Group: name, Kind: "Gear"}, "v1")
		fmt.Printf("%s: NoMatch %t: %v\n", name, meta.IsNoMatchError(err), err)
	}
}
GO
program mapper
conclude "a group that answers 503 is NoMatch, and GetAPIGroupResources returns no error" <<'OUT'
discovery reports a failed group: true
  "": 0 versions with resources
  "up.example.com": 1 versions with resources
  "down.example.com": 0 versions with resources
GetAPIGroupResources: <nil>
up.example.com: NoMatch false: <nil>
down.example.com: NoMatch true: no matches for kind "Gear" in version "down.example.com/v1"
unknown.example.com: NoMatch true: no matches for kind "Gear" in version "unknown.example.com/v1"
OUT
