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

package host

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// created and mounted are lines of "docker events".
func created(id, name, cluster, image string) string {
	return fmt.Sprintf(`{"Type":"container","Action":"create","Actor":{"ID":%q,"Attributes":{"name":%q,"image":%q,%q:%q}}}`, id, name, image, clusterLabel, cluster)
}

func mounted(volume, id string) string {
	return fmt.Sprintf(`{"Type":"volume","Action":"mount","Actor":{"ID":%q,"Attributes":{"container":%q}}}`, volume, id)
}

// TestVolumesWithoutContainersAreNamed has containers that are gone when the command ends,
// and volumes of theirs and of others' that stay.
func TestVolumesWithoutContainersAreNamed(t *testing.T) {
	for name, fresh := range map[string]bool{"the cluster is the command's own": true, "the cluster is also the user's": false} {
		t.Run(name, func(t *testing.T) {
			daemon := fake(t)
			put(t, daemon, "events",
				created("id1", "kind-test-worker", "kind-test", "kindest/node:v1"), mounted("of-node", "id1"), mounted("gone", "id1"),
				created("id2", "kind-build-1-2", "", "localhost/base:v1"), mounted("of-builder", "id2"),
				created("id3", "kind-build-1-3", "", "kindest/base:v1"), mounted("others", "id3"),
				created("id4", "features-worker", "features", "kindest/node:v1"), mounted("others", "id4"))
			o, _ := forTests(t, `printf "of-node\nof-builder\nothers\n" >>"$DAEMON/volume"`)
			o.Fresh = fresh
			err := withCallers(t.Context(), o, undo{})
			next, stay := "it was removed", []string{"v1", "v2", "others"}
			if !fresh {
				next, stay = `remove it by "docker volume rm NAME"`, []string{"v1", "v2", "of-node", "of-builder", "others"}
			}
			var want []string
			for _, volume := range []string{"of-builder", "of-node"} {
				want = append(want, "the command has left the volume "+volume+"; "+strings.ReplaceAll(next, "NAME", volume))
			}
			if err == nil || err.Error() != strings.Join(want, "\n") {
				t.Errorf("got the error %v, want %q", err, want)
			}
			check(t, daemon, "volume", stay...)
		})
	}
}

// TestVolumesAreNotedWhileCommandRuns has a daemon that has forgotten its first events when
// the command ends.
func TestVolumesAreNotedWhileCommandRuns(t *testing.T) {
	daemon := fake(t)
	for _, name := range []string{"stream", "told"} {
		if err := syscall.Mkfifo(filepath.Join(daemon, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(t, daemon, "first", created("id1", "kind-test-worker", "kind-test", "kindest/node:v1"), mounted("of-node", "id1"))
	o, _ := forTests(t, `echo of-node >>"$DAEMON/volume"
while read -r line; do echo "$line" >"$DAEMON/stream"; read -r _ <"$DAEMON/told"; done <"$DAEMON/first"`)
	err := withCallers(t.Context(), o, undo{})
	if err == nil || err.Error() != "the command has left the volume of-node; it was removed" {
		t.Errorf("got the error %v, want one that names the volume", err)
	}
	check(t, daemon, "volume", "v1", "v2")
}

// TestRunFailsWhenVolumesAreUnknown has a client that does not follow the daemon.
func TestRunFailsWhenVolumesAreUnknown(t *testing.T) {
	daemon := fake(t)
	put(t, daemon, "unfollowed", "connection refused")
	// The client has ended when its end can be read.
	o, _ := forTests(t, "true")
	v, err := docker{o.Env}.followVolumes(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	<-v.ended
	if _, err := v.stop(t.Context()); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("got the error %v, want that of the client", err)
	}
	put(t, daemon, "events", "no event")
	if _, err := v.stop(t.Context()); err == nil || !strings.Contains(err.Error(), "cannot read an event") {
		t.Errorf("got the error %v, want one of the event", err)
	}
	put(t, daemon, "time")
	if _, err := v.stop(t.Context()); err == nil || !strings.Contains(err.Error(), "gives the time as") {
		t.Errorf("got the error %v, want one of the time", err)
	}
}
