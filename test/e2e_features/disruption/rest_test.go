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

package disruption

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
	"k8s.io/kubernetes-features/test/utils/localcluster/process"
)

const (
	// retention is the time that the server flow keeps the report of a process that
	// crashed, and its Lease, with the time until they are looked for.
	retention = time.Hour + 2*time.Minute
	// looks is how often a cluster at rest is looked at before the faults: what
	// varies by itself is not to count as left over.
	looks = 5
	// saysMore is how much more a Feature may say of itself after it was used, in bytes: who
	// has set it, and how its last transition went.
	saysMore = 2 << 10
)

// snapshot is what there is in a cluster at rest.
type snapshot struct {
	// keys are those of etcd, but events.
	keys map[string]bool
	// features are the sizes of what is stored of each Feature, in bytes.
	features map[string]int
	// events are those of the server flow, leases those of etcd.
	events, leases int
	processes      map[string]usage
}

// usage is what a process holds.
type usage struct {
	// goroutines are all, ours those that run code of this repository; 0 for
	// processes that do not tell.
	goroutines, ours int
	// origins are goroutines by the function that they began with.
	origins map[string]int
	files   int
	// watches are those that a server serves, by resource.
	watches map[string]int
	// heap is what is in use after a collection of garbage, in bytes.
	heap uint64
}

// tellers are the processes that tell of goroutines. A hollow kube-proxy has no server
// that it could tell by; etcd is not ours.
func (w *world) tellers() []string {
	names := []string{localcluster.ControllerManager, localcluster.Scheduler}
	for _, s := range w.servers {
		names = append(names, s.name)
	}
	for i := range nodes {
		names = append(names, localcluster.Kubelet(localcluster.NodeName(i+1)))
	}
	return names
}

// rest waits until the cluster is at rest and returns what there is. With what
// there was before, it waits until nothing is left over, and names what is.
func (w *world) rest(when string, before *snapshot) *snapshot {
	w.t.Helper()
	if err := w.until(when, w.unsettled); err != nil {
		w.t.Fatal(err)
	}
	if before == nil {
		before, err := w.look(w.t.Context())
		for range looks {
			if err == nil {
				hold(w.t.Context(), 2*time.Second)
				var next *snapshot
				if next, err = w.look(w.t.Context()); err == nil {
					before = before.most(next)
				}
			}
		}
		if err != nil {
			w.t.Fatal(err)
		}
		w.said("%s: %s", when, before)
		return before
	}
	var after *snapshot
	var left map[string][]string
	err := wait.PollUntilContextTimeout(w.t.Context(), 2*time.Second, framework.Patience, true, func(ctx context.Context) (bool, error) {
		var err error
		if after, err = w.look(ctx); err != nil {
			return false, err
		}
		left = w.leftovers(before, after)
		return len(left) == 0, nil
	})
	if after != nil {
		w.said("%s: %s", when, after)
		w.stats.leftovers, w.stats.retained = left, 0
		for key := range after.keys {
			if strings.HasPrefix(key, reportsKey) && !before.keys[key] {
				w.stats.retained++
			}
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(left)) {
		w.t.Errorf("left over: %d %s: %s", len(left[kind]), kind, strings.Join(left[kind][:min(len(left[kind]), 20)], ", "))
	}
	if err != nil && len(left) == 0 {
		w.t.Error(err)
	}
	return after
}

// unsettled returns what is not at rest.
func (w *world) unsettled(ctx context.Context) (string, error) {
	if what, err := w.misstated(ctx); what != "" || err != nil {
		return what, err
	}
	return w.miscounted(ctx)
}

// most is the larger of two looks at the same rest.
func (s *snapshot) most(other *snapshot) *snapshot {
	maps.Copy(s.keys, other.keys)
	mostOf(s.features, other.features)
	s.leases = max(s.leases, other.leases)
	s.events = max(s.events, other.events)
	for name, o := range other.processes {
		u := s.processes[name]
		u.goroutines, u.ours, u.files, u.heap = max(u.goroutines, o.goroutines), max(u.ours, o.ours), max(u.files, o.files), max(u.heap, o.heap)
		mostOf(u.watches, o.watches)
		mostOf(u.origins, o.origins)
		s.processes[name] = u
	}
	return s
}

// mostOf makes each number of a map the larger of two.
func mostOf(of, other map[string]int) {
	for what, n := range other {
		of[what] = max(of[what], n)
	}
}

func (s *snapshot) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d keys and %d leases in etcd", len(s.keys), s.leases)
	for _, name := range slices.Sorted(maps.Keys(s.processes)) {
		u := s.processes[name]
		fmt.Fprintf(&text, "; %s: ", name)
		if u.goroutines > 0 {
			fmt.Fprintf(&text, "%d goroutines (%d ours), heap %s, ", u.goroutines, u.ours, mib(float64(u.heap)))
		}
		if len(u.watches) > 0 {
			watches := 0
			for _, n := range u.watches {
				watches += n
			}
			fmt.Fprintf(&text, "%d watches, ", watches)
		}
		fmt.Fprintf(&text, "%d files", u.files)
	}
	return text.String()
}

