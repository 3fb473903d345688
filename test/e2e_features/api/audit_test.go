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
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
)

// auditLog is in the directory of the cluster's data, which its processes run in.
const auditLog = "audit.log"

// auditPolicy is the path of a policy that logs what the server flow does and nothing
// else.
func auditPolicy() string {
	path, err := filepath.Abs(filepath.Join("testdata", "audit-policy.yaml"))
	if err != nil {
		panic(err)
	}
	return path
}

// TestAuditKnowsTheServerFlow by its own name, which rules of a policy match.
func TestAuditKnowsTheServerFlow(t *testing.T) {
	t.Parallel()
	c := shared.Cluster(t)
	c.WaitForFeature(known, "created", func(f *v1alpha1.Feature) bool { return f.Status.State != "" })
	framework.Eventually(t, "audit events of a Feature that the server flow made", func() error {
		data, err := os.ReadFile(filepath.Join(c.DataDir(), auditLog))
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(data)) {
			event := auditv1.Event{}
			// The last line may be on its way.
			if !strings.HasSuffix(line, "\n") || json.Unmarshal([]byte(line), &event) != nil {
				continue
			}
			if event.User.Username != "system:feature-lifecycle" || event.ImpersonatedUser != nil {
				return fmt.Errorf("%s %s is of %s, as %v", event.Verb, event.RequestURI, event.User.Username, event.ImpersonatedUser)
			}
			if o := event.ObjectRef; o != nil && event.Verb == "update" && o.Resource == "features" && o.Subresource == "status" && o.Name == known {
				return nil
			}
		}
		return errors.New("there is none of the status of " + known)
	})
}
