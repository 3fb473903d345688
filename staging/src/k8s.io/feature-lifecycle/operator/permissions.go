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

package operator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/internal/backoff"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/klog/v2"
)

const (
	// leastReview and mostReview bound the pause between two reviews of the replica's
	// permissions while it lacks some: a new grant takes effect soon.
	leastReview, mostReview = 5 * time.Second, time.Minute
	// mostRefusals is how often in a row the server may refuse a review, before only a
	// refused report causes another one. A server that has just started refuses some.
	mostRefusals = 5
)

// permission is a verb on a resource: of objects of one name, or of all if that is "".
type permission struct {
	resource   schema.GroupResource
	verb, name string
}

// permissionsOf returns those that rules permit.
func permissionsOf(rules []rbacv1.PolicyRule) (all []permission) {
	for _, r := range rules {
		names := r.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				for _, name := range names {
					for _, verb := range r.Verbs {
						all = append(all, permission{schema.GroupResource{Group: group, Resource: resource}, verb, name})
					}
				}
			}
		}
	}
	return all
}

// in returns true if rules permit it, as the RBAC authorizer reads them
// (k8s.io/component-helpers/auth/rbac/validation).
func (p permission) in(rules []authorizationv1.ResourceRule) bool {
	has := func(list []string, wanted ...string) bool {
		return slices.ContainsFunc(wanted, func(w string) bool { return slices.Contains(list, w) })
	}
	resources := []string{"*", p.resource.Resource}
	if _, sub, ok := strings.Cut(p.resource.Resource, "/"); ok {
		resources = append(resources, "*/"+sub)
	}
	return slices.ContainsFunc(rules, func(r authorizationv1.ResourceRule) bool {
		return has(r.Verbs, "*", p.verb) && has(r.APIGroups, "*", p.resource.Group) && has(r.Resources, resources...) &&
			(len(r.ResourceNames) == 0 || p.name != "" && slices.Contains(r.ResourceNames, p.name))
	})
}

// listed are permissions in words: "create, get leases.coordination.k8s.io".
func listed(permissions []permission) string {
	verbs, order := map[string][]string{}, []string{}
	for _, p := range permissions {
		of := p.resource.String()
		// A subresource is of the resource, and not of the group.
		if resource, sub, ok := strings.Cut(p.resource.Resource, "/"); ok {
			of = schema.GroupResource{Group: p.resource.Group, Resource: resource}.String() + "/" + sub
		}
		if p.name != "" {
			of += " " + p.name
		}
		if verbs[of] == nil {
			order = append(order, of)
		}
		if !slices.Contains(verbs[of], p.verb) {
			verbs[of] = append(verbs[of], p.verb)
		}
	}
	var all []string
	for _, of := range order {
		all = append(all, strings.Join(verbs[of], ", ")+" "+of)
	}
	return strings.Join(all, "; ")
}

// reads are what the informers of the server flow need. Without it they would log the
// same errors of client-go repeatedly.
var reads = []schema.GroupResource{
	v1alpha1.Resource("features"), v1alpha1.Resource("featurereports"), {Group: "coordination.k8s.io", Resource: "leases"},
}

// permissions is what is known of the replica's permissions. It is safe for concurrent
// use.
type permissions struct {
	mu sync.Mutex
	// known is true once the server has reported them, or that it does not. unreadable is
	// true while the informers of the flow would be refused.
	known, unreadable bool
	changed           chan struct{}
	// again has a review be made at once, as after a report that was refused.
	again chan struct{}
}

// readable returns whether the server flow may read what it needs, as far as known.
// changed is closed when the answer changes.
func (p *permissions) readable() (readable bool, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known && !p.unreadable, p.changed
}

func (p *permissions) set(unreadable bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known && p.unreadable == unreadable {
		return
	}
	p.known, p.unreadable = true, unreadable
	close(p.changed)
	p.changed = make(chan struct{})
}

// refused is called when the server refuses a report.
func (p *permissions) refused() {
	select {
	case p.again <- struct{}{}:
	default:
	}
}

// lack lists the permissions that a replica lacks.
type lack struct {
	// own is of Rules, and tasks of lifecycle.Rules and, by namespace, of
	// lifecycle.NamespacedRules.
	own   []permission
	tasks map[string][]permission
}

func (l lack) empty() bool { return len(l.own) == 0 && len(l.tasks) == 0 }

// unreadable returns true if informers of the server flow would be refused.
func (l lack) unreadable() bool {
	return slices.ContainsFunc(l.own, func(p permission) bool {
		return (p.verb == "list" || p.verb == "watch") && slices.Contains(reads, p.resource)
	})
}

// review queries the server for what the replica lacks: with one request if it lacks
// nothing and its tasks are for no other namespace.
func (r *Replica) review(ctx context.Context) (found lack, err error) {
	own := permissionsOf(Rules(r.config.Component))
	// All authenticated users may read Features, unless an administrator has withdrawn it.
	own = append(own, permission{reads[0], "list", ""}, permission{reads[0], "watch", ""})
	everywhere := permissionsOf(lifecycle.Rules(r.config.Features))
	lacks, err := r.lacks(ctx, r.config.Namespace, append(slices.Clone(own), everywhere...))
	if err != nil {
		return found, err
	}
	found.tasks = map[string][]permission{}
	for _, p := range lacks {
		if slices.Contains(own, p) {
			found.own = append(found.own, p)
		} else {
			found.tasks[metav1.NamespaceAll] = append(found.tasks[metav1.NamespaceAll], p)
		}
	}
	namespaced := lifecycle.NamespacedRules(r.config.Features)
	for _, namespace := range slices.Sorted(maps.Keys(namespaced)) {
		lacks, err := r.lacks(ctx, namespace, permissionsOf(namespaced[namespace]))
		if err != nil {
			return found, err
		}
		if len(lacks) > 0 && namespace != metav1.NamespaceAll {
			found.tasks[namespace] = lacks
		}
	}
	return found, nil
}

