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

package fleet

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// writers is how many requests are under way at once that keep Nodes, and reports, as
// they are.
const writers = 32

// NodeName is the name of the simulated node of a number. Names sort as numbers.
func NodeName(number int) string { return fmt.Sprintf("sim-%06d", number) }

// CreateNodes creates the Nodes of the numbers from begin up to end, without it,
// Ready as if kubelets had said so.
func CreateNodes(ctx context.Context, client kubernetes.Interface, begin, end int, kubeletVersion string) error {
	return each(ctx, begin, end, func(ctx context.Context, number int) error {
		now := metav1.Now()
		_, err := client.CoreV1().Nodes().Create(ctx, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: NodeName(number), Labels: map[string]string{corev1.LabelHostname: NodeName(number)}},
			Status: corev1.NodeStatus{
				NodeInfo: corev1.NodeSystemInfo{KubeletVersion: kubeletVersion},
				Conditions: []corev1.NodeCondition{{
					Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: now, LastTransitionTime: now,
				}},
			},
		}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}

// heartbeatTries is how often a kubelet tries to write the status of its Node before it
// waits for the next time (nodeStatusUpdateRetry of upstream's pkg/kubelet).
const heartbeatTries = 5

// Heartbeat writes the status of the Nodes of the numbers from begin up to end,
// without it, as kubelets do every five minutes when nothing changes.
func Heartbeat(ctx context.Context, client kubernetes.Interface, begin, end int) error {
	return each(ctx, begin, end, func(ctx context.Context, number int) error {
		patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","lastHeartbeatTime":%q}]}}`, time.Now().UTC().Format(time.RFC3339))
		var err error
		for range heartbeatTries {
			if _, err = client.CoreV1().Nodes().Patch(ctx, NodeName(number), types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err == nil || ctx.Err() != nil {
				break
			}
		}
		return err
	})
}

func each(ctx context.Context, begin, end int, do func(context.Context, int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for number := begin; number < end; number++ {
		group.Go(func() error {
			if err := do(ctx, number); err != nil {
				return fmt.Errorf("node %s: %w", NodeName(number), err)
			}
			return nil
		})
	}
	return group.Wait()
}

// Beat writes heartbeats of the first nodes in turn until the context ends, as many
// a second as that many kubelets do, and returns the first error that is not its end.
func Beat(ctx context.Context, client kubernetes.Interface, nodes int) error {
	return inTurn(ctx, nodes, heartbeatPeriod, func(ctx context.Context, number int) error {
		return Heartbeat(ctx, client, number, number+1)
	})
}

// heartbeatPeriod is how often a kubelet writes the status of its Node when nothing
// changes (nodeStatusReportFrequency of KubeletConfiguration).
const heartbeatPeriod = 5 * time.Minute

// inTurn calls do for 0 to n-1 and again from 0, each once in a period, until the
// context ends or something fails. What is late does not hold up what comes next, as
// long as no more than writers are under way.
func inTurn(ctx context.Context, n int, period time.Duration, do func(context.Context, int) error) error {
	if n == 0 {
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	ticker := time.NewTicker(max(period/time.Duration(n), time.Millisecond))
	defer ticker.Stop()
	begun, next := time.Now(), 0
	for {
		select {
		case <-ctx.Done():
			return group.Wait()
		case <-ticker.C:
		}
		for due := int(time.Since(begun) * time.Duration(n) / period); next <= due; next++ {
			number := next % n
			group.Go(func() error {
				if err := do(ctx, number); err != nil && ctx.Err() == nil {
					return err
				}
				return nil
			})
		}
	}
}
