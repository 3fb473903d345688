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

package verdict

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/history"
	"k8s.io/kubernetes-features/pkg/kubectl/gatefiles"
)

// invented has gates of two versions, and what can become of one.
func invented(t *testing.T) *history.History {
	t.Helper()
	spec := func(stage string, enabled, locked bool, dependsOn ...string) *history.Spec {
		return &history.Spec{Stage: stage, Default: enabled, Locked: locked, DependsOn: dependsOn}
	}
	gate := func(name string, components []string, changes ...history.Change) history.Gate {
		return history.Gate{Name: name, Tracks: []history.Track{{Components: components, Changes: changes}}}
	}
	at := func(version string, s *history.Spec) history.Change {
		return history.Change{Version: version, Removed: s == nil, Spec: s}
	}
	both := []string{"kube-apiserver", "kubelet"}
	h, err := history.New(map[string]string{"1.36": "v1.36.0", "1.37": "v1.37.0", "1.38": "v1.38.0"}, []history.Gate{
		gate("Ages", both, at("1.36", spec("GA", true, false))),
		gate("Base", both, at("1.36", spec("Beta", false, false))),
		gate("Child", both, at("1.36", spec("Alpha", false, false, "Base"))),
		gate("Flips", both, at("1.36", spec("Beta", false, false)), at("1.37", spec("Beta", true, false))),
		gate("Gone", both, at("1.36", spec("GA", true, true)), at("1.37", nil)),
		gate("Later", both, at("1.38", spec("Alpha", false, false))),
		gate("Leaves", both, at("1.36", spec("Beta", true, false)), at("1.38", nil)),
		gate("Locks", both, at("1.36", spec("Beta", true, false)), at("1.37", spec("GA", true, true))),
		gate("OfKubeadm", []string{"kubeadm"}, at("1.36", spec("GA", true, true))),
		gate("Works", both, at("1.36", spec("Alpha", false, false))),
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestVerdicts reads YAML of two components, whose findings are listed by gate.
func TestVerdicts(t *testing.T) {
	for name, test := range map[string]struct {
		component, flags string
		want             []string
	}{
		"removed":                       {"kubelet", "Gone=true", []string{"Gone=true Removed False: kubelet does not have it since 1.37: kubelet refuses to start; drop the setting; the feature is always on"}},
		"not there yet":                 {"kubelet", "Later=true", []string{"Later=true NotYet False: kubelet has it since 1.38: kubelet refuses to start with 1.37; drop the setting until then"}},
		"wrong name":                    {"kubelet", "Work=true", []string{"Work=true UnknownGate False: no version from 1.36 to 1.38 has this gate: kubelet refuses to start; did you mean Works?"}},
		"of another component":          {"kubelet", "OfKubeadm=true", []string{"OfKubeadm=true NotOfComponent False: kubelet does not have it: kubelet refuses to start; move it to kubeadm"}},
		"locked to the other value":     {"kubelet", "Locks=false", []string{"Locks=false Locked False: kubelet 1.37 has it locked to true: it refuses to start; drop the setting, and be ready for the feature to be on"}},
		"locked to this value":          {"kubelet", "Locks=true", []string{"Locks=true LockedToSame True: kubelet 1.37 has it locked to true; drop the setting"}},
		"kubeadm ignores locks":         {"kubeadm", "OfKubeadm=false", []string{"OfKubeadm=false GoingAway True: kubeadm has it locked to true by name only, and a later version does not have it; drop the setting"}},
		"kubeadm has no AllAlpha":       {"kubeadm", "AllAlpha=true", []string{"AllAlpha=true UnknownGate False: kubeadm does not have it: kubeadm refuses the configuration; name the gates"}},
		"new default kept off":          {"kubelet", "Flips=false", []string{"Flips=false DefaultChanges True: it is on by default from 1.37 on, and this setting keeps it off; drop the setting for the new default"}},
		"new default as it is set":      {"kubelet", "Flips=true", []string{"Flips=true DefaultChanges True: it is on by default from 1.37 on, as it is set here; the setting can be dropped once nothing has 1.36"}},
		"GA":                            {"kubelet", "Ages=false", []string{"Ages=false GoingAway True: it is GA, and a later version does not have it; find out what needs this value before the gate is removed"}},
		"removed after the target":      {"kubelet", "Leaves=false", []string{"Leaves=false GoingAway True: kubelet 1.38 does not have it: a setting keeps it from starting then; drop the setting before 1.38"}},
		"works":                         {"kubelet", "Works=true", []string{"Works=true Works True: alpha, and off by default, which the setting changes; "}},
		"set twice":                     {"kubelet", "Works=true,Works=false", []string{"Works=true Overridden True: line 3 sets it to false again, and the last value counts; drop this one", "Works=false Works True: alpha, and off by default; "}},
		"a vendor's gate":               {"cloud-controller-manager", "Mine=true", []string{"Mine=true VendorGate Unknown: Kubernetes has no such gate, and vendors add their own to cloud-controller-managers; see what the vendor documents; remove it, or see the gates of 1.37"}},
		"prefix":                        {"kube-apiserver", "kube:Works=true", []string{"Works=true Works True: alpha, and off by default, which the setting changes; "}},
		"prefix where there is none":    {"kubelet", "kube:Works=true", []string{"Works=true BadPrefix False: kubelet 1.37 takes no prefix, and has no gate kube:Works: it refuses to start; write Works alone"}},
		"prefix of others":              {"kube-apiserver", "wardle:Works=true", []string{"Works=true BadPrefix False: kube-apiserver has no gates of wardle: it refuses to start; drop the setting, or write kube: for a gate of Kubernetes"}},
		"with and without a prefix":     {"kube-apiserver", "kube:Works=true,Ages=true", []string{"Works=true BadPrefix False: kube-apiserver refuses to start where some gates have the prefix kube: and others have none; write all of them in one way", "Ages=true GoingAway True: it is GA, and a later version does not have it; drop the setting, which is the default"}},
		"dependency off":                {"kubelet", "Child=true", []string{"Child=true DependencyOff False: Child is on and needs Base, which is off by default: kubelet refuses to start; set Base=true or Child=false"}},
		"dependency on":                 {"kubelet", "Child=true,Base=true", []string{"Child=true Works True: alpha, and off by default, which the setting changes; ", "Base=true Works True: beta, and off by default, which the setting changes; "}},
		"a gate of this project":        {"kube-apiserver", "FeatureLifecycle=true", []string{"FeatureLifecycle=true Works True: it is a gate of the binaries of this project; those of others refuse to start with it; "}},
		"a dependency by a whole stage": {"kubelet", "AllAlpha=true", []string{"AllAlpha=true DependencyOff False: Child is on by AllAlpha and needs Base, which is off by default: kubelet refuses to start; set Base=true or Child=false"}},
		"a whole stage":                 {"kubelet", "AllBeta=false", []string{"AllBeta=false DefaultChanges True: it turns 2 gates of kubelet 1.37 off that are not set otherwise; 1 of them are others than in 1.36: Flips; look at these"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := &Evaluator{History: invented(t), From: "1.36", To: "1.37", Similar: func(name string, known []string) []string {
				for _, k := range known {
					if strings.HasPrefix(k, name) {
						return []string{k}
					}
				}
				return nil
			}}
			text := fmt.Sprintf("apiVersion: v1\nkind: Pod\nspec: {containers: [{name: c, command: [%s, '--feature-gates=%s']}]}\n", test.component, test.flags)
			if diff := cmp.Diff(test.want, evaluate(t, e, text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// evaluate reads a text and lists the findings.
func evaluate(t *testing.T, e *Evaluator, text string) []string {
	t.Helper()
	r := gatefiles.Reader{In: strings.NewReader(text)}
	read := r.Read([]string{gatefiles.Stdin})
	for _, p := range read.Problems {
		t.Fatal(p)
	}
	var lines []string
	for _, f := range e.Evaluate(read) {
		if Descriptions[f.Verdict] == "" {
			t.Errorf("%s has no description", f.Verdict)
		}
		lines = append(lines, fmt.Sprintf("%s=%t %s %s: %s; %s", f.Gate, f.Enabled, f.Verdict, f.Safe, f.Why, f.Next))
	}
	return lines
}

// TestProcesses: what a file says of a process beside its gates counts.
func TestProcesses(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"kubelet's flags are examined before its file": {
			"apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\nnodeRegistration: {kubeletExtraArgs: [{name: feature-gates, value: Child=true}]}\n---\napiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nfeatureGates: {Base: true}\n",
			[]string{
				"Child=true DependencyOff False: Child is on and needs Base, which is off by default: kubelet refuses to start, as kubelet examines its flags before it reads its file; set Base=true or Child=false",
				"Base=true Works True: beta, and off by default, which the setting changes; ",
			},
		},
		"kube-proxy with a file": {
			"apiVersion: v1\nkind: Pod\nspec: {containers: [{command: [kube-proxy, --config=a, --feature-gates=Nothing=true]}]}\n",
			[]string{"Nothing=true Ignored True: kube-proxy reads no flag for gates where it has --config; set the gate in its configuration file, or drop it here"},
		},
		"another emulated version": {
			"apiVersion: v1\nkind: Pod\nspec: {containers: [{command: [kube-apiserver, --emulated-version=1.36, --feature-gates=Gone=true]}]}\n",
			[]string{"Gone=true Emulated Unknown: with --emulated-version=1.36 the gates are those that a binary of 1.37 has for that version; check what is set for 1.36, too, and start a binary of 1.37 with these arguments in a test cluster"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := &Evaluator{History: invented(t), From: "1.36", To: "1.37"}
			if diff := cmp.Diff(test.want, evaluate(t, e, test.text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAPIsThatGatesNeed: kube-apiserver has to serve them, as far as its arguments are known.
func TestAPIsThatGatesNeed(t *testing.T) {
	e := &Evaluator{History: history.Load(), From: "1.36", To: "1.37", APIs: map[string]catalog.Entry{}}
	for _, entry := range catalog.All() {
		e.APIs[string(entry.Name)] = entry
	}
	server := func(arg string) string {
		return "apiVersion: v1\nkind: Pod\nspec: {containers: [{command: [kube-apiserver, '" + arg + "']}]}\n---\n"
	}
	const scheduler = "apiVersion: v1\nkind: Pod\nspec: {containers: [{command: [kube-scheduler, --feature-gates=GenericWorkload=true]}]}\n"
	for name, test := range map[string]struct {
		text string
		want Verdict
	}{
		"no server":                {scheduler, APIUnknown},
		"not served":               {server("--v=2") + scheduler, APINotServed},
		"served":                   {server("--runtime-config=scheduling.k8s.io/v1beta1") + scheduler, Works},
		"all beta versions":        {server("--runtime-config=api/beta=true") + scheduler, Works},
		"all, and this one not":    {server("--runtime-config=scheduling.k8s.io/v1beta1=false,api/all=true") + scheduler, APINotServed},
		"one of the resources not": {server("--runtime-config=api/all=true,scheduling.k8s.io/v1beta1/podgroups=false") + scheduler, APINotServed},
	} {
		t.Run(name, func(t *testing.T) {
			r := gatefiles.Reader{In: strings.NewReader(test.text)}
			findings := e.Evaluate(r.Read([]string{gatefiles.Stdin}))
			if len(findings) != 1 || findings[0].Verdict != test.want {
				t.Errorf("want %s, got %+v", test.want, findings)
			}
		})
	}
}
