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
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
)

// fillValue sets everything in a value, so that a page has all its parts: all texts are
// the same, and lists have one item.
func fillValue(v reflect.Value, content string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(content)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillValue(v.Elem(), content)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillValue(v.Index(0), content)
	case reflect.Struct:
		for _, field := range v.Fields() {
			if field.CanSet() {
				fillValue(field, content)
			}
		}
	}
}

// filledPage is a page all texts of which are the same, as a browser reads it.
func filledPage(t *testing.T, content string, change func(*page)) *html.Node {
	t.Helper()
	var p page
	fillValue(reflect.ValueOf(&p).Elem(), content)
	change(&p)
	// Some are folded.
	entry := &p.Troubles[0].Entries[0]
	entry.Features = slices.Repeat(entry.Features, namesShown+1)
	var out bytes.Buffer
	if err := writePage(&out, p); err != nil {
		t.Fatal(err)
	}
	document, err := html.Parse(&out)
	if err != nil {
		t.Fatal(err)
	}
	return document
}

// TestClusterTextIsNoMarkup compares a page of texts that would be markup with one of
// harmless texts, of a cluster with the API and of observed ones.
func TestClusterTextIsNoMarkup(t *testing.T) {
	for name, change := range map[string]func(*page){
		"with the API":   func(p *page) { p.Observed = nil },
		"observed":       func(p *page) { p.Observed.Asked = 1 },
		"nothing to see": func(p *page) { p.Observed.Servers = 0 },
	} {
		t.Run(name, func(t *testing.T) { checkNoMarkup(t, change) })
	}
}

func checkNoMarkup(t *testing.T, change func(*page)) {
	t.Helper()
	const harmless = "x"
	hostile := `"'><script>a()</script></style></title><img src=x onerror=a()><!-- javascript:a() &lt; ]]>` + "\x00"
	// Browsers do not read such values as code or as addresses.
	plain := []string{"aria-label", "class", "data-feature", "data-link", "data-marks", "data-stage", "data-state", "id", "popovertarget", "title", "value"}
	// shape has a line for each node, with the texts of one page as those of the other.
	shape := func(document *html.Node, content string) []string {
		content = visibleNUL(content)
		var nodes []string
		for n := range document.Descendants() {
			line := fmt.Sprintf("%d %s", n.Type, strings.ReplaceAll(n.Data, content, harmless))
			for _, a := range n.Attr {
				if strings.Contains(a.Val, content) && !slices.Contains(plain, a.Key) && content != harmless {
					t.Errorf("the cluster's text is the value of %s in <%s>", a.Key, n.Data)
				}
				line += fmt.Sprintf(" %s=%q", a.Key, strings.ReplaceAll(a.Val, content, harmless))
			}
			nodes = append(nodes, line)
		}
		return nodes
	}
	document := filledPage(t, hostile, change)
	if diff := cmp.Diff(shape(filledPage(t, harmless, change), harmless), shape(document, hostile)); diff != "" {
		t.Errorf("the cluster's texts change the page (-harmless +hostile):\n%s", diff)
	}
	for n := range document.Descendants() {
		if n.Data == "script" && n.FirstChild.Data != reportScript || n.Data == "style" && n.FirstChild.Data != reportStyle {
			t.Errorf("the page's %s is not its own", n.Data)
		}
	}
}

// TestSlotsOfPage checks that report.html names each part of the page once, and no other.
func TestSlotsOfPage(t *testing.T) {
	document, err := html.Parse(strings.NewReader(reportPage))
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]int{}
	for _, comment := range commentsOf(document) {
		named[comment.Data]++
	}
	want := map[string]int{}
	for name := range reportSlots {
		want[name] = 1
	}
	if diff := cmp.Diff(want, named); diff != "" {
		t.Errorf("parts by the comments of report.html (-want +got):\n%s", diff)
	}
}
