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

package history

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Kind is what a record is about.
type Kind string

const (
	// Stored means that etcd stored an object.
	Stored Kind = "stored"
	// Deleted means that etcd deleted it.
	Deleted Kind = "deleted"
	// Compacted means that what was stored below a key up to a revision was not seen.
	Compacted Kind = "compacted"
	// Watching means that a client began to watch Features, and has them as of a version.
	Watching Kind = "watching"
	// Watched means that a client's watch brought a Feature.
	Watched Kind = "watched"
	// Answered means that a client read or wrote a Feature, and was answered.
	Answered Kind = "answered"
	// End is the last record.
	End Kind = "end"
)

// Record is one line of a history. Which fields it has depends on its kind.
type Record struct {
	Kind Kind `json:"kind"`
	// At is when it was recorded.
	At time.Time `json:"at"`
	// Key and Revision are etcd's, Version how often the key was written since it exists.
	Key      string `json:"key,omitempty"`
	Revision int64  `json:"revision,omitempty"`
	Version  int64  `json:"version,omitempty"`
	// Object is what was stored, watched, or answered, as JSON of its API version.
	Object json.RawMessage `json:"object,omitempty"`
	// Client is one client, which is connected to one server.
	Client string `json:"client,omitempty"`
	// Verb and Began are of a request that was answered.
	Verb  string    `json:"verb,omitempty"`
	Began time.Time `json:"began,omitzero"`
	// Records is how many there are before the last.
	Records int `json:"records,omitempty"`
	// Sum is of this record without it, and of the sum of the record before.
	Sum string `json:"sum"`
}

// sum returns the sum of a record after that of the record before.
func (r Record) sum(before string) (string, error) {
	r.Sum = ""
	data, err := json.Marshal(r)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(append([]byte(before), data...))
	return hex.EncodeToString(sum[:]), nil
}

// Writer writes a history. It is safe for concurrent use.
type Writer struct {
	mu      sync.Mutex
	out     *bufio.Writer
	last    string
	records int
	err     error
	closed  bool
}

// NewWriter returns a writer of a history.
func NewWriter(out io.Writer) *Writer { return &Writer{out: bufio.NewWriterSize(out, 1<<20)} }

// Add writes a record. Its time and sum are set. After an error, which Close returns, and
// after Close nothing is written.
func (w *Writer) Add(r Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.addLocked(r)
}

func (w *Writer) addLocked(r Record) {
	if w.err != nil || w.closed {
		return
	}
	// A monotonic reading would not survive the file.
	r.At = time.Now().UTC().Round(0)
	if r.Sum, w.err = r.sum(w.last); w.err != nil {
		return
	}
	w.last = r.Sum
	w.records++
	data, err := json.Marshal(r)
	if err == nil {
		_, err = w.out.Write(append(data, '\n'))
	}
	w.err = err
}

// fail ends the history with an error.
func (w *Writer) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = errors.Join(w.err, err)
}

// Close writes the last record, once.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.addLocked(Record{Kind: End, Records: w.records})
	w.closed = true
	return errors.Join(w.err, w.out.Flush())
}

// Read reads a history. One that was changed, or does not have its end, is an error that
// names the line.
func Read(in io.Reader) ([]Record, error) {
	var records []Record
	last := ""
	lines := bufio.NewReaderSize(in, 1<<20)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(bytes.TrimSpace(line)) == 0 {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("line %d of the history is cut: %w", number, err)
		}
		var r Record
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("line %d of the history: %w", number, err)
		}
		want, err := r.sum(last)
		if err != nil {
			return nil, fmt.Errorf("line %d of the history: %w", number, err)
		}
		if want != r.Sum {
			return nil, fmt.Errorf("line %d of the history is not what was recorded: its sum is %s, and that of what it has %s", number, r.Sum, want)
		}
		last = r.Sum
		records = append(records, r)
	}
	if n := len(records); n == 0 || records[n-1].Kind != End || records[n-1].Records != n-1 {
		return nil, fmt.Errorf("the history has %d lines and not its end: it was cut, or is still being recorded", len(records))
	}
	return records[:len(records)-1], nil
}
