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

package disruption

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/e2e_features/history"
)

// recording is the history of a run. It is safe for concurrent use.
type recording struct {
	*history.Recorder
	file *os.File
}

// record records what etcd stores and what a client of each server sees, until judgeHistory.
func (w *world) record() {
	w.t.Helper()
	file, err := os.Create(filepath.Join(w.t.TempDir(), "history.jsonl"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.recording = &recording{history.Start(w.t.Context(), history.NewWriter(file), w.etcd), file}
	for _, s := range w.servers {
		w.recording.Watch("client of "+s.name, s.features)
	}
}

// answered records that a server answered with a Feature.
func (w *world) answered(r request, verb string, feature *v1alpha1.Feature, err error) {
	if w.recording != nil && err == nil {
		w.recording.Answered("client of "+r.server, verb, r.begun, feature)
	}
}

// judgeHistory ends the recording and judges it, from the file.
func (w *world) judgeHistory() {
	w.t.Helper()
	begun := time.Now()
	if err := errors.Join(w.recording.Stop(), w.recording.file.Close()); err != nil {
		w.t.Error(err)
		return
	}
	verdict, err := history.JudgeFile(w.recording.file.Name())
	if err != nil {
		w.t.Error(err)
		return
	}
	w.said("history: %s, judged in %s", verdict, time.Since(begun).Round(time.Millisecond))
	for _, violation := range verdict.Violations {
		w.t.Error(violation)
	}
	// Features that are not dynamic turn every two minutes or so, and few of these while a
	// server has been at rest.
	if verdict.Compared == 0 && w.duration >= 10*time.Minute {
		w.t.Error("no server had been at rest when a transition began, so that S4 was not judged")
	}
	if verdict.Transitions == 0 || verdict.Cleared == 0 || verdict.Watched == 0 || verdict.Answered == 0 {
		w.t.Error("the history shows nothing")
	}
}
