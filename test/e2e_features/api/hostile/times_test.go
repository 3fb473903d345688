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

package hostile

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
)

// runYears writes times that protobuf has and JSON has not. Stored, they would make an
// object that clients cannot read.
func (w *world) runYears(t *testing.T) {
	config := rest.CopyConfig(w.Config)
	config.ContentType = runtime.ContentTypeProtobuf
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	goods := client.FeaturesV1alpha1().Features(namespace)
	now, err := goods.Get(t.Context(), "Good", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, year := range map[string]int{"beyond JSON's": 12345, "before Christ": -1} {
		then := metav1.NewTime(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC))
		now.Status.StateSince = &then
		_, err = goods.UpdateStatus(t.Context(), now, metav1.UpdateOptions{})
		if !apierrors.IsInvalid(err) || !apierrors.HasStatusCause(err, metav1.CauseTypeFieldValueInvalid) {
			t.Errorf("a year %s is answered with %v", name, err)
		}
	}
	w.checkStillGood(t)
	w.checkStored(t)
}
