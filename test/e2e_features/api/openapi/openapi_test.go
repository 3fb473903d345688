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

// Package openapi tests that published OpenAPI documents say what the server lets
// people do, and that what is stored, applied and admitted does not depend on them.
package openapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	admissionapply "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	dynamicclient "k8s.io/client-go/dynamic"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/pkg/features"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/examplegates"
	"k8s.io/kubernetes-features/test/utils/localcluster"
	"k8s.io/utils/ptr"
)

const (
	// gated is turned off by a restart. Its field stays in objects until a user
	// decides (WaitForNoneInPods).
	gated      = examplegates.Dynamic
	gatedType  = "io.k8s.api.core.v1.Lifecycle"
	gatedField = "stopSignal"
	signal     = string(corev1.SIGUSR1)
	// gatedIn has the field, sibling is another field there.
	gatedIn = "deployment.spec.template.spec.containers.lifecycle"
	sibling = "preStop"
	// dynamic is changed while the server runs.
	dynamic      = "MaxUnavailableStatefulSet"
	dynamicType  = "io.k8s.api.apps.v1.RollingUpdateStatefulSetStrategy"
	dynamicField = "maxUnavailable"
	// crdGate guards a field that the server of custom resources publishes.
	crdGate  = "CRDObservedGenerationTracking"
	crdType  = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionStatus"
	crdField = "observedGeneration"
	// shardSelector is a parameter of requests of the gate ShardedListAndWatch.
	shardSelector = "shardSelector"
	// unsafeDeletion is an option of unsafeGate, which is on by default.
	unsafeGate     = "AllowUnsafeMalformedObjectDeletion"
	unsafeDeletion = "ignoreStoreReadErrorWithClusterBreakingPotential"
	metaV1         = "io.k8s.apimachinery.pkg.apis.meta.v1."

	author = "author"
	name   = "web"
)

// TestDocumentsAndStoredObjects: with a gate off its field is in no document, and
// an object that has it is read, patched and applied as ever.
func TestDocumentsAndStoredObjects(t *testing.T) {
	t.Parallel()
	c := framework.Start(t, localcluster.Config{
		FeatureGates: gated + "=true," + crdGate + "=true",
		Only:         []string{localcluster.Etcd, localcluster.APIServer},
		ExtraArgs:    map[string][]string{localcluster.APIServer: {"--dynamic-features=" + dynamic, "--feature-settle-period=1s"}},
	})
	documentsHave(t, c, gatedType, gatedField, true)
	if !inV2(t, c, crdType, crdField) || !inV3(t, c, "apis/apiextensions.k8s.io/v1", crdType, crdField) {
		t.Errorf("the documents have no %s.%s", crdType, crdField)
	}
	if output, err := explain(t, c, gatedIn+"."+gatedField); err != nil {
		t.Errorf("kubectl explain while the gate is on: %v\n%s", err, output)
	}
	apply(t, c, author, deployment().WithSpec(spec(1, signal)))

	c.MustRestartWith(gated+"=false,"+crdGate+"=false,"+unsafeGate+"=false", localcluster.APIServer)
	t.Run("the field is in no document", func(t *testing.T) {
		documentsHave(t, c, gatedType, gatedField, false)
		documentsHave(t, c, gatedType, sibling, true)
		output, err := explain(t, c, gatedIn+"."+gatedField)
		if err == nil || !strings.Contains(output, gatedField) {
			t.Errorf("kubectl explain while the gate is off: %v\n%s", err, output)
		}
		if output, err := explain(t, c, gatedIn); err != nil || strings.Contains(output, gatedField) || !strings.Contains(output, sibling) {
			t.Errorf("kubectl explain of what has the field while the gate is off: %v\n%s", err, output)
		}
	})
	t.Run("clients that build a model from documents", func(t *testing.T) { extracts(t, c, false) })
	t.Run("a field of another server of the chain", func(t *testing.T) {
		if inV2(t, c, crdType, crdField) || inV3(t, c, "apis/apiextensions.k8s.io/v1", crdType, crdField) {
			t.Errorf("the documents have %s.%s", crdType, crdField)
		}
	})
	t.Run("the server itself has complete documents", func(t *testing.T) {
		if output, err := explain(t, c, gatedIn+"."+gatedField, "--as="+user.APIServerUser); err != nil {
			t.Errorf("kubectl explain as the server: %v\n%s", err, output)
		}
	})
	t.Run("the stored object is read", func(t *testing.T) { deploymentHas(t, c, signal) })
	t.Run("fields and parameters of requests", func(t *testing.T) { requestsLack(t, c) })
	t.Run("another field manager applies", func(t *testing.T) {
		apply(t, c, "another", appsapply.Deployment(name, metav1.NamespaceDefault).WithLabels(map[string]string{"by": "another"}))
		deploymentHas(t, c, signal)
	})
	t.Run("a mutating admission policy applies", func(t *testing.T) { policyApplies(t, c) })
	t.Run("what owns the field applies it again", func(t *testing.T) {
		apply(t, c, author, deployment().WithSpec(spec(2, signal)))
		deploymentHas(t, c, signal)
		if d := get(t, c); *d.Spec.Replicas != 2 || !owns(d, author, "f:"+gatedField) {
			t.Errorf("%d replicas, managed fields %v", *d.Spec.Replicas, d.ManagedFields)
		}
	})
	// By its model server-side apply knows that the field was the author's.
	t.Run("what owns the field gives it up", func(t *testing.T) {
		apply(t, c, author, deployment().WithSpec(spec(2, "")))
		deploymentHas(t, c, "")
		extracts(t, c, true)
	})
	t.Run("with a custom resource", func(t *testing.T) { customResource(t, c) })
	t.Run("documents follow a dynamic feature", func(t *testing.T) {
		for _, enabled := range []bool{true, false, true} {
			c.Request(dynamic, fmt.Sprintf(`{"enabled":%t}`, enabled))
			framework.Eventually(t, fmt.Sprintf("documents with %s: %t", dynamicField, enabled), func() error {
				if v2, v3 := inV2(t, c, dynamicType, dynamicField), inV3(t, c, "apis/apps/v1", dynamicType, dynamicField); v2 != enabled || v3 != enabled {
					return fmt.Errorf("OpenAPI v2 has it: %t, v3: %t", v2, v3)
				}
				return nil
			})
			want := v1alpha1.StateOff
			if enabled {
				want = v1alpha1.StateOn
			}
			c.WaitForFeature(dynamic, string(want), func(f *v1alpha1.Feature) bool { return f.Status.State == want })
		}
	})
}

