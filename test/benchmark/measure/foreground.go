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

package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	foregroundNamespace = "foreground"
	// ForegroundUser is who sends the foreground's requests: a user like any, whom
	// API priority and fairness puts where ordinary users are.
	ForegroundUser = "foreground-user"
	// foregroundObjects is the number of ConfigMaps the namespace has, which is what a
	// LIST returns.
	foregroundObjects = 20
	// ForegroundTimeout is the time that a request may take. One that failed counts as long.
	ForegroundTimeout = 30 * time.Second
	// allowedPeriod is how often a server that forbids the first requests is asked again.
	allowedPeriod = 100 * time.Millisecond
)

// The operations of the foreground, in turn.
const (
	OpGet   = "GET"
	OpList  = "LIST"
	OpPatch = "PATCH"
)

var operations = []string{OpGet, OpList, OpPatch}

// Foreground is a load that stands for other clients: one GET, one LIST of a small
// namespace and one PATCH in turn, as many a second as was said, whether the server
// keeps up or not (an open loop). Latency counts from the moment at which a request
// was due, so a server that stalls cannot hide what waits.
type Foreground struct {
	client kubernetes.Interface
	period time.Duration
	stop   context.CancelFunc
	done   sync.WaitGroup

	mu  sync.Mutex
	now *ForegroundWindow
}

// ForegroundWindow is a time in which requests were sent.
type ForegroundWindow struct {
	latencies map[string]*Latencies
	mu        sync.Mutex
	codes     map[string]int
	// pending are requests without an answer so far.
	pending sync.WaitGroup
}

func newForegroundWindow() *ForegroundWindow {
	w := &ForegroundWindow{latencies: map[string]*Latencies{}, codes: map[string]int{}}
	for _, op := range operations {
		w.latencies[op] = &Latencies{}
	}
	return w
}

// ForegroundStats is what became of the requests of a window.
type ForegroundStats struct {
	// All are the latencies of all requests, By those of each operation.
	All Distribution
	By  map[string]Distribution
	// Codes counts answers by HTTP status, [ForegroundStats.Unanswered] those without an answer.
	Codes map[string]int
}

// unanswered is the code of requests without an answer.
const unanswered = "none"

// With is what was seen in this time and in others.
func (s ForegroundStats) With(others ...ForegroundStats) ForegroundStats {
	sum := ForegroundStats{By: map[string]Distribution{}, Codes: map[string]int{}}
	for _, one := range append([]ForegroundStats{s}, others...) {
		sum.All = Together(sum.All, one.All)
		for op, d := range one.By {
			sum.By[op] = Together(sum.By[op], d)
		}
		for code, n := range one.Codes {
			sum.Codes[code] += n
		}
	}
	return sum
}

// Failed is how many requests did not succeed.
func (s ForegroundStats) Failed() int {
	failed := 0
	for code, n := range s.Codes {
		if !strings.HasPrefix(code, "2") {
			failed += n
		}
	}
	return failed
}

// Refused is how many requests were answered 429.
func (s ForegroundStats) Refused() int { return s.Codes[strconv.Itoa(http.StatusTooManyRequests)] }

// Unanswered is how many requests got no answer before the client gave up.
func (s ForegroundStats) Unanswered() int { return s.Codes[unanswered] }

// StartForeground makes the namespace, the objects and the permissions with the
// administrator's client, and begins to send rate requests a second as the user
// whose configuration is given. Stop ends it.
func StartForeground(ctx context.Context, admin kubernetes.Interface, user *rest.Config, rate float64) (*Foreground, error) {
	if rate <= 0 {
		return nil, fmt.Errorf("a foreground of %v requests a second is none", rate)
	}
	if err := prepareForeground(ctx, admin); err != nil {
		return nil, fmt.Errorf("preparing the foreground: %w", err)
	}
	config := rest.CopyConfig(user)
	// The rate is the only limit.
	config.QPS, config.Timeout = -1, ForegroundTimeout
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	f := &Foreground{client: client, period: time.Duration(float64(time.Second) / rate), now: newForegroundWindow()}
	for _, op := range operations {
		// The first of each makes connections and tells whether it is allowed at all.
		if err := f.sendFirst(ctx, op); err != nil {
			return nil, fmt.Errorf("the foreground's first %s: %w", op, err)
		}
	}
	ctx, f.stop = context.WithCancel(ctx)
	f.done.Go(func() { f.run(ctx) })
	return f, nil
}

