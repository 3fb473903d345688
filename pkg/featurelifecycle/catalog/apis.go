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
	"fmt"
	"reflect"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilversion "k8s.io/apimachinery/pkg/util/version"
)

// API describes resources that a gate needs, and that kube-apiserver does not serve by
// default at one or more of the versions that it can emulate. There --runtime-config
// enables them, or no flag does.
type API struct {
	// GroupVersion has the resources; Or are other versions of the group that will do. Most
	// binaries use one version, whatever a server that emulates an older one serves.
	GroupVersion schema.GroupVersion
	Or           []string
	// Resources are the plural names of all that the gate needs of the group.
	Resources []string
	// Without describes the effect on processes that have the gate on while none of
	// the versions is served.
	Without string
}

// versions returns those that suffice, beginning with the one that messages
// name.
func (a API) versions() []schema.GroupVersion {
	versions := []schema.GroupVersion{a.GroupVersion}
	for _, v := range a.Or {
		versions = append(versions, schema.GroupVersion{Group: a.GroupVersion.Group, Version: v})
	}
	return versions
}

// Flag returns the argument that makes kube-apiserver serve the API.
func (a API) Flag() string { return fmt.Sprintf("--runtime-config=%s=true", a.GroupVersion) }

// String reads "podgroups, workloads in scheduling.k8s.io/v1beta1".
func (a API) String() string {
	return fmt.Sprintf("%s in %s", strings.Join(a.Resources, ", "), a.GroupVersion)
}

// Serving describes the resources that a kube-apiserver serves, gates aside.
type Serving struct {
	// Enabled returns true if --runtime-config and the defaults enable a resource in a
	// version.
	Enabled func(schema.GroupVersionResource) bool
	// Emulated is the version of the server. It does not serve resources
	// introduced later.
	Emulated *utilversion.Version
	// Scheme has the types of the resources, which know the version that introduced
	// them.
	Scheme *runtime.Scheme
}

// In returns the versions of the API that a server's version has, beginning with the one to
// name in messages, and whether the server serves one of them.
func (a API) In(by Serving) (has []schema.GroupVersion, served bool) {
	has = slices.DeleteFunc(a.versions(), func(v schema.GroupVersion) bool {
		return slices.ContainsFunc(a.Resources, func(r string) bool { return !by.Has(v.WithResource(r)) })
	})
	return has, slices.ContainsFunc(has, func(v schema.GroupVersion) bool {
		return !slices.ContainsFunc(a.Resources, func(r string) bool { return !by.Enabled(v.WithResource(r)) })
	})
}

// NotServed returns a sentence for each API that the gate needs and that is not served,
// with the flag that changes it and what becomes of the processes without. Versions that
// the server's version does not have do not count; where it has none, no flag helps.
func (e Entry) NotServed(by Serving) []string {
	var missing []string
	for _, a := range e.APIs {
		switch has, served := a.In(by); {
		case len(has) == 0:
			missing = append(missing, fmt.Sprintf("kube-apiserver cannot serve %s, which %s needs, while it emulates %s: leave the gate off until it does not; meanwhile %s", a, e.Name, by.Emulated, a.Without))
		case !served:
			named := API{GroupVersion: has[0], Resources: a.Resources}
			missing = append(missing, fmt.Sprintf("kube-apiserver does not serve %s, which %s needs: start every kube-apiserver with %s; without it %s", named, e.Name, named.Flag(), a.Without))
		}
	}
	return missing
}

// Has returns true if servers of the emulated version have the resource at
// all.
func (s Serving) Has(resource schema.GroupVersionResource) bool {
	for kind, of := range s.Scheme.KnownTypes(resource.GroupVersion()) {
		plural, _ := meta.UnsafeGuessKindToResource(resource.GroupVersion().WithKind(kind))
		if plural != resource {
			continue
		}
		since, ok := reflect.New(of).Interface().(interface{ APILifecycleIntroduced() (major, minor int) })
		if !ok || s.Emulated == nil {
			return true
		}
		major, minor := since.APILifecycleIntroduced()
		return s.Emulated.AtLeast(utilversion.MajorMinor(uint(major), uint(minor)))
	}
	return false
}

// Resources that are not served by default at every version, by the gates that they belong to.
var (
	bundlesAPI = API{
		GroupVersion: certificatesv1.SchemeGroupVersion, Or: []string{certificatesv1beta1.SchemeGroupVersion.Version}, Resources: []string{clusterTrustBundles.Resource},
		Without: "bundles cannot be made, and volumes that name one keep their pods from starting",
	}
	taintRulesAPI = API{
		GroupVersion: resourcev1.SchemeGroupVersion, Resources: []string{deviceTaintRules.Resource},
		Without: "a kube-scheduler that has the gate on schedules nothing, since it waits for rules",
	}
	poolRequestsAPI = API{
		GroupVersion: resourcev1alpha3.SchemeGroupVersion, Resources: []string{resourcePoolStatusRequests.Resource},
		Without: "the status of a pool cannot be requested",
	}
	workloadsAPI = API{
		GroupVersion: schedulingv1beta1.SchemeGroupVersion, Resources: []string{podGroups.Resource, workloads.Resource},
		Without: withoutGroups,
	}
)

// neverReady begins the description of a kube-apiserver that waits forever;
// the cause follows.
const neverReady = "a kube-apiserver that has the gate on never becomes ready: its "
