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
	"flag"
	"os"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/examplegates"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

const (
	// colors is a feature that all operators here have, and Kubernetes has not.
	colors = "Colors"
	// borrowed is one that all operators have, and Kubernetes, too, where it is off.
	borrowed = examplegates.Cleared
	// kubernetesHas is less than how many features Kubernetes has.
	kubernetesHas = 200
)

// TestMain lets all subtests run at once: most of their time they wait, one of them
// for the Lease of a process that has crashed.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "32"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// TestThirdParties shares one cluster, since starting one takes longer than most of
// what is tried. Each subtest has operators of its own in namespaces of its own.
// kube-controller-manager deletes namespaces, and what has lost its owner.
func TestThirdParties(t *testing.T) {
	t.Parallel()
	w := newWorld(t, framework.Start(t, localcluster.Config{Only: []string{localcluster.Etcd, localcluster.APIServer, localcluster.ControllerManager}}))
	w.WaitForRest()
	kubernetes := follow(t, w.etcd, metav1.NamespaceSystem)
	t.Run("operators", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T){
			"two operators have features of the same names":      w.twoOperators,
			"an operator has no rights elsewhere":                w.rights,
			"a namespace is deleted under its operator":          w.namespaceDeleted,
			"an operator crashes and its service account goes":   w.serviceAccountDeleted,
			"an operator cleans what was written meanwhile":      w.cleans,
			"an operator ends in order":                          w.orderlyEnd,
			"an operator gets another service account":           w.anotherServiceAccount,
			"what an operator makes is to have another owner":    w.withoutOwner,
			"an operator declares what the server does not have": w.misdeclared,
			"an operator is installed without permissions":       w.unpermitted,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t)
			})
		}
	})
	// Operators went through transitions of features of these names meanwhile, and
	// requested values, crashed and vanished.
	if n := kubernetes.unchanged(t); n < kubernetesHas {
		t.Errorf("%d features of Kubernetes were followed, want more than %d; does this test still understand where they are stored?", n, kubernetesHas)
	}
	_, err := w.Features.FeaturesV1alpha1().Features(metav1.NamespaceSystem).Get(t.Context(), colors, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("reading feature %s of Kubernetes: %v, want that there is none", colors, err)
	}
}

// TestTwoInstallations has two installations of an operator that share a definition, in
// a cluster of their own: what an operator needs is kube-apiserver alone.
func TestTwoInstallations(t *testing.T) {
	t.Parallel()
	w := newWorld(t, framework.Start(t, localcluster.Config{Only: []string{localcluster.Etcd, localcluster.APIServer}}))
	w.oneDefinition(t)
}
