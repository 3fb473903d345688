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

package tasks

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	featurestorage "k8s.io/kubernetes-features/pkg/registry/features/feature/storage"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

const (
	// flowGate guards flowField, which the server flow removes.
	flowGate  = "MaxUnavailableStatefulSet"
	flowField = "spec.updateStrategy.rollingUpdate.maxUnavailable"
	// having is the number of objects with the field in each namespace.
	having = 5
	// without is an object without it.
	without = "without"
	// removedField is the annotation of an audit event that names what was removed.
	removedField = "features.k8s.io/removed-field"
)

// flowPolicy has a level for what the server flow writes in each namespace, and none for
// the rest.
const flowPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, namespaces: [none]}
- {level: Metadata, users: ["system:feature-lifecycle"], verbs: [patch], namespaces: [metadata], resources: [{group: apps, resources: [statefulsets]}]}
- {level: Request, users: ["system:feature-lifecycle"], verbs: [patch], namespaces: [request], resources: [{group: apps, resources: [statefulsets]}]}
- {level: RequestResponse, users: ["system:feature-lifecycle"], verbs: [patch], namespaces: [all], resources: [{group: apps, resources: [statefulsets]}]}
- {level: None}
`

// flowLevels are the levels of the namespaces.
var flowLevels = map[string]auditv1.Level{
	"none": auditv1.LevelNone, "metadata": auditv1.LevelMetadata, "request": auditv1.LevelRequest, "all": auditv1.LevelRequestResponse,
}

// atRest is how values are encrypted, and how before the key was rotated.
type atRest struct {
	// before and after are the configurations, written before the server starts with
	// the gate on and with the gate off.
	before, after string
	// rotate, if not nil, rotates the key elsewhere.
	rotate func()
	// wasBefore and isAfter tell values that were written with each.
	wasBefore, isAfter func(value string) bool
}

// Prefixes of values by the provider that wrote them.
const (
	oldPrefix = "k8s:enc:aescbc:v1:old:"
	newPrefix = "k8s:enc:secretbox:v1:new:"
)

// providers returns a configuration whose first provider writes.
func providers(lines ...string) string {
	return "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [statefulsets.apps]\n  providers:\n" +
		strings.Join(lines, "")
}

// localKeys are keys in the configuration.
func localKeys() atRest {
	key := base64.StdEncoding.EncodeToString([]byte("a key of thirty-two bytes, known"))
	older := "  - aescbc: {keys: [{name: old, secret: " + key + "}]}\n"
	newer := "  - secretbox: {keys: [{name: new, secret: " + key + "}]}\n"
	return atRest{
		before: providers(older), after: providers(newer, older),
		wasBefore: func(value string) bool { return strings.HasPrefix(value, oldPrefix) },
		isAfter:   func(value string) bool { return strings.HasPrefix(value, newPrefix) },
	}
}

// TestServerFlowClearsElsewhere lets it clear a resource that has a database of its own and
// whose values are encrypted with a key that only a key management service has.
func TestServerFlowClearsElsewhere(t *testing.T) {
	t.Parallel()
	service := startKMS(t)
	f := newFlow(t, "Storage", service.atRest())
	f.stored = startEtcd(t)
	f.SetArgs(localcluster.APIServer, append(f.args, "--etcd-servers-overrides=apps/statefulsets#"+f.stored.Endpoints()[0])...)
	f.MustRestart()
	f.fill(t)
	lease := f.lease(t)
	before := f.values(t)
	f.turnOff(t)
	f.encrypted(t, before)
	f.leased(t, lease)
	if left := framework.KeysBelow(t, f.Etcd(), "/registry/statefulsets/"); len(left) > 0 {
		t.Errorf("the database of all other resources has %v", left)
	}
}

// TestServerFlowClears lets kube-apiserver clear a field itself, either way. Values are
// encrypted at rest, and the key is rotated before.
func TestServerFlowClears(t *testing.T) {
	for _, way := range []string{"Storage", "API"} {
		t.Run("through "+way, func(t *testing.T) {
			t.Parallel()
			f := newFlow(t, way, localKeys())
			f.fill(t)
			lease := f.lease(t)
			before := f.values(t)
			f.turnOff(t)
			t.Run("audit", func(t *testing.T) { f.audited(t, way) })
			t.Run("encryption at rest", func(t *testing.T) { f.encrypted(t, before) })
			if way == "Storage" {
				t.Run("lease", func(t *testing.T) { f.leased(t, lease) })
			}
		})
	}
}

// flow is a cluster with objects that have the field.
type flow struct {
	*framework.Cluster
	history *framework.History
	// keys is the file of the encryption's configuration, and atRest what is in it.
	keys   string
	atRest atRest
	// args are the server's own.
	args []string
	// stored is the database of the objects.
	stored *clientv3.Client
}

// newFlow starts a cluster with the gate on.
func newFlow(t *testing.T, way string, atRest atRest) *flow {
	t.Helper()
	dir := t.TempDir()
	f := &flow{keys: filepath.Join(dir, "keys.yaml"), atRest: atRest}
	policy := filepath.Join(dir, "policy.yaml")
	write(t, f.keys, atRest.before)
	write(t, policy, flowPolicy)
	f.args = []string{
		"--feature-clear-through=" + way, "--encryption-provider-config=" + f.keys,
		"--audit-policy-file=" + policy, "--audit-log-path=audit.log", "--feature-settle-period=1s",
	}
	f.Cluster = framework.Start(t, localcluster.Config{
		FeatureGates: flowGate + "=true",
		Only:         []string{localcluster.Etcd, localcluster.APIServer},
		ExtraArgs:    map[string][]string{localcluster.APIServer: f.args},
	})
	f.stored = f.Etcd()
	f.history = framework.RecordFeature(t, f.Etcd(), flowGate)
	f.history.Wait(t, 0, "On", framework.In(v1alpha1.StateOn))
	return f
}

// fill creates the objects, in a namespace for each level of auditing.
func (f *flow) fill(t *testing.T) {
	t.Helper()
	for namespace := range flowLevels {
		if _, err := f.Kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		for i := range having {
			f.create(t, namespace, framework.StatefulSet(fmt.Sprintf("with-%d", i), intstr.FromInt(i+1)))
		}
		bystander := framework.PlainStatefulSet(without)
		bystander.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
		f.create(t, namespace, bystander)
	}
}

// leasedKey is a key with a lease, as those of Events have one.
const leasedKey = "/registry/statefulsets/none/with-0"

// lease gives the key one, with the value that it has. The API ends leases of resources that
// have none.
func (f *flow) lease(t *testing.T) clientv3.LeaseID {
	t.Helper()
	const seconds = 3600
	lease, err := f.stored.Grant(t.Context(), seconds)
	if err != nil {
		t.Fatal(err)
	}
	value := framework.Below(t, f.stored, leasedKey)[leasedKey]
	if _, err := f.stored.Put(t.Context(), leasedKey, string(value), clientv3.WithLease(lease.ID)); err != nil {
		t.Fatal(err)
	}
	return lease.ID
}

// leased checks that the key was written, and has its lease.
func (f *flow) leased(t *testing.T, lease clientv3.LeaseID) {
	found, err := f.stored.Get(t.Context(), leasedKey)
	if err != nil || len(found.Kvs) != 1 {
		t.Fatal(found, err)
	}
	if kv := found.Kvs[0]; clientv3.LeaseID(kv.Lease) != lease || kv.Version < 3 {
		t.Errorf("the key has the lease %d in its version %d, want %d in the third", kv.Lease, kv.Version, lease)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (f *flow) create(t *testing.T, namespace string, set *appsv1.StatefulSet) {
	t.Helper()
	if _, err := f.Kube.AppsV1().StatefulSets(namespace).Create(t.Context(), set, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// turnOff rotates the key and restarts the server with the gate off.
func (f *flow) turnOff(t *testing.T) {
	t.Helper()
	write(t, f.keys, f.atRest.after)
	if f.atRest.rotate != nil {
		f.atRest.rotate()
	}
	mark, off := f.history.Mark(), flowGate+"=false"
	if err := f.Restart(t.Context(), &off); err != nil {
		t.Fatalf("restarting with the gate off: %v", err)
	}
	f.history.Wait(t, mark, "Off", framework.In(v1alpha1.StateOff))
}

// values are what etcd has, by namespace and name.
func (f *flow) values(t *testing.T) map[string]string {
	t.Helper()
	const prefix = "/registry/statefulsets/"
	values := map[string]string{}
	for key, value := range framework.Below(t, f.stored, prefix) {
		values[strings.TrimPrefix(key, prefix)] = string(value)
	}
	return values
}

// encrypted checks that what was written is encrypted with the new key and can be read,
// and that all else was not written.
func (f *flow) encrypted(t *testing.T, before map[string]string) {
	after := f.values(t)
	if len(after) != len(before) {
		t.Errorf("%d objects are stored, were %d", len(after), len(before))
	}
	for key, was := range before {
		if !f.atRest.wasBefore(was) {
			t.Errorf("%s was not encrypted with the old key before: %.40q", key, was)
		}
		switch is := after[key]; {
		case strings.HasSuffix(key, "/"+without):
			if is != was {
				t.Errorf("%s does not have the field and was written", key)
			}
		case !f.atRest.isAfter(is):
			t.Errorf("%s is not encrypted with the key that writes: %.40q", key, is)
		}
	}
	for namespace := range flowLevels {
		sets, err := f.Kube.AppsV1().StatefulSets(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Errorf("reading what is encrypted: %v", err)
			continue
		}
		if len(sets.Items) != having+1 {
			t.Errorf("namespace %s has %d objects, want %d", namespace, len(sets.Items), having+1)
		}
		for i := range sets.Items {
			if framework.HasMaxUnavailable(&sets.Items[i]) {
				t.Errorf("%s/%s still has the field", namespace, sets.Items[i].Name)
			}
		}
	}
}

// written is what an audit event says of the write of one object.
type written struct {
	Level                 auditv1.Level
	Stage                 auditv1.Stage
	User, Verb            string
	Impersonated          bool
	Object                auditv1.ObjectReference
	Code                  int32
	HasRequest, HasAnswer bool
	// Removes is the field that the event names: in an annotation for what is edited in
	// storage.
	Removes string
}

// audited checks that there is one event for each object that was written.
func (f *flow) audited(t *testing.T, way string) {
	want := map[string]written{}
	for namespace, level := range flowLevels {
		for i := range having {
			if level == auditv1.LevelNone {
				continue
			}
			name := fmt.Sprintf("with-%d", i)
			w := written{
				Level: level, Stage: auditv1.StageResponseComplete, User: featurestorage.FlowUser, Verb: "patch", Code: 200,
				Object:     auditv1.ObjectReference{APIGroup: "apps", APIVersion: "v1", Resource: "statefulsets", Namespace: namespace, Name: name},
				HasRequest: level != auditv1.LevelMetadata, HasAnswer: level == auditv1.LevelRequestResponse,
			}
			if way == "Storage" {
				w.Removes = flowField
			}
			want[namespace+"/"+name] = w
		}
	}
	got := map[string]written{}
	for _, event := range f.events(t) {
		if event.ObjectRef == nil || event.ResponseStatus == nil {
			t.Errorf("the event of %s %s has no object or no answer", event.Verb, event.RequestURI)
			continue
		}
		key := event.ObjectRef.Namespace + "/" + event.ObjectRef.Name
		if _, twice := got[key]; twice {
			t.Errorf("%s has two events", key)
		}
		w := written{
			Level: event.Level, Stage: event.Stage, User: event.User.Username, Verb: event.Verb, Impersonated: event.ImpersonatedUser != nil,
			Object: *event.ObjectRef, Code: event.ResponseStatus.Code, HasRequest: event.RequestObject != nil, HasAnswer: event.ResponseObject != nil,
			Removes: event.Annotations[removedField],
		}
		if w.HasRequest && !strings.Contains(string(event.RequestObject.Raw), "/"+strings.ReplaceAll(flowField, ".", "/")) {
			t.Errorf("%s: the request does not have what was removed: %s", key, event.RequestObject.Raw)
		}
		got[key] = w
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected audit events (-want +got):\n%s", diff)
	}
}

// events are those of the audit log.
func (f *flow) events(t *testing.T) (events []auditv1.Event) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(f.DataDir(), "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		event := auditv1.Event{}
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatalf("the audit log has %q: %v", line, err)
		}
		events = append(events, event)
	}
	return events
}
