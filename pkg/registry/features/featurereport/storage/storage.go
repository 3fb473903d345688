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

// Package storage stores FeatureReports and decides which user may write
// which.
package storage

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/pkg/apis/features"
	"k8s.io/kubernetes-features/pkg/registry/features/featurereport"
	"k8s.io/kubernetes/pkg/auth/nodeidentifier"
	"k8s.io/kubernetes/pkg/printers"
	printerstorage "k8s.io/kubernetes/pkg/printers/storage"
)

// REST stores FeatureReports. Every write is checked against the identity that
// makes it, whatever RBAC allows (S5):
//
//   - who creates a report needs the verb "report" on the virtual resource
//     components/<spec.component>, as signers of certificates need "sign";
//   - a node's identity may only write reports of its own node, and so may a
//     service account whose token is bound to a node, as a DaemonSet's is;
//   - the spec is changed by its creator alone;
//   - deleting it, or changing its metadata, is for its creator and for those
//     who may do so on the virtual subresource featurereports/any, which the
//     garbage collector and administrators are by their wildcards;
//   - a write that changes nothing passes, so that stored reports can be encrypted with
//     another key.
type REST struct {
	*genericregistry.Store
	authorizer authorizer.UnconditionalAuthorizer
	nodes      nodeidentifier.NodeIdentifier
	limits     limits
	counts     *counts
	// node returns a Node by its name.
	node func(name string) (*corev1.Node, error)
}

// limits bound how many reports one identity may have in a namespace; validation
// bounds what one holds. Together they bound the storage of a faulty or stolen
// identity: some 10 MB without a node, and with kube-proxies' shared identity some
// 1.5 GB. A server counts in its watch cache, and near the limit for each creation.
// Concurrent creations in several servers are not counted, and may exceed the limit
// by as many.
type limits struct {
	// onNodes limits reports with a node: kube-proxies share an identity, and
	// 5,000 nodes are the most that Kubernetes supports.
	onNodes int
	// others limits reports without a node.
	others int
}

var defaultLimits = limits{onNodes: 15000, others: 100}

// NewREST makes the storage. Node reads a Node, from a cache.
func NewREST(optsGetter generic.RESTOptionsGetter, auth authorizer.UnconditionalAuthorizer, node func(name string) (*corev1.Node, error)) (*REST, error) {
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &features.FeatureReport{} },
		NewListFunc:               func() runtime.Object { return &features.FeatureReportList{} },
		PredicateFunc:             featurereport.Match,
		DefaultQualifiedResource:  features.Resource("featurereports"),
		SingularQualifiedResource: features.Resource("featurereport"),

		CreateStrategy: featurereport.Strategy,
		UpdateStrategy: featurereport.Strategy,
		DeleteStrategy: featurereport.Strategy,

		TableConvertor: printerstorage.TableConvertor{TableGenerator: printers.NewTableGenerator().With(addPrintHandlers)},
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: sharing{optsGetter}, AttrFunc: featurereport.GetAttrs, TriggerFunc: featurereport.Triggers(), Indexers: featurereport.Indexers()}); err != nil {
		return nil, err
	}
	return &REST{Store: store, authorizer: auth, nodes: nodeidentifier.NewDefaultNodeIdentifier(), limits: defaultLimits, counts: &counts{}, node: node}, nil
}

var _ rest.CategoriesProvider = &REST{}

// Confirmation serves the subresource confirmation of the reports.
func (r *REST) Confirmation() *ConfirmationREST { return &ConfirmationREST{r} }

// Categories lets "kubectl get features-all" show features and reports.
func (r *REST) Categories() []string { return []string{"features-all"} }

// Create creates a report if the requester may report for its component.
func (r *REST) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	r.own(obj.(*features.FeatureReport), &features.FeatureReport{})
	return r.Store.Create(ctx, obj, func(ctx context.Context, obj runtime.Object) error {
		if err := r.mayAdd(ctx, obj.(*features.FeatureReport)); err != nil {
			return err
		}
		return validateNext(ctx, validate, obj)
	}, options)
}

// own makes the Node that a report names its owner, so that the report goes with it.
// A process would have to read its Node for that, and with it all that start at the
// same moment. One that the server does not know (yet) is left to the process.
//
// The Node is decided once. A reference to the Node by its name stays, whatever its
// uid. This server's cache may be older than the writer's, and the garbage collector
// deletes a report whose owner has another Node's uid. A reference that an update
// removes is not added again, so the collector can orphan a report.
func (r *REST) own(report, old *features.FeatureReport) {
	if report.Spec.NodeName == "" || ownedByNode(report) || ownedByNode(old) {
		return
	}
	node, err := r.node(report.Spec.NodeName)
	if err != nil || node.DeletionTimestamp != nil {
		return
	}
	report.OwnerReferences = append(slices.Clip(report.OwnerReferences), metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID})
}

