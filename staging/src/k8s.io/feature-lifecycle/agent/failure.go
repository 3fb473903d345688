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

package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/feature-lifecycle/internal/backoff"
	"k8s.io/klog/v2"
)

// failure logs a change of the server's responses and returns the pause.
func (r *Reporter) failure(ctx context.Context, err error) time.Duration {
	logger := klog.FromContext(ctx)
	if errors.Is(err, errNoNode) {
		// No request failed; this wait has a bound of its own.
		return ownerPeriod + backoff.Jitter(time.Second)
	}
	result, message, longest, count := resultFailed, "Failed to report feature gates, will retry", maxReportBackoff, &r.failures
	switch {
	case isNamespaceMissing(err):
		// It may be about to be created, as in an installation that is in progress.
		message = fmt.Sprintf("Not reporting feature gates: namespace %s does not exist; create it, or configure the process with its own", r.config.Namespace)
	case backoff.IsNotFound(err):
		result, longest = resultMissing, rejectionBackoff
		if backoff.IsAPINotServed(err) {
			r.suspend()
		}
		message = "Not reporting feature gates: the server does not have the API features.k8s.io/v1alpha1, will retry"
	case errors.Is(err, errDeleteFailed):
		result, longest = resultForbidden, rejectionBackoff
		message = "Not reporting feature gates: another identity wrote the report of this name; delete it, or permit delete on featurereports/any; will retry"
	case backoff.IsForbidden(err):
		if r.config.Forbidden != nil {
			r.config.Forbidden()
		}
		result, longest = resultForbidden, rejectionBackoff
		message = "Not reporting feature gates: the server does not allow it, will retry"
	}
	if longest == rejectionBackoff {
		// A server that was down for long rejects reports when it is back, until it has
		// read its roles. Earlier failures do not tell how long that takes.
		count = &r.rejections
	}
	*count++
	if ctx.Err() == nil {
		requestsTotal.WithLabelValues(result).Inc()
	}
	if message != r.logged && ctx.Err() == nil {
		r.logged = message
		logger.Info(message, "featureReport", klog.KRef(r.config.Namespace, r.name), "err", err)
	}
	pause := backoff.DelayFor(err, *count, minReportBackoff, longest)
	if delay, ok := apierrors.SuggestsClientDelay(err); ok {
		// An overloaded server suggests a second or two each time.
		pause = max(pause, time.Duration(delay)*time.Second+backoff.Jitter(time.Second))
	}
	return pause
}

// isNamespaceMissing returns true if the server did not create an object because its
// namespace does not exist. That is a 404, as from a server without the API.
func isNamespaceMissing(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Kind == "namespaces"
}
