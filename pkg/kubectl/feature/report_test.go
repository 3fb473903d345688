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

package feature

import (
	"regexp"
	"strings"
	"testing"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// sampleReport is the page of the sample cluster, with a name that would be markup.
func sampleReport(t *testing.T) string {
	var out string
	inBubble(t, func(t *testing.T) {
		c := newSampleCluster(t)
		f := sample("Markup", v1alpha1.StageAlpha, true, false)
		f.Status.Uses[0].Component = `<script>alert("x")</script>`
		c.add(f)
		var code int
		if out, code = c.run("report", "-o", "html", "-A"); code != 0 {
			t.Fatalf("exit code %d: %s", code, out)
		}
	})
	return out
}

func TestReport(t *testing.T) {
	out := sampleReport(t)
	golden(t, "report.html", out)
	if strings.Count(out, "<script>") != 1 {
		t.Error("what comes from the cluster is not escaped")
	}
	if found := regexp.MustCompile(`(?i)(src|href)\s*=|url\(|@import|https?://`).FindString(out); found != "" {
		t.Errorf("the page is not self-contained: %s", found)
	}
	inBubble(t, func(t *testing.T) {
		if out, code := newSampleCluster(t).run("report", "-o", "json"); code != ExitFailed || out != "error: unknown output format \"json\"; use html\n" {
			t.Errorf("exit code %d: %s", code, out)
		}
	})
}
