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

package feature

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// FuzzPrintable shows any text: on one line, without a control character, and
// unchanged where it is plain.
func FuzzPrintable(f *testing.F) {
	foundPrintable(f)
	for _, seed := range []string{hostile, "", "größer, 5 ≠ 6", "a\r\n\nb", "\u2028", "\xff\xfe", "\U000e0001", "\u200d👩‍👩", "\ue000", "a\n\n\n"} {
		f.Add(seed)
	}
	hidden := func(r rune) bool { return r != ' ' && !unicode.IsPrint(r) && !unicode.Is(unicode.Zs, r) }
	f.Fuzz(func(t *testing.T, text string) {
		shown := printable(text)
		if !utf8.ValidString(shown) || strings.ContainsFunc(shown, hidden) {
			t.Fatalf("%q is shown as %q", text, shown)
		}
		if printable(shown) != shown {
			t.Fatalf("%q is shown as %q, and that as %q", text, shown, printable(shown))
		}
		if plain := utf8.ValidString(text) && !strings.ContainsFunc(text, hidden); plain && shown != text {
			t.Fatalf("%q is plain and shown as %q", text, shown)
		}
		for i, line := range strings.Split(printableLines(text, "> "), "\n") {
			if i > 0 && line != "" && !strings.HasPrefix(line, "> ") || strings.ContainsFunc(line, hidden) || !utf8.ValidString(line) {
				t.Fatalf("%q is shown with the line %q", text, line)
			}
		}
	})
}

// FuzzShown shows any Feature and any report as "describe", "list", "uses" and
// "report" do. No text of theirs does anything to the screen, or becomes part of the
// page's markup.
func FuzzShown(f *testing.F) {
	foundShown(f)
	for _, seed := range [][2]string{
		{`{"metadata":{"name":"A"}}`, `{"spec":{"component":"kubelet","instance":"a","features":[{"name":"A","queried":true}]}}`},
		{`{"metadata":{"name":"A\u001b[2J"},"status":{"state":"TurningOff","transition":{"id":"t","reason":"\n"},"tasks":[{"name":"\u009b","done":5,"total":-1}],"uses":[{"component":"</script><script>","count":-2147483648,"examples":["\u202e"]}]}}`,
			`{"spec":{"component":"<img src=x onerror=y>","binaryVersion":"\u0000","features":[{"name":"A\u001b[2J","queried":true,"stage":"\t"}]}}`},
		{`{"spec":{"rollout":{"percent":-5,"components":["\r"]}},"status":{"rollout":{"halted":true,"message":"\n\n","failedInstances":["\u0007"]},"conditions":[{"type":"Clean","status":"False","message":"a\nfeature.features.k8s.io/Fake"},{"type":"Progressing","reason":"Blocked"}]}}`, `{}`},
		{`{"status":{"configured":{"value":true,"source":"javascript:alert(1)"},"default":false,"stateSince":"0001-01-01T00:00:00Z","storedVersions":["\u2066"]}}`, `{"spec":{"liveness":{"lease":{"name":"\u0001"}}}}`},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	var empty bytes.Buffer
	if err := writePage(&empty, pageOf(nil, reported{})); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, featureData, reportData []byte) {
		var feature v1alpha1.Feature
		var report v1alpha1.FeatureReport
		if json.Unmarshal(featureData, &feature) != nil || json.Unmarshal(reportData, &report) != nil {
			return
		}
		all := reported{reports: []v1alpha1.FeatureReport{report}}
		used := &usage{Feature: feature.Name, State: feature.Status.State, Counts: feature.Status.Uses, Processes: processes(&feature, all.speaking(feature.Name), newSigns(nil))}
		for what, print := range map[string]func(*bytes.Buffer) error{
			"describe": func(to *bytes.Buffer) error { return (&description{feature: &feature, used: used}).print(to) },
			"list": func(to *bytes.Buffer) error {
				o := &listOptions{output: outputWide, allNamespaces: true, IOStreams: genericiooptions.IOStreams{Out: to, ErrOut: to}}
				return o.printTable([]v1alpha1.Feature{feature})
			},
			"uses": func(to *bytes.Buffer) error {
				o := &usesOptions{output: outputWide, IOStreams: genericiooptions.IOStreams{Out: to, ErrOut: to}}
				return o.print(&feature, used)
			},
		} {
			var out bytes.Buffer
			if err := print(&out); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			noEscapes(t, what, out.String())
		}
		var page bytes.Buffer
		if err := writePage(&page, pageOf([]v1alpha1.Feature{feature}, all)); err != nil {
			t.Fatal(err)
		}
		for _, markup := range []string{"<script", "</script", "<style", "<img", "<iframe", "<object", "<link", "<meta", "<base", "<!--", "\x00"} {
			if got, want := strings.Count(strings.ToLower(page.String()), markup), strings.Count(strings.ToLower(empty.String()), markup); got != want {
				t.Fatalf("the page has %d times %q, an empty one %d times", got, markup, want)
			}
		}
	})
}
