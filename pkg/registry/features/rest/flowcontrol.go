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

package rest

import (
	"context"
	"fmt"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"k8s.io/kubernetes-features/pkg/apis/features"
	featurestorage "k8s.io/kubernetes-features/pkg/registry/features/feature/storage"
)

// ReportsLevel is the name of the priority level, and of the flow schema, of the
// requests that reporters send. When all processes of a large cluster start at once,
// these wait for each other and do not delay other requests. Without a level of their
// own, kube-proxies would fill the one of ordinary users.
const ReportsLevel = "feature-reports"

// ReportsCleanup is the name of the flow schema of users that are no reporters but read
// and delete single reports. The garbage collector's workers serve all kinds, so none of
// them should wait behind a storm of reports. The server flow has other work when
// reports are retired. Administrators in system:masters are exempt. Reporters may be any
// user, so the schema matches by user. It includes the own reports of
// kube-controller-manager, three processes.
const ReportsCleanup = "feature-reports-cleanup"

const (
	// cleanupLevel is upstream's for kube-controller-manager's other requests.
	cleanupLevel = "workload-high"
	// cleanupPrecedence is before that of reporters.
	cleanupPrecedence = 440
	// reportsShares is next to nothing beside the 245 of upstream's suggested levels
	// (apiserver's apis/flowcontrol/bootstrap): about 12 requests at a time.
	reportsShares = 5
	// reportsQueues is the number of queues, each with room for reportsWaiting requests;
	// reportsHand is the number that one identity may use. kube-proxies often have one
	// identity, and are half of the reporters of nodes. With few queues of many, such as
	// upstream's 6 of 128, they would get too few seats and be rejected while kubelets are
	// served. With half of the queues, a single faulty reporter does not affect the other
	// half. The probability that all queues of another identity are affected is 1 in
	// 12,870.
	reportsQueues, reportsHand, reportsWaiting = 16, 8, 200
	// reportsPrecedence is before that of nodes, which is 500, and behind those of
	// leader election and of administrators.
	reportsPrecedence = 450
	// flowControlPatience is the time for which a starting server tries to write
	// them.
	flowControlPatience = 30 * time.Second
)

// FlowControl returns the configuration of API priority and fairness for reporters and
// for cleanup of their reports.
func FlowControl() (*flowcontrolv1.PriorityLevelConfiguration, []*flowcontrolv1.FlowSchema) {
	level := &flowcontrolv1.PriorityLevelConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: ReportsLevel},
		Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
			Type: flowcontrolv1.PriorityLevelEnablementLimited,
			Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
				NominalConcurrencyShares: ptr.To[int32](reportsShares),
				// Others may have its seats, and it has none of theirs: a report is
				// never urgent.
				LendablePercent:       ptr.To[int32](50),
				BorrowingLimitPercent: ptr.To[int32](0),
				LimitResponse: flowcontrolv1.LimitResponse{
					Type:    flowcontrolv1.LimitResponseTypeQueue,
					Queuing: &flowcontrolv1.QueuingConfiguration{Queues: reportsQueues, HandSize: reportsHand, QueueLengthLimit: reportsWaiting},
				},
			},
		},
	}
	reporters := flowSchema(ReportsLevel, ReportsLevel, reportsPrecedence,
		flowcontrolv1.Subject{Kind: flowcontrolv1.SubjectKindGroup, Group: &flowcontrolv1.GroupSubject{Name: user.AllAuthenticated}})
	cleanup := flowSchema(ReportsCleanup, cleanupLevel, cleanupPrecedence,
		flowcontrolv1.Subject{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: featurestorage.FlowUser}},
		flowcontrolv1.Subject{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: user.KubeControllerManager}},
		// Where kube-controller-manager has an account for each controller.
		flowcontrolv1.Subject{Kind: flowcontrolv1.SubjectKindServiceAccount, ServiceAccount: &flowcontrolv1.ServiceAccountSubject{Namespace: metav1.NamespaceSystem, Name: "generic-garbage-collector"}})
	// Cleanup comes first: without its schema these requests would match the reporters'.
	return level, []*flowcontrolv1.FlowSchema{cleanup, reporters}
}

