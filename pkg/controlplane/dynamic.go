/*
Copyright 2026 The Kubernetes Authors.

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

package controlplane

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/values"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes-features/pkg/reporting"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
)

// ownAnswer is how long a server that starts waits for its own answer about the
// values of dynamic features.
const ownAnswer = 30 * time.Second

// newFollower makes this server follow the values of its dynamic features like
// any other component, over its own loopback connection. It is nil if there are
// none.
func newFollower(clients *lifecycleClients, serverID string, control Control) (*values.Follower, error) {
	if len(control.Dynamic) == 0 {
		return nil, nil
	}
	return values.New(values.Config{
		Namespace:   metav1.NamespaceSystem,
		Component:   controlplaneapiserver.KubeAPIServer,
		Instance:    serverID,
		Gate:        reporting.Install(),
		Connect:     func() (versioned.Interface, error) { return clients.features, nil },
		Patience:    ownAnswer,
		AlwaysWatch: true,
		Only:        func(feature *v1alpha1.Feature) bool { return control.follows(feature) },
	})
}

// follows is true for what this server takes from the API: dynamic features whose
// value somebody set there. All others are decided by the servers' own values; a
// server that took those from the API, too, would go on for ever with what it had
// said itself.
func (c Control) follows(feature *v1alpha1.Feature) bool {
	configured := feature.Status.Configured
	return c.of(feature.Name) == v1alpha1.ControlDynamic && configured != nil && configured.Source == v1alpha1.SourceAPI
}

const (
	// announcement is how long the server is not ready because its Features do
	// not say yet what is set centrally. Only a cluster's first server, or one
	// with other flags than the last, has to wait at all.
	announcement       = 20 * time.Second
	announcementPeriod = 100 * time.Millisecond
)

// waitForControl keeps the server from being ready until its Features say what
// the other components take from here: they ask once, when they start.
func (h *lifecycleHooks) waitForControl(ctx context.Context) {
	waiting := slices.Concat(h.control.Central, h.control.Dynamic)
	err := wait.PollUntilContextTimeout(ctx, announcementPeriod, announcement, true, func(ctx context.Context) (bool, error) {
		waiting = slices.DeleteFunc(waiting, func(name string) bool {
			feature, err := h.own.features.FeaturesV1alpha1().Features(metav1.NamespaceSystem).Get(ctx, name, metav1.GetOptions{})
			return err == nil && feature.Status.Control == h.control.of(name) && feature.Status.Configured != nil
		})
		return len(waiting) == 0, nil
	})
	if err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Features do not say yet that they are set centrally; components that start now use their own values. Servers with other --central-features or --dynamic-features hold this up", "features", waiting)
	}
}
