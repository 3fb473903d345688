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
	"testing"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

// Features that components ask for soon after they start. All are on by default
// but the last, which all components of Kubernetes ask for.
const (
	nodeFeature      = "ContainerCheckpoint"
	managerFeature   = "StaleControllerConsistencyJob"
	explicitFeature  = "StaleControllerConsistencyStatefulSet"
	schedulerFeature = "SchedulerAsyncPreemption"
	sharedFeature    = "ClientsAllowCBOR"
)

var features = []string{nodeFeature, managerFeature, explicitFeature, schedulerFeature, sharedFeature}

// start starts etcd and kube-apiserver of a cluster with one hollow node, whose server
// flow writes no status. What else runs, each test starts.
func start(t *testing.T, args map[string][]string) *framework.Cluster {
	t.Helper()
	c := framework.Start(t, localcluster.Config{Nodes: 1, Only: []string{localcluster.Etcd, localcluster.APIServer}, ExtraArgs: args})
	for _, feature := range features {
		c.WaitForFeature(feature, "created", func(f *v1alpha1.Feature) bool { return f.Status.State != "" })
	}
	c.SilenceFlow()
	return c
}
