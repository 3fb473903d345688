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

package browser

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// The features of the sample cluster, those first that need attention.
var sample = []string{
	"SchedulerAsyncPreemption", "MaxUnavailableStatefulSet", "PodDeletionCost", "HPAScaleToZero", "GenericWorkload", "InPlacePodVerticalScaling", "Markup", "Gadgets",
}

func TestSearchAndFilters(t *testing.T) {
	v := newView(t, goldenPage)
	v.open("")
	v.shows(sample...)
	v.picture("sample")

	// A slash leads to the search; words narrow each other down.
	v.slash()
	becomes(v, `document.activeElement.id`, "search")
	v.do(chromedp.KeyEvent("STATEFULSET turning"))
	v.shows("MaxUnavailableStatefulSet")
	becomes(v, `location.hash`, "#q=STATEFULSET%20turning")
	v.do(chromedp.KeyEvent(" nowhere"))
	v.shows()
	becomes(v, `document.getElementById("none").checkVisibility()`, true)

	// With the keyboard to the way out.
	v.do(chromedp.Focus(chromedp.CSS("#none button")), chromedp.KeyEvent(kb.Enter))
	v.shows(sample...)
	becomes(v, `location.hash`, "")

	for mark, want := range map[string][]string{
		"attention":  {"SchedulerAsyncPreemption", "MaxUnavailableStatefulSet", "PodDeletionCost", "HPAScaleToZero", "GenericWorkload"},
		"moving":     {"SchedulerAsyncPreemption", "MaxUnavailableStatefulSet"},
		"blocked":    {"SchedulerAsyncPreemption"},
		"differing":  {"MaxUnavailableStatefulSet", "PodDeletionCost"},
		"dangling":   {"HPAScaleToZero"},
		"paused":     {"GenericWorkload"},
		"unclear":    {},
		"notdefault": {"SchedulerAsyncPreemption", "MaxUnavailableStatefulSet", "GenericWorkload", "Markup"},
	} {
		box := chromedp.CSS(`input[value="` + mark + `"]`)
		v.do(chromedp.Click(box))
		v.shows(want...)
		v.do(chromedp.Click(box))
		v.shows(sample...)
	}
	choose := func(list, value string) {
		t.Helper()
		v.do(chromedp.Focus(chromedp.CSS("#"+list)), chromedp.KeyEvent(value))
		becomes(v, `document.getElementById("`+list+`").value`, value)
	}
	choose("state", "TurningOn")
	v.shows("SchedulerAsyncPreemption")
	choose("stage", "Alpha")
	v.shows()
	v.do(chromedp.Click(chromedp.CSS("form button[type=reset]")))
	v.shows(sample...)
	v.quiet()
}

// TestCountsMatchLinkedRows clicks each of them.
func TestCountsMatchLinkedRows(t *testing.T) {
	v := newView(t, goldenPage)
	v.open("")
	links := ask[[]string](v, `[...document.querySelectorAll(".tile")].map(tile => tile.getAttribute("href"))`)
	if len(links) < 8 {
		t.Fatalf("there are only the numbers %q", links)
	}
	for _, link := range links {
		count := ask[string](v, `document.querySelector('.tile[href="`+link+`"] b').textContent`)
		v.follow(`.tile[href="` + link + `"]`)
		becomes(v, `location.hash`, link)
		becomes(v, `String(`+rows+`.length)`, count)
		becomes(v, `document.getElementById("shown").textContent`, count+" of 8 shown")
	}
	for stage, want := range map[string]string{"Alpha": "2 2 0", "Beta": "1 0 2", "GA": "1 0 0"} {
		cells := ask[string](v, `[...document.querySelectorAll("section[aria-labelledby=on] tbody tr")].find(row => row.cells[0].textContent === "`+stage+`").innerText.split(/\s+/).slice(1).join(" ")`)
		if cells != want {
			t.Errorf("of stage %s there are %s on, off and moving, want %s", stage, cells, want)
		}
	}
	v.quiet()
}

