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

package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/utils/ptr"
)

// TestScripts runs the stories in testdata/scripts: several servers, processes and nodes, and
// what becomes of feature A. Each line is a command; what it prints stands below it.
// "go test -run TestScripts -rewrite" writes what they print now.
//
// Commands that change the cluster:
//
//	feature [dynamic] [at=VERSION]       what A declares: tasks Install, ClearA and ClearB
//	                                     and, at a version, Convert and Revert
//	serve ID VALUE [version=1.36]        starts a server
//	restart ID VALUE [version=1.36]      starts another process of it with another value
//	crash ID [after-write=N] [lost]      ends a server now, or at a write of its own
//	follow ID VALUE                      a server uses the value of the API
//	terminate ID                         ends a server gracefully
//	report COMPONENT NAME VALUE [set]    a process reports that it queried A, or that it set A
//	replace COMPONENT NAME VALUE|none    another process of the same name reports
//	unreport COMPONENT NAME              deletes a report
//	renew COMPONENT NAME                 a process renews its Lease until it is killed
//	kill COMPONENT NAME
//	node NAME ready|unknown|deleted
//	left TASK N                          how many objects a task finds
//	refuse TASK [MESSAGE]                blocks a task, or releases it
//	spec [enabled=VALUE] [paused=VALUE] [percent=N]
//	clean ID                             asks a server for a clean-up
//
// Commands that wait and print:
//
//	wait DURATION                        prints the steps that were written meanwhile
//	until STATE DURATION                 the same, until A is in a state
//	status                               prints A
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		synctest.Test(t, func(t *testing.T) {
			l := newLeftovers()
			s := &script{world: newWorld(t), leftovers: l, stops: map[string]func(){}}
			s.leased, s.features = true, []lifecycle.Feature{l.declare("A")}
			defer s.end()
			defer func() {
				for _, stop := range s.stops {
					stop()
				}
			}()
			datadriven.RunTest(t, path, s.run)
		})
	})
}

// script is a world that executes commands.
type script struct {
	*world
	leftovers *leftovers
	control   v1alpha1.FeatureControl
	stops     map[string]func()
	process   int
	// last is the last step that was printed.
	last string
}

// run executes one line and returns what it prints.
func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	s.t = t
	words := []string{d.Cmd}
	options := map[string]string{}
	for _, arg := range d.CmdArgs {
		if len(arg.Vals) > 0 {
			options[arg.Key] = strings.Join(arg.Vals, ",")
		} else {
			words = append(words, arg.Key)
		}
	}
	result, err := s.execute(words, options)
	if err != nil {
		t.Fatalf("%s: %s: %v", d.Pos, strings.Join(words, " "), err)
	}
	return result
}

// scriptCommands are the commands by name, with the number of words they need.
var scriptCommands = map[string]struct {
	words int
	do    func(s *script, words []string, options map[string]string) (string, error)
}{
	"feature": {1, (*script).declareFeature},
	"serve":   {3, (*script).startServer},
	"restart": {3, func(s *script, words []string, options map[string]string) (string, error) {
		s.stop(s.servers[words[1]])
		synctest.Wait()
		return s.startServer(words, options)
	}},
	"crash": {2, (*script).crashServer},
	"follow": {3, func(s *script, words []string, _ map[string]string) (string, error) {
		value := words[2] == "on"
		s.report("server", words[1], v1alpha1.ReportedFeature{Name: "A", Enabled: value, Overridden: value, Stage: v1alpha1.StageBeta, Queried: true, Control: s.control})
		return "", nil
	}},
	"terminate": {2, func(s *script, words []string, _ map[string]string) (string, error) {
		server := s.servers[words[1]]
		s.shutDown(server, time.Second)
		return "", nil
	}},
	"report": {4, func(s *script, words []string, _ map[string]string) (string, error) {
		set := slices.Contains(words[4:], "set")
		s.report(words[1], words[2], v1alpha1.ReportedFeature{Name: "A", Enabled: words[3] == "on", Queried: !set, Explicit: set})
		return "", nil
	}},
	"replace": {4, func(s *script, words []string, _ map[string]string) (string, error) {
		s.process++
		s.processName = fmt.Sprint("process-", s.process)
		defer func() { s.processName = "" }()
		found := v1alpha1.ReportedFeature{Name: "A", Enabled: words[3] == "on", Queried: true}
		if words[3] == "none" {
			found.Name = "B"
		}
		s.report(words[1], words[2], found)
		return "", nil
	}},
	"unreport": {3, func(s *script, words []string, _ map[string]string) (string, error) {
		s.removeReport(words[1] + "." + words[2])
		return "", nil
	}},
	"renew": {3, func(s *script, words []string, _ map[string]string) (string, error) {
		s.stops[words[1]+"."+words[2]] = s.lease(words[1], words[2])
		return "", nil
	}},
	"kill": {3, func(s *script, words []string, _ map[string]string) (string, error) {
		name := words[1] + "." + words[2]
		if s.stops[name] == nil {
			return "", errors.New("it renews no Lease")
		}
		s.stops[name]()
		delete(s.stops, name)
		return "", nil
	}},
	"node":   {3, (*script).changeNode},
	"left":   {3, (*script).leave},
	"refuse": {2, (*script).refuse},
	"spec":   {1, (*script).changeSpec},
	"clean": {2, func(s *script, words []string, _ map[string]string) (string, error) {
		if _, err := s.servers[words[1]].controller.Clean(s.t.Context(), s.stored("A")); err != nil {
			return err.Error() + "\n", nil
		}
		return "", nil
	}},
	"wait":   {2, (*script).wait},
	"until":  {3, (*script).waitUntil},
	"status": {1, func(s *script, _ []string, _ map[string]string) (string, error) { return s.status(), nil }},
}

