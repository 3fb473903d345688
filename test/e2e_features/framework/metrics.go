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

package framework

import (
	"fmt"
	"strings"
)

// WaitForMetrics waits until the first kube-apiserver shows lines of metrics, and
// returns all that it shows.
func (c *Cluster) WaitForMetrics(lines ...string) string {
	c.t.Helper()
	var shown string
	Eventually(c.t, "metrics of kube-apiserver", func() error {
		data, err := c.Kube.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(c.t.Context())
		if err != nil {
			return err
		}
		shown = string(data)
		return ShowsMetrics(shown, lines...)
	})
	return shown
}

// ShowsMetrics is an error if metrics lack one of the lines.
func ShowsMetrics(shown string, lines ...string) error {
	for _, line := range lines {
		if !strings.Contains(shown, "\n"+line+"\n") {
			name, _, _ := strings.Cut(line, "{")
			return fmt.Errorf("there is no line %s, but %q", line, linesWith(shown, name))
		}
	}
	return nil
}

// linesWith are the first lines of a text that begin with a prefix.
func linesWith(text, prefix string) []string {
	const most = 10
	var found []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, prefix) && len(found) < most {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}
