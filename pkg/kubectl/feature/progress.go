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
	"io"
	"os"
	"strings"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/kubectl/pkg/util/term"
)

// progress prints progress. On a terminal it rewrites one line; to a file or a pipe
// it writes a line for each change of the message. It is for one goroutine.
type progress struct {
	w io.Writer
	// live is true on a terminal that can rewrite a line.
	live bool
	said string
	// open is true while the cursor is in the line.
	open bool
}

func (b *base) progress() *progress {
	return &progress{w: b.Out, live: b.isTerminal() && os.Getenv("TERM") != "dumb"}
}

// of prints the progress of a feature.
func (p *progress) of(f *v1alpha1.Feature) {
	text := progressOf(f)
	if p.live && len(f.Status.Tasks) > 0 && f.Status.Tasks[0].Total > 0 {
		text = strings.Replace(text, string(f.Status.State), string(f.Status.State)+" "+bar(f.Status.Tasks[0].Done, f.Status.Tasks[0].Total), 1)
	}
	p.say(title(f.Name) + ": " + text)
}

// say prints a message, if that is new.
func (p *progress) say(line string) {
	line = printable(line)
	if line == p.said {
		return
	}
	p.said = line
	if !p.live {
		fmt.Fprintln(p.w, line)
		return
	}
	// A line that wraps could not be rewritten.
	fmt.Fprintf(p.w, "\r\x1b[K%s", transition.Shorten(line, p.width()-1))
	p.open = true
}

// end lets the last line stand.
func (p *progress) end() {
	if p.open {
		fmt.Fprintln(p.w)
	}
	p.said, p.open = "", false
}

// clear takes the last line away.
func (p *progress) clear() {
	if p.open {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
	p.said, p.open = "", false
}

// width is that of the terminal, in characters.
func (p *progress) width() int {
	const usual = 80
	if size := (term.TTY{Out: p.w}).GetSize(); size != nil && size.Width > 1 {
		return int(size.Width)
	}
	return usual
}
