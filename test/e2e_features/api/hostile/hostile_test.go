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

package hostile

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/examplegates"
	"k8s.io/kubernetes-features/test/utils/localcluster"
	"k8s.io/kubernetes-features/test/utils/localcluster/process"
)

const (
	// namespace is one that the server flow does not look after: what is in there
	// changes only by requests.
	namespace = "hostile"
	group     = "/apis/features.k8s.io/v1alpha1"
	own       = group + "/namespaces/" + namespace
	system    = group + "/namespaces/kube-system"
	features  = own + "/features"
	reports   = own + "/featurereports"
	good      = features + "/Good"
	report    = reports + "/app.good"
	// known is a gate that every server knows, and that is off.
	known = system + "/features/" + examplegates.Cleared
	// configs are a kind of upstream's, to compare with.
	configs = "/api/v1/namespaces/" + namespace + "/configmaps"
)

// row is a request and what it may be answered with.
type row struct {
	method, path string
	// contentType and accept are JSON where they are empty.
	contentType, accept string
	body                string
	header              map[string]string
	// as is another user, in these groups; empty is an administrator.
	as     string
	groups []string
	code   int
	// says is in the message, or in the object where there is no need for one.
	says string
	// twin is the same request for a kind of upstream's, with its body if that is
	// another one. It has to be there where the code is 5xx, and gets the same code.
	twin, twinBody string
}

// world is the server and what it is asked through.
type world struct {
	*framework.Cluster
	client *http.Client
	host   string
	etcd   *clientv3.Client
	// kept is what is stored of the group.
	kept *framework.Kept
	// failures are what checkFailures wants to see counted.
	failures map[failure]int
}