// TestWithoutTheFeatureLifecycle documents are upstream's (S6).
func TestWithoutTheFeatureLifecycle(t *testing.T) {
	t.Parallel()
	c := framework.Start(t, localcluster.Config{
		FeatureGates: gated + "=false," + string(features.FeatureLifecycle) + "=false",
		Only:         []string{localcluster.Etcd, localcluster.APIServer},
	})
	documentsHave(t, c, gatedType, gatedField, true)
	if document := string(raw(t, c, "/openapi/v2")); !strings.Contains(document, shardSelector) {
		t.Errorf("OpenAPI v2 has no %s", shardSelector)
	}
}

// requestsLack looks for a parameter of lists and a field of their answers, which
// belong to a gate that is off by default, and for an option of unsafeGate. It reads
// the documents of all servers of the chain: of Kubernetes' APIs, of definitions of
// custom resources, and of the aggregator. A type that differed among them would be in OpenAPI v2 twice.
func requestsLack(t *testing.T, c *framework.Cluster) {
	for _, path := range []string{"/openapi/v2", "/openapi/v3/api/v1", "/openapi/v3/apis/apps/v1",
		"/openapi/v3/apis/apiextensions.k8s.io/v1", "/openapi/v3/apis/apiregistration.k8s.io/v1", "/openapi/v3/apis/features.k8s.io/v1alpha1"} {
		document := string(raw(t, c, path))
		for _, gone := range []string{`"` + shardSelector, `"shardInfo"`, `"name":"` + unsafeDeletion, "#/parameters/" + unsafeDeletion, "ListMeta_v2"} {
			if strings.Contains(document, gone) {
				t.Errorf("%s has %s", path, gone)
			}
		}
		if path != "/openapi/v2" && strings.Contains(document, unsafeDeletion) {
			t.Errorf("%s has %s", path, unsafeDeletion)
		}
		if !strings.Contains(document, `"limit`) {
			t.Errorf("%s has no parameters of lists", path)
		}
	}
}

