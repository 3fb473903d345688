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

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// details adds the dialog with everything about a feature, which its name opens.
func details(f pageFeature) part {
	uses := []string{"Component", "Version", "Value", "Live", "Expected", "Out of reach", "For example"}
	conditions := []string{"Type", "Status", "Reason", "Message"}
	return dialog(f,
		element("dl", featureFacts(f)), text("\n"),
		when(len(f.Uses) > 0, smallTable("Users", uses, parts(f.Uses, useRow))),
		when(len(f.Conditions) > 0, smallTable("Conditions", conditions, parts(f.Conditions, conditionRow))))
}

// dialog adds what the name of a feature opens.
func dialog(f pageFeature, content ...part) part {
	return group(element("div", class("details"), attribute("id", f.ID), attribute("popover", ""),
		attribute("data-feature", f.Key), attribute("role", "dialog"), attribute("aria-label", f.Name), text("\n"),
		element("button", attribute("type", "button"), class("close"), attribute("popovertarget", f.ID),
			attribute("popovertargetaction", "hide"), attribute("aria-label", "Close"), text("✕")), text("\n"),
		element("h3", text(f.Name+" "), badges(f.Troubles)), text("\n"),
		group(content...)), text("\n"))
}

// featureFacts adds the state of a feature, and where it comes from.
func featureFacts(f pageFeature) part {
	stage := f.Stage + ", default: " + f.Default
	if f.Locked {
		stage += ", locked"
	}
	return group(
		definition("State", f.Symbol+" "+f.State+", for "+f.Since), definition("Configured", f.Configured), definition("Stage", stage), definition("Control", f.Control),
		definition("Namespace", f.Namespace), definition("Stored version", f.StoredVersion), when(f.Rollout != "", definition("Canary", f.Rollout)))
}

// definition adds a term and what it means.
func definition(name, description string) part {
	return group(element("dt", text(name)), element("dd", text(description)))
}

func smallTable(caption string, heads []string, rows part) part {
	return group(element("table", class("small"), element("caption", text(caption)), columns(heads...), element("tbody", rows)), text("\n"))
}

// useRow adds a line of status.uses.
func useRow(u pageUse) part {
	value := u.Value
	switch {
	case u.Differs:
		value = "≠ " + u.Value + ", differs"
	case u.Enabled == nil:
		value = "? missing"
	}
	expected := "–"
	if u.Expected != 0 {
		expected = number(u.Expected)
	}
	return element("tr", when(u.Differs, class("differ")),
		cell(u.Component), cell(u.Version), cell(value), cell(number(u.Count)), cell(expected), cell(number(u.Stale)), cell(u.Examples))
}

func conditionRow(c metav1.Condition) part {
	return element("tr", rowHead(text(c.Type)), cell(string(c.Status)), cell(c.Reason), cell(c.Message))
}
