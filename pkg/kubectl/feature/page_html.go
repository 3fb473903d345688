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
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/html"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

var (
	// reportPage is the page without data. Its comments are names of reportSlots.
	//
	//go:embed report.html
	reportPage string
	//go:embed report.css
	reportStyle string
	//go:embed report.js
	reportScript string
)

// reportSlots are the parts that replace the comments of report.html.
var reportSlots = map[string]func(*page) part{
	"policy": policy,
	"title": func(p *page) part {
		return element("title", text("Features"), when(p.Cluster != "", text(" of "+p.Cluster)))
	},
	"style": func(*page) part { return element("style", text(reportStyle)) },
	"cluster": func(p *page) part {
		return when(p.Cluster != "", text(" of "), element("span", class("cluster"), text(p.Cluster)))
	},
	"facts":    facts,
	"observed": observedSection,
	"tiles":    func(p *page) part { return parts(p.Tiles, tile) },
	"troubles": troubles,
	"moving":   moving,
	"stages": func(p *page) part {
		return parts(p.Stages, func(s pageStage) part { return stageRow(s, p.Observed != nil) })
	},
	"changed":       changed,
	"state-options": func(p *page) part { return parts(p.States, stateOption) },
	"stage-options": func(p *page) part { return parts(p.Stages, stageOption) },
	"stage-other":   func(p *page) part { return stageOther(p.Observed != nil) },
	"legend":        legend,
	"state-label":   func(p *page) part { return text(unlessObserved(p, "State", "Value")) },
	"shown": func(p *page) part {
		return text(fmt.Sprintf("%d of %d shown", len(p.Features), len(p.Features)))
	},
	"moving-filter": func(p *page) part { return when(p.Observed == nil, filterBox("moving", "→", "moving")) },
	"kinds": func(p *page) part {
		return parts(p.Kinds, func(k troubleKind) part { return filterBox(k.Key, k.Symbol, k.Label) })
	},
	"namespace":  func(p *page) part { return when(p.Several, column("Namespace")) },
	"state-head": func(p *page) part { return column(unlessObserved(p, "State", "kube-apiserver has")) },
	"doing-head": func(p *page) part {
		return element("th", attribute("scope", "col"), class("doing"), text(unlessObserved(p, "Attention, task", "Attention")))
	},
	"components": func(p *page) part {
		return parts(p.Components, func(c pageComponent) part { return componentColumn(c, p.Observed != nil) })
	},
	"rows": matrixRows,
	"details": func(p *page) part {
		if p.Observed != nil {
			return parts(p.Features, observedDetails)
		}
		return parts(p.Features, details)
	},
	"script": func(*page) part { return element("script", text(reportScript)) },
}

