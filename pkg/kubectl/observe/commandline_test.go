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

package observe

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/history"
)

// TestCommandLines reads what containers run: arguments, and scripts of shells.
func TestCommandLines(t *testing.T) {
	for name, tc := range map[string]struct {
		container string
		command   []string
		args      []string
		// want is nil for a container that runs no component.
		want   map[string]bool
		unread string
	}{
		"arguments":                        {"x", []string{"kube-scheduler", "--feature-gates=A=true"}, nil, map[string]bool{"A": true}, ""},
		"arguments apart from the command": {"x", []string{"kube-scheduler"}, []string{"--feature-gates", "A=true"}, map[string]bool{"A": true}, ""},
		"behind a wrapper":                 {"x", []string{"/go-runner", "--log-file=/var/log/s", "--", "/usr/bin/kube-scheduler", "--feature-gates=A=true"}, nil, map[string]bool{"A": true}, ""},
		"the image's entry point":          {"kube-scheduler", nil, []string{"--feature-gates=A=true"}, map[string]bool{"A": true}, ""},
		"the image's command line":         {"kube-scheduler", nil, nil, map[string]bool{}, hasScript},
		"a variable of another flag":       {"x", []string{"kube-scheduler", "--bind-address=$(IP)"}, nil, map[string]bool{}, ""},
		"gates by a variable":              {"x", []string{"kube-scheduler", "--feature-gates=$(GATES)"}, nil, map[string]bool{}, hasVariables},
		"arguments by a variable":          {"x", []string{"kube-scheduler", "$(MORE)", "--feature-gates=A=true"}, nil, map[string]bool{"A": true}, hasVariables},
		"a script":                         {"x", []string{"/bin/sh", "-c", "exec kube-scheduler --v=2 --feature-gates=A=true,B=false 2>&1 | tee /var/log/s"}, nil, map[string]bool{"A": true, "B": false}, ""},
		"a script of several commands": {
			"x", []string{"/bin/sh", "-c"}, []string{"mkfifo /tmp/p; (tee -a /var/log/s < /tmp/p & ) ; exec /usr/local/bin/kube-scheduler \\\n  --feature-gates=\"A=true, B=true\" > /tmp/p 2>&1"},
			map[string]bool{"A": true, "B": true}, "",
		},
		"a script with flags of others":    {"x", []string{"sh", "-c", "other --feature-gates=A=true; kube-scheduler"}, nil, map[string]bool{}, ""},
		"a script with a comment":          {"x", []string{"sh", "-c", "# kube-scheduler --feature-gates=A=true\nexec kube-scheduler"}, nil, map[string]bool{}, ""},
		"a script with a setting":          {"x", []string{"sh", "-ec", "GOGC=50 exec kube-scheduler --feature-gates=A=true"}, nil, map[string]bool{"A": true}, ""},
		"a script with a variable":         {"x", []string{"sh", "-c", "exec kube-scheduler --feature-gates=A=true $MORE"}, nil, map[string]bool{"A": true}, hasVariables},
		"a script with a command":          {"x", []string{"sh", "-c", "exec kube-scheduler `cat /etc/flags`"}, nil, map[string]bool{}, hasVariables},
		"a script with an open quote":      {"x", []string{"sh", "-c", "exec kube-scheduler '--feature-gates=A=true"}, nil, map[string]bool{"A": true}, hasVariables},
		"a script that runs it twice":      {"x", []string{"sh", "-c", "test -e /x && exec kube-scheduler --feature-gates=A=true; exec kube-scheduler"}, nil, map[string]bool{}, runsTwice},
		"a program that is a variable":     {"kube-scheduler", []string{"sh", "-c", "P=kube-scheduler; exec $P --feature-gates=A=true"}, nil, map[string]bool{}, hasScript},
		"a script in the image":            {"kube-scheduler", []string{"/start.sh"}, nil, map[string]bool{}, hasScript},
		"arguments of a script":            {"kube-scheduler", []string{"sh", "-c", "exec \"$0\" \"$@\"", "kube-scheduler", "--v=2"}, nil, map[string]bool{}, hasScript},
		"the name in another's arguments":  {"x", []string{"nc", "-z", "kube-scheduler", "10259"}, nil, nil, ""},
		"the name in a script's arguments": {"x", []string{"sh", "-c", "while true; do curl kube-scheduler; done"}, nil, nil, ""},
		"behind a wrapper with a number":   {"x", []string{"nice", "-n", "5", "kube-scheduler", "--feature-gates=A=true"}, nil, map[string]bool{"A": true}, ""},
		"another program":                  {"coredns", []string{"coredns"}, []string{"-conf", "/etc/coredns/kube-scheduler"}, nil, ""},
		"a text that ends with its name":   {"x", []string{"env", "A=b", "echo /usr/bin/kube-scheduler"}, nil, nil, ""},
		"a program behind a setting alone": {"x", []string{"env", "A=b", "kube-scheduler", "--feature-gates=A=true"}, nil, map[string]bool{"A": true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: tc.container, Command: tc.command, Args: tc.args}}}}
			lines := commandLines(p, Scheduler)
			if tc.want == nil {
				if len(lines) > 0 {
					t.Errorf("got %+v, want none", lines)
				}
				return
			}
			if len(lines) != 1 {
				t.Fatalf("got %+v, want one", lines)
			}
			gates, err := parseGates(flagValues(lines[0].args, gatesFlag)...)
			if diff := cmp.Diff(tc.want, gates); err != nil || diff != "" || lines[0].unread != tc.unread {
				t.Errorf("unread %q, want %q; %v, gates (-want +got):\n%s", lines[0].unread, tc.unread, err, diff)
			}
		})
	}
}

