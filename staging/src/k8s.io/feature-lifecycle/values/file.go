/*
Copyright 2026 The Kubernetes Authors.

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

package values

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/klog/v2"
)

const (
	// formatVersion is that of the file. Another one is treated as no file.
	formatVersion = 1
	// maxFileSize is more than the longest list of values needs.
	maxFileSize = 1 << 20
	// badSuffix marks a file whose content was damaged.
	badSuffix = ".bad"
	// newInfix marks a file that is not complete yet.
	newInfix = ".new-"
	// abandoned is how old an incomplete file is that nobody writes any more.
	abandoned = time.Minute
)

// errDamaged means that the file's content is not what was written.
var errDamaged = errors.New("the file is damaged")

// envelope is the file's content. The checksum tells a file that was cut off or
// changed from one that was written: a flipped bit would be a flipped value.
type envelope struct {
	FormatVersion int `json:"formatVersion"`
	// Checksum is the SHA-256 of payload without white space, in hexadecimal.
	Checksum string          `json:"checksum"`
	Payload  json.RawMessage `json:"payload"`
}

type payload struct {
	// Namespace, Component and Instance are whose values these are: a canary
	// gives others to others, and disks get copied.
	Namespace string    `json:"namespace"`
	Component string    `json:"component"`
	Instance  string    `json:"instance"`
	SavedAt   time.Time `json:"savedAt"`
	// Values are sorted by name.
	Values []storedValue `json:"values"`
}

type storedValue struct {
	Name    string                  `json:"name"`
	Value   bool                    `json:"value"`
	Control v1alpha1.FeatureControl `json:"control"`
}

// file has the last known values on disk.
type file struct {
	path                           string
	namespace, component, instance string
	// known is what the file has; nil while that is not known.
	known map[string]choice
	// complaint is the error logged last.
	complaint string
}

// read returns the last known values and when they were saved, nil when there are
// none. A damaged file is moved aside. One that cannot be read now, or is another
// process's or version's, is left for who can use it, until other values are
// saved.
func (s *file) read(ctx context.Context) (map[string]choice, time.Time) {
	if s.path == "" {
		return nil, time.Time{}
	}
	known, at, err := s.load()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, time.Time{}
	}
	if err != nil {
		logger := klog.FromContext(ctx).WithValues("file", s.path)
		if !errors.Is(err, errDamaged) {
			logger.Error(err, "The last known values of features cannot be used; they are treated as absent, and the file stays where it is until there are others")
			return nil, time.Time{}
		}
		logger.Error(err, "The last known values of features cannot be used; they are treated as absent", "movedTo", s.path+badSuffix)
		if err := os.Rename(s.path, s.path+badSuffix); err != nil {
			logger.Error(err, "The file stays where it is, to be replaced")
		}
		return nil, time.Time{}
	}
	s.known = known
	return maps.Clone(known), at
}

func (s *file) load() (map[string]choice, time.Time, error) {
	none := time.Time{}
	f, err := os.Open(s.path)
	if err != nil {
		return nil, none, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, none, err
	}
	if !info.Mode().IsRegular() {
		return nil, none, fmt.Errorf("%w: it is not a regular file", errDamaged)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFileSize+1))
	if err != nil {
		return nil, none, err
	}
	if len(data) > maxFileSize {
		return nil, none, fmt.Errorf("%w: it is longer than %d bytes", errDamaged, maxFileSize)
	}
	var e envelope
	if err := json.Unmarshal(data, &e); err != nil {
		return nil, none, fmt.Errorf("%w: it is not valid JSON: %w", errDamaged, err)
	}
	if e.FormatVersion != formatVersion {
		return nil, none, fmt.Errorf("it has format version %d, and this binary reads %d", e.FormatVersion, formatVersion)
	}
	if sum, err := checksum(e.Payload); err != nil || sum != e.Checksum {
		return nil, none, errors.Join(fmt.Errorf("%w: its checksum is %q and should be %q", errDamaged, e.Checksum, sum), err)
	}
	var p payload
	if err := json.Unmarshal(e.Payload, &p); err != nil {
		return nil, none, fmt.Errorf("%w: its payload is not valid: %w", errDamaged, err)
	}
	if p.Namespace != s.namespace || p.Component != s.component || p.Instance != s.instance {
		return nil, none, fmt.Errorf("it has the values of %s.%s in %s, and this is %s.%s in %s",
			p.Component, p.Instance, p.Namespace, s.component, s.instance, s.namespace)
	}
	known := make(map[string]choice, len(p.Values))
	for _, v := range p.Values {
		known[v.Name] = choice{Value: v.Value, Dynamic: v.Control == v1alpha1.ControlDynamic}
	}
	return known, p.SavedAt, nil
}

// write saves the values if the file has others; without any, the file goes.
// What went wrong is logged once.
func (s *file) write(ctx context.Context, values map[string]choice, now time.Time) {
	if s.path == "" || (s.known != nil && maps.Equal(s.known, values)) {
		return
	}
	if s.known == nil && s.has(values) {
		// The server answered before the file was read.
		s.known = maps.Clone(values)
		return
	}
	err := s.save(values, now)
	complaint := ""
	if err != nil {
		complaint = err.Error()
		if complaint != s.complaint {
			klog.FromContext(ctx).Error(err, "The values of features were not saved; without kube-apiserver the next start will not know them", "file", s.path)
		}
	} else {
		s.known = maps.Clone(values)
	}
	s.complaint = complaint
}

// has looks whether the values are really on disk.
func (s *file) has(values map[string]choice) bool {
	if s.path == "" {
		return true
	}
	known, _, err := s.load()
	if errors.Is(err, fs.ErrNotExist) {
		return len(values) == 0
	}
	return err == nil && maps.Equal(known, values)
}

// save replaces the file as a whole: after a crash at any moment it has the old or
// the new values.
func (s *file) save(values map[string]choice, now time.Time) (err error) {
	s.removeAbandoned(now)
	if len(values) == 0 {
		if err := os.Remove(s.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	data, err := s.encode(values, now)
	if err != nil {
		return err
	}
	dir := filepath.Dir(s.path)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(dir, filepath.Base(s.path)+newInfix)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temporary.Name())
		}
	}()
	_, err = temporary.Write(data)
	if err = errors.Join(err, temporary.Sync(), temporary.Close()); err != nil {
		return err
	}
	if err := os.Rename(temporary.Name(), s.path); err != nil {
		return err
	}
	return syncDir(dir)
}

// removeAbandoned removes what crashes left behind between writing and renaming.
// It is of no use to anybody, and in nobody's way if it stays.
func (s *file) removeAbandoned(now time.Time) {
	dir := filepath.Dir(s.path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), filepath.Base(s.path)+newInfix) {
			continue
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() && now.Sub(info.ModTime()) > abandoned {
			_ = os.Remove(filepath.Join(dir, entry.Name()))
		}
	}
}

func (s *file) encode(values map[string]choice, now time.Time) ([]byte, error) {
	p := payload{Namespace: s.namespace, Component: s.component, Instance: s.instance, SavedAt: now.UTC().Round(time.Second)}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		v := storedValue{Name: name, Value: values[name].Value, Control: v1alpha1.ControlCentral}
		if values[name].Dynamic {
			v.Control = v1alpha1.ControlDynamic
		}
		p.Values = append(p.Values, v)
	}
	content, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	sum, err := checksum(content)
	if err != nil {
		return nil, err
	}
	return json.MarshalIndent(envelope{FormatVersion: formatVersion, Checksum: sum, Payload: content}, "", "  ")
}

func checksum(content []byte) (string, error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, content); err != nil {
		return "", err
	}
	sum := sha256.Sum256(compact.Bytes())
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// syncDir makes a rename durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
