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

package gatefiles

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files in testdata again")

// valuesFile has values of charts, which are read by paths alone.
const valuesFile = "testdata/values.yaml"

// golden compares a text with a file.
func golden(t *testing.T, file, got string) {
	t.Helper()
	name := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatalf("%v; go test ./pkg/kubectl/gatefiles -update writes it", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// describe writes a result, one fact a line.
func describe(result Result) string {
	var text strings.Builder
	for _, p := range result.Processes {
		fmt.Fprintf(&text, "process %s:%d %s", p.File, p.Line, p.Component)
		if p.ConfigFlag {
			text.WriteString(" --config")
		}
		if p.Emulated != "" {
			text.WriteString(" emulates " + p.Emulated)
		}
		text.WriteString("\n")
		for _, api := range p.APIs {
			fmt.Fprintf(&text, "  api %d:%d %s=%t\n", api.Line, api.Column, api.Name, api.Enabled)
		}
		for _, s := range result.Settings {
			if s.Process != p {
				continue
			}
			kind, prefix := "file", ""
			if s.Flag {
				kind = "flag"
			}
			if s.Prefix != "" {
				prefix = s.Prefix + ":"
			}
			fmt.Fprintf(&text, "  %s %d:%d %s%s=%t (%s: %s)\n", kind, s.Line, s.Column, prefix, s.Gate, s.Enabled, s.Format, s.Path)
		}
	}
	for _, u := range result.Unread {
		fmt.Fprintf(&text, "unread %s (matters: %t): %s; %s\n", u.Source, u.Matters, u.Why, u.Next)
	}
	for _, p := range result.Problems {
		fmt.Fprintf(&text, "problem %s\n", p.Error())
	}
	fmt.Fprintf(&text, "%d files\n", result.Files)
	return filepath.ToSlash(text.String())
}

// TestFormats reads all files of our own making in the shape that each tool documents.
func TestFormats(t *testing.T) {
	r := Reader{}
	golden(t, "formats.txt", describe(r.Read([]string{"testdata"})))
}

// pathsOfValues are those of values.yaml.
func pathsOfValues(t *testing.T, texts ...string) (paths []ValuePath) {
	t.Helper()
	for _, text := range append([]string{
		"controlPlane.apiServer.featureGates", `controlPlane.scheduler\.args`, "controlPlane.gates=kubelet", "controlPlane.named=kube-controller-manager",
		"nodes[0].kubelet.flags",
	}, texts...) {
		p, err := ParseValuePath(text)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, p)
	}
	return paths
}

// toolOf is the tool and version whose documentation has the shape of a file: its first line
// names them. JSON has no comments.
func toolOf(t *testing.T, file string) string {
	t.Helper()
	if filepath.Base(file) == "kubeletconfiguration+json.json" {
		return "kubeadm v1.36"
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(data), "\n")
	comment, _ := strings.CutPrefix(first, "# ")
	if comment == first {
		return ""
	}
	tool, _, _ := strings.Cut(comment, ": ")
	return strings.TrimSuffix(tool, ".")
}

// everyFile calls a function with each file of testdata that has configuration.
func everyFile(t *testing.T, visit func(file string)) {
	t.Helper()
	err := filepath.WalkDir("testdata", func(file string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if slices.Contains([]string{".yaml", ".json", ".conf"}, filepath.Ext(file)) {
			visit(filepath.ToSlash(file))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestFormatsTable shows what was found in each of these files, that of values by their
// paths.
func TestFormatsTable(t *testing.T) {
	r := Reader{}
	result := r.Read([]string{"testdata"})
	values := Reader{Paths: pathsOfValues(t)}
	ofValues := values.Read([]string{valuesFile})
	result.Processes = append(result.Processes, ofValues.Processes...)
	result.Settings = append(result.Settings, ofValues.Settings...)
	result.Problems = append(result.Problems, ofValues.Problems...)
	// Without paths it is not read.
	result.Unread = append(slices.DeleteFunc(result.Unread, func(u Unread) bool { return u.Source.File == valuesFile }), ofValues.Unread...)
	type row struct{ processes, flags, values, apis, unread, wrong int }
	rows := map[string]*row{}
	of := func(s Source) *row {
		if rows[s.File] == nil {
			rows[s.File] = &row{}
		}
		return rows[s.File]
	}
	for _, p := range result.Processes {
		of(p.Source).processes++
		of(p.Source).apis += len(p.APIs)
	}
	for _, s := range result.Settings {
		if s.Flag {
			of(s.Source).flags++
		} else {
			of(s.Source).values++
		}
	}
	for _, u := range result.Unread {
		of(u.Source).unread++
	}
	for _, p := range result.Problems {
		of(p.Source).wrong++
	}
	everyFile(t, func(file string) {
		if rows[file] == nil {
			rows[file] = &row{}
		}
	})
	var text strings.Builder
	text.WriteString("| file | written for | processes | gates of flags | gates of configurations | APIs | parts named as not read | errors |\n| --- | --- | --: | --: | --: | --: | --: | --: |\n")
	for _, file := range slices.Sorted(maps.Keys(rows)) {
		tool, f := toolOf(t, file), rows[file]
		if tool == "" && !strings.Contains(file, "wrong") {
			t.Errorf("%s does not name the tool whose format it has", file)
		}
		fmt.Fprintf(&text, "| %s | %s | %d | %d | %d | %d | %d | %d |\n", strings.TrimPrefix(filepath.ToSlash(file), "testdata/"), tool, f.processes, f.flags, f.values, f.apis, f.unread, f.wrong)
	}
	golden(t, "formats.md", text.String())
}

// TestPlacesHaveTheirText: each setting is at the place where its name is written.
func TestPlacesHaveTheirText(t *testing.T) {
	r := Reader{}
	for _, s := range r.Read([]string{"testdata"}).Settings {
		data, err := os.ReadFile(s.File)
		if err != nil {
			t.Fatal(err)
		}
		line := strings.Split(string(data), "\n")[s.Line-1]
		// A text with escapes, and a patch by path, are at the place of the whole value.
		if !strings.HasPrefix(line[s.Column-1:], s.Gate) && !strings.HasPrefix(line[s.Column-1:], s.Prefix+":") && !strings.Contains(line, `\n`) && !strings.Contains(line, "/featureGates/") {
			t.Errorf("%s:%d: %s is not at column %d of %q", s.File, s.Line, s.Gate, s.Column, line)
		}
	}
}

func TestValuesByPath(t *testing.T) {
	r := Reader{Paths: pathsOfValues(t, "nodes[1].kubelet", "nowhere.kubelet")}
	golden(t, "values.txt", describe(r.Read([]string{valuesFile})))
}

func TestParseValuePathRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                   "--path= has no key; write it like --path=apiServer.featureGates=kube-apiserver",
		"a.b":                "--path=a.b names no component; write --path=a.b=COMPONENT with one of kube-apiserver, kube-controller-manager, kube-scheduler, kubelet, kube-proxy, cloud-controller-manager, kubeadm",
		"kubelet.gates=etcd": "--path=kubelet.gates=etcd names no component; write --path=kubelet.gates=COMPONENT with one of kube-apiserver, kube-controller-manager, kube-scheduler, kubelet, kube-proxy, cloud-controller-manager, kubeadm",
	} {
		if _, err := ParseValuePath(text); err == nil || err.Error() != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestFilesThatAreNotRead: each is named, with the reason and the next step.
func TestFilesThatAreNotRead(t *testing.T) {
	empty := t.TempDir()
	r := Reader{In: strings.NewReader("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nfeatureGates:\n  NodeSwap: yes\n")}
	text := describe(r.Read([]string{
		"testdata/wrong/unknown.yaml", "testdata/wrong/empty.yaml", "testdata/absent.yaml", Stdin, Stdin, "testdata/.hidden", empty,
	}))
	golden(t, "unread.txt", strings.ReplaceAll(text, filepath.ToSlash(empty), "EMPTY"))
}

// FuzzRead: no text makes the reader fail, and all places are in the text.
func FuzzRead(f *testing.F) {
	names, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	f.Add("a: &a [*a]\n")
	f.Add("kind: Pod\napiVersion: v1\nspec: &s\n  containers: *s\n")
	f.Add("apiVersion: v1\nkind: List\nitems: &i\n- {apiVersion: v1, kind: List, items: *i}\n")
	f.Fuzz(func(t *testing.T, text string) {
		r := Reader{In: strings.NewReader(text)}
		lines := strings.Count(text, "\n") + 1
		for _, s := range r.Read([]string{Stdin}).Settings {
			if s.Line < 1 || s.Line > lines || s.Column < 1 {
				t.Errorf("%s=%t is at %d:%d of %d lines", s.Gate, s.Enabled, s.Line, s.Column, lines)
			}
		}
	})
}
