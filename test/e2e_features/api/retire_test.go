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

package api

import (
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

// TestTheReportOfAProcessThatEndedIsDeleted by the server flow, although
// another user wrote it.
func TestTheReportOfAProcessThatEndedIsDeleted(t *testing.T) {
	c := shared.Cluster(t)
	const gone = "kube-scheduler.gone"
	scheduler := versioned.NewForConfigOrDie(c.As(localcluster.Scheduler)).FeaturesV1alpha1().FeatureReports(system)
	ended := &v1alpha1.FeatureReport{
		ObjectMeta: metav1.ObjectMeta{Name: gone, Annotations: map[string]string{v1alpha1.AnnotationTerminating: "true"}},
		Spec: v1alpha1.FeatureReportSpec{
			Component: "kube-scheduler", Instance: "gone", BinaryVersion: "v1.36.3", EmulationVersion: "1.36",
			Features: []v1alpha1.ReportedFeature{{Name: known, Stage: v1alpha1.StageAlpha}},
			Liveness: v1alpha1.ReportLiveness{Lease: &v1alpha1.LeaseReference{Namespace: v1alpha1.LeaseNamespace, Name: gone}},
		},
	}
	if _, err := scheduler.Create(t.Context(), ended, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, "the report of the process that ended to go", func() error {
		found, err := scheduler.Get(t.Context(), gone, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		default:
			return fmt.Errorf("it is there: %+v", found.ObjectMeta)
		}
	})
}
