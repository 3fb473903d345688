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

package everywhere

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned/fake"
)

func feature(state v1alpha1.FeatureState, match metav1.ConditionStatus) *v1alpha1.Feature {
	f := &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "Widgets"}, Status: v1alpha1.FeatureStatus{State: state}}
	if match != "" {
		f.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionUsesMatch, Status: match, Message: "2 live users have the feature off"}}
	}
	return f
}

func ExampleAsk() {
	client := fake.NewClientset(feature(v1alpha1.StateTurningOn, metav1.ConditionFalse))
	on, why, err := Ask(context.TODO(), client, "kube-system", "Widgets")
	fmt.Println(on, why, err)
	// Output: false Widgets is "TurningOn" <nil>
}

func TestAsk(t *testing.T) {
	without := apierrors.NewGenericServerResponse(404, "get", v1alpha1.Resource("features"), "Widgets", "404 page not found", 0, true)
	forbidden := apierrors.NewForbidden(v1alpha1.Resource("features"), "Widgets", errors.New("no"))
	for sentence, test := range map[string]struct {
		feature *v1alpha1.Feature
		err     error
		// discovery is what the server answers who asks for its resources.
		discovery error
		on        bool
		why       string
		fails     bool
	}{
		"on, and all users agree":                         {feature: feature(v1alpha1.StateOn, metav1.ConditionTrue), on: true},
		"on, and a user has it off":                       {feature: feature(v1alpha1.StateOn, metav1.ConditionFalse), why: "2 live users"},
		"on, and a process has not reported":              {feature: feature(v1alpha1.StateOn, metav1.ConditionUnknown), why: "2 live users"},
		"on, and nothing has been said of users":          {feature: feature(v1alpha1.StateOn, ""), why: "nothing is known"},
		"on its way":                                      {feature: feature(v1alpha1.StateTurningOn, metav1.ConditionTrue), why: "TurningOn"},
		"off":                                             {feature: feature(v1alpha1.StateOff, metav1.ConditionTrue), why: `"Off"`},
		"just created":                                    {feature: feature("", ""), why: `is ""`},
		"a feature that the cluster has not":              {why: "does not say"},
		"a cluster without the API, for an administrator": {err: without, why: "does not say"},
		"a cluster without the API, for anybody else":     {err: forbidden, discovery: without, why: "does not say"},
		"a server that cannot be reached":                 {err: errors.New("connection refused"), fails: true},
		"a server that does not let one read it":          {err: forbidden, fails: true},
		"a server that does not tell what it has either":  {err: forbidden, discovery: forbidden, fails: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			client := fake.NewClientset()
			if test.feature != nil {
				client = fake.NewClientset(test.feature)
			}
			if test.err != nil {
				client.PrependReactor("get", "features", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, test.err })
			}
			client.Resources = []*metav1.APIResourceList{{GroupVersion: v1alpha1.SchemeGroupVersion.String()}}
			if test.discovery != nil {
				client.PrependReactor("get", "resource", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, test.discovery })
			}
			on, why, err := Ask(t.Context(), client, "kube-system", "Widgets")
			if on != test.on || !strings.Contains(why, test.why) || (why == "") != (test.why == "") || (err != nil) != test.fails {
				t.Errorf("got %t, %q, %v, want %t, %q, an error %t", on, why, err, test.on, test.why, test.fails)
			}
		})
	}
}

// TestServerWithoutResponse: who asks does not wait longer than it says.
func TestServerWithoutResponse(t *testing.T) {
	client := fake.NewClientset()
	client.PrependReactor("get", "features", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(v1alpha1.Resource("features"), "Widgets", errors.New("no"))
	})
	answer := make(chan struct{})
	defer close(answer)
	client.PrependReactor("get", "resource", func(clienttesting.Action) (bool, runtime.Object, error) {
		<-answer
		return true, nil, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := Ask(ctx, client, "kube-system", "Widgets"); !apierrors.IsForbidden(err) {
		t.Errorf("got %v, want what the server said", err)
	}
}
