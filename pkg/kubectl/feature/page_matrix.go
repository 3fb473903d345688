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

import "strconv"

// componentColumn adds the head of a column of the matrix, with the number of reports.
func componentColumn(c pageComponent, observed bool) part {
	reports := number(c.Reports) + " reports"
	switch {
	case observed:
		reports = number(c.Reports) + " observed"
	case c.Reports == 1:
		reports = "1 report"
	}
	return element("th", attribute("scope", "col"), text(c.Name), when(c.Reports != 0, element("small", text(reports))))
}

// matrixRows adds the features, and a row that the script shows when it hides all of them.
func matrixRows(p *page) part {
	return group(
		parts(p.Features, func(f pageFeature) part { return group(matrixRow(f, p.Several), text("\n")) }),
		element("tr", attribute("id", "none"), attribute("hidden", ""),
			element("td", attribute("colspan", strconv.Itoa(p.Columns())),
				text("No feature fits. "),
				element("button", attribute("type", "reset"), attribute("form", "filters"), text("Clear search and filters")))))
}

// matrixRow adds a feature. The script filters by the row's data and text.
func matrixRow(f pageFeature, several bool) part {
	state := "state"
	if f.Moving {
		state = "moving"
	}
	progress := ""
	if len(f.Tasks) > 0 {
		progress = f.Progress
	}
	return element("tr", attribute("data-state", f.State), attribute("data-stage", f.Stage), attribute("data-marks", f.Marks()),
		rowHead(nameOf(f)),
		when(several, cell(f.Namespace)),
		cell(f.Stage),
		element("td", class(state), symbol(f.Symbol), text(" "+f.State)),
		element("td", when(f.From != "", attribute("title", "Observed by: "+f.From)), text(f.Source),
			when(f.NotDefault, text(" "), element("span", class("changed"), symbol("∗"), screenReader(", not the default")))),
		element("td", class("doing"), badges(f.Troubles), text(progress)),
		parts(f.Cells, matrixCell))
}

// matrixCell adds the values of the instances of a component.
func matrixCell(c pageCell) part {
	if len(c.Parts) == 0 {
		return element("td")
	}
	return element("td", when(c.Differs, class("differ")), attribute("title", c.Title), parts(c.Parts, func(p cellPart) part {
		return group(
			element("span", class(p.Class), text(p.Symbol+" "+p.Text), when(p.Symbol == "≠", screenReader(", differs"))), text(" "))
	}))
}
