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

package api

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	clientv3 "go.etcd.io/etcd/client/v3"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	typed "k8s.io/feature-lifecycle/client/clientset/versioned/typed/features/v1alpha1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/examplegates"
	"k8s.io/kubernetes-features/test/utils/localcluster"
	"k8s.io/utils/ptr"
)

const (
	system = metav1.NamespaceSystem
	// known is a gate that every server knows and has off.
	known = examplegates.Cleared
)

// shared is for tests that leave the server as it is. Its audit log has what the server
// flow does.
var shared = framework.NewShared(localcluster.Config{
	Nodes: 2, Only: []string{localcluster.Etcd, localcluster.APIServer},
	ExtraArgs: map[string][]string{localcluster.APIServer: {"--audit-policy-file=" + auditPolicy(), "--audit-log-path=" + auditLog}},
})

func TestMain(m *testing.M) {
	transport.CertCallbackRefreshDuration = certificatePeriod
	os.Exit(shared.Run(m))
}

// start starts a server with other gates and more flags.
func start(t *testing.T, gates string, flags ...string) *framework.Cluster {
	t.Helper()
	return framework.Start(t, localcluster.Config{
		FeatureGates: gates, Only: []string{localcluster.Etcd, localcluster.APIServer}, ExtraArgs: map[string][]string{localcluster.APIServer: flags},
	})
}

func features(t *testing.T, config *rest.Config) typed.FeaturesV1alpha1Interface {
	t.Helper()
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client.FeaturesV1alpha1()
}

func report(component, instance, node string) *v1alpha1.FeatureReport {
	r := &v1alpha1.FeatureReport{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: component + "." + instance},
		Spec: v1alpha1.FeatureReportSpec{
			Component: component,
			Instance:  instance,
			NodeName:  node,
			Features:  []v1alpha1.ReportedFeature{{Name: known, Queried: true}},
		},
	}
	if node == "" {
		r.Spec.Liveness.Lease = &v1alpha1.LeaseReference{Namespace: v1alpha1.LeaseNamespace, Name: r.Name}
		if component == localcluster.APIServer {
			r.Spec.Liveness.Lease.Namespace = system
		}
	}
	return r
}

// refused checks that an error is of a kind and that its message says what it
// should.
func refused(t *testing.T, err error, kind func(error) bool, says ...string) {
	t.Helper()
	if err == nil {
		t.Error("the request was not refused")
		return
	}
	if !kind(err) {
		t.Errorf("the request was refused with the wrong kind of error: %v", err)
	}
	for _, text := range says {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the message does not say %q: %v", text, err)
		}
	}
}