// surplus is how much more of something there is than before, where that is most.
type surplus struct {
	where     string
	by, slack int
}

func (s surplus) String() string {
	if s.by <= 0 {
		return fmt.Sprintf("nowhere more than before (%d would be accepted)", s.slack)
	}
	return fmt.Sprintf("%s has %d more than before, of %d that are accepted", s.where, s.by, s.slack)
}

// leftovers names what is there now and was not, and has no reason to be.
func (w *world) leftovers(before, after *snapshot) map[string][]string {
	left := map[string][]string{}
	explained := w.people.explained(time.Now())
	for key := range after.keys {
		name, isReport := strings.CutPrefix(key, reportsKey)
		if !isReport {
			name = strings.TrimPrefix(key, "/registry/leases/"+v1alpha1.LeaseNamespace+"/")
		}
		if !before.keys[key] && !explained[name] {
			kind := strings.SplitN(strings.TrimPrefix(key, "/registry/"), "/", 2)[0]
			left["objects of "+kind] = append(left["objects of "+kind], key)
		}
	}
	for key := range before.keys {
		if !after.keys[key] {
			left["objects that are gone"] = append(left["objects that are gone"], key)
		}
	}
	most := map[string]surplus{}
	defer func() { w.stats.surplus = most }()
	more := func(kind, where string, was, is, slack int) {
		if last, known := most[kind]; !known || is-was > last.by {
			most[kind] = surplus{where, is - was, slack}
		}
		if is > was+slack {
			left[kind] = append(left[kind], fmt.Sprintf("%s has %d, had %d", where, is, was))
		}
	}
	for name, is := range after.features {
		more("bytes of Features", name, before.features[name], is, saysMore)
	}
	more("events of features", "etcd", 0, after.events, 0)
	more("leases of etcd", "etcd", before.leases, after.leases, 0)
	for name, is := range after.processes {
		was := before.processes[name]
		// Connections come and go; each has a few goroutines and a file.
		more("goroutines", name, was.goroutines, is.goroutines, 20+was.goroutines/20)
		more("goroutines of ours", name, was.ours, is.ours, 0)
		for origin, n := range is.origins {
			if !ofConnections(origin) {
				more("goroutines of one kind", name+" of "+origin, was.origins[origin], n, underWay)
			}
		}
		more("open files", name, was.files, is.files, 10+was.files/10)
		for resource, n := range is.watches {
			more("watches", name+" of "+resource, was.watches[resource], n, 0)
		}
	}
	return left
}

