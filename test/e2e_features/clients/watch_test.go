//go:build linux

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

package clients

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// watch lets kubectl of each version watch all StatefulSets. kubectl does not resume a
// watch, so this begins after the restart.
func (w *world) watch(t *testing.T) {
	t.Helper()
	for n := range older + 1 {
		name, kubectl := w.kubectl(t, n)
		s := follow(t, name, kubectl, "--kubeconfig="+w.Kubeconfig("admin"), "get", "statefulsets", "--all-namespaces", "--watch", "--output-watch-events", "-o=json")
		s.until(t, "all StatefulSets", func(lines []line) bool { return len(lines) > len(w.scripts) })
		w.watches = append(w.watches, s)
	}
}

// seenOnce sees that the informers saw each write that cleared a field, once, and none of
// what has no field to clear.
func (w *world) seenOnce(t *testing.T, before int, stored []*unstructured.Unstructured) {
	t.Helper()
	for _, by := range []string{"typed", "dynamic"} {
		for _, object := range stored {
			key := line{Result: by, Object: object.GetKind() + "/", Content: object.Object}.key()
			w.informers.until(t, key+" as it is stored", func(lines []line) bool {
				return seenVersion(lines, key) == object.GetResourceVersion()
			})
			lines, _, _ := w.informers.lines()
			was := seenVersion(lines[:before], key)
			var versions []string
			for _, l := range lines[before:] {
				if version := l.object().GetResourceVersion(); l.key() == key && version != was && (len(versions) == 0 || versions[len(versions)-1] != version) {
					versions = append(versions, version)
				}
			}
			want := 1
			if object.GetKind() == "Deployment" {
				want = 0
			}
			if len(versions) != want {
				t.Errorf("the informer %s saw the versions %v after %s, want %d", key, versions, was, want)
			}
		}
	}
}

// seenVersion is the last version of an object in events.
func seenVersion(lines []line, key string) string {
	version := ""
	for _, l := range lines {
		if l.key() == key {
			version = l.object().GetResourceVersion()
		}
	}
	return version
}

// informed sees that no event, once a field was away, had it again, that all watches saw the
// last state, and that nothing went wrong but that the server was away.
func (w *world) informed(t *testing.T) {
	t.Helper()
	for _, s := range append(w.watches, w.informers) {
		for _, script := range w.scripts {
			set := script.stored(t)[0]
			s.until(t, "the last version of all StatefulSets", func(lines []line) bool {
				for _, l := range lines {
					if l.object().GetNamespace() == set.GetNamespace() && l.object().GetResourceVersion() == set.GetResourceVersion() {
						return true
					}
				}
				return false
			})
		}
		lines, _, _ := s.lines()
		bare := map[string]string{}
		for _, l := range lines {
			if l.Action == "error" && !away(l.Message) {
				t.Errorf("%s: %s", s.name, l)
			}
			if l.Content == nil {
				continue
			}
			key, version := l.key(), l.object().GetResourceVersion()
			switch has := gated(l.object()); {
			case has == "":
				bare[key] = version
			case bare[key] != "" && l.Action != "delete":
				t.Errorf("%s saw %s in version %s of %s, after version %s had no field", s.name, has, version, key, bare[key])
			}
		}
	}
}

// away is true for what clients say of a server that restarts.
func away(message string) bool {
	for _, part := range []string{"connection refused", "EOF", "connection reset", "client connection lost"} {
		if strings.Contains(message, part) {
			return true
		}
	}
	return false
}