// extracts asks a client for what a field manager applied. It builds its model from
// the published documents, and refuses an object that has a field that they do not
// have, with the error that docs/troubleshooting.md explains.
func extracts(t *testing.T, c *framework.Cluster, want bool) {
	t.Helper()
	extractor, err := metaapply.NewUnstructuredExtractor(c.Kube.Discovery())
	if err != nil {
		t.Fatal(err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(get(t, c))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	extracted, err := extractor.Extract(object, author)
	if !want {
		if err == nil || !strings.Contains(err.Error(), ".lifecycle."+gatedField+": field not declared in schema") {
			t.Errorf("extracting from an object that has the field: %v", err)
		}
		return
	}
	if err != nil {
		t.Fatalf("extracting from an object that has not the field: %v", err)
	}
	if replicas, _, err := unstructured.NestedInt64(extracted.Object, "spec", "replicas"); err != nil || replicas != 2 {
		t.Errorf("extracted %v, %v", extracted.Object, err)
	}
}

// customResource: upstream's server of custom resources makes the documents of each
// definition from complete types, so these have what belongs to the gate. In OpenAPI
// v2 their ListMeta has a name of its own, and clients still build models.
func customResource(t *testing.T, c *framework.Cluster) {
	definition := &unstructured.Unstructured{}
	if err := definition.UnmarshalJSON([]byte(`{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"}, "spec": {
		"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
		"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}`)); err != nil {
		t.Fatal(err)
	}
	client, err := dynamicclient.NewForConfig(c.Impersonate("admin", user.SystemPrivilegedGroup))
	if err != nil {
		t.Fatal(err)
	}
	definitions := client.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
	if _, err := definitions.Create(t.Context(), definition, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, "the definition in OpenAPI v2", func() error {
		const list = "com.example.v1.WidgetList"
		if document := string(raw(t, c, "/openapi/v2")); !strings.Contains(document, list) {
			return fmt.Errorf("its %d bytes have no %s", len(document), list)
		}
		return nil
	})
	if listMeta := metaV1 + "ListMeta"; inV2(t, c, listMeta, "shardInfo") || !inV2(t, c, listMeta+"_v2", "shardInfo") {
		t.Error("OpenAPI v2 does not have shardInfo in ListMeta_v2 only")
	}
	// A kind that is there twice makes clients refuse the document.
	if strings.Contains(string(raw(t, c, "/openapi/v2")), "DeleteOptions_v2") {
		t.Error("OpenAPI v2 has DeleteOptions twice")
	}
	extracts(t, c, true)
}

// policyApplies lets a policy merge an apply configuration into the object that has
// the field.
func policyApplies(t *testing.T, c *framework.Cluster) {
	policy := admissionapply.MutatingAdmissionPolicy("readiness").WithSpec(admissionapply.MutatingAdmissionPolicySpec().
		WithFailurePolicy(admissionregistrationv1.Fail).
		WithReinvocationPolicy(admissionregistrationv1.NeverReinvocationPolicy).
		WithMatchConstraints(admissionapply.MatchResources().WithResourceRules(admissionapply.NamedRuleWithOperations().
			WithOperations(admissionregistrationv1.Update).WithAPIGroups("apps").WithAPIVersions("v1").WithResources("deployments"))).
		WithMutations(admissionapply.Mutation().
			WithPatchType(admissionregistrationv1.PatchTypeApplyConfiguration).
			WithApplyConfiguration(admissionapply.ApplyConfiguration().WithExpression("Object{spec: Object.spec{minReadySeconds: 7}}"))))
	options := metav1.ApplyOptions{FieldManager: "test", Force: true}
	admission := c.Kube.AdmissionregistrationV1()
	if _, err := admission.MutatingAdmissionPolicies().Apply(t.Context(), policy, options); err != nil {
		t.Fatal(err)
	}
	binding := admissionapply.MutatingAdmissionPolicyBinding("readiness").WithSpec(admissionapply.MutatingAdmissionPolicyBindingSpec().WithPolicyName("readiness"))
	if _, err := admission.MutatingAdmissionPolicyBindings().Apply(t.Context(), binding, options); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := admission.MutatingAdmissionPolicyBindings().Delete(t.Context(), "readiness", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}()
	updates := 0
	framework.Eventually(t, "an update that the policy changes", func() error {
		updates++
		d, err := c.Kube.AppsV1().Deployments(metav1.NamespaceDefault).Patch(t.Context(), name, types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"labels":{"updates":"%d"}}}`, updates), metav1.PatchOptions{})
		if err != nil {
			// The server learns of a policy before it has the schema of what it
			// applies to.
			return fmt.Errorf("update %d: %w", updates, err)
		}
		if d.Spec.MinReadySeconds != 7 {
			return fmt.Errorf("minReadySeconds is %d after update %d", d.Spec.MinReadySeconds, updates)
		}
		return nil
	})
	deploymentHas(t, c, signal)
}

func deployment() *appsapply.DeploymentApplyConfiguration {
	return appsapply.Deployment(name, metav1.NamespaceDefault)
}

// spec has the gated field unless it is empty.
func spec(replicas int32, signal string) *appsapply.DeploymentSpecApplyConfiguration {
	labels := map[string]string{"app": name}
	container := coreapply.Container().WithName("c").WithImage("example.com/none")
	if signal != "" {
		container.WithLifecycle(coreapply.Lifecycle().WithStopSignal(corev1.Signal(signal)))
	}
	pod := coreapply.PodSpec().WithOS(coreapply.PodOS().WithName(corev1.Linux)).WithContainers(container)
	return appsapply.DeploymentSpec().WithReplicas(replicas).WithSelector(metaapply.LabelSelector().WithMatchLabels(labels)).
		WithTemplate(coreapply.PodTemplateSpec().WithLabels(labels).WithSpec(pod))
}

func apply(t *testing.T, c *framework.Cluster, manager string, d *appsapply.DeploymentApplyConfiguration) {
	t.Helper()
	if _, err := c.Kube.AppsV1().Deployments(metav1.NamespaceDefault).Apply(t.Context(), d, metav1.ApplyOptions{FieldManager: manager}); err != nil {
		t.Fatalf("%s applies: %v", manager, err)
	}
}

func get(t *testing.T, c *framework.Cluster) *appsv1.Deployment {
	t.Helper()
	d, err := c.Kube.AppsV1().Deployments(metav1.NamespaceDefault).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func deploymentHas(t *testing.T, c *framework.Cluster, want string) {
	t.Helper()
	lifecycle := ptr.Deref(get(t, c).Spec.Template.Spec.Containers[0].Lifecycle, corev1.Lifecycle{})
	if diff := cmp.Diff(want, string(ptr.Deref(lifecycle.StopSignal, ""))); diff != "" {
		t.Errorf("%s of the stored object (-want +got):\n%s", gatedField, diff)
	}
}

func owns(d *appsv1.Deployment, manager, field string) bool {
	for _, entry := range d.ManagedFields {
		if entry.Manager == manager && strings.Contains(entry.FieldsV1.GetRawString(), `"`+field+`"`) {
			return true
		}
	}
	return false
}

// explain runs kubectl explain, and returns all that it printed.
func explain(t *testing.T, c *framework.Cluster, field string, flags ...string) (string, error) {
	t.Helper()
	output, complaint := c.Kubectl("").Run(t, append([]string{"explain", field}, flags...)...)
	if complaint != "" {
		return output + complaint, errors.New(complaint)
	}
	return output, nil
}

// documentsHave checks the document of OpenAPI v2 and those of v3 that have the
// type.
func documentsHave(t *testing.T, c *framework.Cluster, kind, property string, want bool) {
	t.Helper()
	if inV2(t, c, kind, property) != want {
		t.Errorf("OpenAPI v2 has %s.%s: %t", kind, property, !want)
	}
	for _, group := range []string{"api/v1", "apis/apps/v1", "apis/batch/v1"} {
		if inV3(t, c, group, kind, property) != want {
			t.Errorf("OpenAPI v3 of %s has %s.%s: %t", group, kind, property, !want)
		}
	}
}

// kinds are those of a document, as far as is asked of them.
type kinds map[string]struct {
	Properties map[string]any `json:"properties"`
}

func inV2(t *testing.T, c *framework.Cluster, kind, property string) bool {
	t.Helper()
	var document struct {
		Definitions kinds `json:"definitions"`
	}
	read(t, c, "/openapi/v2", &document)
	return document.Definitions.has(t, kind, property)
}

func inV3(t *testing.T, c *framework.Cluster, group, kind, property string) bool {
	t.Helper()
	var document struct {
		Components struct {
			Schemas kinds `json:"schemas"`
		} `json:"components"`
	}
	read(t, c, "/openapi/v3/"+group, &document)
	return document.Components.Schemas.has(t, kind, property)
}

func (k kinds) has(t *testing.T, kind, property string) bool {
	t.Helper()
	if len(k[kind].Properties) == 0 {
		t.Fatalf("the document has no type %s with properties", kind)
	}
	_, ok := k[kind].Properties[property]
	return ok
}

func read(t *testing.T, c *framework.Cluster, path string, into any) {
	t.Helper()
	if err := json.Unmarshal(raw(t, c, path), into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func raw(t *testing.T, c *framework.Cluster, path string) []byte {
	t.Helper()
	data, err := c.Kube.Discovery().RESTClient().Get().AbsPath(path).SetHeader("Accept", "application/json").DoRaw(t.Context())
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return data
}