// TestLinkRestoresView opens addresses that another user copied.
func TestLinkRestoresView(t *testing.T) {
	v := newView(t, goldenPage)
	v.open("#q=a&state=On&only=attention")
	v.shows("PodDeletionCost", "GenericWorkload")
	becomes(v, `[search.value, state.value, stage.value, [...document.querySelectorAll("input:checked")].map(box => box.value).join()]`, []string{"a", "On", "", "attention"})

	// Unknown keys are ignored, and none of their text is run.
	v.open("#state=Nowhere&stage=%3Cscript%3E&only=what,dangling&feature=Missing")
	v.shows("HPAScaleToZero")

	// The details of a feature, which Escape closes.
	v.open("#feature=MaxUnavailableStatefulSet")
	open := `[...document.querySelectorAll(".details:popover-open")].map(one => one.dataset.feature)`
	becomes(v, open, []string{"MaxUnavailableStatefulSet"})
	if text := ask[string](v, `document.querySelector(".details:popover-open").innerText`); !strings.Contains(text, "≠ On, differs") || !strings.Contains(text, "they follow by themselves") {
		t.Errorf("the details do not say who differs, and what becomes of it:\n%s", text)
	}
	v.picture("details")
	v.do(chromedp.KeyEvent(kb.Escape))
	becomes(v, open, []string{})
	becomes(v, `location.hash`, "")

	// The one of another namespace; opened from its row.
	v.do(chromedp.Focus(chromedp.CSS(`#matrix tr:nth-child(8) button`)), chromedp.KeyEvent(kb.Enter))
	becomes(v, open, []string{"widgets/Gadgets"})
	becomes(v, `location.hash`, "#feature=widgets/Gadgets")
	v.quiet()
}

// TestDifferencesHaveText, since not all people see colors.
func TestDifferencesHaveText(t *testing.T) {
	v := newView(t, goldenPage)
	v.open("#only=differing")
	cells := ask[[]string](v, `[...document.querySelectorAll("#matrix td.differ")].map(cell => cell.closest("tr").cells[0].textContent + ": " + cell.textContent.trim())`)
	want := []string{"SchedulerAsyncPreemption: ≠ 3 off, differs", "MaxUnavailableStatefulSet: ≠ 1 on, differs – 5 off ? 2 missing"}
	if !slices.Equal(cells, want) {
		t.Errorf("those that differ are told as %q, want %q", cells, want)
	}
	if n := ask[int](v, `[...document.querySelectorAll("#matrix td")].filter(cell => cell.textContent.includes("≠ ") && !cell.matches(".differ, .doing")).length`); n > 0 {
		t.Errorf("%d cells differ and do not stand out", n)
	}
	text := ask[string](v, `document.querySelector("section[aria-labelledby=attention]").innerText`)
	for _, want := range []string{
		"Blocked or halted: 1", "2 of 3 instances that took the value failed", "kubectl feature rollout SchedulerAsyncPreemption",
		"Users or servers differ: 2", "1 of kubelet v1.35.0 with the feature on: n6", "kubectl feature uses MaxUnavailableStatefulSet --mismatched",
		"Dangling: 1", "12 horizontalpodautoscalers.autoscaling: shop/web", "kubectl feature clean HPAScaleToZero",
		"Paused: 1", "kubectl feature resume GenericWorkload",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("what needs attention does not say %q:\n%s", want, text)
		}
	}
	text = ask[string](v, `document.querySelector("section[aria-labelledby=moves]").innerText`)
	for _, want := range []string{"MaxUnavailableStatefulSet", "by alice", "1,200 of 4,000", "tried 2 times", "WaitForNone/pods", "25 % of the instances of kube-scheduler, kubelet"} {
		if !strings.Contains(text, want) {
			t.Errorf("what moves does not say %q:\n%s", want, text)
		}
	}
	v.quiet()
}

// TestWithoutScript has the browser run none: everything is shown.
func TestWithoutScript(t *testing.T) {
	v := newView(t, goldenPage)
	v.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	}))
	v.open("#only=dangling")
	if got := ask[[]string](v, rows); !slices.Equal(got, sample) {
		t.Errorf("shown are %q, want all: %q", got, sample)
	}
	if ask[bool](v, `document.getElementById("filters").checkVisibility()`) {
		t.Error("there are filters that do nothing")
	}
	if !strings.Contains(ask[string](v, `document.body.innerText`), "Search and filters need JavaScript") {
		t.Error("the page does not explain why there are no filters")
	}
	v.quiet()
}

// TestPrinted shows the matrix whole, without what paper cannot do.
func TestPrinted(t *testing.T) {
	v := newView(t, goldenPage)
	v.open("#only=moving")
	v.media("print", "dark")
	becomes(v, rows, []string{"SchedulerAsyncPreemption", "MaxUnavailableStatefulSet"})
	if shown := ask[[]string](v, `[...document.querySelectorAll("form, .skip, .details")].filter(one => one.checkVisibility()).map(one => one.id || one.className)`); len(shown) > 0 {
		t.Errorf("on paper there are %q", shown)
	}
	if got := ask[string](v, `getComputedStyle(document.querySelector(".scroll")).maxHeight + " " + getComputedStyle(document.body).backgroundColor`); got != "none rgb(255, 255, 255)" {
		t.Errorf("on paper the matrix's height and the background are %s", got)
	}
	v.picture("print")
	v.quiet()
}

