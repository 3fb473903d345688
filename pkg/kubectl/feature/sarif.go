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
	"encoding/json"
	"io"
	"maps"
	"net/url"
	"path/filepath"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/version"
	"k8s.io/kubernetes-features/pkg/kubectl/gatefiles/verdict"
)

// The types of SARIF 2.1.0, as far as they are used
// (https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html).
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool        sarifTool         `json:"tool"`
		ColumnKind  string            `json:"columnKind"`
		Invocations []sarifInvocation `json:"invocations"`
		Results     []sarifResult     `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		Version        string      `json:"version"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string       `json:"id"`
		ShortDescription sarifMessage `json:"shortDescription"`
	}
	sarifMessage struct {
		Text string `json:"text"`
	}
	sarifInvocation struct {
		ExecutionSuccessful bool                `json:"executionSuccessful"`
		Notifications       []sarifNotification `json:"toolExecutionNotifications,omitempty"`
	}
	sarifNotification struct {
		Level     string          `json:"level"`
		Message   sarifMessage    `json:"message"`
		Locations []sarifLocation `json:"locations,omitempty"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		RuleIndex int             `json:"ruleIndex"`
		Level     string          `json:"level"`
		Message   sarifMessage    `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifLocation struct {
		Physical sarifPhysical `json:"physicalLocation"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine   int64 `json:"startLine"`
		StartColumn int64 `json:"startColumn,omitempty"`
	}
)

// sarifLevels are the levels of findings. Settings that are safe and need no attention are no results.
var sarifLevels = map[metav1.ConditionStatus]string{
	metav1.ConditionFalse: "error", metav1.ConditionUnknown: "warning", metav1.ConditionTrue: "note",
}

// printSARIF writes one run, with a rule for each verdict and a result for each setting that needs attention.
func (r *fileResult) printSARIF(w io.Writer) error {
	run := sarifRun{
		Tool: sarifTool{sarifDriver{
			Name: "kubectl-feature", Version: version.Get().GitVersion, InformationURI: "https://kep.k8s.io/3920",
		}},
		ColumnKind: "unicodeCodePoints", Invocations: []sarifInvocation{{ExecutionSuccessful: len(r.Problems) == 0}}, Results: []sarifResult{},
	}
	rules := slices.Sorted(maps.Keys(verdict.Descriptions))
	for _, v := range rules {
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{string(v), sarifMessage{verdict.Descriptions[v]}})
	}
	for _, s := range r.Settings {
		if s.Verdict == verdict.Works {
			continue
		}
		text := s.Component + ": " + s.Gate + ": " + s.Why
		if s.Next != "" {
			text += "; next: " + s.Next
		}
		run.Results = append(run.Results, sarifResult{
			RuleID: string(s.Verdict), RuleIndex: slices.Index(rules, s.Verdict), Level: sarifLevels[s.Safe],
			Message: sarifMessage{text}, Locations: []sarifLocation{newSARIFLocation(s.filePlace)},
		})
	}
	notify := func(level string, notes []fileNote) {
		for _, n := range notes {
			text := n.Why
			if n.Next != "" {
				text += "; next: " + n.Next
			}
			run.Invocations[0].Notifications = append(run.Invocations[0].Notifications, sarifNotification{level, sarifMessage{text}, []sarifLocation{newSARIFLocation(n.filePlace)}})
		}
	}
	notify("error", r.Problems)
	notify("warning", r.Unread)
	for _, text := range r.Unknown {
		run.Invocations[0].Notifications = append(run.Invocations[0].Notifications, sarifNotification{Level: "warning", Message: sarifMessage{text}})
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run}})
}

// newSARIFLocation returns a place, whose file is relative to the directory of the command, or absolute.
func newSARIFLocation(p filePlace) sarifLocation {
	uri := url.URL{Path: filepath.ToSlash(p.File)}
	if filepath.IsAbs(p.File) {
		uri.Scheme = "file"
	}
	l := sarifLocation{sarifPhysical{Artifact: sarifArtifact{uri.String()}}}
	if p.Line > 0 {
		l.Physical.Region = &sarifRegion{p.Line, p.Column}
	}
	return l
}
