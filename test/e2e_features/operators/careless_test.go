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

package operators

import (
	"context"
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	featurestorage "k8s.io/kubernetes-features/pkg/registry/features/feature/storage"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

// careless is what is refused to those who were given far too much in all namespaces,
// by the storage and not by RBAC: everything in the group by wildcards, or all verbs on all
// that is stored. What wildcards permit is tried, too, without storing anything.
func (s *stage) careless(t *testing.T) []forbidden {
	t.Helper()
	group := []string{v1alpha1.GroupName}
	wildcards, all := s.w.identity(t, s.red.namespace, "wildcards"), s.w.identity(t, s.red.namespace, "all-verbs")
	s.w.permit(t, wildcards, nil, []rbacv1.PolicyRule{{APIGroups: group, Resources: []string{rbacv1.ResourceAll}, Verbs: []string{rbacv1.VerbAll}}})
	s.w.permit(t, all, nil, []rbacv1.PolicyRule{{APIGroups: group, Resources: []string{"features", "features/status", "featurereports", "featurevalues"}, Verbs: []string{rbacv1.VerbAll}}})
	s.wildcardsPermit(t, wildcards)

	var rows []forbidden
	for _, id := range []*identity{wildcards, all} {
		f, r := features(id.features, metav1.NamespaceSystem), reports(id.features, metav1.NamespaceSystem)
		alone := fmt.Sprintf("the status of Kubernetes' own features is written by %s alone", featurestorage.FlowUser)
		rows = append(rows,
			forbidden{name: id.name + " writes a status", do: func(ctx context.Context) error {
				feature, err := f.Get(ctx, borrowed, metav1.GetOptions{})
				if err != nil {
					return err
				}
				feature.Status.State = v1alpha1.StateOn
				return second(f.UpdateStatus(ctx, feature, metav1.UpdateOptions{}))
			}, says: alone},
			forbidden{name: id.name + " patches a status", do: func(ctx context.Context) error {
				return merge(ctx, f.Patch, borrowed, `{"status":{"state":"On"}}`, "status")
			}, says: alone},
			forbidden{name: id.name + " requests a value that is not dynamic", do: func(ctx context.Context) error {
				return merge(ctx, f.Patch, borrowed, `{"spec":{"enabled":true}}`)
			}, invalid: true, says: "cannot be set through the API: it is not listed in --dynamic-features"},
			forbidden{name: id.name + " changes what kube-apiserver reports", do: func(ctx context.Context) error {
				return merge(ctx, r.Patch, s.server, `{"spec":{"binaryVersion":"v9.9.9"}}`)
			}, says: "who created the report, may change it"},
		)
	}
	r := reports(all.features, metav1.NamespaceSystem)
	return append(rows,
		forbidden{name: all.name + " reports as kube-apiserver", do: func(ctx context.Context) error {
			return second(r.Create(ctx, newReport(metav1.NamespaceSystem, localcluster.APIServer), metav1.CreateOptions{}))
		}, says: fmt.Sprintf("may not report as component %q; grant the verb report", localcluster.APIServer)},
		forbidden{name: all.name + " deletes the report of kube-apiserver", do: func(ctx context.Context) error {
			return r.Delete(ctx, s.server, metav1.DeleteOptions{})
		}, says: "that needs the verb delete on featurereports/any"},
	)
}

// wildcardsPermit: wildcards have the verb report on all components, and everything on
// featurereports/any, as those of the garbage collector and of administrators do.
func (s *stage) wildcardsPermit(t *testing.T, id *identity) {
	t.Helper()
	r, try := reports(id.features, metav1.NamespaceSystem), []string{metav1.DryRunAll}
	for what, err := range map[string]error{
		"report as kube-apiserver":            second(r.Create(t.Context(), newReport(metav1.NamespaceSystem, localcluster.APIServer), metav1.CreateOptions{DryRun: try})),
		"delete the report of kube-apiserver": r.Delete(t.Context(), s.server, metav1.DeleteOptions{DryRun: try}),
	} {
		if err != nil {
			t.Errorf("%s may %s by wildcards, and cannot: %v; are they held by something else than RBAC now? The documentation says by what", id.user(), what, err)
		}
	}
}
