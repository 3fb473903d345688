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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/internal/backoff"
	"k8s.io/klog/v2"
)

// selectNotLocal selects the Features that specify values.
var selectNotLocal = fields.AndSelectors(
	fields.OneTermNotEqualSelector("status.control", ""),
	fields.OneTermNotEqualSelector("status.control", string(v1alpha1.ControlLocal))).String()

// pageSize bounds one response; Kubernetes has some 250 features.
const pageSize = 500

// errAPINotServed means that the server does not have the API: an older server, an
// unpatched one, or one whose gate FeatureLifecycle is off.
var errAPINotServed = errors.New("the server does not have the API features.k8s.io/v1alpha1")

// list lists the Features that specify values. The first list is as new as the server's
// storage. Later ones come from its cache and are not older than the one before.
func (s *Syncer) list(ctx context.Context) error {
	if s.client != nil && s.config.Reconnect != nil && s.config.Reconnect() {
		s.stopWatches()
		s.client = nil
	}
	if s.client == nil {
		client, err := s.config.Connect()
		if err != nil {
			return fmt.Errorf("connecting: %w", err)
		}
		s.client = client
	}
	options := metav1.ListOptions{FieldSelector: selectNotLocal, Limit: pageSize}
	if s.version != "" {
		options.ResourceVersion, options.ResourceVersionMatch = s.version, metav1.ResourceVersionMatchNotOlderThan
	}
	listed := map[string]*v1alpha1.Feature{}
	for {
		list, err := s.client.FeaturesV1alpha1().Features(s.config.Namespace).List(ctx, options)
		if err != nil {
			if apierrors.IsTooManyRequests(err) {
				return err
			}
			// A server that was restored from a backup may never get there.
			s.version = ""
			return s.explain(ctx, err)
		}
		for i := range list.Items {
			listed[list.Items[i].Name] = &list.Items[i]
		}
		if list.Continue == "" {
			s.listed, s.version, s.listVersion = listed, list.ResourceVersion, list.ResourceVersion
			// Those that are still there come from the watch again.
			s.values = nil
			return nil
		}
		options.Continue, options.ResourceVersion, options.ResourceVersionMatch = list.Continue, "", ""
	}
}

// explain finds out whether the server has the API at all. Without permission to read
// Features a request is refused whether they exist or not: an unpatched server tells only
// in its discovery.
func (s *Syncer) explain(ctx context.Context, err error) error {
	switch {
	case backoff.IsNotFound(err):
		return fmt.Errorf("%w: %w", errAPINotServed, err)
	case !backoff.IsForbidden(err):
		return err
	}
	found := make(chan error, 1)
	go func() {
		_, err := s.client.Discovery().ServerResourcesForGroupVersion(v1alpha1.SchemeGroupVersion.String())
		found <- err
	}()
	select {
	case missing := <-found:
		if backoff.IsNotFound(missing) {
			return fmt.Errorf("%w: %w", errAPINotServed, missing)
		}
	case <-ctx.Done():
	}
	return err
}

// relist is list for Run. It logs changes of the server's responses.
func (s *Syncer) relist(ctx context.Context) error {
	attempt, cancel := context.WithTimeout(ctx, maxSyncBackoff)
	defer cancel()
	err := s.list(attempt)
	logger := klog.FromContext(ctx).WithValues("component", s.config.Component)
	state := ""
	switch {
	case err == nil:
		s.failures = 0
		if !s.trusted {
			if cause := s.ready(attempt); cause != nil {
				logger.V(2).Info("Not saving feature values yet: the server may not know the central ones, will retry", "cause", cause)
			}
		}
		if s.state != "" {
			logger.Info("Central feature values available again")
		}
	case errors.Is(err, errAPINotServed), errors.Is(err, ErrNoServer):
		s.failures++
		state = "missing"
		// Values of a server with the API stay until one takes them back.
		s.stopWatches()
		s.listed = nil
	default:
		s.failures++
		state = "failing"
	}
	if state != "" && state != s.state && ctx.Err() == nil {
		logger.Info("Central feature values unavailable, will retry", "cause", err)
	}
	s.state = state
	return err
}

// ResyncWhenServed makes Run list within some seconds when a server accepts reports again,
// or accepts the first one although the last list found no API. While reports are accepted,
// Run also retries soon after a list that finds no API. Reporting is that of a Reporter.
// ResyncWhenServed returns when the context ends, and may run at the same time as Run.
func (s *Syncer) ResyncWhenServed(ctx context.Context, reporting func() (is bool, changed <-chan struct{})) {
	for again := false; ; {
		is, changed := reporting()
		s.reports.Store(is)
		if is {
			select {
			case s.served <- again:
			default:
			}
			again = true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// ready returns why the server that has just answered may not know the central values yet.
func (s *Syncer) ready(ctx context.Context) error {
	if s.config.Ready != nil {
		if err := s.config.Ready(ctx, s.client); err != nil {
			return err
		}
	}
	s.trusted = true
	return nil
}
