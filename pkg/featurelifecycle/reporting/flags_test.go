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

package reporting

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"k8s.io/feature-lifecycle/agent"
)

// command returns one that records the arguments that were left for it.
func command(raw bool, left *[]string) *cobra.Command {
	c := &cobra.Command{Use: "c", DisableFlagParsing: raw, SilenceUsage: true, SilenceErrors: true, RunE: func(_ *cobra.Command, args []string) error {
		*left = args
		return nil
	}}
	c.Flags().String("root-dir", "", "")
	return c
}

func TestValueFlags(t *testing.T) {
	type want struct {
		policy  agent.ChangePolicy
		window  time.Duration
		timeout time.Duration
		path    string
	}
	kubelet, scheduler := Component{Name: "kubelet", Node: true}, Component{Name: "kube-scheduler"}
	for name, tc := range map[string]struct {
		component Component
		args      []string
		// left has the arguments of a command that parses them itself.
		left []string
		want want
	}{
		"a kubelet's defaults":   {kubelet, []string{"--v=2"}, []string{"--v=2"}, want{agent.PolicyReport, 5 * time.Minute, 5 * time.Second, "/var/lib/kubelet/feature-values.json"}},
		"a scheduler's defaults": {scheduler, nil, nil, want{agent.PolicyReport, time.Minute, 2 * time.Minute, ""}},
		"a kubelet's flags, in any form": {kubelet, []string{"--feature-change-policy=Restart", "--root-dir", "/r", "--feature-restart-window", "7s", "--feature_values_timeout=1s", "-v", "2"},
			[]string{"--root-dir", "/r", "-v", "2"}, want{agent.PolicyRestart, 7 * time.Second, time.Second, "/r/feature-values.json"}},
		"after the end of flags": {kubelet, []string{"--feature-restart-window=1s", "--", "--feature-restart-window=2s"}, []string{"--", "--feature-restart-window=2s"},
			want{agent.PolicyReport, time.Second, 5 * time.Second, "/var/lib/kubelet/feature-values.json"}},
		"no file, please": {kubelet, []string{"--feature-values-file="}, nil, want{agent.PolicyReport, 5 * time.Minute, 5 * time.Second, ""}},
		"a scheduler's file": {scheduler, []string{"--feature-values-file=/f", "--feature-change-policy", "Restart"}, nil,
			want{agent.PolicyRestart, time.Minute, 2 * time.Minute, "/f"}},
		"a proxy's file": {Component{Name: "kube-proxy", Node: true}, nil, nil, want{agent.PolicyReport, 5 * time.Minute, 5 * time.Second, proxyFile}},
		"hollow nodes, which share a machine, have no file": {Component{Name: "kubemark", Node: true}, nil, nil, want{agent.PolicyReport, 5 * time.Minute, 5 * time.Second, ""}},
		"but one each if told so":                           {Component{Name: "kubemark", Node: true}, []string{"--feature-values-file=/n1"}, nil, want{agent.PolicyReport, 5 * time.Minute, 5 * time.Second, "/n1"}},
		"nothing is waited for":                             {kubelet, []string{"--feature-values-timeout=0", "--feature-restart-window=0s"}, nil, want{agent.PolicyReport, 0, 0, "/var/lib/kubelet/feature-values.json"}},
	} {
		t.Run(name, func(t *testing.T) {
			var left []string
			raw := tc.component.Name == "kubelet"
			c, f := command(raw, &left), newValueFlags(tc.component)
			if err := f.addTo(c, tc.args); err != nil {
				t.Fatal(err)
			}
			if !raw {
				c.SetArgs(tc.args)
			}
			if err := c.Execute(); err != nil {
				t.Fatal(err)
			}
			if raw && !cmp.Equal(tc.left, left) && len(tc.left)+len(left) > 0 {
				t.Errorf("the command gets %q, want %q", left, tc.left)
			}
			if f.takenOut != raw {
				t.Errorf("the flags were taken out of the command line: %t", f.takenOut)
			}
			got := want{f.policy, f.window, f.timeout, f.path(tc.component, parseArguments(tc.args).rootDir)}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("unexpected flags (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInvalidValueFlags(t *testing.T) {
	for _, args := range [][]string{{"--feature-change-policy=Perhaps"}, {"--feature-restart-window"}, {"--feature-values-timeout=soon"}, {"--feature-values-timeout=-1s"}, {"--feature-restart-window=-1ms"}} {
		var left []string
		err := newValueFlags(Component{Name: "kubelet", Node: true}).addTo(command(true, &left), args)
		if err == nil || !strings.Contains(err.Error(), strings.Split(args[0], "=")[0]) {
			t.Errorf("kubelet with %q: %v", args, err)
		}
		c := command(false, &left)
		if err := newValueFlags(Component{Name: "kube-scheduler"}).addTo(c, args); err != nil {
			t.Error(err)
		}
		c.SetArgs(args)
		if err := c.Execute(); err == nil {
			t.Errorf("kube-scheduler accepts %q", args)
		}
	}
}

func TestHelpShowsFlags(t *testing.T) {
	for name, custom := range map[string]bool{"of a command that lists what it knows": true, "of a command that lists all": false} {
		t.Run(name, func(t *testing.T) {
			var left []string
			c := command(false, &left)
			c.Long = "the command's own help"
			if custom {
				c.SetHelpFunc(func(c *cobra.Command, _ []string) { fmt.Fprintln(c.OutOrStdout(), c.Long) })
			}
			var out bytes.Buffer
			c.SetOut(&out)
			if err := newValueFlags(Component{Name: "kubelet", Node: true}).addTo(c, nil); err != nil {
				t.Fatal(err)
			}
			c.HelpFunc()(c, nil)
			for _, part := range []string{c.Long, "--feature-change-policy ", "--feature-restart-window ", "--feature-values-timeout ", "--feature-values-file ", "feature-values.json in --root-dir"} {
				if n := strings.Count(out.String(), part); n != 1 {
					t.Errorf("%q is there %d times in\n%s", part, n, out.String())
				}
			}
		})
	}
}