// lacks returns those of some permissions that the replica does not have in a
// namespace. A permission that it has there alone, and needs everywhere, is not
// noticed: a blocked task names it.
func (r *Replica) lacks(ctx context.Context, namespace string, wanted []permission) ([]permission, error) {
	reviews := r.clients.ownKube.AuthorizationV1()
	review, err := reviews.SelfSubjectRulesReviews().Create(ctx, &authorizationv1.SelfSubjectRulesReview{
		Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	rules := review.Status.ResourceRules
	if len(rules) == 0 && !review.Status.Incomplete {
		// An authorized query implies a rule for the query itself: the server does not list
		// rules.
		return nil, nil
	}
	var lacking []permission
	for _, p := range wanted {
		if p.in(rules) || slices.Contains(lacking, p) {
			continue
		}
		if review.Status.Incomplete {
			// An authorizer that does not list what it permits: a webhook, for example.
			resource, sub, _ := strings.Cut(p.resource.Resource, "/")
			access, err := reviews.SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: p.verb, Group: p.resource.Group, Resource: resource, Subresource: sub, Name: p.name},
			}}, metav1.CreateOptions{})
			if err != nil {
				return nil, err
			}
			if access.Status.Allowed {
				continue
			}
		}
		lacking = append(lacking, p)
	}
	return lacking, nil
}

// explain is one sentence about what a replica lacks.
func (r *Replica) explain(ctx context.Context, l lack) error {
	user := "a user"
	if review, err := r.clients.ownKube.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{}); err == nil && review.Status.UserInfo.Username != "" {
		user = review.Status.UserInfo.Username
	}
	var parts []string
	if len(l.own) > 0 {
		parts = append(parts, fmt.Sprintf("bind a Role in namespace %s with operator.Rules(%q), of which it lacks: %s", r.config.Namespace, r.config.Component, listed(l.own)))
	}
	for _, namespace := range slices.Sorted(maps.Keys(l.tasks)) {
		if namespace == metav1.NamespaceAll {
			parts = append(parts, fmt.Sprintf("bind a ClusterRole with lifecycle.Rules of the declared features, of which it lacks: %s", listed(l.tasks[namespace])))
		} else {
			parts = append(parts, fmt.Sprintf("bind a Role in namespace %s with lifecycle.NamespacedRules of the declared features, of which it lacks: %s", namespace, listed(l.tasks[namespace])))
		}
	}
	return fmt.Errorf("operator %s in namespace %s runs as %s, which lacks permissions; %s", r.config.Component, r.config.Namespace, user, strings.Join(parts, "; and "))
}

// watchPermissions reviews the replica's permissions: once when the server accepts
// reports, whenever it refuses one, and repeatedly while the replica lacks something.
// What it lacks is logged once, all of it in one error. The agent retries when it no
// longer lacks anything. A server without the API is not queried: reports are neither
// accepted nor refused.
func (r *Replica) watchPermissions(ctx context.Context) {
	logger := klog.FromContext(ctx)
	complained, failures, refusals, refused := "", 0, 0, false
	for ctx.Err() == nil {
		reporting, changed := r.agent.Reporting()
		var due <-chan time.Time
		stop := func() bool { return true }
		switch {
		case !reporting && !refused:
		case !reporting && !r.served():
			// A refused client does not learn that a path is unknown. The reporter retries.
			refused = false
		default:
			rest := false
			found, err := r.review(ctx)
			switch {
			case err != nil:
				// The flow does what it can: it is as before the first review.
				r.permissions.set(false)
				if failures++; backoff.IsForbidden(err) || backoff.IsNotFound(err) {
					refusals++
					rest = refusals >= mostRefusals
				}
				logger.V(2).Info("What the operator may do is not known", "err", err)
			case found.empty():
				r.permissions.set(false)
				if complained != "" {
					logger.Info("The operator has all permissions that it needs")
					r.agent.Retry()
				}
				complained, failures, refusals, rest = "", 0, 0, true
			default:
				r.permissions.set(found.unreadable())
				failures++
				if lacks := fmt.Sprint(found); lacks != complained {
					complained = lacks
					logger.Error(r.explain(ctx, found), "Operator lacks permissions, will retry")
				}
			}
			changed = nil
			if !rest {
				timer := r.clock.NewTimer(backoff.Delay(max(failures, 1), leastReview, mostReview))
				due, stop = timer.C(), timer.Stop
			}
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-due:
		case <-r.permissions.again:
			refused = true
		}
		stop()
	}
}

// served is false if the server is known not to have the API.
func (r *Replica) served() bool {
	_, err := r.clients.own.Discovery().ServerResourcesForGroupVersion(v1alpha1.SchemeGroupVersion.String())
	return !backoff.IsNotFound(err)
}