// execute runs a command.
func (s *script) execute(words []string, options map[string]string) (string, error) {
	command, known := scriptCommands[words[0]]
	if !known || len(words) < command.words {
		return "", fmt.Errorf("no such command, or too few words; see TestScripts")
	}
	printed, err := command.do(s, words, options)
	// The next command finds what this one led to: otherwise the scheduler decides
	// how many of a server's writes come before it.
	synctest.Wait()
	return printed, err
}

func (s *script) declareFeature(words []string, options map[string]string) (string, error) {
	f := s.leftovers.declare("A")
	if at := options["at"]; at != "" {
		f.Versions = lifecycle.Versions{{At: at, OnUpgrade: lifecycle.Tasks{s.leftovers.task("Convert")}, OnDowngrade: lifecycle.Tasks{s.leftovers.task("Revert")}}}
		s.specs = map[featuregate.Feature]featuregate.VersionedSpecs{"A": {{Version: utilversion.MustParse("1.30"), PreRelease: featuregate.Beta}}}
	}
	if slices.Contains(words, "dynamic") {
		s.control = v1alpha1.ControlDynamic
	}
	s.features = []lifecycle.Feature{f}
	return "", nil
}

// startServer starts a server once the others have seen its report: otherwise the
// scheduler decides which of them counts it.
func (s *script) startServer(words []string, options map[string]string) (string, error) {
	s.reportServer(words[1], words[2] == "on", options["version"])
	synctest.Wait()
	s.serve(words[1])
	return "", nil
}

// reportServer writes the report of a server.
func (s *script) reportServer(id string, value bool, version string) {
	found := v1alpha1.ReportedFeature{Name: "A", Enabled: value, Stage: v1alpha1.StageBeta, Queried: true, Explicit: value, Control: s.control}
	if s.control == v1alpha1.ControlDynamic {
		found.Explicit = false
	}
	s.emulated = version
	s.report("server", id, found)
}

