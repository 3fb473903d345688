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
	"net/http"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
)

// roundTripper is a function that is an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestReportersAloneWaitForReporters: the server says of each request which flow schema
// it matched.
func TestReportersAloneWaitForReporters(t *testing.T) {
	c := shared.Cluster(t)
	client := kubernetes.NewForConfigOrDie(c.Config).FlowcontrolV1()
	uids := map[string]string{}
	framework.Eventually(t, "the flow schemas to have their levels", func() error {
		for _, name := range []string{"feature-reports", "feature-reports-cleanup", "exempt", "global-default"} {
			schema, err := client.FlowSchemas().Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if len(schema.Status.Conditions) == 0 || schema.Status.Conditions[0].Status != flowcontrolv1.ConditionFalse {
				return fmt.Errorf("the conditions of %s are %+v", name, schema.Status.Conditions)
			}
			uids[name] = string(schema.UID)
		}
		return nil
	})
	for name, tc := range map[string]struct {
		groups []string
		verb   string
		want   string
	}{
		"system:node:n1":                                              {[]string{"system:nodes"}, "get", "feature-reports"},
		"system:kube-scheduler":                                       {nil, "get", "feature-reports"},
		"system:serviceaccount:kube-system:kube-proxy":                {nil, "get", "feature-reports"},
		"system:kube-controller-manager":                              {nil, "get", "feature-reports-cleanup"},
		"system:serviceaccount:kube-system:generic-garbage-collector": {nil, "get", "feature-reports-cleanup"},
		"system:feature-lifecycle":                                    {nil, "get", "feature-reports-cleanup"},
		"an administrator":                                            {[]string{"system:masters"}, "get", "exempt"},
		"a user who lists":                                            {nil, "list", "global-default"},
	} {
		var matched string
		config := rest.CopyConfig(c.Config)
		config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: append(tc.groups, "system:authenticated")}
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				response, err := next.RoundTrip(r)
				if err == nil {
					matched = response.Header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID)
				}
				return response, err
			})
		})
		reports := features(t, config).FeatureReports(system)
		framework.Eventually(t, "a request of "+name+" to match "+tc.want, func() error {
			var err error
			if tc.verb == "list" {
				_, err = reports.List(t.Context(), metav1.ListOptions{})
			} else {
				_, err = reports.Get(t.Context(), "none.i", metav1.GetOptions{})
			}
			if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
				return err
			}
			if matched != uids[tc.want] {
				return fmt.Errorf("it matched the schema with the UID %q, not one of %v", matched, uids)
			}
			return nil
		})
	}
}