// flowSchema sends requests for single reports to a level.
func flowSchema(name, level string, precedence int32, subjects ...flowcontrolv1.Subject) *flowcontrolv1.FlowSchema {
	return &flowcontrolv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: level},
			MatchingPrecedence:         precedence,
			DistinguisherMethod:        &flowcontrolv1.FlowDistinguisherMethod{Type: flowcontrolv1.FlowDistinguisherMethodByUserType},
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
				Subjects: subjects,
				ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
					// Requests to list and watch are not from reporters.
					Verbs:     []string{"get", "create", "update", "delete"},
					APIGroups: []string{features.GroupName}, Resources: []string{"featurereports", "featurereports/confirmation"},
					Namespaces: []string{flowcontrolv1.NamespaceEvery},
				}},
			}},
		},
	}
}

// ensureFlowControlHook writes them when the server has started. A server without them
// is no worse than one of upstream, so nothing waits for it.
func ensureFlowControlHook(hook genericapiserver.PostStartHookContext) {
	client, err := kubernetes.NewForConfig(hook.LoopbackClientConfig)
	if err == nil {
		err = ensureFlowControl(hook, client)
	}
	if err != nil && hook.Err() == nil {
		utilruntime.HandleErrorWithContext(hook, err, "Failed to separate reporters from other users in API priority and fairness, will retry at the next start", "flowSchema", ReportsLevel)
	}
}

// ensureFlowControl creates the missing ones. Changes by administrators stay.
// Upstream, which maintains its own suggestions, ignores objects without the
// annotation for automatic updates.
func ensureFlowControl(ctx context.Context, client kubernetes.Interface) error {
	level, schemas := FlowControl()
	var last error
	err := wait.PollUntilContextTimeout(ctx, time.Second, flowControlPatience, true, func(ctx context.Context) (bool, error) {
		err := createFlowControl(ctx, client, level, schemas)
		if permanent(err) {
			return false, err
		}
		last = err
		return err == nil, nil
	})
	if wait.Interrupted(err) && last != nil {
		return fmt.Errorf("%w: %w", err, last)
	}
	return err
}

// permanent is true for what the server does not take at any time: it does not serve
// the API, or knows another version of it. Admission of a server that has just
// started forbids what it does not judge yet, so that is no such answer.
func permanent(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsInvalid(err) }

// withoutConfirmations is true for a flow schema as a server of an earlier version wrote it,
// without the subresource confirmation.
func withoutConfirmations(stored, schema *flowcontrolv1.FlowSchema) bool {
	earlier := schema.DeepCopy()
	for i := range earlier.Spec.Rules {
		for j := range earlier.Spec.Rules[i].ResourceRules {
			earlier.Spec.Rules[i].ResourceRules[j].Resources = []string{"featurereports"}
		}
	}
	return equality.Semantic.DeepEqual(stored.Spec, earlier.Spec)
}

func createFlowControl(ctx context.Context, client kubernetes.Interface, level *flowcontrolv1.PriorityLevelConfiguration, schemas []*flowcontrolv1.FlowSchema) error {
	api := client.FlowcontrolV1()
	// Reading costs nothing; at all starts but the first there is nothing to write.
	if _, err := api.PriorityLevelConfigurations().Get(ctx, level.Name, metav1.GetOptions{ResourceVersion: "0"}); apierrors.IsNotFound(err) {
		if _, err := api.PriorityLevelConfigurations().Create(ctx, level, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	} else if err != nil {
		return err
	}
	for _, schema := range schemas {
		stored, err := api.FlowSchemas().Get(ctx, schema.Name, metav1.GetOptions{ResourceVersion: "0"})
		switch {
		case apierrors.IsNotFound(err):
			_, err = api.FlowSchemas().Create(ctx, schema, metav1.CreateOptions{})
		case err == nil && withoutConfirmations(stored, schema):
			stored = stored.DeepCopy()
			stored.Spec.Rules = schema.Spec.Rules
			_, err = api.FlowSchemas().Update(ctx, stored, metav1.UpdateOptions{})
			if apierrors.IsConflict(err) {
				// Another server does the same.
				err = nil
			}
		}
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}
