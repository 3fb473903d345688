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
	"fmt"
	"strconv"
)

// namesShown is how many features an issue shows at once.
const namesShown = 12

// troubles adds the groups of issues.
func troubles(p *page) part {
	if p.Observed != nil {
		return observedTroubles(p)
	}
	if len(p.Troubles) == 0 {
		return well("Nothing: no feature is blocked, dangles, is paused, or has users that differ.")
	}
	return parts(p.Troubles, troubleGroup)
}

// well adds the sentence in place of an empty list.
func well(sentence string) part {
	return group(element("p", class("well"), symbol("✓"), text(" "+sentence)), text("\n"))
}

func troubleGroup(g pageGroup) part {
	return group(
		element("h3", attribute("id", g.Key), element("span", class("sign "+g.Class), attribute("aria-hidden", "true"), text(g.Symbol)),
			text(" "+g.Title+": "+number(g.Count)+" "), element("small", text(g.Meaning))), text("\n"),
		element("ul", class("cards"), parts(g.Entries, func(e pageEntry) part {
			return group(text("\n"), element("li", class("card "+g.Class), troubleEntry(e)))
		}), text("\n")), text("\n"))
}

// troubleEntry adds one cause, and what to do.
func troubleEntry(e pageEntry) part {
	return group(
		element("div", class("who"), affected(e.Features), text(" "), element("span", class("reason"), text(e.Reason))), text("\n"),
		when(e.Message != "", paragraph(e.Message)),
		when(len(e.Who) > 0, element("ul", parts(e.Who, func(who string) part { return element("li", text(who)) })), text("\n")),
		element("p", class("next"), dim("Next:"), text(" "),
			joined(e.Next, group(text(" "), dim("then"), text(" ")), func(command string) part { return element("code", text(command)) })))
}

// affected adds the names of the features of one cause. Those after
// namesShown are folded.
func affected(features []pageFeature) part {
	if len(features) <= namesShown {
		return joined(features, text(", "), nameOf)
	}
	rest := features[namesShown:]
	return group(joined(features[:namesShown], text(", "), nameOf), text(" "),
		element("details", element("summary", text(fmt.Sprintf("and %d more", len(rest)))),
			parts(rest, func(f pageFeature) part { return group(nameOf(f), text(" ")) })))
}

// moving adds the features with a transition under way.
func moving(p *page) part {
	if p.Observed != nil {
		return notKnownOf("states, transitions and their tasks.")
	}
	if len(p.Moving) == 0 {
		return well("Nothing: every feature is where it is to be.")
	}
	return parts(p.Moving, movingFeature)
}

func movingFeature(f pageFeature) part {
	return group(element("article", class("card moving"), attribute("aria-label", f.Name),
		element("p", class("who"),
			nameOf(f), text(" "), badge("moving", "→", f.State), text(" for "+f.Since+" "), badges(f.Troubles)), text("\n"),
		paragraph("Why: "+f.Begun+"; configured: "+f.Configured),
		when(f.Why != "", paragraph("Now: "+f.Why)),
		when(f.Rollout != "", paragraph("Canary: "+f.Rollout)),
		when(len(f.Tasks) > 0, tasksLeft(f.Tasks))), text("\n"))
}

// paragraph adds one, in a line of its own.
func paragraph(sentence string) part { return group(element("p", text(sentence)), text("\n")) }

func tasksLeft(tasks []pageTask) part {
	left := "One task is left:"
	if len(tasks) != 1 {
		left = fmt.Sprintf("%d tasks are left:", len(tasks))
	}
	return group(element("p", class("dim"), text(left)), text("\n"), element("ol", class("tasks"), parts(tasks, taskLeft)), text("\n"))
}

func taskLeft(t pageTask) part {
	return element("li", element("span", class("task"), text(t.Name)),
		when(t.Total != 0,
			text(" "),
			element("progress",
				attribute("value", strconv.FormatInt(t.Done, 10)), attribute("max", strconv.FormatInt(t.Total, 10)), attribute("aria-label", "Progress of "+t.Name)),
			text(" "+number(t.Done)+" of "+number(t.Total))),
		when(t.Tried != "", text(" "), dim(t.Tried)),
		when(t.Message != "", element("br"), text(t.Message)))
}