// writePage writes the page. What comes from the cluster is text and values of
// attributes, which html.Render escapes.
func writePage(w io.Writer, p page) error {
	document, err := html.Parse(strings.NewReader(reportPage))
	if err != nil {
		return fmt.Errorf("reading the page without data: %w", err)
	}
	if err := fill(document, &p); err != nil {
		return err
	}
	err = html.Render(w, document)
	if err == nil {
		// Render has moved the last line's end into the body.
		_, err = io.WriteString(w, "\n")
	}
	if err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

// fill replaces the comments of a document.
func fill(document *html.Node, p *page) error {
	// They are collected first: the search does not enter what replaces them.
	for _, comment := range commentsOf(document) {
		slot, ok := reportSlots[comment.Data]
		if !ok {
			return fmt.Errorf("report.html has a comment %q, which names no part of the page", comment.Data)
		}
		var content html.Node
		slot(p)(&content)
		for child := content.FirstChild; child != nil; child = content.FirstChild {
			content.RemoveChild(child)
			comment.Parent.InsertBefore(child, comment)
		}
		comment.Parent.RemoveChild(comment)
	}
	return nil
}

// commentsOf returns the comments of a document.
func commentsOf(document *html.Node) []*html.Node {
	return slices.DeleteFunc(slices.Collect(document.Descendants()), func(n *html.Node) bool { return n.Type != html.CommentNode })
}

// policy makes the browser load nothing, and run only the page's own style and
// script, by their hashes. If text from the cluster ever became markup, it would still
// not run.
func policy(*page) part {
	hash := func(code string) string {
		sum := sha256.Sum256([]byte(code))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return element("meta", attribute("http-equiv", "Content-Security-Policy"), attribute("content",
		"default-src 'none'; base-uri 'none'; form-action 'none'; style-src "+hash(reportStyle)+"; script-src "+hash(reportScript)))
}

// facts adds what the page is about.
func facts(p *page) part {
	namespace := p.Namespace
	if namespace == "" {
		namespace = "all"
	}
	reports := number(p.Reports)
	if len(p.Reporters) > 0 {
		reports += ": " + strings.Join(p.Reporters, ", ")
	}
	if p.Unread != "" {
		reports = "not counted: " + p.Unread
	}
	source := group(
		fact("Reports", text(reports)),
		when(len(p.Missing) > 0, fact("Missing", text(strings.Join(p.Missing, "; ")))),
	)
	if p.Observed != nil {
		source = observedFacts(p)
	}
	return group(
		fact("As of", element("time", attribute("datetime", p.Written.Format(time.RFC3339)), text(p.Written.Format(time.DateTime)+" UTC"))),
		fact("kube-apiserver", text(p.Version)),
		fact("Namespace", text(namespace)),
		source,
	)
}

// unlessObserved returns a text, or the one that takes its place in an observed cluster.
func unlessObserved(p *page, state, observed string) string {
	if p.Observed != nil {
		return observed
	}
	return state
}

func fact(term string, description part) part {
	return group(element("div", element("dt", text(term)), element("dd", description)), text("\n"))
}

// tile adds a number that leads to the features that it counts. The script makes its link;
// without the script, the link leads to all features.
func tile(t pageTile) part {
	color := t.Class
	if t.Count == 0 {
		color = "zero"
	}
	return group(text("\n"), element("li", element("a", class("tile "+color), attribute("href", "#all"), attribute("data-link", t.Link),
		element("b", text(number(t.Count))), text(" "),
		element("span", when(t.Symbol != "", symbol(t.Symbol), text(" ")), text(t.Label)))))
}

// stageRow adds the counts of a stage.
func stageRow(s pageStage, observed bool) part {
	other := s.Move
	if observed {
		other = s.None
	}
	return element("tr", rowHead(text(s.Stage)), cell(number(s.On)), cell(number(s.Off)), cell(number(other)))
}

// stageOther adds the head of the column of features that are neither on nor off.
func stageOther(observed bool) part {
	sign, label := "→", "moving"
	if observed {
		sign, label = "?", unknownState
	}
	return element("th", attribute("scope", "col"), symbol(sign), text(" "+label))
}

// legend adds what the symbols of the matrix mean.
func legend(p *page) part {
	entry := func(color, example, meaning string) part {
		return element("span", element("span", class(color), text(example)), when(meaning != "", text(" "+meaning)))
	}
	colors := group(entry("on", "✓ 3 on", ""), text(" "), entry("off", "– 3 off", ""), text(" "))
	if p.Observed != nil {
		return group(colors, entry("differs", "≠ 3 on", "another value than that of kube-apiserver"), text(" "),
			element("span", text("empty: it does not have the gate, or that was not observed")))
	}
	return group(colors, entry("differs", "≠ 3 on", "another value than that of the state"), text(" "),
		entry("dim", "~ unreachable", ""), text(" "), entry("dim", "? missing: should have reported and did not", ""), text(" "),
		element("span", text("empty: not queried")))
}

// changed adds the table of features whose configured value is not the default.
func changed(p *page) part {
	if len(p.Changed) == 0 {
		return element("caption", text("Not the default: none"))
	}
	return group(element("caption", text("Not the default")), text("\n"),
		columns("Feature", "Stage", "Configured", unlessObserved(p, "State", "Observed by")), text("\n"),
		element("tbody", parts(p.Changed, func(f pageFeature) part {
			return element("tr", rowHead(nameOf(f)), cell(f.Stage), cell(f.Configured), cell(unlessObserved(p, f.Symbol+" "+f.State, f.From)))
		})))
}

func stateOption(state v1alpha1.FeatureState) part { return element("option", text(string(state))) }

func stageOption(stage pageStage) part { return element("option", text(stage.Stage)) }

// filterBox adds the checkbox that leaves the features with a mark.
func filterBox(mark, sign, label string) part {
	return group(element("label",
		element("input", attribute("type", "checkbox"), attribute("name", "only"), attribute("value", mark)),
		text(" "+sign+" "+label)), text("\n"))
}

// word matches the words of gates' names, between which long names may be broken.
// Together they are the whole name, whatever its characters.
var word = regexp.MustCompile(`(?s)[A-Z]+[^A-Z]*|[^A-Z]+`)

// nameOf adds a feature's name, which opens its details.
func nameOf(f pageFeature) part {
	return element("button", attribute("type", "button"), class("name"), attribute("popovertarget", f.ID),
		joined(word.FindAllString(f.Name, -1), element("wbr"), text))
}

// badges adds the marks of a feature that needs attention.
func badges(kinds []troubleKind) part {
	return parts(kinds, func(k troubleKind) part { return group(badge(k.Class, k.Symbol, k.Label), text(" ")) })
}

func badge(color, sign, label string) part {
	return element("span", class("badge "+color), symbol(sign), text(" "+label))
}

// symbol adds a character that people see. Screen readers leave it out, since the text
// beside it says the same.
func symbol(sign string) part {
	return element("span", attribute("aria-hidden", "true"), text(sign))
}

// screenReader adds text for screen readers alone.
func screenReader(content string) part { return element("span", class("sr"), text(content)) }

// dim adds text of less weight.
func dim(content string) part { return element("span", class("dim"), text(content)) }

// column adds the head of a table's column.
func column(head string) part { return element("th", attribute("scope", "col"), text(head)) }

// columns adds the heads of a table.
func columns(heads ...string) part { return element("thead", element("tr", parts(heads, column))) }

// rowHead adds the first cell of a row.
func rowHead(content part) part { return element("th", attribute("scope", "row"), content) }

// cell adds a cell with text.
func cell(content string) part { return element("td", text(content)) }
