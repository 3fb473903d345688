/*
Copyright 2026 The Kubernetes Authors.

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

package report

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/feature-lifecycle/internal/backoff"
	"k8s.io/klog/v2"
)

// failure logs what changed in the server's answers and returns the pause.
func (r *Reporter) failure(ctx context.Context, err error) time.Duration {
	logger := klog.FromContext(ctx).WithValues("featureReport", klog.KRef(r.config.Namespace, r.name))
	if errors.Is(err, errNoNode) {
		// Nobody failed; waiting has a bound of its own.
		return ownerPeriod + backoff.Jitter(time.Second)
	}
	state, said, most, count := resultFailed, "Reporting feature gates failed; trying again", maxBackoff, &r.failures
	switch {
	case noNamespace(err):
		// Somebody is about to create it, as in an installation that is under way.
		said = fmt.Sprintf("Not reporting feature gates: namespace %s does not exist; create it, or give the process the one that it is installed in", r.config.Namespace)
	case backoff.IsNotFound(err):
		state, most = resultMissing, patience
		if backoff.IsAPINotServed(err) {
			r.suspend()
		}
		said = "Not reporting feature gates: the server does not have the API features.k8s.io/v1alpha1; looking again from time to time"
	case errors.Is(err, errStays):
		state, most = resultForbidden, patience
		said = "Not reporting feature gates: another identity wrote the report of this name; delete it, or permit delete on featurereports/any; trying again from time to time"
	case backoff.IsForbidden(err):
		if r.config.Refused != nil {
			r.config.Refused()
		}
		state, most = resultForbidden, patience
		said = "Not reporting feature gates: the server does not allow it; trying again from time to time"
	}
	if most == patience {
		// A server that was away for long says so when it is back, until it has read
		// its roles: what failed before says nothing of how long that takes.
		count = &r.rejections
	}
	*count++
	if ctx.Err() == nil {
		requestsTotal.WithLabelValues(state).Inc()
	}
	if said != r.complained && ctx.Err() == nil {
		r.complained = said
		logger.Info(said, "err", err)
	}
	pause := backoff.DelayFor(err, *count, minBackoff, most)
	if delay, ok := apierrors.SuggestsClientDelay(err); ok {
		// A server in trouble suggests a second or two each time.
		pause = max(pause, time.Duration(delay)*time.Second+backoff.Jitter(time.Second))
	}
	return pause
}

// noNamespace is true when the server did not create an object because the namespace is not
// there. That is a 404, too, as from a server without the API.
func noNamespace(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Kind == "namespaces"
}