func start(t *testing.T, gates string) *world {
	t.Helper()
	c := framework.Start(t, localcluster.Config{FeatureGates: gates, Only: []string{localcluster.Etcd, localcluster.APIServer}})
	transport, err := rest.TransportFor(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Cluster: c, host: c.Config.Host, etcd: c.Etcd(), failures: map[failure]int{}, client: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if _, err := c.Kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return w
}

// prepare makes the objects that requests are about, and users with few rights.
func (w *world) prepare(t *testing.T) {
	t.Helper()
	// What the server flow writes first is not to be taken for what a request did.
	w.WaitForRest()
	client := w.Features.FeaturesV1alpha1()
	if _, err := client.Features(namespace).Create(t.Context(), &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Name: "Good"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.FeatureReports(namespace).Create(t.Context(), &v1alpha1.FeatureReport{
		ObjectMeta: metav1.ObjectMeta{Name: "app.good"},
		Spec: v1alpha1.FeatureReportSpec{
			Component: "app", Instance: "good", BinaryVersion: "v1.2.3", EmulationVersion: "1.36", Features: []v1alpha1.ReportedFeature{{Name: "Good", Queried: true}},
			Liveness: v1alpha1.ReportLiveness{Lease: &v1alpha1.LeaseReference{Namespace: namespace, Name: "app.good"}},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Kube.CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "good"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// mallory may do everything to reports and features here but what the storage
	// itself asks about: to report as a component, and to touch any report.
	rules := []rbacv1.PolicyRule{{APIGroups: []string{"features.k8s.io"}, Resources: []string{"features", "featurereports"}, Verbs: []string{"*"}}}
	w.Permit(t, w.User("mallory"), "mallory", namespace, rules)
	// The oldest versions are gone, so that they can be asked for.
	now, err := w.etcd.Get(t.Context(), "/registry/feature", clientv3.WithCountOnly())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.etcd.Compact(t.Context(), now.Header.Revision); err != nil {
		t.Fatal(err)
	}
	w.kept = keep(t, w.etcd)
}

// send sends a request and returns code and body of the answer.
func (w *world) send(t *testing.T, r row) (int, string) {
	t.Helper()
	method := r.method
	if method == "" {
		method = http.MethodGet
	}
	ctx, cancel := context.WithTimeout(t.Context(), framework.Patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, w.host+r.path, strings.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	if r.body != "" || r.contentType != "" {
		request.Header.Set("Content-Type", or(r.contentType, "application/json"))
	}
	request.Header.Set("Accept", or(r.accept, "application/json"))
	if r.as != "" {
		request.Header.Set("Impersonate-User", r.as)
		for _, group := range append(r.groups, "system:authenticated") {
			request.Header.Add("Impersonate-Group", group)
		}
	}
	for name, value := range r.header {
		request.Header.Set(name, value)
	}
	response, err := w.client.Do(request)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("the answer %d breaks off: %v", response.StatusCode, err)
	}
	return response.StatusCode, string(body)
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// vague are messages that name no cause.
var vague = regexp.MustCompile(`(?i)internal error|internal server error|unknown reason|unknown error|panic|runtime error|nil pointer`)

// check holds an answer against its row.
func (r row) check(t *testing.T, code int, body string) {
	t.Helper()
	if code != r.code {
		t.Errorf("the answer is %d, want %d: %s", code, r.code, short(body))
		return
	}
	if r.says == "" {
		t.Error("the row does not say what is in the answer")
	}
	if code < 300 {
		if !strings.Contains(body, r.says) {
			t.Errorf("the answer does not have %q: %s", r.says, short(body))
		}
		return
	}
	var status metav1.Status
	if err := json.Unmarshal([]byte(body), &status); err != nil {
		t.Errorf("the answer is no Status: %v: %s", err, short(body))
	}
	if status.Kind != "Status" || status.APIVersion != "v1" || status.Status != metav1.StatusFailure || int(status.Code) != code {
		t.Errorf("the answer is no Status of a failure with the code %d: %s", code, short(body))
	}
	if status.Message == "" || vague.MatchString(status.Message) {
		t.Errorf("the message names no cause: %q", status.Message)
	}
	said := status.Message
	if status.Details != nil {
		// For a patch that cannot be applied, upstream has the cause there.
		for _, cause := range status.Details.Causes {
			said += "\n" + cause.Message
		}
	}
	if !strings.Contains(said, r.says) {
		t.Errorf("the message does not say %q: %s", r.says, short(said))
	}
	if len(body) > 6*(len(r.body)+len(r.path))+64<<10 {
		t.Errorf("a request of %d bytes is answered with %d", len(r.body)+len(r.path), len(body))
	}
}

func short(text string) string {
	if len(text) > 1000 {
		return text[:500] + " … " + text[len(text)-500:]
	}
	return text
}

// checkStillGood sends the good requests that follow each bad one.
func (w *world) checkStillGood(t *testing.T) {
	t.Helper()
	for _, r := range []row{
		{path: good, says: `"Good"`},
		{method: "POST", path: features + "?dryRun=All&fieldValidation=Strict", body: feature("Another", ""), says: `"Another"`},
	} {
		if code, body := w.send(t, r); code >= 300 || !strings.Contains(body, r.says) {
			t.Errorf("a good request is answered with %d: %s", code, short(body))
		}
	}
}

// run sends all rows of a table, one after the other.
func (w *world) run(t *testing.T, rows map[string]row) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		t.Run(name, func(t *testing.T) {
			r := rows[name]
			begin := time.Now()
			code, body := w.send(t, r)
			r.check(t, code, body)
			t.Logf("%d in %s: %s", code, time.Since(begin).Round(time.Millisecond), short(body))
			w.expect(ours, code)
			if r.twin != "" {
				as := r
				as.path, as.body = r.twin, or(r.twinBody, r.body)
				twin, twinBody := w.send(t, as)
				if twin != code {
					t.Errorf("a kind of upstream's is answered with %d, ours with %d: %s", twin, code, short(twinBody))
				}
				w.expect(upstreams, twin)
			} else if code >= 500 {
				t.Error("an answer of 5xx without upstream's beside it")
			}
			w.checkStillGood(t)
			w.checkStored(t)
			if code >= http.StatusInternalServerError {
				w.checkFailures(t)
			}
		})
	}
	// What was counted besides is that of one of these rows.
	w.checkFailures(t)
}

// feature is a Feature's JSON with what comes behind its metadata.
func feature(name, rest string) string {
	return fmt.Sprintf(`{"apiVersion":"features.k8s.io/v1alpha1","kind":"Feature","metadata":{"name":%q}%s}`, name, rest)
}

// reportOf is a FeatureReport's JSON with what comes behind what it has to have.
func reportOf(rest string) string {
	return `{"apiVersion":"features.k8s.io/v1alpha1","kind":"FeatureReport","metadata":{"name":"app.new"},"spec":{"component":"app","instance":"new","liveness":{"lease":{"namespace":"hostile","name":"app.new"}}` + rest + `}}`
}

// labeled is JSON of a kind with labels of about n bytes, each of which is valid.
func labeled(head string, n int) string {
	var labels strings.Builder
	for i := 0; labels.Len() < n; i++ {
		if i > 0 {
			labels.WriteByte(',')
		}
		fmt.Fprintf(&labels, `"l%d.%s/x":"%s"`, i, strings.Repeat("a", 60), strings.Repeat("b", 60))
	}
	return head + `,"metadata":{"name":"large","labels":{` + labels.String() + `}}}`
}

const (
	featureHead = `{"apiVersion":"features.k8s.io/v1alpha1","kind":"Feature"`
	configHead  = `{"apiVersion":"v1","kind":"ConfigMap"`
)

// tables are all rows but those of bytes.
func tables() map[string]map[string]row {
	return map[string]map[string]row{
		"bodies": bodies(), "fields": fields(), "paths": paths(), "queries": queries(), "patches": patches(), "negotiation": negotiation(), "rights": rights(),
	}
}

func TestHostileRequests(t *testing.T) {
	w := start(t, "")
	w.prepare(t)
	w.checkFailures(t)
	tables := tables()
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		t.Run(name, func(t *testing.T) { w.run(t, tables[name]) })
	}
	t.Run("years", w.runYears)
	t.Run("bytes", w.runRaw)
	w.checkServer(t)
	if dead := slices.DeleteFunc(slices.Clone(w.Processes()), process.Process.Alive); len(dead) > 0 {
		t.Errorf("%d processes have ended", len(dead))
	}
}
