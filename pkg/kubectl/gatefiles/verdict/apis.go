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

package verdict

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/history"
	"k8s.io/kubernetes-features/pkg/kubectl/gatefiles"
)

// limitByAPI changes the finding for a setting that turns on a gate whose API kube-apiserver does not serve by default.
func (e *Evaluator) limitByAPI(f *Finding, read gatefiles.Result) {
	entry, known := e.APIs[f.Gate]
	gate, _ := e.History.Gate(f.Gate)
	if spec, ok := gate.At(f.Process.Component, e.To); !known || !ok || !f.Enabled || spec.Default || f.Process.Component == history.Kubeadm {
		return
	}
	if len(entry.NotServed(e.serving(nil))) == 0 {
		return
	}
	servers, where := apiServers(f.Process, read)
	if len(servers) == 0 {
		missing := entry.NotServed(e.serving(nil))
		f.Verdict, f.Safe = APIUnknown, metav1.ConditionUnknown
		f.Why, f.Next = "the arguments of kube-apiserver were not read, and by default "+missing[0], "name the file that has them with -f, too"
		return
	}
	for _, server := range servers {
		if missing := entry.NotServed(e.serving(server.APIs)); len(missing) > 0 {
			f.Verdict, f.Safe = APINotServed, metav1.ConditionFalse
			why, next, _ := strings.Cut(missing[0], ": ")
			f.Why, f.Next = fmt.Sprintf("%s (%s, %s)", why, server.Source, where), next
			return
		}
	}
}

// apiServers returns the kube-apiservers that go with a process: itself, those of its file, or those of its directory.
func apiServers(p *gatefiles.Process, read gatefiles.Result) (servers []*gatefiles.Process, where string) {
	if p.Component == history.KubeAPIServer {
		return []*gatefiles.Process{p}, "this one"
	}
	for _, near := range []struct {
		same  func(a, b string) bool
		where string
	}{
		{func(a, b string) bool { return a == b }, "in this file"},
		{func(a, b string) bool { return path.Dir(a) == path.Dir(b) }, "in this directory"},
	} {
		for _, other := range read.Processes {
			if other.Component == history.KubeAPIServer && near.same(other.File, p.File) {
				servers = append(servers, other)
			}
		}
		if len(servers) > 0 {
			return servers, near.where
		}
	}
	return nil, ""
}

// serving describes a kube-apiserver of the target version with some pairs of --runtime-config.
func (e *Evaluator) serving(pairs []gatefiles.API) catalog.Serving {
	return catalog.Serving{
		Enabled:  func(resource schema.GroupVersionResource) bool { return enabled(resource, pairs) },
		Emulated: utilversion.MustParseGeneric(e.To),
		Scheme:   scheme.Scheme,
	}
}

var stable = regexp.MustCompile(`^v[0-9]+$`)

// enabled returns true where kube-apiserver serves a resource. By default it serves stable versions. A pair that names a
// resource counts more than one of its version, and that more than one for all. See k8s.io/apiserver/pkg/server/resourceconfig.
func enabled(resource schema.GroupVersionResource, pairs []gatefiles.API) bool {
	is := stable.MatchString(resource.Version)
	stage := "api/ga"
	switch {
	case strings.Contains(resource.Version, "alpha"):
		stage = "api/alpha"
	case strings.Contains(resource.Version, "beta"):
		stage = "api/beta"
	}
	version := strings.TrimPrefix(resource.GroupVersion().String(), "/")
	for _, name := range []string{"api/all", stage, version, version + "/" + resource.Resource} {
		for _, pair := range pairs {
			if pair.Name == name {
				is = pair.Enabled
			}
		}
	}
	return is
}
