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

package storage

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/kubernetes-features/pkg/apis/features"
	"k8s.io/kubernetes/pkg/auth/nodeidentifier"
	"k8s.io/kubernetes/pkg/printers"
)

// grants lets users do what is listed as "<user> <verb> <resource>[/<name>]".
type grants []string

func (g grants) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	wanted := a.GetUser().GetName() + " " + a.GetVerb() + " " + a.GetResource()
	if a.GetSubresource() != "" {
		wanted += "/" + a.GetSubresource()
	} else {
		wanted += "/" + a.GetName()
	}
	for _, grant := range g {
		if grant == wanted {
			return authorizer.DecisionAllow, "", nil
		}
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func as(t *testing.T, name string, groups ...string) context.Context {
	return genericapirequest.WithUser(t.Context(), &user.DefaultInfo{Name: name, Groups: groups})
}

func report(component, instance, node, username string) *features.FeatureReport {
	r := &features.FeatureReport{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: component + "." + instance},
		Spec:       features.FeatureReportSpec{Component: component, Instance: instance, NodeName: node, Username: username},
	}
	if node == "" {
		r.Spec.Liveness.Lease = &features.LeaseReference{Namespace: "kube-feature-lease", Name: r.Name}
	}
	return r
}

func TestReportPermissions(t *testing.T) {
	r := &REST{
		nodes: nodeidentifier.NewDefaultNodeIdentifier(),
		authorizer: grants{
			"scheduler report components/kube-scheduler",
			"system:node:n1 report components/kubelet",
			"system:serviceaccount:ns:proxy report components/kube-proxy",
			"gc delete featurereports/any", "gc update featurereports/any",
		},
	}
	// A DaemonSet's processes share an account; their tokens name the node.
	bound := func(node string) context.Context {
		return genericapirequest.WithUser(t.Context(), &user.DefaultInfo{
			Name: "system:serviceaccount:ns:proxy", Extra: map[string][]string{"authentication.kubernetes.io/node-name": {node}},
		})
	}
	proxy := report("kube-proxy", "n1", "n1", "system:serviceaccount:ns:proxy")
	newProxy := proxy.DeepCopy()
	newProxy.Spec.BinaryVersion = "v2"
	mine := report("kube-scheduler", "i", "", "scheduler")
	newSpec := mine.DeepCopy()
	newSpec.Spec.BinaryVersion = "v2"
	newMeta := mine.DeepCopy()
	newMeta.Labels = map[string]string{"a": "b"}
	create := func(ctx context.Context, report *features.FeatureReport) error { return r.mayCreate(ctx, report) }
	remove := func(ctx context.Context) error { return r.deletable(nil)(ctx, mine) }
	node := func() context.Context { return as(t, "system:node:n1", user.NodesGroup) }
	for name, tc := range map[string]struct {
		err  error
		says string
	}{
		"a component reports":                        {create(as(t, "scheduler"), mine), ""},
		"as another component":                       {create(as(t, "scheduler"), report("kube-apiserver", "i", "", "")), `components.features.k8s.io "kube-apiserver"`},
		"another user reports":                       {create(as(t, "jane"), mine), "jane"},
		"a node reports":                             {create(node(), report("kubelet", "n1", "n1", "")), ""},
		"of another node":                            {create(node(), report("kubelet", "n2", "n2", "")), `node "n1"`},
		"of another instance on its node":            {create(node(), report("kubelet", "n2", "n1", "")), `node "n1"`},
		"of no node":                                 {create(node(), report("kubelet", "n1", "", "")), `node "n1"`},
		"a proxy reports":                            {create(bound("n1"), proxy), ""},
		"a proxy of another node reports":            {create(bound("n2"), proxy), `bound to node "n2"`},
		"a proxy changes its report":                 {r.mayUpdate(bound("n1"), newProxy, proxy), ""},
		"a proxy of another node changes it":         {r.mayUpdate(bound("n2"), newProxy, proxy), `on node "n1"`},
		"a proxy deletes its report":                 {r.deletable(nil)(bound("n1"), proxy), ""},
		"a proxy of another node deletes it":         {r.deletable(nil)(bound("n2"), proxy), "featurereports/any"},
		"a request without user reports":             {create(t.Context(), mine), "no user"},
		"the creator changes what it said":           {r.mayUpdate(as(t, "scheduler"), newSpec, mine), ""},
		"the garbage collector changes what it said": {r.mayUpdate(as(t, "gc"), newSpec, mine), `only "scheduler"`},
		"the garbage collector changes metadata":     {r.mayUpdate(as(t, "gc"), newMeta, mine), ""},
		"another user changes metadata":              {r.mayUpdate(as(t, "jane"), newMeta, mine), "featurereports/any"},
		"the creator deletes":                        {remove(as(t, "scheduler")), ""},
		"the garbage collector deletes":              {remove(as(t, "gc")), ""},
		"another user deletes":                       {remove(as(t, "jane")), "featurereports/any"},
	} {
		if (tc.err == nil) != (tc.says == "") || (tc.err != nil && (!apierrors.IsForbidden(tc.err) || !strings.Contains(tc.err.Error(), tc.says))) {
			t.Errorf("%s: got %v, want it to say %q", name, tc.err, tc.says)
		}
	}
}

func TestColumns(t *testing.T) {
	onNode := report("kubelet", "n1", "n1", "u")
	onNode.Spec.Features = make([]features.ReportedFeature, 3)
	leased := report("kube-scheduler", "i", "", "u")
	leased.Spec.Liveness.Lease = &features.LeaseReference{Namespace: "ns", Name: "l"}
	generator := printers.NewTableGenerator().With(addPrintHandlers)
	table, err := generator.GenerateTable(&features.FeatureReportList{Items: []features.FeatureReport{*onNode, *leased}}, printers.GenerateOptions{Wide: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := table.Rows[0].Cells; got[0] != "kubelet.n1" || got[3] != "n1" || got[4] != "Node" || got[5] != int64(3) {
		t.Errorf("a node's report is shown as %v", got)
	}
	if got := table.Rows[1].Cells; got[3] != "<none>" || got[4] != "Lease" || got[9] != "ns/l" {
		t.Errorf("a leased report is shown as %v", got)
	}
}