func TestPermissionsOfEachUser(t *testing.T) {
	c := shared.Cluster(t)
	c.WaitForFeature(known, "created", func(f *v1alpha1.Feature) bool { return f.Status.State != "" })
	admin := features(t, c.Config)
	user := features(t, c.Impersonate("jane", "system:authenticated"))
	scheduler := features(t, c.As(localcluster.Scheduler))
	node1, node2 := features(t, c.As(localcluster.Kubelet("node-1"))), features(t, c.As(localcluster.Kubelet("node-2")))

	t.Run("an ordinary user reads Features and writes nothing", func(t *testing.T) {
		framework.Eventually(t, "an ordinary user to list all features", func() error {
			list, err := user.Features(system).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				return err
			}
			if len(list.Items) < 200 {
				return fmt.Errorf("there are %d", len(list.Items))
			}
			return nil
		})
		feature, err := user.Features(system).Get(t.Context(), known, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		feature.Spec.Paused = true
		_, err = user.Features(system).Update(t.Context(), feature, metav1.UpdateOptions{})
		refused(t, err, apierrors.IsForbidden)
		_, err = user.FeatureReports(system).Create(t.Context(), report("kube-scheduler", "x", ""), metav1.CreateOptions{})
		refused(t, err, apierrors.IsForbidden)
		_, err = user.FeatureReports(system).List(t.Context(), metav1.ListOptions{})
		refused(t, err, apierrors.IsForbidden)
	})
	t.Run("only the server writes the status", func(t *testing.T) {
		feature := c.Feature(known)
		feature.Status.State = v1alpha1.StateOn
		_, err := admin.Features(system).UpdateStatus(t.Context(), feature, metav1.UpdateOptions{})
		refused(t, err, apierrors.IsForbidden, "system:feature-lifecycle", "--feature-gates")
	})
	t.Run("an administrator pauses a feature, and may not set it without --dynamic-features", func(t *testing.T) {
		_, err := admin.Features(system).Patch(t.Context(), known, types.MergePatchType, []byte(`{"spec":{"enabled":true}}`), metav1.PatchOptions{})
		refused(t, err, apierrors.IsInvalid, "--feature-gates="+known+"=true", "--dynamic-features")
		paused, err := admin.Features(system).Patch(t.Context(), known, types.MergePatchType, []byte(`{"spec":{"paused":true}}`), metav1.PatchOptions{})
		if err != nil || !paused.Spec.Paused {
			t.Errorf("pausing: %v", err)
		}
		if _, err := admin.Features(system).Patch(t.Context(), known, types.MergePatchType, []byte(`{"spec":{"paused":null}}`), metav1.PatchOptions{}); err != nil {
			t.Errorf("resuming: %v", err)
		}
	})
	t.Run("a component writes its own report, with its own name", func(t *testing.T) {
		mine := report("kube-scheduler", "test", "")
		mine.Spec.Username = "stranger"
		stored, err := scheduler.FeatureReports(system).Create(t.Context(), mine, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if stored.Spec.Username != "system:kube-scheduler" {
			t.Errorf("username is %q, want the requester's", stored.Spec.Username)
		}
		stored.Spec.Features[0].Enabled = true
		if _, err := scheduler.FeatureReports(system).Update(t.Context(), stored, metav1.UpdateOptions{}); err != nil {
			t.Errorf("updating: %v", err)
		}
		// Not even an administrator puts words into its mouth.
		stored = get(t, admin, stored.Name)
		stored.Spec.Features[0].Enabled = false
		_, err = admin.FeatureReports(system).Update(t.Context(), stored, metav1.UpdateOptions{})
		refused(t, err, apierrors.IsForbidden, "system:kube-scheduler")
		// Another component cannot delete it; an administrator can.
		refused(t, features(t, c.As(localcluster.ControllerManager)).FeatureReports(system).Delete(t.Context(), stored.Name, metav1.DeleteOptions{}), apierrors.IsForbidden, "system:kube-scheduler")
		if err := admin.FeatureReports(system).Delete(t.Context(), stored.Name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("deleting as an administrator: %v", err)
		}
	})
	t.Run("a write that changes nothing passes", func(t *testing.T) { rewritten(t, c) })
	t.Run("no component claims to be another", func(t *testing.T) {
		_, err := scheduler.FeatureReports(system).Create(t.Context(), report("kube-apiserver", "fake", ""), metav1.CreateOptions{})
		refused(t, err, apierrors.IsForbidden, "kube-apiserver", "components.features.k8s.io")
	})
	t.Run("a node writes reports of itself only", func(t *testing.T) {
		_, err := node1.FeatureReports(system).Create(t.Context(), report("kubelet", "node-2", "node-2"), metav1.CreateOptions{})
		refused(t, err, apierrors.IsForbidden, "node-1")
		if _, err := node1.FeatureReports(system).Create(t.Context(), report("kubelet", "node-1", "node-1"), metav1.CreateOptions{}); err != nil {
			t.Errorf("its own report: %v", err)
		}
		refused(t, node2.FeatureReports(system).Delete(t.Context(), "kubelet.node-1", metav1.DeleteOptions{}), apierrors.IsForbidden)
		if err := node1.FeatureReports(system).Delete(t.Context(), "kubelet.node-1", metav1.DeleteOptions{}); err != nil {
			t.Errorf("deleting its own report: %v", err)
		}
	})
	t.Run("what is malformed is refused with a reason", func(t *testing.T) {
		wrong := report("kube-scheduler", "test", "")
		wrong.Name = "other"
		_, err := scheduler.FeatureReports(system).Create(t.Context(), wrong, metav1.CreateOptions{})
		refused(t, err, apierrors.IsInvalid, "kube-scheduler.test")
		large := report("kube-scheduler", "large", "")
		large.Spec.Features = make([]v1alpha1.ReportedFeature, 1001)
		_, err = scheduler.FeatureReports(system).Create(t.Context(), large, metav1.CreateOptions{})
		refused(t, err, apierrors.IsInvalid, "1000")
		_, err = admin.Features(system).Create(t.Context(), &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Name: "A"}, Spec: v1alpha1.FeatureSpec{Rollout: &v1alpha1.FeatureRollout{Percent: ptr.To[int32](101)}}}, metav1.CreateOptions{})
		refused(t, err, apierrors.IsInvalid, "between 0 and 100")
	})
	t.Run("a plan says what would be done and stores nothing", func(t *testing.T) {
		before := c.Feature(known)
		plan, err := admin.Features(system).CreatePlan(t.Context(), known, &v1alpha1.FeaturePlan{Spec: v1alpha1.FeaturePlanSpec{Enabled: ptr.To(false)}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if n := len(plan.Status.Tasks); n != 2 {
			t.Errorf("the plan has %d tasks, want waiting and clearing: %+v", n, plan.Status.Tasks)
		}
		// The server flow tells of users and leftovers meanwhile.
		told := cmpopts.IgnoreFields(v1alpha1.FeatureStatus{}, "Uses", "Conditions")
		after := c.Feature(known)
		if diff := cmp.Diff(before.Spec, after.Spec); diff != "" {
			t.Errorf("the plan changed what is asked for (-before +after):\n%s", diff)
		}
		if diff := cmp.Diff(before.Status, after.Status, told); diff != "" {
			t.Errorf("the plan changed the feature (-before +after):\n%s", diff)
		}
		_, err = admin.Features(system).CreatePlan(t.Context(), known, &v1alpha1.FeaturePlan{}, metav1.CreateOptions{})
		refused(t, err, apierrors.IsInvalid, "enabled or targetVersion")
	})
	t.Run("what is clean is not cleaned", func(t *testing.T) {
		c.WaitForFeature(known, "Clean", func(f *v1alpha1.Feature) bool {
			for _, condition := range f.Status.Conditions {
				if condition.Type == v1alpha1.ConditionClean {
					return condition.Status == metav1.ConditionTrue
				}
			}
			return false
		})
		_, err := admin.Features(system).CreateCleanup(t.Context(), known, &v1alpha1.FeatureCleanup{}, metav1.CreateOptions{})
		refused(t, err, apierrors.IsConflict, "nothing is left")
	})
}

// rewritten writes Features and reports as the migrator of storage versions does, as an
// identity that may do what the migrator may (pkg/controller/storageversionmigrator and
// its role in plugin/pkg/auth/authorizer/rbac/bootstrappolicy).
func rewritten(t *testing.T, c *framework.Cluster) {
	const migrator = "migrator"
	c.Permit(t, c.User(migrator), migrator, metav1.NamespaceAll, []rbacv1.PolicyRule{{Verbs: []string{"list", "create", "patch"}, APIGroups: []string{"*"}, Resources: []string{"*"}}})
	asMigrator, admin := features(t, c.Impersonate(migrator)), features(t, c.Config)
	// Server-side apply of nothing but who is meant.
	written := func(kind string, object *metav1.ObjectMeta, to func(name string, body []byte, options metav1.PatchOptions) (*metav1.ObjectMeta, error)) {
		t.Helper()
		body := fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{"uid":%q,"resourceVersion":%q}}`, v1alpha1.SchemeGroupVersion, kind, object.UID, object.ResourceVersion)
		got, err := to(object.Name, body, metav1.PatchOptions{FieldManager: "storage-version-migrator-controller"})
		switch {
		case apierrors.IsConflict(err):
			// It has changed meanwhile, which the migrator takes for migrated.
		case err != nil:
			t.Errorf("%s %s: %v", kind, object.Name, err)
		case got.ResourceVersion != object.ResourceVersion && len(object.ManagedFields) == len(got.ManagedFields):
			// One without managed fields gets some from its first apply, whatever that is.
			t.Errorf("%s %s was at %s and is at %s", kind, object.Name, object.ResourceVersion, got.ResourceVersion)
		}
	}
	if _, err := features(t, c.As(localcluster.Kubelet("node-1"))).FeatureReports(system).Create(t.Context(), report("kubelet", "node-1", "node-1"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	reports, err := admin.FeatureReports(system).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(reports.Items) < 2 {
		t.Fatalf("reports %v, %v", reports, err)
	}
	for i := range reports.Items {
		written("FeatureReport", &reports.Items[i].ObjectMeta, func(name string, body []byte, options metav1.PatchOptions) (*metav1.ObjectMeta, error) {
			got, err := asMigrator.FeatureReports(system).Patch(t.Context(), name, types.ApplyPatchType, body, options)
			return &got.ObjectMeta, err
		})
	}
	if err := admin.FeatureReports(system).Delete(t.Context(), "kubelet.node-1", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	written("Feature", &c.Feature(known).ObjectMeta, func(name string, body []byte, options metav1.PatchOptions) (*metav1.ObjectMeta, error) {
		got, err := asMigrator.Features(system).Patch(t.Context(), name, types.ApplyPatchType, body, options)
		return &got.ObjectMeta, err
	})
	if _, err := admin.Features(system).UpdateStatus(t.Context(), c.Feature(known), metav1.UpdateOptions{}); err != nil && !apierrors.IsConflict(err) {
		t.Errorf("writing the status that is stored: %v", err)
	}
}

func get(t *testing.T, client typed.FeaturesV1alpha1Interface, name string) *v1alpha1.FeatureReport {
	t.Helper()
	report, err := client.FeatureReports(system).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// TestGateOffIsUpstream holds S6: no group, no hook, no writes.
func TestGateOffIsUpstream(t *testing.T) {
	t.Parallel()
	c := start(t, "FeatureLifecycle=false")
	client := kubernetes.NewForConfigOrDie(c.Config)
	groups, err := client.Discovery().ServerGroups()
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range groups.Groups {
		if group.Name == v1alpha1.GroupName {
			t.Errorf("S6: the server has group %s", group.Name)
		}
	}
	hooks, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").Param("verbose", "").Do(t.Context()).Raw()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(hooks), "\n") {
		if strings.Contains(line, "feature-lifecycle") || strings.Contains(line, "features/") {
			t.Errorf("S6: the server runs a hook: %s", line)
		}
	}
	if _, err := client.CoreV1().Namespaces().Get(t.Context(), v1alpha1.LeaseNamespace, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("S6: namespace %s: %v", v1alpha1.LeaseNamespace, err)
	}
	etcd := c.Etcd()
	for _, prefix := range []string{"/registry/features", "/registry/features.k8s.io"} {
		response, err := etcd.Get(t.Context(), prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil {
			t.Fatal(err)
		}
		if response.Count > 0 {
			t.Errorf("S6: %d keys below %s", response.Count, prefix)
		}
	}
}

// TestWithoutServerIdentities: a server without the gate APIServerIdentity has no
// identity that others know it by, and reports all the same. What it does not serve it
// says of features that need it, on or planned.
func TestWithoutServerIdentities(t *testing.T) {
	t.Parallel()
	c := start(t, "APIServerIdentity=false,UnknownVersionInteroperabilityProxy=false,StorageVersionMigrator=true", "--runtime-config="+migrations+"=false")
	notServed(t, c)
	c.WaitForFeature(known, "created", func(f *v1alpha1.Feature) bool { return f.Status.State == v1alpha1.StateOff })
	reports := c.WaitForReports("of the server", func(reports []v1alpha1.FeatureReport) bool { return len(reports) == 1 })
	if got := reports[0]; got.Spec.Component != "kube-apiserver" || got.Spec.Liveness.Lease == nil {
		t.Errorf("the report is %s, Lease %v", got.Name, got.Spec.Liveness.Lease)
	}
}

// migrations is the API of StorageVersionMigrator, which is served by default.
const migrations = "storagemigration.k8s.io/v1"

// notServed checks what is said of features whose API a flag disables, or none enables.
func notServed(t *testing.T, c *framework.Cluster) {
	t.Helper()
	on := c.WaitForFeature("StorageVersionMigrator", "On, and its API missing", func(f *v1alpha1.Feature) bool {
		progress := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionProgressing)
		return f.Status.State == v1alpha1.StateOn && progress != nil && progress.Reason == v1alpha1.ReasonNotServed
	})
	const flag = "--runtime-config=" + migrations + "=true"
	if said := meta.FindStatusCondition(on.Status.Conditions, v1alpha1.ConditionProgressing).Message; !strings.Contains(said, flag) {
		t.Errorf("the condition says %q, want %s in it", said, flag)
	}
	plan, err := features(t, c.Config).Features(system).CreatePlan(t.Context(), "GenericWorkload", &v1alpha1.FeaturePlan{Spec: v1alpha1.FeaturePlanSpec{Enabled: ptr.To(true)}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if said := strings.Join(plan.Status.Blockers, "\n"); !strings.Contains(said, "--runtime-config=scheduling.k8s.io/v1beta1=true; without it a kube-scheduler that has the gate on schedules nothing") {
		t.Errorf("the plan of turning GenericWorkload on says %q", said)
	}
}

// TestAnEmulatedVersionIsReported: --emulated-version reaches the layer through
// the registry that parses it, and changes what gates are.
func TestAnEmulatedVersionIsReported(t *testing.T) {
	t.Parallel()
	c := framework.Start(t, localcluster.Config{
		Only:      []string{localcluster.Etcd, localcluster.APIServer},
		ExtraArgs: map[string][]string{localcluster.APIServer: {"--emulated-version=1.35"}},
	})
	reports := c.WaitForReports("of the server", func(reports []v1alpha1.FeatureReport) bool { return len(reports) == 1 })
	if got := reports[0].Spec.EmulationVersion; got != "1.35" {
		t.Errorf("it emulates %q", got)
	}
	// Alpha and off at 1.35, beta and on at 1.36.
	const changed = "DRAConsumableCapacity"
	i := slices.IndexFunc(reports[0].Spec.Features, func(f v1alpha1.ReportedFeature) bool { return f.Name == changed })
	if i < 0 {
		t.Fatalf("%s is not reported", changed)
	}
	if f := reports[0].Spec.Features[i]; f.Enabled || f.Default || f.Stage != v1alpha1.StageAlpha {
		t.Errorf("%s is %+v", changed, f)
	}
}
