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

package observe

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// fake answers as the API servers of a cluster do, several behind one address: each
// connection leads to the next. What is tried on real ones is in test/e2e_features/stock.
type fake struct {
	t testing.TB
	// answers are by path; a path that is missing is not found.
	answers map[string]func(http.ResponseWriter, *http.Request)
	// servers is how many there are behind the address.
	servers int

	mu        sync.Mutex
	connected int
	// asked are the paths that were asked.
	asked []string
	// underWay are the requests of Nodes that are, most the most there were.
	underWay, most atomic.Int32
}

// serverKey has the server that a connection leads to.
type serverKey struct{}

func newFake(t testing.TB, servers int) (*fake, *rest.Config) {
	t.Helper()
	f := &fake{t: t, servers: servers, answers: map[string]func(http.ResponseWriter, *http.Request){}}
	f.object("/version", version.Info{Major: "1", Minor: "36", GitVersion: "v1.36.3"})
	f.leases(servers)
	s := httptest.NewUnstartedServer(f)
	s.Config.ConnContext = f.connect
	s.StartTLS()
	t.Cleanup(s.Close)
	return f, &rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.asked = append(f.asked, r.URL.Path)
	answer := f.answers[r.URL.Path]
	f.mu.Unlock()
	if strings.HasPrefix(r.URL.Path, "/api/v1/nodes/") {
		most := f.underWay.Add(1)
		defer f.underWay.Add(-1)
		for was := f.most.Load(); most > was && !f.most.CompareAndSwap(was, most); was = f.most.Load() {
		}
	}
	if answer == nil {
		refuse(w, apierrors.NewNotFound(schema.GroupResource{Resource: "paths"}, r.URL.Path))
		return
	}
	answer(w, r)
}

// refuse answers with an error of the API.
func refuse(w http.ResponseWriter, err *apierrors.StatusError) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(err.ErrStatus.Code))
	err.ErrStatus.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	_ = json.NewEncoder(w).Encode(err.ErrStatus)
}

func forbidden(w http.ResponseWriter, r *http.Request) {
	refuse(w, apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", fmt.Errorf("user \"viewer\" may not get %s", r.URL.Path)))
}

// object answers a path with an object.
func (f *fake) object(path string, object any) {
	f.answers[path] = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(object); err != nil {
			f.t.Error(err)
		}
	}
}

// text answers a path with text.
func (f *fake) text(path, text string) {
	f.answers[path] = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }
}

// list answers a path with a list of objects.
func list[T any](f *fake, path, apiVersion, kind string, items ...T) {
	f.object(path, map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{}, "items": items})
}

// leases are those of some kube-apiservers, and one that has ended.
func (f *fake) leases(servers int) {
	items := make([]coordinationv1.Lease, servers+1)
	for i := range items {
		items[i].Name = fmt.Sprintf("apiserver-%d", i)
		items[i].Spec.LeaseDurationSeconds, items[i].Spec.RenewTime = ptr.To[int32](3600), ptr.To(metav1.NowMicro())
	}
	items[servers].Spec.RenewTime = ptr.To(metav1.NewMicroTime(time.Now().Add(-24 * time.Hour)))
	list(f, leasesPath, "coordination.k8s.io/v1", "LeaseList", items...)
}

// metricsOf are those of a process that started at a time.
func metricsOf(version string, start int, gates map[string]bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "kubernetes_build_info{git_version=%q} 1\nprocess_start_time_seconds %d\n", version, start)
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		value := 0
		if gates[name] {
			value = 1
		}
		fmt.Fprintf(&b, "kubernetes_feature_enabled{name=%q,stage=\"ALPHA\"} %d\n", name, value)
	}
	return b.String()
}

// node is one with a kubelet.
func (f *fake) node(name, version string, gates, set map[string]bool) corev1.Node {
	path := "/api/v1/nodes/" + name + "/proxy"
	f.text(path+"/metrics", metricsOf(version, 1, gates))
	f.object(path+"/configz", map[string]any{"kubeletconfig": map[string]any{"featureGates": set}})
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: version}}}
}

// slice has the addresses of kube-apiservers, which are not reached from here.
func slice(addresses ...string) discoveryv1.EndpointSlice {
	s := discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"}, Ports: []discoveryv1.EndpointPort{{Port: ptr.To[int32](6443)}}}
	for _, a := range addresses {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}})
	}
	return s
}

// pod is one of kube-system.
func pod(name, component, node, image string, command ...string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceSystem},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: component, Image: image, Command: command}}},
	}
}

// configured mounts a ConfigMap into the container of a Pod, as one of two volumes.
func configured(p corev1.Pod, name, directory string) corev1.Pod {
	p.Spec.Volumes = []corev1.Volume{
		{Name: "root", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}},
		{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}},
	}
	p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "config", MountPath: directory}, {Name: "root", MountPath: "/"}}
	return p
}

// connect gives a connection the next server.
func (f *fake) connect(ctx context.Context, _ net.Conn) context.Context {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.connected++
	return context.WithValue(ctx, serverKey{}, f.connected%f.servers)
}

// serverOf is the server that a request came to.
func serverOf(r *http.Request) int {
	n, _ := r.Context().Value(serverKey{}).(int)
	return n
}
