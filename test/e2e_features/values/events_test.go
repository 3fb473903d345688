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

package values

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned/scheme"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/examplegates"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

// maxEvent is the most that a change of a value may send to a process, in bytes.
const maxEvent = 300

// TestChangeSendsOneSmallEvent: whatever a server counts and says about the transition, a
// process that follows a value receives the value alone.
func TestChangeSendsOneSmallEvent(t *testing.T) {
	t.Parallel()
	const flipped = examplegates.Dynamic
	c := framework.Start(t, localcluster.Config{
		Only:      []string{localcluster.Etcd, localcluster.APIServer},
		ExtraArgs: map[string][]string{localcluster.APIServer: {"--dynamic-features=" + flipped, "--feature-settle-period=1s"}},
	})
	c.MustStart(localcluster.ControllerManager)
	c.WaitForValue(localcluster.ControllerManager, flipped, false)
	c.WaitForFeature(flipped, "Off", func(f *v1alpha1.Feature) bool { return f.Status.State == v1alpha1.StateOff })
	values := c.Features.FeaturesV1alpha1().FeatureValues(metav1.NamespaceSystem)
	framework.Eventually(t, "the value to be published", func() error {
		_, err := values.Get(t.Context(), flipped, metav1.GetOptions{})
		return err
	})
	list, err := values.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	events := followValues(t, c, list.ResourceVersion)
	before := c.Feature(flipped)
	states := map[bool]v1alpha1.FeatureState{true: v1alpha1.StateOn, false: v1alpha1.StateOff}
	for _, on := range []bool{true, false} {
		c.Request(flipped, fmt.Sprintf(`{"enabled":%t}`, on))
		c.WaitForValue(localcluster.ControllerManager, flipped, on)
		c.WaitForFeature(flipped, string(states[on]), func(f *v1alpha1.Feature) bool { return f.Status.State == states[on] })
	}
	if after := c.Feature(flipped); after.ResourceVersion == before.ResourceVersion {
		t.Fatal("the Feature was not written, so this shows nothing")
	}
	// The event of a last change comes after all others.
	c.Request(flipped, `{"enabled":true}`)
	for _, on := range []bool{true, false, true} {
		event, size := events()
		if event.Name != flipped || event.Value != on || event.Control != dynamic || event.Rollout != nil {
			t.Fatalf("received %+v, want the value %t of %s", event, on, flipped)
		}
		t.Logf("the change to %t sent %d bytes", on, size)
		if size > maxEvent {
			t.Errorf("the change to %t sent %d bytes, want at most %d", on, size, maxEvent)
		}
	}
}

// followValues watches dynamic values from a version on as components do. The function
// returns the next event and its size on the wire.
func followValues(t *testing.T, c *framework.Cluster, version string) (next func() (*v1alpha1.FeatureValue, int)) {
	t.Helper()
	client, err := rest.HTTPClientFor(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	query := url.Values{"watch": {"true"}, "fieldSelector": {"control=Dynamic"}, "resourceVersion": {version}}
	path := fmt.Sprintf("%s/apis/%s/namespaces/%s/featurevalues?%s", c.Config.Host, v1alpha1.SchemeGroupVersion, metav1.NamespaceSystem, query.Encode())
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", runtime.ContentTypeProtobuf+";stream=watch")
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	if response.StatusCode != http.StatusOK {
		t.Fatalf("watching values: %s", response.Status)
	}
	return func() (*v1alpha1.FeatureValue, int) {
		t.Helper()
		// A frame begins with its length.
		var length [4]byte
		if _, err := io.ReadFull(response.Body, length[:]); err != nil {
			t.Fatal(err)
		}
		frame := make([]byte, binary.BigEndian.Uint32(length[:]))
		if _, err := io.ReadFull(response.Body, frame); err != nil {
			t.Fatal(err)
		}
		var event metav1.WatchEvent
		if err := event.Unmarshal(frame); err != nil {
			t.Fatal(err)
		}
		object, err := runtime.Decode(scheme.Codecs.UniversalDeserializer(), event.Object.Raw)
		if err != nil {
			t.Fatal(err)
		}
		value, ok := object.(*v1alpha1.FeatureValue)
		if !ok {
			t.Fatalf("received a %T", object)
		}
		return value, len(length) + len(frame)
	}
}