// look takes down what there is.
func (w *world) look(ctx context.Context) (*snapshot, error) {
	if err := w.whole(ctx); err != nil {
		return nil, err
	}
	s := &snapshot{keys: map[string]bool{}, features: map[string]int{}, processes: map[string]usage{}}
	response, err := w.etcd.Get(ctx, "/registry/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return nil, fmt.Errorf("reading etcd's keys: %w", err)
	}
	for _, kv := range response.Kvs {
		if key := string(kv.Key); !strings.HasPrefix(key, "/registry/events/") {
			s.keys[key] = true
		}
	}
	stored, err := w.etcd.Get(ctx, framework.FeaturesKey, clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("reading Features in etcd: %w", err)
	}
	for _, kv := range stored.Kvs {
		s.features[strings.TrimPrefix(string(kv.Key), framework.FeaturesKey)] = len(kv.Value)
	}
	leases, err := w.etcd.Leases(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading etcd's leases: %w", err)
	}
	s.leases = len(leases.Leases)
	events, err := w.kept().kube.CoreV1().Events(systemNS).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=Feature"})
	if err != nil {
		return nil, err
	}
	s.events = len(events.Items)
	for _, p := range w.cluster.Processes() {
		u, err := w.usage(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		s.processes[p.Name] = u
	}
	return s, nil
}

// usage takes down what a process holds.
func (w *world) usage(ctx context.Context, p process.Process) (u usage, err error) {
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.PID))
	if err != nil {
		return u, err
	}
	u.files = len(files)
	if !slices.Contains(w.tellers(), p.Name) {
		return u, nil
	}
	client, err := w.monitoring(p)
	if err != nil {
		return u, err
	}
	if u.heap, err = heapInUse(ctx, client); err != nil {
		return u, err
	}
	profile, err := get(ctx, client, "/debug/pprof/goroutine", "debug=1")
	if err != nil {
		return u, err
	}
	u.origins = map[string]int{}
	u.goroutines, u.ours = countGoroutines(profile, u.origins)
	metrics, err := get(ctx, client, "/metrics", "")
	if err != nil {
		return u, err
	}
	u.watches = countWatches(metrics)
	return u, nil
}

// port is where a process shows what it knows of itself.
var port = regexp.MustCompile(`--(secure|kubelet)-port=(\d+)`)

// monitoring is a client of what a process shows of itself.
func (w *world) monitoring(p process.Process) (rest.Interface, error) {
	arguments, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID))
	if err != nil {
		return nil, err
	}
	match := port.FindSubmatch(arguments)
	if match == nil {
		return nil, fmt.Errorf("%s has no port that is known", p.Name)
	}
	config := rest.CopyConfig(w.cluster.Config)
	config.Host = "https://127.0.0.1:" + string(match[2])
	// Controller manager and scheduler make certificates of their own.
	config.TLSClientConfig.Insecure, config.TLSClientConfig.CAData, config.TLSClientConfig.CAFile = true, nil, ""
	if string(match[1]) == "kubelet" {
		// A hollow kubelet has none, and authenticates no client.
		config = &rest.Config{Host: "http://127.0.0.1:" + string(match[2])}
	}
	config.Timeout = time.Minute
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return client.CoreV1().RESTClient(), nil
}

func get(ctx context.Context, client rest.Interface, path, query string) (string, error) {
	request := client.Get().AbsPath(path)
	if key, value, ok := strings.Cut(query, "="); ok {
		request = request.Param(key, value)
	}
	data, err := request.DoRaw(ctx)
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", path, err)
	}
	return string(data), nil
}

var (
	longRunning = regexp.MustCompile(`(?m)^apiserver_longrunning_requests\{([^}]*)\} ([0-9.e+]+)$`)
	metricLabel = regexp.MustCompile(`([a-z_]+)="([^"]*)"`)
)

// countWatches counts the watches that a server serves, by group and resource.
func countWatches(metrics string) map[string]int {
	watches := map[string]int{}
	for _, series := range longRunning.FindAllStringSubmatch(metrics, -1) {
		labels := map[string]string{}
		for _, label := range metricLabel.FindAllStringSubmatch(series[1], -1) {
			labels[label[1]] = label[2]
		}
		if n, err := strconv.ParseFloat(series[2], 64); err == nil && labels["verb"] == "WATCH" {
			watches[strings.TrimSuffix(labels["resource"]+"."+labels["group"], ".")] += int(n)
		}
	}
	return watches
}