// TestUnreadCommandLine: what a command line does not show is not taken for the default.
func TestUnreadCommandLine(t *testing.T) {
	h := history.Load()
	const minor, gate = "1.36", "GenericWorkload"
	g, _ := h.Gate(gate)
	if spec, ok := g.At(Scheduler, minor); !ok || spec.Default {
		t.Fatalf("%s of %s is %+v, want that it is off in a scheduler", gate, minor, spec)
	}
	for name, tc := range map[string]struct {
		script string
		// want is whether the gate is known, and on.
		known, on, gap bool
	}{
		"nothing is set":       {"exec kube-scheduler --v=2", true, false, false},
		"it is set":            {"exec kube-scheduler --feature-gates=" + gate + "=true", true, true, false},
		"a variable may be it": {"exec kube-scheduler --v=2 $MORE", false, false, true},
		"another one is unread": {
			"exec kube-scheduler --feature-gates=" + gate + "=true $MORE", true, true, true,
		},
		"the flag is wrong": {"exec kube-scheduler --feature-gates=" + gate, false, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			f, config := newFake(t, 1)
			list(f, podsPath, "v1", "PodList", pod("s", Scheduler, "cp1", "kube-scheduler:v1.36.3", "/bin/sh", "-c", tc.script))
			c, err := Observe(t.Context(), config, Options{})
			if err != nil {
				t.Fatal(err)
			}
			c.Derive(h)
			at := slices.IndexFunc(c.Processes, func(p Process) bool { return p.Component == Scheduler })
			if at < 0 {
				t.Fatalf("no scheduler: %+v", c.Processes)
			}
			v, known := c.Processes[at].Gates[gate]
			if known != tc.known || v.Enabled != tc.on {
				t.Errorf("known %t and on %t, want %t and %t", known, v.Enabled, tc.known, tc.on)
			}
			if gap := hasGap(c, Scheduler, "a command line that can be read"); gap != tc.gap {
				t.Errorf("a gap: %t, want %t: %+v", gap, tc.gap, c.Gaps)
			}
		})
	}
}

// TestUnreadCommandLineWithMetrics: metrics have all values, so that nothing is missing.
func TestUnreadCommandLineWithMetrics(t *testing.T) {
	f, config := newFake(t, 1)
	list(f, podsPath, "v1", "PodList", pod("s", Scheduler, "cp1", "kube-scheduler:v1.36.3", "sh", "-c", "exec kube-scheduler $MORE"))
	f.text(podsPath+"/https:s:10259/proxy/metrics", metricsOf("v1.36.4", 1, map[string]bool{"A": true, "B": false}))
	c, err := Observe(t.Context(), config, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := "kube-scheduler s node=cp1 v1.36.4 emulates= complete=true; A=true set=unknown by its metrics; B=false set=unknown by its metrics"
	if got := summary(c); !slices.Contains(got, want) || hasGap(c, Scheduler, "") {
		t.Errorf("got %q and %+v, want %q", got, c.Gaps, want)
	}
}