// ownedByNode is true for a report that has the Node that it names as an owner.
func ownedByNode(report *features.FeatureReport) bool {
	return slices.ContainsFunc(report.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.APIVersion == "v1" && o.Kind == "Node" && o.Name == report.Spec.NodeName
	})
}

// Update changes a report if the requester may.
func (r *REST) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, validateCreate rest.ValidateObjectFunc, validateUpdate rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	// The object of the request, before the strategy restores immutable fields.
	unchanged := false
	objInfo = rest.WrapUpdatedObjectInfo(objInfo, func(_ context.Context, changed, old runtime.Object) (runtime.Object, error) {
		report, ok := changed.(*features.FeatureReport)
		before, known := old.(*features.FeatureReport)
		unchanged = ok && known && featurereport.Unchanged(report, before)
		if ok && known && !unchanged {
			r.own(report, before)
		}
		return changed, nil
	})
	return r.Store.Update(ctx, name, objInfo, func(ctx context.Context, obj runtime.Object) error {
		// Server-side apply may create.
		if err := r.mayAdd(ctx, obj.(*features.FeatureReport)); err != nil {
			return err
		}
		return validateNext(ctx, validateCreate, obj)
	}, func(ctx context.Context, obj, old runtime.Object) error {
		if !unchanged {
			if err := r.mayUpdate(ctx, obj.(*features.FeatureReport), old.(*features.FeatureReport)); err != nil {
				return err
			}
		}
		if validateUpdate == nil {
			return nil
		}
		return validateUpdate(ctx, obj, old)
	}, forceAllowCreate, options)
}

// Delete deletes a report if the requester may.
func (r *REST) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	return r.Store.Delete(ctx, name, r.deletable(validate), options)
}

// DeleteCollection deletes reports if the requester may delete each.
func (r *REST) DeleteCollection(ctx context.Context, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions, listOptions *metainternalversion.ListOptions) (runtime.Object, error) {
	return r.Store.DeleteCollection(ctx, r.deletable(validate), options, listOptions)
}

func (r *REST) deletable(validate rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		report := obj.(*features.FeatureReport)
		requester, err := requester(ctx, report)
		if err != nil {
			return err
		}
		if !createdBy(requester, report) {
			if err := r.mayTouchAny(ctx, requester, "delete", report); err != nil {
				return err
			}
		}
		return validateNext(ctx, validate, obj)
	}
}

func validateNext(ctx context.Context, validate rest.ValidateObjectFunc, obj runtime.Object) error {
	if validate == nil {
		return nil
	}
	return validate(ctx, obj)
}

// mayAdd checks whether the requester may create a report, and has room for it.
func (r *REST) mayAdd(ctx context.Context, report *features.FeatureReport) error {
	if err := r.mayCreate(ctx, report); err != nil {
		return err
	}
	if r.ownNodeOnly(ctx, report) {
		return nil
	}
	onNode := report.Spec.NodeName != ""
	limit, kind := r.limits.others, "without a node"
	if onNode {
		limit, kind = r.limits.onNodes, "of nodes"
	}
	key := countKey{namespace: report.Namespace, username: report.Spec.Username, onNode: onNode}
	count, room, err := r.counts.add(key, limit, time.Now(), func() (int, error) { return r.count(ctx, key) })
	if err != nil {
		// Unwrapped: the cache may return when to retry.
		return err
	}
	if !room {
		return forbidden(report, "user %q has %d reports %s already, and one identity may have %d; delete those of lost processes",
			report.Spec.Username, count, kind, limit)
	}
	return nil
}

// count counts the reports of an identity in the namespace of a request.
func (r *REST) count(ctx context.Context, key countKey) (int, error) {
	// The cache's view will do.
	list, err := r.List(ctx, &metainternalversion.ListOptions{
		FieldSelector:   fields.OneTermEqualSelector(featurereport.UsernameField, key.username),
		ResourceVersion: "0",
	})
	if err != nil {
		return 0, err
	}
	count := 0
	for i := range list.(*features.FeatureReportList).Items {
		if (list.(*features.FeatureReportList).Items[i].Spec.NodeName != "") == key.onNode {
			count++
		}
	}
	return count, nil
}

// ownNodeOnly is true for identities that can have one report for each component
// that they run, since mayCreate holds them to their node.
func (r *REST) ownNodeOnly(ctx context.Context, report *features.FeatureReport) bool {
	requester, ok := genericapirequest.UserFrom(ctx)
	if !ok || report.Spec.NodeName == "" || report.Spec.Instance != report.Spec.NodeName {
		return false
	}
	_, isNode := r.nodes.NodeIdentity(requester)
	return isNode || boundNode(requester) != ""
}

