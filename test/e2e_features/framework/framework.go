//go:build linux

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

package framework

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/watchtools"
	"k8s.io/kubernetes-features/test/utils/localcluster"
	"k8s.io/kubernetes-features/test/utils/localcluster/process"
)

// Patience bounds every wait of a test. It is generous: the machine may be busy.
const Patience = 5 * time.Minute

// How much of each log a failed test shows: more of processes that ended
// unexpectedly while the test ran.
const (
	logLines       = 10
	logLinesOfDead = 60
)

// Cluster is a cluster for one test.
type Cluster struct {
	*localcluster.Cluster
	// Features and Kube are clients of an administrator.
	Features versioned.Interface
	Kube     kubernetes.Interface
	// Config is how an administrator reaches the server.
	Config *rest.Config

	t testing.TB
}

// Start starts a cluster. Config needs neither directories nor DieWithParent.
func Start(t testing.TB, config localcluster.Config) *Cluster {
	t.Helper()
	config.DataDir = DataDir(t)
	config.BinDir = BinDir(t)
	config.DieWithParent, config.Throwaway = true, true
	config.Progress = t.Output()
	local, err := localcluster.Open(config)
	if err != nil {
		t.Fatalf("opening the cluster: %v", err)
	}
	c := &Cluster{Cluster: local, t: t}
	t.Cleanup(c.end)
	if err := c.Up(t.Context()); err != nil {
		t.Fatalf("starting the cluster: %v", err)
	}
	c.connect(c.Kubeconfig("admin"))
	return c
}

// Connect returns a cluster that is managed elsewhere: what asks its server
// works, what deals with its processes does not.
func Connect(t testing.TB, kubeconfig string) *Cluster {
	t.Helper()
	c := &Cluster{t: t}
	c.connect(kubeconfig)
	return c
}

// connect makes the clients.
func (c *Cluster) connect(kubeconfig string) {
	c.t.Helper()
	var err error
	if c.Config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		c.t.Fatalf("kubeconfig of the administrator: %v", err)
	}
	// Tests ask often.
	c.Config.QPS = -1
	c.Kube = kubernetes.NewForConfigOrDie(c.Config)
	c.Features = versioned.NewForConfigOrDie(c.Config)
}

// end shows logs when the test failed and ends all processes.
func (c *Cluster) end() {
	if c.t.Failed() {
		c.showLogs()
	}
	// The test's context has ended by now.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.t.Context()), Patience)
	defer cancel()
	if err := c.Down(ctx); err != nil {
		c.t.Errorf("ending the cluster: %v", err)
	}
	c.Close()
}

// showLogs shows the end of all logs. The one that matters most is the last: long
// output is often read, or kept, from its end.
func (c *Cluster) showLogs() {
	var dead []process.Process
	for _, p := range c.Processes() {
		if p.Alive() {
			c.t.Logf("--- %s runs, the end of its log:\n%s", p.Name, p.Tail(logLines))
		} else {
			dead = append(dead, p)
		}
	}
	for _, p := range dead {
		c.t.Logf("--- %s HAS ENDED, the end of its log:\n%s", p.Name, p.Tail(logLinesOfDead))
	}
}

// DataDir is a directory for one test. Its path is short: a Unix socket's path must not be longer than 107 characters.
func DataDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kf")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(unmount(dir), os.RemoveAll(dir)); err != nil {
			t.Errorf("removing the cluster's data: %v", err)
		}
	})
	return dir
}

// BinDir is where "make all" puts binaries, or KUBE_FEATURES_BIN.
func BinDir(t testing.TB) string {
	t.Helper()
	if dir := os.Getenv("KUBE_FEATURES_BIN"); dir != "" {
		return dir
	}
	return filepath.Join(Root(t), "_output", "bin")
}

// Root is the root of the repository that this file is in: the nearest directory
// above it with a go.work.
func Root(t testing.TB) string {
	t.Helper()
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		t.Fatal("where this file is, is not known; set KUBE_FEATURES_BIN")
	}
	for dir := filepath.Dir(file); ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatalf("no directory above %s has a go.work; build the tests without -trimpath", file)
		}
	}
}

// Upstream is upstream's unchanged binary of a name, from "make upstream".
func Upstream(t testing.TB, name string) string {
	t.Helper()
	file := filepath.Join(filepath.Dir(BinDir(t)), "upstream", name)
	if _, err := os.Stat(file); err != nil {
		t.Fatalf("upstream's %s is not there: %v; build it with \"make upstream\"", name, err)
	}
	return file
}

