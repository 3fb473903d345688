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

package demo

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/kubernetes-features/test/utils/examplegates"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

const (
	// gate is off by default and leaves a field behind.
	gate = examplegates.Cleared
	// field is what it leaves, in Nodes.
	field = "spec.podPreemptionPolicy"
	// patience bounds each wait; the machine may be busy.
	patience = 5 * time.Minute
)

// story is one run.
type story struct {
	out      io.Writer
	cluster  *localcluster.Cluster
	kube     kubernetes.Interface
	features versioned.Interface
}

// Run runs the demo on a cluster that has just been started with the gate on.
// The cluster keeps running.
func Run(ctx context.Context, c *localcluster.Cluster, out io.Writer) error {
	s := &story{out: out, cluster: c}
	if err := s.connect(); err != nil {
		return err
	}
	s.chapter("The gate %s is on in every component", gate)
	if err := s.awaitState(ctx, v1alpha1.StateOn); err != nil {
		return err
	}
	s.chapter("Nodes use its field")
	if err := s.protect(ctx); err != nil {
		return err
	}
	before, err := s.settled(ctx)
	if err != nil {
		return err
	}
	if err := s.describeUse(before); err != nil {
		return err
	}
	if err := s.awaitUsers(ctx); err != nil {
		return err
	}
	s.chapter("The control plane and the nodes restart with the gate off; the server flow brings the feature to Off")
	// Restarted components read the objects again; a cluster without the
	// feature has none of it from here on.
	off := gate + "=false"
	// The Feature is followed from before the restart: the server flow begins
	// while the last components are still starting.
	following, abandon := context.WithCancel(ctx)
	defer abandon()
	restarted := make(chan error, 1)
	go func() {
		err := c.Restart(ctx, &off)
		if err != nil {
			abandon()
		}
		restarted <- err
	}()
	followed := s.follow(following)
	if err := <-restarted; err != nil {
		return err
	}
	if followed != nil {
		return followed
	}
	s.chapter("The field is gone, everything else is as it was")
	after, err := s.settled(ctx)
	if err != nil {
		return err
	}
	return s.compare(before, after)
}

func (s *story) connect() error {
	config, err := s.cluster.RESTConfig("admin")
	if err != nil {
		return err
	}
	if s.kube, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	s.features, err = versioned.NewForConfig(config)
	return err
}

func (s *story) chapter(format string, args ...any) {
	fmt.Fprintf(s.out, "\n== "+format+"\n", args...)
}

func (s *story) say(format string, args ...any) {
	fmt.Fprintf(s.out, "   "+format+"\n", args...)
}

// show prints a Feature as one line.
func (s *story) show(feature *v1alpha1.Feature) {
	status := &feature.Status
	configured := "?"
	if status.Configured != nil {
		configured = fmt.Sprintf("%t by %s", status.Configured.Value, status.Configured.Source)
	}
	s.say("%-11s configured %s; users: %s", status.State, configured, users(status.Uses))
	for _, task := range status.Tasks {
		s.say("            task %s %s", task.Name, progress(task))
	}
}

func progress(task v1alpha1.FeatureTask) string {
	text := task.Message
	if task.Total > 0 {
		text = fmt.Sprintf("%d/%d %s", task.Done, task.Total, text)
	}
	return strings.TrimSpace(text)
}

func users(uses []v1alpha1.FeatureUse) string {
	if len(uses) == 0 {
		return "none"
	}
	var parts []string
	for _, use := range uses {
		value := "unknown"
		if use.Enabled != nil {
			value = map[bool]string{true: "on", false: "off"}[*use.Enabled]
		}
		parts = append(parts, fmt.Sprintf("%d %s %s", use.Count, use.Component, value))
	}
	return strings.Join(parts, ", ")
}
