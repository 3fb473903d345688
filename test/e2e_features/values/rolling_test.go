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
	"strings"
	"testing"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

// TestRollingRestartChangesCentralValues: servers that get a new list one by one
// are not held up by those that do not have it yet, and the last one is ready when
// the Feature says what all have.
func TestRollingRestartChangesCentralValues(t *testing.T) {
	t.Parallel()
	const feature = "StaleControllerConsistencyJob"
	servers := []string{localcluster.Nth(localcluster.APIServer, 1), localcluster.Nth(localcluster.APIServer, 2)}
	config := localcluster.Config{Servers: len(servers), Only: append([]string{localcluster.Etcd}, servers...), ExtraArgs: map[string][]string{}}
	for _, server := range servers {
		config.ExtraArgs[server] = []string{"--feature-settle-period=1s"}
	}
	c := framework.Start(t, config)
	c.WaitForFeature(feature, "local", func(f *v1alpha1.Feature) bool { return f.Status.Control == v1alpha1.ControlLocal })
	const (
		differ  = "Ready although Features do not have this server's values yet"
		timeout = "Features do not have this server's values yet; components"
	)
	for i, server := range servers {
		before := len(c.Log(server, logLines))
		c.SetArgs(server, "--feature-settle-period=1s", "--central-features="+feature, "--feature-gates="+feature+"=false")
		if err := c.Restart(t.Context(), nil, server); err != nil {
			t.Fatal(err)
		}
		log := c.Log(server, logLines)[before:]
		last := i == len(servers)-1
		if strings.Contains(log, timeout) || strings.Contains(log, differ) == last {
			t.Errorf("%s is ready for another reason; its log:\n%s", server, log)
		}
		f := c.Feature(feature)
		if said := f.Status.Control == v1alpha1.ControlCentral && !f.Status.Configured.Value; said != last {
			t.Errorf("%s is ready, and the Feature says %s, %+v", server, f.Status.Control, f.Status.Configured)
		}
	}
}

// logLines is more than a server logs here.
const logLines = 1_000_000
