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
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Options limit what is read.
type Options struct {
	// Nodes is how many Nodes are asked, spread evenly over all; 0 asks all.
	Nodes int
	// Parallel is how many requests are under way at a time; 0 means DefaultParallel.
	Parallel int
	// Timeout ends reading; what was read by then counts. 0 means DefaultTimeout.
	Timeout time.Duration
	// ServersOnly reads kube-apiservers alone.
	ServersOnly bool
	// Progress, if set, is called with how many of all processes were asked.
	Progress func(done, all int)
}

// Limits without options.
const (
	DefaultParallel = 32
	DefaultTimeout  = 2 * time.Minute
)

// requestTimeout is how long one process may take to answer: a kubelet that is overloaded
// does not hold up all others.
const requestTimeout = 10 * time.Second

// maxBody is how much of an answer is read. Metrics of a kube-apiserver of a large cluster
// have tens of megabytes.
const maxBody = 256 << 20

// Observe reads what a cluster shows. The error is that of a cluster that answers nothing,
// or of a context that was canceled; all else that is missing is among the gaps.
func Observe(ctx context.Context, config *rest.Config, o Options) (*Cluster, error) {
	if o.Parallel <= 0 {
		o.Parallel = DefaultParallel
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	config = rest.CopyConfig(config)
	// Requests are bounded by their number under way, which does not depend on how fast
	// the cluster answers.
	config.QPS, config.Burst, config.RateLimiter = -1, 0, nil
	client, err := newClientset(config)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	r := &reader{config: config, client: client, options: o, turns: make(chan struct{}, o.Parallel)}
	info, err := client.Discovery().ServerVersionWithContext(limited)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case limited.Err() != nil:
		return nil, fmt.Errorf("reading the version of the cluster: %w; give more time (--observe-timeout), or name another address of the API server", errTime)
	case err != nil:
		return nil, fmt.Errorf("reading the version of the cluster: %w", err)
	}
	r.found.Version = info.GitVersion
	var all sync.WaitGroup
	parts := []func(context.Context){r.servers, r.nodes, r.systemPods, r.kubeadm}
	if o.ServersOnly {
		parts = parts[:1]
	}
	for _, part := range parts {
		all.Go(func() { part(limited) })
	}
	all.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.serverFlags()
	r.found.sort()
	return &r.found, nil
}

// newClientset makes a client that follows no redirect. Kubelets and Pods answer behind the proxy of the API server,
// which hands on where they redirect to, and the credentials of the caller would go there.
func newClientset(config *rest.Config) (kubernetes.Interface, error) {
	shared, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	client := *shared
	client.CheckRedirect = func(to *http.Request, _ []*http.Request) error { return &redirectError{to.URL.Host} }
	return kubernetes.NewForConfigAndClient(config, &client)
}

// redirectError is returned for an answer that is a redirect.
type redirectError struct{ host string }

func (e *redirectError) Error() string {
	return fmt.Sprintf("it redirects to %s, which is not followed: the credentials would go there", e.host)
}

// reader reads parts of a cluster at the same time.
type reader struct {
	config  *rest.Config
	client  kubernetes.Interface
	options Options
	// turns bounds the requests that are under way.
	turns chan struct{}

	// serverPods are kube-apiservers that run as Pods; they are complete once all parts
	// are read.
	serverPods []systemPod

	mu        sync.Mutex
	found     Cluster
	done, all int
}

// process adds a process.
func (r *reader) process(p Process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found.Processes = append(r.found.Processes, p)
}

// gap adds what was not observed.
func (r *reader) gap(g Gap) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found.addGap(g)
}

// expect and finish count processes for the progress.
func (r *reader) expect(n int) { r.count(0, n) }

func (r *reader) finish() { r.count(1, 0) }

func (r *reader) count(done, all int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done, r.all = r.done+done, r.all+all
	if r.options.Progress != nil {
		r.options.Progress(r.done, r.all)
	}
}

// errTime is the cause of what was not read in time.
var errTime = errors.New("the time to read the cluster was over")

// get reads a path of the API server, at most as many at a time as options permit.
func (r *reader) get(ctx context.Context, client rest.Interface, path, accept string, read func(io.Reader) error) error {
	select {
	case r.turns <- struct{}{}:
		defer func() { <-r.turns }()
	case <-ctx.Done():
		return errTime
	}
	limited, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	request := client.Get().AbsPath(path)
	if accept != "" {
		request = request.SetHeader("Accept", accept)
	}
	body, err := request.Stream(limited)
	if err == nil {
		err = errors.Join(read(io.LimitReader(body, maxBody)), body.Close())
	}
	var redirect *redirectError
	switch {
	case err != nil && ctx.Err() != nil:
		return errTime
	case errors.As(err, &redirect):
		return redirect
	case err != nil && limited.Err() != nil:
		return fmt.Errorf("it did not answer within %s", requestTimeout)
	}
	return err
}

// scrape reads metrics.
func (r *reader) scrape(ctx context.Context, client rest.Interface, path string) (s *scrape, err error) {
	err = r.get(ctx, client, path, "", func(body io.Reader) (err error) {
		s, err = parseMetrics(body)
		return err
	})
	return s, err
}

// bytes reads a whole answer.
func (r *reader) bytes(ctx context.Context, client rest.Interface, path, accept string) ([]byte, error) {
	var all bytes.Buffer
	err := r.get(ctx, client, path, accept, func(body io.Reader) error {
		_, err := all.ReadFrom(body)
		return err
	})
	return all.Bytes(), err
}

// explain says why something could not be read, and what is missing: permission is needed
// for a request by its verb and resource, an address otherwise. Context is that of the whole
// reading.
func explain(ctx context.Context, err error, permission string) (why, next string) {
	switch {
	case errors.Is(err, errTime), ctx.Err() != nil:
		return errTime.Error(), "more time (--observe-timeout), or a part of the nodes (--nodes)"
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return "not permitted", "permission to " + permission
	case apierrors.IsNotFound(err):
		return "not served: " + message(err), ""
	}
	return message(err), "an address that answers"
}

// message is the server's, or what the client says.
func message(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Message != "" {
		if status.Status().Code == http.StatusServiceUnavailable || status.Status().Code == http.StatusInternalServerError {
			return fmt.Sprintf("the server answers %d: %s", status.Status().Code, status.Status().Message)
		}
		return status.Status().Message
	}
	return err.Error()
}

// explicitly marks the gates that are set, and all others as not set.
func explicitly(gates map[string]Value, set map[string]bool, source string) {
	no := false
	for name, v := range gates {
		v.Explicit = &no
		gates[name] = v
	}
	setBy(gates, set, source)
}

// setBy marks the gates that are set, and adds those that are not there yet. Whether others
// are set stays unknown.
func setBy(gates map[string]Value, set map[string]bool, source string) {
	yes := true
	for name, enabled := range set {
		v, ok := gates[name]
		if !ok {
			v = Value{Enabled: enabled, Source: source}
		}
		v.Explicit = &yes
		gates[name] = v
	}
}

// sourced gives all values their source.
func sourced(gates map[string]Value, source string) map[string]Value {
	for name, v := range gates {
		v.Source = source
		gates[name] = v
	}
	return gates
}
