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

package stock

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

// filling is on by default in servers and kubelets of 1.37, and off before. While it is on,
// servers put a field into each CSIDriver.
const filling = "VolumeLimitScaling"

// unseen are the components that do not run here.
const unseen = "--assume-off=kube-controller-manager,kube-scheduler,kube-proxy"

// objects is what kubectl shows of what objects have of gates.
type objects struct {
	Features []struct {
		Name    string
		InUse   bool
		Objects []struct {
			Group, Resource, Field string
			Count                  int64
		}
	}
}

// fillings returns how many objects have something of the gate, as a command prints them.
func fillings(t *testing.T, output string, inUse bool) int64 {
	t.Helper()
	return counted(t, output, filling, inUse)
}

// counted returns how many objects have something of a gate, as a command prints them.
func counted(t *testing.T, output, gate string, inUse bool) (n int64) {
	t.Helper()
	var o objects
	if err := json.Unmarshal([]byte(output), &o); err != nil {
		t.Fatalf("%v:\n%s", err, output)
	}
	for _, f := range o.Features {
		if f.Name != gate {
			continue
		}
		if f.InUse != inUse {
			t.Errorf("%s is in use: %t, want %t", f.Name, f.InUse, inUse)
		}
		for _, found := range f.Objects {
			n += found.Count
		}
	}
	return n
}

// checkLeftovers: what a gate left that was on and is off is found and removed, through the
// API of upstream's servers, once no process has it on, and no object refuses.
func checkLeftovers(t *testing.T, c *framework.Cluster) {
	k, server := c.Kubectl(""), "--server="+balanced(t, c)
	feature := func(args ...string) (output, complaint string) {
		return k.Run(t, append([]string{"feature", server}, args...)...)
	}
	for _, name := range []string{"disks.example.com", "held.example.com"} {
		driver := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := c.Kube.StorageV1().CSIDrivers().Create(t.Context(), driver, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	output, complaint := feature("list", "--in-use", "-o", "json")
	if n := fillings(t, output, true); n != 2 {
		t.Errorf("%d objects use %s, want 2: %s\n%s", n, filling, complaint, output)
	}

	c.MustRestartWith(filling+"=false", localcluster.APIServer, localcluster.Nth(localcluster.APIServer, 2))
	framework.Eventually(t, "the kubelet that has the gate on to be named", func() error {
		for _, command := range []string{"leftovers " + filling, "clean --client " + unseen + " " + filling} {
			if output, complaint := feature(strings.Fields(command)...); !strings.Contains(complaint, "it is on in kubelet/node-1") {
				return fmt.Errorf("%s: %s\n%s", command, complaint, output)
			}
		}
		return nil
	})

	c.MustRestartWith(filling+"=false", localcluster.Kubelet("node-1"))
	framework.Eventually(t, "leftovers to be found", func() error {
		output, complaint := feature("leftovers", filling, "-o", "json")
		if !strings.HasPrefix(output, "{") || fillings(t, output, false) != 2 {
			return fmt.Errorf("%s\n%s", complaint, output)
		}
		return nil
	})
	if _, complaint := feature("clean", "--client", filling); !strings.Contains(complaint, "whether it is off is not known of kube-controller-manager") {
		t.Errorf("components that are not observed are not named: %s", complaint)
	}

	refuse(t, c)
	waitForRefusal(t, c, true)
	output, complaint = feature("clean", "--client", unseen, filling)
	if !strings.Contains(output, "1 cannot: held.example.com: ") || !strings.Contains(complaint, "nothing was changed") {
		t.Errorf("the object that a policy holds is not named: %s\n%s", complaint, output)
	}
	if output, _ := feature("leftovers", filling, "-o", "json"); fillings(t, output, false) != 2 {
		t.Errorf("a refused clean-up changed something:\n%s", output)
	}
	if err := c.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(t.Context(), "held", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	waitForRefusal(t, c, false)
	if output, complaint := feature("clean", "--client", unseen, filling); complaint != "" || !strings.Contains(output, "2 objects, of which 2 can be changed") || !strings.Contains(output, filling+": nothing is left\n") {
		t.Errorf("the clean-up: %s\n%s", complaint, output)
	}
	if output, complaint := feature("leftovers", filling, "-o", "json"); fillings(t, output, false) != 0 {
		t.Errorf("something is left: %s\n%s", complaint, output)
	}
	driver, err := c.Kube.StorageV1().CSIDrivers().Get(t.Context(), "held.example.com", metav1.GetOptions{})
	if err != nil || driver.Spec.AttachRequired == nil {
		t.Errorf("the CSIDriver is %+v, %v; want all else that the server defaults", driver, err)
	}
}

// waitForRefusal waits until both servers refuse changes of the CSIDriver, or neither does.
func waitForRefusal(t *testing.T, c *framework.Cluster, refused bool) {
	t.Helper()
	k := c.Kubectl("")
	for i := range 2 {
		server := c.Server(localcluster.Nth(localcluster.APIServer, i+1))
		framework.Eventually(t, fmt.Sprintf("server %d to refuse changes: %t", i+1, refused), func() error {
			output, complaint := k.Run(t, "label", "csidriver", "held.example.com", "try=it", "--dry-run=server", "--server="+server)
			if strings.Contains(complaint, "this one is held") != refused {
				return fmt.Errorf("%s\n%s", complaint, output)
			}
			return nil
		})
	}
}

// refuse makes servers refuse changes of one CSIDriver.
func refuse(t *testing.T, c *framework.Cluster) {
	t.Helper()
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "held"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{storagev1.GroupName}, APIVersions: []string{"v1"}, Resources: []string{"csidrivers"}},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{Expression: "object.metadata.name != 'held.example.com'", Message: "this one is held"}},
		},
	}
	if _, err := c.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "held"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: "held", ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	if _, err := c.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