func (r *REST) mayCreate(ctx context.Context, report *features.FeatureReport) error {
	requester, err := requester(ctx, report)
	if err != nil {
		return err
	}
	if node, isNode := r.nodes.NodeIdentity(requester); isNode && (report.Spec.NodeName != node || report.Spec.Instance != node) {
		return forbidden(report, "node %q may only write reports whose spec.nodeName and spec.instance are its own name, not %q and %q", node, report.Spec.NodeName, report.Spec.Instance)
	}
	if node := boundNode(requester); report.Spec.NodeName != "" && node != "" && node != report.Spec.NodeName {
		return forbidden(report, "the token of %q is bound to node %q, so it may not report for node %q", requester.GetName(), node, report.Spec.NodeName)
	}
	return r.authorize(ctx, report, authorizer.AttributesRecord{
		User:            requester,
		Verb:            "report",
		Namespace:       report.Namespace,
		APIGroup:        features.GroupName,
		APIVersion:      v1alpha1.SchemeGroupVersion.Version,
		Resource:        "components",
		Name:            report.Spec.Component,
		ResourceRequest: true,
	}, fmt.Sprintf("user %q may not report as component %q; grant the verb report on components.features.k8s.io %q in namespace %q",
		requester.GetName(), report.Spec.Component, report.Spec.Component, report.Namespace))
}

func (r *REST) mayUpdate(ctx context.Context, report, old *features.FeatureReport) error {
	requester, err := requester(ctx, report)
	if err != nil {
		return err
	}
	if createdBy(requester, old) {
		return nil
	}
	if !equality.Semantic.DeepEqual(report.Spec, old.Spec) {
		return notCreator(old, requester)
	}
	return r.mayTouchAny(ctx, requester, "update", report)
}

func notCreator(report *features.FeatureReport, requester user.Info) error {
	return forbidden(report, "only %q%s, who created the report, may change it; you are %q%s; if that process has ended, delete the report, and it can be created again",
		report.Spec.Username, onNode(report.Spec.NodeName), requester.GetName(), onNode(boundNode(requester)))
}

// mayTouchAny checks whether a user other than the creator may delete a report
// or change its metadata.
func (r *REST) mayTouchAny(ctx context.Context, requester user.Info, verb string, report *features.FeatureReport) error {
	return r.authorize(ctx, report, authorizer.AttributesRecord{
		User:            requester,
		Verb:            verb,
		Namespace:       report.Namespace,
		APIGroup:        features.GroupName,
		APIVersion:      v1alpha1.SchemeGroupVersion.Version,
		Resource:        "featurereports",
		Subresource:     "any",
		Name:            report.Name,
		ResourceRequest: true,
	}, fmt.Sprintf("user %q may not %s the report of %q; that needs the verb %s on featurereports/any", requester.GetName(), verb, report.Spec.Username, verb))
}

func (r *REST) authorize(ctx context.Context, report *features.FeatureReport, attributes authorizer.Attributes, refusal string) error {
	decision, _, err := r.authorizer.Authorize(ctx, attributes)
	if decision == authorizer.DecisionAllow {
		return nil
	}
	if err != nil {
		refusal += ": " + err.Error()
	}
	return forbidden(report, "%s", refusal)
}

// createdBy is true for the identity that created a report. All processes of a
// DaemonSet have one name, so a token that is bound to a node has to be bound
// to the report's.
func createdBy(requester user.Info, report *features.FeatureReport) bool {
	node := boundNode(requester)
	return requester.GetName() == report.Spec.Username && (node == "" || report.Spec.NodeName == "" || node == report.Spec.NodeName)
}

// boundNode is the node that a service account's token is bound to, empty for
// other identities and for tokens that are not bound.
func boundNode(requester user.Info) string {
	if nodes := requester.GetExtra()[serviceaccount.NodeNameKey]; len(nodes) > 0 {
		return nodes[0]
	}
	return ""
}

func onNode(node string) string {
	if node == "" {
		return ""
	}
	return fmt.Sprintf(" on node %q", node)
}

func requester(ctx context.Context, report *features.FeatureReport) (user.Info, error) {
	requester, ok := genericapirequest.UserFrom(ctx)
	if !ok {
		return nil, forbidden(report, "the request has no user")
	}
	return requester, nil
}

func forbidden(report *features.FeatureReport, format string, args ...any) error {
	return apierrors.NewForbidden(features.Resource("featurereports"), report.Name, fmt.Errorf(format, args...))
}