// As returns a configuration of a component's identity, for example
// localcluster.Scheduler.
func (c *Cluster) As(component string) *rest.Config {
	c.t.Helper()
	config, err := c.RESTConfig(component)
	if err != nil {
		c.t.Fatalf("kubeconfig of %s: %v", component, err)
	}
	return config
}

// ConfigOf returns how an administrator reaches one of several kube-apiservers.
func (c *Cluster) ConfigOf(server string) *rest.Config {
	config := rest.CopyConfig(c.Config)
	config.Host = c.Server(server)
	return config
}

// Impersonate returns a configuration of any identity.
func (c *Cluster) Impersonate(user string, groups ...string) *rest.Config {
	config := rest.CopyConfig(c.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return config
}

// Feature reads a Feature of Kubernetes.
func (c *Cluster) Feature(name string) *v1alpha1.Feature {
	c.t.Helper()
	feature, err := c.Features.FeaturesV1alpha1().Features(metav1.NamespaceSystem).Get(c.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.t.Fatalf("reading feature %s: %v", name, err)
	}
	return feature
}

// WaitForFeature watches a Feature of Kubernetes until it is as wanted, and
// returns it. Each version that it sees is given to the condition.
func (c *Cluster) WaitForFeature(name, what string, wanted func(*v1alpha1.Feature) bool) *v1alpha1.Feature {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), Patience)
	defer cancel()
	var last *v1alpha1.Feature
	err := localcluster.WatchFeature(ctx, c.Features, name, func(feature *v1alpha1.Feature) (bool, error) {
		last = feature
		return wanted(feature), nil
	})
	if err != nil {
		c.t.Fatalf("waiting for feature %s to be %s: %v; it is %+v", name, what, err, last)
	}
	return last
}

// Reports reads the FeatureReports of Kubernetes.
func (c *Cluster) Reports() []v1alpha1.FeatureReport {
	c.t.Helper()
	list, err := c.Features.FeaturesV1alpha1().FeatureReports(metav1.NamespaceSystem).List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatalf("reading feature reports: %v", err)
	}
	return list.Items
}

// WaitForReports looks at all FeatureReports of Kubernetes, each time that one
// changes, until they are as wanted, and returns them.
func (c *Cluster) WaitForReports(what string, wanted func([]v1alpha1.FeatureReport) bool) []v1alpha1.FeatureReport {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), Patience)
	defer cancel()
	source := cache.NewListWatchFromClient(c.Features.FeaturesV1alpha1().RESTClient(), "featurereports", metav1.NamespaceSystem, fields.Everything())
	known := map[string]v1alpha1.FeatureReport{}
	reports := func() []v1alpha1.FeatureReport {
		return slices.SortedFunc(maps.Values(known), func(a, b v1alpha1.FeatureReport) int { return cmp.Compare(a.Name, b.Name) })
	}
	err := watchtools.UntilWithSync(ctx, source, &v1alpha1.FeatureReport{}, nil, func(event watch.Event) (bool, error) {
		report := event.Object.(*v1alpha1.FeatureReport)
		known[report.Name] = *report
		if event.Type == watch.Deleted {
			delete(known, report.Name)
		}
		return wanted(reports()), nil
	})
	if err != nil {
		var seen []string
		for _, r := range reports() {
			seen = append(seen, fmt.Sprintf("%s by %s with %d features", r.Name, r.Spec.Username, len(r.Spec.Features)))
		}
		c.t.Fatalf("waiting for reports %s: %v; there are:\n%s", what, err, strings.Join(seen, "\n"))
	}
	return reports()
}

// WaitFor asks for a condition that cannot be watched until it holds.
func WaitFor(t testing.TB, what string, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, Patience, true, func(context.Context) (bool, error) { return condition(), nil })
	if err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}

// Version is the version that the server says it has.
func (c *Cluster) Version() string {
	c.t.Helper()
	info, err := c.Kube.Discovery().ServerVersion()
	if err != nil {
		c.t.Fatalf("reading the server's version: %v", err)
	}
	return info.GitVersion
}

// Etcd returns a client of the cluster's database.
func (c *Cluster) Etcd() *clientv3.Client {
	c.t.Helper()
	client, err := c.EtcdClient()
	if err != nil {
		c.t.Fatalf("reaching etcd: %v", err)
	}
	c.t.Cleanup(func() { _ = client.Close() })
	return client
}
