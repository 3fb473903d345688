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
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// object is one as the API shows it.
type object = map[string]any

// write has the real kubectl-feature write the page of a server that has these
// features and reports, and returns the file.
func write(t *testing.T, features, reports []object) string {
	t.Helper()
	chromium(t)
	path, err := plugin()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	answer := func(body object) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if err := json.NewEncoder(w).Encode(body); err != nil {
				t.Error(err)
			}
		}
	}
	list := func(kind string, items []object) http.HandlerFunc {
		return answer(object{"apiVersion": "features.k8s.io/v1alpha1", "kind": kind, "metadata": object{}, "items": items})
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/version", answer(object{"major": "1", "minor": "36", "gitVersion": "v1.36.3"}))
	mux.HandleFunc("/apis/features.k8s.io/v1alpha1/namespaces/kube-system/features", list("FeatureList", features))
	mux.HandleFunc("/apis/features.k8s.io/v1alpha1/namespaces/kube-system/featurereports", list("FeatureReportList", reports))
	server := httptest.NewServer(mux)
	defer server.Close()
	command := exec.CommandContext(t.Context(), path, "report", "-o", "html", "--server="+server.URL)
	command.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(dir, "none"))
	var out, problems bytes.Buffer
	command.Stdout, command.Stderr = &out, &problems
	if err := command.Run(); err != nil || problems.Len() > 0 {
		t.Fatalf("%v: %s", err, &problems)
	}
	file := filepath.Join(dir, "features.html")
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// feature is one with uses and conditions.
func feature(name string, on bool, uses []object, conditions ...object) object {
	state := map[bool]string{true: "On", false: "Off"}[on]
	return object{
		"metadata": object{"namespace": "kube-system", "name": name}, "spec": object{},
		"status": object{
			"stage": "Beta", "default": on, "control": "Local", "version": "1.36", "state": state, "stateSince": "2026-01-02T03:04:05Z",
			"configured": object{"value": on, "source": "Default"}, "uses": uses, "conditions": conditions,
		},
	}
}

func use(component, version string, enabled any, count int, examples ...string) object {
	u := object{"component": component, "version": version, "count": count, "expected": count, "examples": examples}
	if enabled != nil {
		u["enabled"] = enabled
	}
	return u
}

func reportOf(component, instance, version string) object {
	return object{
		"metadata": object{"namespace": "kube-system", "name": component + "." + instance},
		"spec":     object{"component": component, "instance": instance, "binaryVersion": version, "features": []object{{"name": "Gate001", "enabled": true, "queried": true}}},
	}
}

func condition(kind, status, reason, message string) object {
	return object{"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": "2026-01-02T03:04:05Z"}
}

// TestALargeCluster has as many gates as Kubernetes has, and 5,000 nodes.
func TestALargeCluster(t *testing.T) {
	const gates, nodes = 243, 5000
	var features, reports []object
	for i := range gates {
		on := i%3 > 0
		uses := []object{
			use("kube-apiserver", "v1.36.3", on, 3, "a", "b", "c"), use("kube-controller-manager", "v1.36.3", on, 1, "m"), use("kube-scheduler", "v1.36.3", on, 1, "s"),
			use("kube-proxy", "v1.36.3", on, nodes, "n0001", "n0002", "n0003", "n0004", "n0005"),
		}
		if i == 41 {
			uses = append(uses, use("kubelet", "v1.36.3", on, nodes-12, "n0001"), use("kubelet", "v1.35.1", !on, 10, "n4991", "n4992"), use("kubelet", "v1.33.0", nil, 2, "n4999"))
		} else {
			uses = append(uses, use("kubelet", "v1.36.3", on, nodes, "n0001"))
		}
		f := feature(fmt.Sprintf("Gate%03dWithANameAsLongAsThoseOfKubernetesAre", i), on, uses)
		if i == 41 {
			f["status"].(object)["conditions"] = []object{condition("UsesMatch", "False", "UsersDiffer", "10 live users differ")}
		}
		features = append(features, f)
	}
	for i := range nodes {
		version := "v1.36.3"
		if i >= nodes-10 {
			version = "v1.35.1"
		}
		reports = append(reports, reportOf("kubelet", fmt.Sprintf("n%04d", i), version))
	}
	v := newView(t, write(t, features, reports))
	v.open("")
	becomes(v, rows+".length", gates)
	v.picture("large")
	text := ask[string](v, `document.querySelector("header").innerText`)
	for _, want := range []string{"5,000: 10 kubelet v1.35.1, 4,990 kubelet v1.36.3", "kube-apiserver\nv1.36.3", "UTC", "2 kubelet v1.33.0 did not report"} {
		if !strings.Contains(strings.ReplaceAll(text, "\t", " "), want) {
			t.Errorf("the top does not say %q:\n%s", want, text)
		}
	}
	// Trouble comes first.
	becomes(v, rows+"[0].slice(0, 7)", "Gate041")

	// Where nothing is to be said of attention and tasks, all components are in sight.
	v.open("#state=Off")
	becomes(v, `(() => {
		const cells = [...document.querySelector("#matrix thead tr").cells], shown = cells.filter(cell => cell.checkVisibility());
		return [cells.length - shown.length, shown.at(-1).textContent.slice(0, 7), shown.at(-1).getBoundingClientRect().right <= innerWidth];
	})()`, []any{1, "kubelet", true})
	v.open("#state=On")
	becomes(v, `[...document.querySelectorAll("#matrix thead th")].filter(cell => !cell.checkVisibility()).length`, 0)
	v.open("#q=gate041")
	becomes(v, `[...document.querySelectorAll("#matrix td.differ")].map(cell => cell.textContent.trim())`, []string{"≠ 10 off, differs ✓ 4,988 on ? 2 missing"})

	// Where there is room, each feature has one line.
	if high := ask[int](v, `Math.max(...[...document.querySelectorAll("#matrix tbody tr:not([hidden])")].map(row => row.offsetHeight))`); high > 40 {
		t.Errorf("there is a row of %d pixels", high)
	}

	// Wherever one looks, names and components are in sight.
	v.open("#state=On")
	for _, width := range []int64{1400, 400} {
		v.size(width, 800)
		ask[bool](v, `(() => { const box = document.querySelector(".scroll"); box.scrollIntoView(); box.scrollTo(300, 2000); return true; })()`)
		becomes(v, `(() => {
			const box = document.querySelector(".scroll").getBoundingClientRect(), head = document.querySelector("#matrix thead th:last-child").getBoundingClientRect();
			const row = [...document.querySelectorAll("#matrix tbody tr:not([hidden])")].find(row => row.getBoundingClientRect().top > box.top + 100);
			const name = row.cells[0].getBoundingClientRect();
			return [Math.abs(head.top - box.top) < 2, Math.abs(name.left - box.left) < 2, name.width < box.width * 0.6];
		})()`, []bool{true, true, true})
		v.picture(fmt.Sprintf("large-%d", width))
		// The page itself goes down only.
		if wide := ask[int](v, `document.documentElement.scrollWidth`); wide > int(width) {
			t.Errorf("the page is %d wide in a window of %d", wide, width)
		}
	}
	v.quiet()
}

