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

package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"k8s.io/kubernetes-features/pkg/features"
)

// kepFolder is the enhancement proposal's; kepPage is its text.
const (
	kepFolder = "keps/3920-finish-feature-flags"
	kepPage   = kepFolder + "/README.md"
)

// templateSections are the headings of kubernetes/enhancements'
// keps/NNNN-kep-template/README.md, in order, at commit
// 070656079841c8752e822122973b6914730c1f82. Headings may stand between them.
var templateSections = []string{
	"## Release Signoff Checklist",
	"## Summary",
	"## Motivation",
	"### Goals",
	"### Non-Goals",
	"## Proposal",
	"### User Stories (Optional)",
	"### Notes/Constraints/Caveats (Optional)",
	"### Risks and Mitigations",
	"## Design Details",
	"### Test Plan",
	"##### Prerequisite testing updates",
	"##### Unit tests",
	"##### Integration tests",
	"##### e2e tests",
	"### Graduation Criteria",
	"#### Alpha",
	"#### Beta",
	"#### GA",
	"### Upgrade / Downgrade Strategy",
	"### Version Skew Strategy",
	"## Production Readiness Review Questionnaire",
	"### Feature Enablement and Rollback",
	"###### How can this feature be enabled / disabled in a live cluster?",
	"###### Does enabling the feature change any default behavior?",
	"###### Can the feature be disabled once it has been enabled (i.e. can we roll back the enablement)?",
	"###### What happens if we reenable the feature if it was previously rolled back?",
	"###### Are there any tests for feature enablement/disablement?",
	"### Rollout, Upgrade and Rollback Planning",
	"###### How can a rollout or rollback fail? Can it impact already running workloads?",
	"###### What specific metrics should inform a rollback?",
	"###### Were upgrade and rollback tested? Was the upgrade->downgrade->upgrade path tested?",
	"###### Is the rollout accompanied by any deprecations and/or removals of features, APIs, fields of API types, flags, etc.?",
	"### Monitoring Requirements",
	"###### How can an operator determine if the feature is in use by workloads?",
	"###### How can someone using this feature know that it is working for their instance?",
	"###### What are the reasonable SLOs (Service Level Objectives) for the enhancement?",
	"###### What are the SLIs (Service Level Indicators) an operator can use to determine the health of the service?",
	"###### Are there any missing metrics that would be useful to have to improve observability of this feature?",
	"### Dependencies",
	"###### Does this feature depend on any specific services running in the cluster?",
	"### Scalability",
	"###### Will enabling / using this feature result in any new API calls?",
	"###### Will enabling / using this feature result in introducing new API types?",
	"###### Will enabling / using this feature result in any new calls to the cloud provider?",
	"###### Will enabling / using this feature result in increasing size or count of the existing API objects?",
	"###### Will enabling / using this feature result in increasing time taken by any operations covered by existing SLIs/SLOs?",
	"###### Will enabling / using this feature result in non-negligible increase of resource usage (CPU, RAM, disk, IO, ...) in any components?",
	"###### Can enabling / using this feature result in resource exhaustion of some node resources (PIDs, sockets, inodes, etc.)?",
	"### Troubleshooting",
	"###### How does this feature react if the API server and/or etcd is unavailable?",
	"###### What are other known failure modes?",
	"###### What steps should be taken if SLOs are not being met to determine the problem?",
	"## Implementation History",
	"## Drawbacks",
	"## Alternatives",
	"## Infrastructure Needed (Optional)",
}

var (
	fenced      = regexp.MustCompile("(?ms)^```.*?^```$")
	kepHeadings = regexp.MustCompile(`(?m)^#{1,6} .+$`)
)

// kepText is the proposal without its blocks of code.
func kepText(t *testing.T) string {
	t.Helper()
	return fenced.ReplaceAllString(page(t, kepPage), "")
}

// TestKEPHasTheTemplatesSections, in the template's order, and says something in
// each.
func TestKEPHasTheTemplatesSections(t *testing.T) {
	text := kepText(t)
	places := kepHeadings.FindAllStringIndex(text, -1)
	next := 0
	for i, place := range places {
		heading := text[place[0]:place[1]]
		if next < len(templateSections) && heading == templateSections[next] {
			next++
		}
		end := len(text)
		if i+1 < len(places) {
			end = places[i+1][0]
		}
		deeper := i+1 < len(places) && level(text[places[i+1][0]:]) > level(heading)
		if strings.TrimSpace(text[place[1]:end]) == "" && !deeper {
			t.Errorf("%q has no text", heading)
		}
	}
	if next < len(templateSections) {
		t.Errorf("the section %q of the template is missing, or stands elsewhere", templateSections[next])
	}
}

// level is how deep a heading is.
func level(heading string) int { return len(heading) - len(strings.TrimLeft(heading, "#")) }

// TestKEPIsShort: details belong in the pages that the proposal links to.
func TestKEPIsShort(t *testing.T) {
	if size := len(page(t, kepPage)); size > 65_000 {
		t.Errorf("the proposal has %d bytes; keep it below 65,000", size)
	}
}

// TestKEPIsFinished looks for what a template leaves behind.
func TestKEPIsFinished(t *testing.T) {
	comments := regexp.MustCompile(`(?s)<!--.*?-->`)
	unfinished := regexp.MustCompile(`\b(TODO|TBD|FIXME|NNNN|UNRESOLVED|pending)\b|@@|<package>|<date>`)
	for _, name := range []string{kepPage, kepFolder + "/kep.yaml"} {
		text := page(t, name)
		for _, comment := range comments.FindAllString(text, -1) {
			if comment != "<!-- toc -->" && comment != "<!-- /toc -->" {
				t.Errorf("%s has the comment %q", name, comment)
			}
		}
		for _, word := range unfinished.FindAllString(text, -1) {
			t.Errorf("%s is not finished: %q", name, word)
		}
	}
}