func prepareForeground(ctx context.Context, admin kubernetes.Interface) error {
	ignoreExists := func(_ any, err error) error {
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	}
	errs := []error{ignoreExists(admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: foregroundNamespace}}, metav1.CreateOptions{}))}
	for i := range foregroundObjects {
		errs = append(errs, ignoreExists(admin.CoreV1().ConfigMaps(foregroundNamespace).Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: objectName(i)},
			Data:       map[string]string{"text": strings.Repeat("x", 500)},
		}, metav1.CreateOptions{})))
	}
	meta := metav1.ObjectMeta{Name: ForegroundUser}
	errs = append(errs,
		ignoreExists(admin.RbacV1().Roles(foregroundNamespace).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "patch"}},
		}}, metav1.CreateOptions{})),
		ignoreExists(admin.RbacV1().RoleBindings(foregroundNamespace).Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: meta,
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: ForegroundUser}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: ForegroundUser},
		}, metav1.CreateOptions{})))
	return errors.Join(errs...)
}

func objectName(i int) string { return fmt.Sprintf("object-%d", i%foregroundObjects) }

// run sends requests when they are due. What could not be sent in time, because
// this process did not run, is sent at once and counts from when it was due.
func (f *Foreground) run(ctx context.Context) {
	ticker := time.NewTicker(f.period)
	defer ticker.Stop()
	begun := time.Now()
	for n := 0; ; {
		for due := begun.Add(time.Duration(n) * f.period); !time.Now().Before(due); due = begun.Add(time.Duration(n) * f.period) {
			op, number, due, window := operations[n%len(operations)], n, due, f.begin()
			f.done.Go(func() {
				defer window.pending.Done()
				f.measured(ctx, window, op, number, due)
			})
			n++
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// begin is the window of a request that is sent now.
func (f *Foreground) begin() *ForegroundWindow {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now.pending.Add(1)
	return f.now
}

func (f *Foreground) measured(ctx context.Context, window *ForegroundWindow, op string, n int, due time.Time) {
	err := f.send(ctx, op, n)
	if ctx.Err() != nil {
		return
	}
	took := time.Since(due)
	if err != nil {
		// One that is turned away at once was not answered soon.
		took = max(took, ForegroundTimeout)
	}
	window.latencies[op].Record(took)
	code := "200"
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		code = fmt.Sprint(status.Status().Code)
	} else if err != nil {
		code = unanswered
	}
	window.mu.Lock()
	defer window.mu.Unlock()
	window.codes[code]++
}

// sendFirst waits until the server, whose caches see permissions a moment later, allows it.
func (f *Foreground) sendFirst(ctx context.Context, op string) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, allowedPeriod, ForegroundTimeout, true, func(ctx context.Context) (bool, error) {
		if last = f.send(ctx, op, 0); apierrors.IsForbidden(last) {
			return false, nil
		}
		return last == nil, last
	})
	return cmp.Or(last, err)
}

func (f *Foreground) send(ctx context.Context, op string, n int) error {
	// One request is one request: a client would wait and repeat what got a 429.
	client := f.client.CoreV1().RESTClient()
	var request *rest.Request
	switch op {
	case OpGet:
		request = client.Get().Name(objectName(n))
	case OpList:
		request = client.Get()
	default:
		request = client.Patch(types.MergePatchType).Name(objectName(n)).Body(fmt.Appendf(nil, `{"data":{"turn":"%d"}}`, n))
	}
	return request.Namespace(foregroundNamespace).Resource("configmaps").MaxRetries(0).Do(ctx).Error()
}

// Take ends a window and begins the next one. It does not wait: the load
// continues.
func (f *Foreground) Take() *ForegroundWindow {
	f.mu.Lock()
	defer f.mu.Unlock()
	ended := f.now
	f.now = newForegroundWindow()
	return ended
}

// Wait returns what became of the requests that were sent in a window that Take has ended, once
// all have an answer or were given up, which takes ForegroundTimeout at most: those that wait
// longest belong to the time in which they were sent, not to the one in which they end.
func (w *ForegroundWindow) Wait() ForegroundStats {
	w.pending.Wait()
	stats := ForegroundStats{By: map[string]Distribution{}, Codes: w.codes}
	for op, latencies := range w.latencies {
		stats.By[op] = latencies.Take()
	}
	stats.All = Together(slices.Collect(maps.Values(stats.By))...)
	return stats
}

// Stop ends the load and returns when no request is under way.
func (f *Foreground) Stop() {
	f.stop()
	f.done.Wait()
}
