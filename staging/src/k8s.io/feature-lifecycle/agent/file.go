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

package agent

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
	// formatVersion is the version of the file. A file of another version is ignored.
	formatVersion = 1
	// maxFileSize exceeds what the longest list of values needs.
	maxFileSize = 1 << 20
	// badSuffix marks a damaged file.
	badSuffix = ".bad"
	// newInfix marks an incomplete file.
	newInfix = ".new-"
	// abandoned is the age from which an incomplete file is not being written any more.
	abandoned = time.Minute
)

// errDamaged means that the content of the file differs from what was written.
var errDamaged = errors.New("the file is damaged")

// envelope is the content of the file. The checksum detects a file that was truncated or
// changed: a flipped bit would be a flipped value.
type envelope struct {
	FormatVersion int `json:"formatVersion"`
	// Checksum is the SHA-256 of the payload without white space, in hexadecimal.
	Checksum string          `json:"checksum"`
	Payload  json.RawMessage `json:"payload"`
}

type payload struct {
	// Namespace, Component and Instance identify the process: a canary gives different
	// values to different instances, and disks get copied.
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
	// SwitchTime is when the value changes to the other one. Binaries that do not know it
	// keep the value until a server answers.
	SwitchTime *time.Time `json:"switchTime,omitempty"`
}

// file stores the last known values on disk.
type file struct {
	path                           string
	namespace, component, instance string
	// known is the content of the file; nil while it is unknown.
	known map[string]choice
	// logged is the error that was logged last.
	logged string
}

// read returns the last known values and when they were saved, nil if there are none. A
// damaged file is moved aside. A file that cannot be read now, or belongs to another process
// or version, stays until other values are saved.
func (f *file) read(ctx context.Context) (map[string]choice, time.Time) {
	if f.path == "" {
		return nil, time.Time{}
	}
	known, at, err := f.load()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, time.Time{}
	}
	if err != nil {
		logger := klog.FromContext(ctx).WithValues("file", f.path)
		if !errors.Is(err, errDamaged) {
			logger.Error(err, "Failed to read the last known feature values; starting without them, the file stays until there are others")
			return nil, time.Time{}
		}
		logger.Error(err, "Failed to read the last known feature values; starting without them", "movedTo", f.path+badSuffix)
		if err := os.Rename(f.path, f.path+badSuffix); err != nil {
			logger.Error(err, "Failed to move the damaged file; it will be replaced")
		}
		return nil, time.Time{}
	}
	f.known = known
	return maps.Clone(known), at
}

func (f *file) load() (map[string]choice, time.Time, error) {
	none := time.Time{}
	opened, err := os.Open(f.path)
	if err != nil {
		return nil, none, err
	}
	defer opened.Close()
	info, err := opened.Stat()
	if err != nil {
		return nil, none, err
	}
	if !info.Mode().IsRegular() {
		return nil, none, fmt.Errorf("%w: it is not a regular file", errDamaged)
	}
	data, err := io.ReadAll(io.LimitReader(opened, maxFileSize+1))
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
	if p.Namespace != f.namespace || p.Component != f.component || p.Instance != f.instance {
		return nil, none, fmt.Errorf("it has the values of %s.%s in %s, and this is %s.%s in %s",
			p.Component, p.Instance, p.Namespace, f.component, f.instance, f.namespace)
	}
	known := make(map[string]choice, len(p.Values))
	for _, v := range p.Values {
		c := choice{Value: v.Value, Dynamic: v.Control == v1alpha1.ControlDynamic}
		if v.SwitchTime != nil {
			c.SwitchTime = v.SwitchTime.UTC()
		}
		known[v.Name] = c
	}
	return known, p.SavedAt, nil
}

// write saves the values if the file has others. Without any values it removes the file. An
// error is logged once.
func (f *file) write(ctx context.Context, values map[string]choice, now time.Time) {
	if f.path == "" || (f.known != nil && maps.Equal(f.known, values)) {
		return
	}
	if f.known == nil && f.has(values) {
		// The server answered before the file was read.
		f.known = maps.Clone(values)
		return
	}
	err := f.save(values, now)
	message := ""
	if err != nil {
		message = err.Error()
		if message != f.logged {
			klog.FromContext(ctx).Error(err, "Failed to save feature values; without kube-apiserver the next start will lack them", "file", f.path)
		}
	} else {
		f.known = maps.Clone(values)
	}
	f.logged = message
}

// has reads the file and returns true if it has the values.
func (f *file) has(values map[string]choice) bool {
	if f.path == "" {
		return true
	}
	known, _, err := f.load()
	if errors.Is(err, fs.ErrNotExist) {
		return len(values) == 0
	}
	return err == nil && maps.Equal(known, values)
}

// save replaces the file as a whole: after a crash at any moment it has the old or the new
// values.
func (f *file) save(values map[string]choice, now time.Time) (err error) {
	f.removeAbandoned(now)
	if len(values) == 0 {
		if err := os.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	data, err := f.encode(values, now)
	if err != nil {
		return err
	}
	dir := filepath.Dir(f.path)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(dir, filepath.Base(f.path)+newInfix)
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
	if err := os.Rename(temporary.Name(), f.path); err != nil {
		return err
	}
	return syncDir(dir)
}

// removeAbandoned removes the files of crashes between writing and renaming. They are
// useless, and harmless if they stay.
func (f *file) removeAbandoned(now time.Time) {
	dir := filepath.Dir(f.path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), filepath.Base(f.path)+newInfix) {
			continue
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() && now.Sub(info.ModTime()) > abandoned {
			_ = os.Remove(filepath.Join(dir, entry.Name()))
		}
	}
}

func (f *file) encode(values map[string]choice, now time.Time) ([]byte, error) {
	p := payload{Namespace: f.namespace, Component: f.component, Instance: f.instance, SavedAt: now.UTC().Round(time.Second)}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		v := storedValue{Name: name, Value: values[name].Value, Control: v1alpha1.ControlCentral}
		if values[name].Dynamic {
			v.Control = v1alpha1.ControlDynamic
		}
		if at := values[name].SwitchTime; !at.IsZero() {
			v.SwitchTime = &at
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