// TestKEPChecklist: what is not ticked says who could.
func TestKEPChecklist(t *testing.T) {
	list := section(t, page(t, kepPage), "Release Signoff Checklist")
	boxes := regexp.MustCompile(`(?m)^ *- \[([ x])\] (.+)`).FindAllStringSubmatch(list, -1)
	open := 0
	for _, box := range boxes {
		if box[1] == " " {
			open++
		}
	}
	if len(boxes) != 14 || open != 9 || !strings.Contains(list, "Nine items") {
		t.Errorf("there are %d boxes, %d of them open; the text says nine", len(boxes), open)
	}
}

// proposal is kep.yaml, with the fields of the template's.
type proposal struct {
	Title             string            `json:"title"`
	Number            int               `json:"kep-number"`
	Authors           []string          `json:"authors"`
	Reviewers         []string          `json:"reviewers"`
	Approvers         []string          `json:"approvers"`
	OwningSIG         string            `json:"owning-sig"`
	ParticipatingSIGs []string          `json:"participating-sigs"`
	Status            string            `json:"status"`
	CreationDate      string            `json:"creation-date"`
	SeeAlso           []string          `json:"see-also"`
	Replaces          []string          `json:"replaces"`
	Stage             string            `json:"stage"`
	LatestMilestone   string            `json:"latest-milestone"`
	Milestone         map[string]string `json:"milestone"`
	FeatureGates      []struct {
		Name       string   `json:"name"`
		Components []string `json:"components"`
	} `json:"feature-gates"`
	DisableSupported bool     `json:"disable-supported"`
	Metrics          []string `json:"metrics"`
}

func TestKEPMetadata(t *testing.T) {
	var kep proposal
	if err := yaml.UnmarshalStrict([]byte(page(t, kepFolder+"/kep.yaml")), &kep); err != nil {
		t.Fatal(err)
	}
	if first, _, _ := strings.Cut(page(t, kepPage), "\n"); first != "# KEP-3920: "+kep.Title || kep.Number != 3920 {
		t.Errorf("the title is %q, kep.yaml has %d and %q", first, kep.Number, kep.Title)
	}
	want := proposal{
		Title: kep.Title, Number: kep.Number, OwningSIG: "sig-api-machinery", ParticipatingSIGs: kep.ParticipatingSIGs,
		// Only people who were asked are named.
		Authors: []string{}, Reviewers: []string{}, Approvers: []string{}, Replaces: []string{},
		Status: "implementable", CreationDate: "2026-11-21", SeeAlso: kep.SeeAlso,
		Stage: "alpha", LatestMilestone: "v1.37", Milestone: map[string]string{"alpha": "v1.37"},
		FeatureGates: kep.FeatureGates, DisableSupported: true, Metrics: kep.Metrics,
	}
	if diff := cmp.Diff(want, kep); diff != "" {
		t.Errorf("unexpected kep.yaml (-want +got):\n%s", diff)
	}
	if len(kep.FeatureGates) != 1 || kep.FeatureGates[0].Name != string(features.FeatureLifecycle) {
		t.Fatalf("the gates are %+v", kep.FeatureGates)
	}
	// The binaries whose main puts the layer in front of their gate.
	mains, err := filepath.Glob(filepath.Join(root, "cmd", "*", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var components []string
	for _, file := range mains {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(filepath.Dir(file))
		if regexp.MustCompile(`\breporting\.(Main|Install)\(`).Match(data) {
			components = append(components, name)
		}
	}
	got := slices.Sorted(slices.Values(kep.FeatureGates[0].Components))
	if diff := cmp.Diff(components, got); diff != "" {
		t.Errorf("unexpected components (-mains +kep.yaml):\n%s", diff)
	}
	var metrics []string
	for name := range documentedMetrics(t) {
		metrics = append(metrics, name)
	}
	slices.Sort(metrics)
	slices.Sort(kep.Metrics)
	if diff := cmp.Diff(metrics, kep.Metrics); diff != "" {
		t.Errorf("the metrics of kep.yaml are not those of metrics.md (-page +kep.yaml):\n%s", diff)
	}
}

// TestKEPLinks: links to files and folders lead somewhere; those to headings are
// followed by TestLinksIntoPages.
func TestKEPLinks(t *testing.T) {
	links := regexp.MustCompile(`\]\(([^)#\s]+)(?:#[^)]*)?\)`).FindAllStringSubmatch(page(t, kepPage), -1)
	if len(links) == 0 {
		t.Fatal("no link was found; this test does not understand the page any more")
	}
	for _, link := range links {
		if strings.Contains(link[1], "://") {
			continue
		}
		if _, err := os.Stat(filepath.Join(kepFolder, filepath.FromSlash(link[1]))); err != nil {
			t.Errorf("a link leads nowhere: %v", err)
		}
	}
}

var testFunction = regexp.MustCompile(`(?m)^func (Test[A-Z]\w*)\(`)

// testsBelow are the names of tests in Go files by folder.
func testsBelow(t *testing.T, tops ...string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, top := range tops {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			dir, err := filepath.Rel(root, filepath.Dir(path))
			if err != nil {
				return err
			}
			data, err := os.ReadFile(path)
			for _, match := range testFunction.FindAllSubmatch(data, -1) {
				found[dir] = append(found[dir], string(match[1]))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}