func (s *script) crashServer(words []string, options map[string]string) (string, error) {
	server := s.servers[words[1]]
	if options["after-write"] == "" {
		s.stop(server)
		return "", nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var n int
	if _, err := fmt.Sscan(options["after-write"], &n); err != nil {
		return "", err
	}
	server.crashAt, server.lost = server.wrote+n, slices.Contains(words, "lost")
	return "", nil
}

func (s *script) changeNode(words []string, _ map[string]string) (string, error) {
	switch words[2] {
	case "ready":
		s.node(words[1], corev1.ConditionTrue)
	case "unknown":
		s.node(words[1], corev1.ConditionUnknown)
	case "deleted":
		s.removeNode(words[1])
	default:
		return "", errors.New("a node is ready, unknown or deleted")
	}
	return "", nil
}

func (s *script) leave(words []string, _ map[string]string) (string, error) {
	s.leftovers.mu.Lock()
	defer s.leftovers.mu.Unlock()
	var n int
	_, err := fmt.Sscan(words[2], &n)
	s.leftovers.left[words[1]] = n
	return "", err
}

func (s *script) refuse(words []string, _ map[string]string) (string, error) {
	s.leftovers.mu.Lock()
	defer s.leftovers.mu.Unlock()
	delete(s.leftovers.refuse, words[1])
	if message := strings.Join(words[2:], " "); message != "" {
		s.leftovers.refuse[words[1]] = &task.BlockedError{Message: message}
	}
	return "", nil
}

func (s *script) changeSpec(_ []string, options map[string]string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drain()
	feature := s.stored("A").DeepCopy()
	for key, value := range options {
		switch key {
		case "enabled":
			feature.Spec.Enabled = ptr.To(value == "on")
		case "paused":
			feature.Spec.Paused = value == "on"
		case "percent":
			feature.Spec.Rollout = nil
			if value != "none" {
				var n int32
				if _, err := fmt.Sscan(value, &n); err != nil {
					return "", err
				}
				feature.Spec.Rollout = &v1alpha1.FeatureRollout{Percent: &n}
			}
		}
	}
	s.version++
	feature.ResourceVersion = fmt.Sprint(s.version)
	return "", s.tracker.Update(featuresResource, feature, "ns")
}

func (s *script) wait(words []string, _ map[string]string) (string, error) {
	d, err := time.ParseDuration(words[1])
	if err != nil {
		return "", err
	}
	s.pass(d)
	return s.steps(), nil
}

func (s *script) waitUntil(words []string, _ map[string]string) (string, error) {
	d, err := time.ParseDuration(words[2])
	if err != nil {
		return "", err
	}
	for begun := time.Now(); string(s.state("A")) != words[1]; s.pass(100 * time.Millisecond) {
		if time.Since(begun) > d {
			return s.steps() + "not within " + words[2] + "\n", nil
		}
	}
	return s.steps(), nil
}

// steps prints the writes that changed the state or the tasks since the last call.
func (s *script) steps() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var steps []string
	for _, write := range s.writes {
		server, rest, _ := strings.Cut(write, " ")
		_, rest, _ = strings.Cut(rest, ": ")
		state, tasks, _ := strings.Cut(rest, " ")
		step := strings.TrimRight(fmt.Sprintf("%s: %s %s", server, state, tasks), " ")
		if state != "" && step != s.last {
			steps, s.last = append(steps, step), step
		}
	}
	s.writes = nil
	if len(steps) == 0 {
		return "nothing changes\n"
	}
	return strings.Join(steps, "\n") + "\n"
}

// status prints the stored status of A: times, IDs and what repeats the rest are left out.
func (s *script) status() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.stored("A")
	if f == nil {
		return "no Feature\n"
	}
	var b strings.Builder
	status := &f.Status
	fmt.Fprintf(&b, "state %s version %s", status.State, status.Version)
	if status.Configured != nil {
		fmt.Fprintf(&b, " configured %s by %s", onOff(status.Configured.Value), status.Configured.Source)
	}
	b.WriteString("\n")
	for _, t := range status.Tasks {
		fmt.Fprintln(&b, strings.TrimRight("task "+t.Name+" "+t.Message, " "))
	}
	for _, use := range status.Uses {
		value := "unknown"
		if use.Enabled != nil {
			value = onOff(*use.Enabled)
		}
		fmt.Fprintf(&b, "uses %s %s count=%d expected=%d stale=%d %s\n", use.Component, value, use.Count, use.Expected, use.Stale, strings.Join(use.Examples, ","))
	}
	if r := status.Rollout; r != nil {
		fmt.Fprintf(&b, "rollout halted=%t failed=%s\n", r.Halted, strings.Join(r.FailedInstances, ","))
	}
	for _, c := range status.Conditions {
		fmt.Fprintf(&b, "%s=%s %s", c.Type, c.Status, c.Reason)
		if c.Status != metav1.ConditionTrue {
			fmt.Fprintf(&b, ": %s", c.Message)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func onOff(value bool) string {
	if value {
		return "on"
	}
	return "off"
}