// hostile would be run if it were markup, wherever it stands.
var hostile = []string{
	`<script>window.hostile = 1</script>`, `"><img src="x" onerror="window.hostile = 1">`, `</script><script>window.hostile = 1</script>`, `</style><svg onload=window.hostile=1>`,
	`' onmouseover='window.hostile=1`, `javascript:window.hostile=1`, `{{.Features}}${window.hostile=1}`, `<!--`, `]]><iframe src="http://example.invalid/"></iframe>`,
}

func TestHostileNamesAndMessages(t *testing.T) {
	var features, reports []object
	for i, text := range hostile {
		f := feature("Gate"+text, true, []object{use("kubelet"+text, "v1"+text, false, 1, "node"+text)},
			condition("UsesMatch", "False", "UsersDiffer", "message "+text), condition("Clean", "False", "Leftovers", "left "+text), condition("Progressing", "True", "Blocked", "task "+text))
		status := f["status"].(object)
		status["state"], status["stage"] = "TurningOn", text
		status["configured"] = object{"value": true, "source": text}
		status["transition"] = object{"id": text, "startTime": "2026-01-02T03:04:05.000000Z", "reason": text}
		status["tasks"] = []object{{"name": "Task" + text, "message": text, "done": 1, "total": 2}}
		status["rollout"] = object{"value": true, "observed": object{"components": []string{text}}, "startTime": "2026-01-02T03:04:05.000000Z", "halted": true, "message": text, "failedInstances": []string{text}}
		features = append(features, f)
		reports = append(reports, reportOf("kubelet"+text, fmt.Sprint(i), text))
	}
	v := newView(t, write(t, features, reports))
	v.open("#q=" + strings.ReplaceAll(hostile[1], " ", "%20"))
	v.shows("Gate" + hostile[1])
	v.open("")
	becomes(v, rows+".length", len(hostile))
	text := ask[string](v, `document.body.textContent`)
	for _, want := range hostile {
		for _, place := range []string{"Gate", "message ", "left ", "Task", "node", "kubelet"} {
			if !strings.Contains(text, place+want) {
				t.Errorf("%q is not shown as it is", place+want)
			}
		}
	}
	if got := ask[[]string](v, `[...document.querySelectorAll("script, style, img, svg, iframe, object, link, base, [onerror], [onload], [onmouseover]")].map(one => one.tagName)`); !slices.Equal(got, []string{"STYLE", "SCRIPT"}) {
		t.Errorf("the page has %q, and should have its own style and script", got)
	}
	// Each can be opened, and none of that runs anything.
	for i := range hostile {
		v.do(chromedp.Focus(chromedp.CSS(fmt.Sprintf("#matrix tbody tr:nth-child(%d) button", i+1))), chromedp.KeyEvent("\r"))
		becomes(v, `document.querySelectorAll(".details:popover-open").length`, 1)
	}
	becomes(v, `typeof window.hostile`, "undefined")
	v.quiet()

	// Had one of them got through, the policy of the page would still stop it, and
	// would let it ask for nothing.
	blocked := ask[[]string](v, `new Promise(done => {
		const blocked = new Set();
		document.addEventListener("securitypolicyviolation", event => {
			blocked.add(event.effectiveDirective);
			if (blocked.size === 3) done([...blocked].sort());
		});
		const script = document.createElement("script"); script.textContent = "window.hostile = 1"; document.body.append(script);
		document.body.insertAdjacentHTML("beforeend", '<img src="http://example.invalid/x" onerror="window.hostile = 1">');
	})`)
	if want := []string{"img-src", "script-src-attr", "script-src-elem"}; !slices.Equal(blocked, want) {
		t.Errorf("the policy stops %q, want %q", blocked, want)
	}
	becomes(v, `typeof window.hostile`, "undefined")
}