// contrast finds text that is hard to read: below 4.5 to 1, as WCAG 2.2 counts.
const contrast = `(() => {
	const parse = text => { const [r, g, b, a = 1] = text.match(/[\d.]+/g).map(Number); return { rgb: [r, g, b], a }; };
	const light = rgb => rgb.map(c => c / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
	const back = one => { for (; one; one = one.parentElement) { const c = parse(getComputedStyle(one).backgroundColor); if (c.a === 1) return c.rgb; } return [255, 255, 255]; };
	const found = new Set();
	for (const one of document.querySelectorAll("body *")) {
		if (!one.checkVisibility() || ![...one.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.textContent.trim())) continue;
		const [a, b] = [light(parse(getComputedStyle(one).color).rgb), light(back(one))].sort((x, y) => y - x);
		const ratio = (a + 0.05) / (b + 0.05);
		if (ratio < 4.5) found.add(one.tagName + "." + one.className + " " + one.textContent.trim().slice(0, 30) + " " + ratio.toFixed(2));
	}
	return [...found];
})()`

func TestPageMeetsAccessibilityRules(t *testing.T) {
	v := newView(t, goldenPage)
	for _, scheme := range []string{"light", "dark"} {
		v.media("screen", scheme)
		for _, fragment := range []string{"", "#feature=MaxUnavailableStatefulSet"} {
			v.open(fragment)
			if found := ask[[]string](v, contrast); len(found) > 0 {
				t.Errorf("with a %s background these are hard to read: %q", scheme, found)
			}
			v.picture(scheme + strings.Map(func(r rune) rune { return map[bool]rune{true: r, false: '-'}[r != '#' && r != '='] }, fragment))
		}
	}
	v.open("")
	if got := ask[string](v, `document.documentElement.lang + ": " + document.title`); got != "en: Features" {
		t.Errorf("language and title are %q", got)
	}
	for problem, expression := range map[string]string{
		"ids that are not unique":         `[...document.querySelectorAll("[id]")].map(one => one.id).filter((id, i, all) => all.indexOf(id) !== i)`,
		"references to nothing":           `[...document.querySelectorAll("[aria-labelledby], [aria-describedby], [popovertarget], [for], [form]")].flatMap(one => ["aria-labelledby", "aria-describedby", "popovertarget", "for", "form"].flatMap(name => (one.getAttribute(name) || "").split(" ").filter(Boolean))).filter(id => !document.getElementById(id))`,
		"header cells without scope":      `[...document.querySelectorAll("th:not([scope])")].map(cell => cell.textContent)`,
		"headings that leave out a level": `[...document.querySelectorAll("h1, h2, h3")].filter((one, i, all) => i > 0 && one.tagName[1] - all[i - 1].tagName[1] > 1).map(one => one.textContent)`,
	} {
		if found := ask[[]string](v, expression); len(found) > 0 {
			t.Errorf("%s: %q", problem, found)
		}
	}
	v.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		tree, err := cdp.Call(ctx, target, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
		if err != nil {
			return err
		}
		named := map[string]int{}
		for _, node := range tree.Nodes {
			if node.Ignored || node.Role == nil {
				continue
			}
			role := strings.Trim(string(node.Role.Value), `"`)
			switch role {
			case "searchbox", "combobox", "checkbox", "button", "link", "progressbar", "region", "columnheader", "rowheader":
				if node.Name == nil || strings.Trim(string(node.Name.Value), `" `) == "" {
					t.Errorf("a %s has no name", role)
				}
				named[role]++
			}
		}
		if named["searchbox"] != 1 || named["combobox"] != 2 || named["checkbox"] != 8 || named["rowheader"] < 8 || named["progressbar"] != 1 {
			t.Errorf("there are %v", named)
		}
		return nil
	}))
	v.quiet()
}

// TestPageUsableByKeyboard goes from control to control.
func TestPageUsableByKeyboard(t *testing.T) {
	v := newView(t, goldenPage)
	v.open("")
	want := []string{"A.skip", "A.tile", "BUTTON.name", "INPUT.", "SELECT.", "DIV.scroll"}
	for range 120 {
		v.do(chromedp.KeyEvent(kb.Tab))
		at := ask[string](v, `document.activeElement.tagName + "." + document.activeElement.className`)
		if len(want) > 0 && strings.HasPrefix(at, want[0]) {
			want = want[1:]
		}
		if at != "BODY." && ask[string](v, `getComputedStyle(document.activeElement).outlineStyle`) == "none" {
			t.Errorf("the focus of %s is not visible", at)
		}
	}
	if len(want) > 0 {
		t.Errorf("the keyboard does not lead to %s", want[0])
	}
	v.quiet()
}
