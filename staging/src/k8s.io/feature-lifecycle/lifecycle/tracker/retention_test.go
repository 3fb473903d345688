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

package tracker

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestLeaseAbandoned(t *testing.T) {
	renewed := lease(start, 40)
	created := lease(start, 40)
	created.CreationTimestamp, created.Spec.RenewTime = metav1.NewTime(start.Add(time.Minute)), nil
	for name, test := range map[string]struct {
		after   time.Duration
		created bool
		want    bool
	}{
		"renewed lately":            {after: ReportRetention - time.Second},
		"not renewed for long":      {after: ReportRetention, want: true},
		"created and never renewed": {after: ReportRetention, created: true},
		"created long ago":          {after: ReportRetention + time.Minute, created: true, want: true},
	} {
		stored := renewed
		if test.created {
			stored = created
		}
		if got := LeaseAbandoned(stored, start.Add(test.after)); got != test.want {
			t.Errorf("%s: abandoned: %t", name, got)
		}
	}
}

// TestBeginDeletionNamesVersion: a report that a new process has written stays.
func TestBeginDeletionNamesVersion(t *testing.T) {
	r := report("comp", "i1")
	r.UID, r.ResourceVersion = types.UID("uid-1"), "7"
	d := New(Config{Settings: DefaultSettings()}).BeginDeletion(r)
	if d.Namespace != "ns" || d.Name != "comp.i1" || *d.Preconditions.UID != "uid-1" || *d.Preconditions.ResourceVersion != "7" {
		t.Errorf("it deletes %+v", d)
	}
}
