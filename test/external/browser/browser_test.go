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
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

var pictures = flag.String("pictures", "", "a directory for pictures of the pages, for people to look at")

// goldenPage is what "kubectl feature report" writes of the sample cluster of its own
// tests, which hold the command against it.
const goldenPage = "../../../pkg/kubectl/feature/testdata/report.html"

// patience is for whatever the browser does; it is long where machines are busy.
const patience = 2 * time.Minute

// plugin is the real kubectl-feature, built once for all tests.
var plugin = sync.OnceValues(func() (string, error) {
	file := filepath.Join(built, "kubectl-feature")
	build := exec.Command("go", "build", "-o", file, "./cmd/kubectl-feature")
	build.Dir = "../../.."
	// The repository's modules make it, not this one.
	build.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GOWORK=") }), "GOWORK=")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building kubectl-feature: %w: %s", err, out)
	}
	return file, nil
})

// built is where.
var built string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "browser-test-")
	if err != nil {
		panic(err)
	}
	built = dir
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, "what was built for the test is left behind:", err)
	}
	os.Exit(code)
}

// chromium finds the browser.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const missing = "there is no Chromium in the PATH (Debian's package chromium)"
	if os.Getenv("KUBE_FEATURES_REQUIRE_ALL") == "true" {
		t.Fatal(missing + ", and KUBE_FEATURES_REQUIRE_ALL forbids to leave the test out")
	}
	t.Skip(missing)
	return ""
}

// view is a page in a browser of its own.
type view struct {
	t    *testing.T
	ctx  context.Context
	file string

	mu sync.Mutex
	// requests are the addresses that the page asked for, apart from itself;
	// problems what the console has, and dialogs.
	requests, problems []string
}

// newView starts a browser, with a profile that goes with it.
func newView(t *testing.T, file string) *view {
	t.Helper()
	path := chromium(t)
	file, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Fatal(err)
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(path), chromedp.DisableGPU,
		// A lookup of a name is a failure, not a request.
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND"))
	if os.Geteuid() == 0 {
		// Chromium's sandbox refuses to be root's.
		options = append(options, chromedp.NoSandbox)
	}
	allocator, end := chromedp.NewExecAllocator(t.Context(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	// It waits for the browser's end.
	t.Cleanup(func() { cancel(); end() })
	v := &view{t: t, ctx: ctx, file: file}
	v.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, network.Enable, network.EnableParams{})
		if err == nil {
			_, err = cdp.Call(ctx, target, log.Enable, cdp.Empty{})
		}
		return err
	}))
	if err := chromedp.Listen(ctx, v.note); err != nil {
		t.Fatal(err)
	}
	v.size(1400, 1000)
	return v
}

// note keeps what a page should not do.
func (v *view) note(event any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch event := event.(type) {
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(event.Request.URL); err != nil || u.Scheme != "file" || u.Path != v.file {
			v.requests = append(v.requests, event.Request.URL)
		}
	case *log.EventEntryAdded:
		v.problems = append(v.problems, fmt.Sprintf("%s: %s", event.Entry.Level, event.Entry.Text))
	case *runtime.EventConsoleAPICalled:
		v.problems = append(v.problems, fmt.Sprintf("console.%s", event.Type))
	case *runtime.EventExceptionThrown:
		v.problems = append(v.problems, event.ExceptionDetails.Text)
	case *page.EventJavascriptDialogOpening:
		v.problems = append(v.problems, "a dialog: "+event.Message)
	}
}

// do does something with the page.
func (v *view) do(steps ...chromedp.Action[chromedp.Void]) {
	v.t.Helper()
	if chromedp.FromContext(v.ctx).Target == nil {
		// The first one starts the browser, which lives as long as its context.
		if err := chromedp.Do(v.ctx, steps...); err != nil {
			v.t.Fatal(err)
		}
		return
	}
	ctx, cancel := context.WithTimeout(v.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		v.t.Fatal(err)
	}
}

// open opens the page at a place of it.
func (v *view) open(fragment string) {
	v.t.Helper()
	// Another fragment alone would not reload the page.
	v.do(chromedp.Navigate("about:blank"), chromedp.Navigate("file://"+v.file+fragment))
}

// ask evaluates an expression in the page.
func ask[T any](v *view, expression string) T {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.ctx, patience)
	defer cancel()
	answer, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		v.t.Fatalf("%s: %v", expression, err)
	}
	return answer
}

// rows are the features that the matrix shows.
const rows = `[...document.querySelectorAll("#matrix tbody tr[data-marks]")].filter(row => row.checkVisibility()).map(row => row.querySelector("th").textContent)`

// becomes waits until an expression has a value. The page's policy forbids what
// chromedp.Poll does.
func becomes[T any](v *view, expression string, want T) {
	v.t.Helper()
	text := written(v.t, want)
	last := ask[string](v, fmt.Sprintf(`new Promise(done => {
		const end = performance.now() + 10000, wanted = %s;
		const look = () => {
			const is = JSON.stringify(%s);
			if (is === wanted || performance.now() > end) done(String(is)); else requestAnimationFrame(look);
		};
		look();
	})`, written(v.t, text), expression))
	if last != text {
		v.t.Fatalf("%s is %s, want %s", expression, last, text)
	}
}

// written is a value as JSON.stringify writes it.
func written(t *testing.T, value any) string {
	t.Helper()
	var text strings.Builder
	to := json.NewEncoder(&text)
	to.SetEscapeHTML(false)
	if err := to.Encode(value); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// follow clicks what leads to a place of the page other than the current one, and waits until the page is
// there: its address changes first, and a click between that and the page's moving
// would miss.
func (v *view) follow(selector string) {
	v.t.Helper()
	// Behind the page's own listener, which moves it.
	ask[bool](v, `window.arrived = new Promise(done => addEventListener("hashchange", () =>
		// What moved is drawn, too.
		requestAnimationFrame(() => requestAnimationFrame(() => done(true))), { once: true })), true`)
	v.do(chromedp.Click(chromedp.CSS(selector)))
	ask[bool](v, `window.arrived`)
}

// shows waits until the matrix shows these features, and says how many.
func (v *view) shows(names ...string) {
	v.t.Helper()
	becomes(v, rows, append([]string{}, names...))
	becomes(v, `document.getElementById("shown").textContent.split(" ")[0]`, fmt.Sprint(len(names)))
}

// slash presses that key, for once as one event: the page may keep it from becoming
// a character.
func (v *view) slash() {
	v.t.Helper()
	v.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: "/", Code: "Slash", Text: "/", WindowsVirtualKeyCode: 191})
		return err
	}))
}

// size is that of the window.
func (v *view) size(width, height int64) {
	v.t.Helper()
	v.do(chromedp.EmulateViewport(width, height))
}

// media is what the page is shown on: a medium, such as print, and a color scheme.
func (v *view) media(medium, scheme string) {
	v.t.Helper()
	v.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Media: medium, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	}))
}

// picture is for people who want to look.
func (v *view) picture(name string) {
	v.t.Helper()
	if *pictures == "" {
		return
	}
	ctx, cancel := context.WithTimeout(v.ctx, patience)
	defer cancel()
	data, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(*pictures, name+".png"), data, 0o644)
	}
	if err != nil {
		v.t.Fatal(err)
	}
}

// quiet ends a test: there were no requests and no errors.
func (v *view) quiet() {
	v.t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.requests) > 0 {
		v.t.Errorf("the page asked for %s", strings.Join(v.requests, ", "))
	}
	if len(v.problems) > 0 {
		v.t.Errorf("the browser complained: %s", strings.Join(v.problems, "; "))
	}
}
