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
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"k8s.io/kubernetes-features/build/kind/capless/kernel"
)

// unreadable returns the names of settings which nodes change and this process may not read.
func unreadable(dir fs.FS) (names []string, err error) {
	err = fs.WalkDir(dir, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
			return nil
		case err != nil || entry.IsDir() || !changedByNodes(name):
			return err
		}
		if _, err := fs.ReadFile(dir, name); errors.Is(err, fs.ErrPermission) {
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

// noteSettings returns the settings as they are. A container of the daemon reads those that
// this process may not, if the daemon is on this machine.
func (o Options) noteSettings(ctx context.Context) (map[string]string, error) {
	values, err := settings(o.kernel)
	if err != nil || !o.callers {
		return values, err
	}
	names, err := unreadable(o.kernel)
	if err != nil || len(names) == 0 {
		return values, err
	}
	answer, _, err := o.ask(ctx, names, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot note settings of the kernel that root alone may read: %w", err)
	}
	maps.Copy(values, answer.Was)
	return values, nil
}

// ask has a privileged container of the daemon read and write settings. here is false for
// a daemon on another machine, whose answer is empty.
func (o Options) ask(ctx context.Context, read []string, values map[string]string) (answer kernel.Answer, here bool, err error) {
	boot, err := kernel.Boot()
	if err != nil {
		return answer, false, err
	}
	answer, err = docker{o.Env}.settings(ctx, o.Runtime, kernel.Arguments(boot, read, values))
	return answer, answer.Boot == boot, err
}

// restoreSettings writes the settings that have changed, and says which. A privileged
// container of the daemon writes those that this process may not: a user who may start
// nodes may start that, too.
func (o Options) restoreSettings(ctx context.Context, before map[string]string) error {
	now, err := settings(o.kernel)
	if err != nil {
		return err
	}
	cause := o.write(o.settings, pick(before, changed(before, now)))
	after, err := settings(o.kernel)
	if err != nil {
		return err
	}
	hidden, err := unreadable(o.kernel)
	if err != nil {
		return err
	}
	hidden = slices.DeleteFunc(hidden, func(name string) bool { _, noted := before[name]; return !noted })
	if rest := append(changed(before, after), hidden...); len(rest) > 0 && (len(hidden) > 0 || errors.Is(cause, fs.ErrPermission)) {
		answer, here, err := o.ask(ctx, nil, pick(before, rest))
		switch {
		case err != nil:
			return fmt.Errorf("settings of the kernel cannot be restored: %w; set %s", err, describe(rest, after, before))
		case !here:
			o.Log("Settings of the kernel have changed, not by nodes, which run on another machine: %s", describe(rest, after, before))
			return nil
		case answer.Error != "":
			cause = errors.New(answer.Error)
		}
		maps.Copy(now, answer.Was)
		maps.Copy(after, answer.Is)
	}
	left := changed(before, after)
	restored := slices.DeleteFunc(changed(before, now), func(name string) bool { return slices.Contains(left, name) })
	if len(restored) > 0 {
		o.Log("Restored settings of the kernel: %s", describe(restored, now, before))
	}
	if len(left) == 0 {
		return nil
	}
	if cause == nil {
		cause = errors.New("they have other values after writing")
	}
	return fmt.Errorf("settings of the kernel have changed and cannot be restored: %w; set %s", cause, describe(left, after, before))
}

// pick returns the values of names.
func pick(values map[string]string, names []string) map[string]string {
	picked := map[string]string{}
	for _, name := range names {
		picked[name] = values[name]
	}
	return picked
}

func describe(names []string, from, to map[string]string) string {
	var texts []string
	for _, name := range names {
		texts = append(texts, fmt.Sprintf("%s from %q to %q", strings.ReplaceAll(name, "/", "."), from[name], to[name]))
	}
	return strings.Join(texts, ", ")
}
