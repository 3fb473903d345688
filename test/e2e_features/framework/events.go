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

package framework

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/feature-lifecycle/watchtools"
)

// WaitForEvent watches the events of a Feature of Kubernetes until one has the
// reason and says the text.
func (c *Cluster) WaitForEvent(feature, reason, text string) *corev1.Event {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), Patience)
	defer cancel()
	source := cache.NewListWatchFromClient(c.Kube.CoreV1().RESTClient(), "events", metav1.NamespaceSystem,
		fields.Set{"involvedObject.kind": "Feature", "involvedObject.name": feature}.AsSelector())
	var found *corev1.Event
	var seen []string
	err := watchtools.UntilWithSync(ctx, source, &corev1.Event{}, nil, func(event watch.Event) (bool, error) {
		is, ok := event.Object.(*corev1.Event)
		if !ok {
			return false, nil
		}
		seen = append(seen, is.Reason+": "+is.Message)
		found = is
		return is.Reason == reason && strings.Contains(is.Message, text), nil
	})
	if err != nil {
		c.t.Fatalf("waiting for an event %s of feature %s that says %q: %v; seen:\n%s", reason, feature, text, err, strings.Join(seen, "\n"))
	}
	return found
}
