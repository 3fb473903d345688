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
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
)

// inUse is what list --in-use shows. The zero value shows nothing.
type inUse struct {
	visible  *visible
	progress *progress
	// results are by feature.
	results map[string]*gateObjects
}

// prepareInUse makes what reads the objects, if that is wanted.
func (o *listOptions) prepareInUse(b *base) (err error) {
	if !o.inUse {
		return nil
	}
	if o.namespace != metav1.NamespaceSystem {
		return errors.New("--in-use counts objects of the gates of Kubernetes, which are in kube-system; leave out -n and -A")
	}
	if o.output == outputName {
		return errors.New("--in-use shows counts, which -o name has no place for; use -o json, or leave out -o")
	}
	o.used.progress = b.progress()
	o.used.progress.w = b.ErrOut
	o.used.visible, err = b.storedReader()
	return err
}

// on is true for a feature that is on somewhere, as far as the cluster shows.
func (o *listOptions) on(f *v1alpha1.Feature) bool {
	if observedOf(o.client) != nil {
		return len(standingOf(o.client, f, nil).on) > 0
	}
	return f.Status.State != "" && f.Status.State != v1alpha1.StateOff
}

// countInUse leaves the features that are on, and counts the objects that use them.
func (o *listOptions) countInUse(ctx context.Context, features []v1alpha1.Feature) ([]v1alpha1.Feature, error) {
	features = slices.DeleteFunc(features, func(f v1alpha1.Feature) bool { return !o.on(&f) })
	var entries []catalog.Entry
	for _, entry := range catalog.All() {
		if slices.ContainsFunc(features, func(f v1alpha1.Feature) bool { return f.Name == string(entry.Name) }) {
			entries = append(entries, entry)
		}
	}
	results := o.used.visible.examine(ctx, entries, examination{once: true}, o.used.progress.examined)
	o.used.progress.clear()
	if ctx.Err() != nil {
		return nil, errInterrupted
	}
	o.used.results = map[string]*gateObjects{}
	for i := range results {
		o.used.results[string(results[i].entry.Name)] = &results[i]
	}
	return features, nil
}

// unknown are the features whose objects are not known to this version of the plugin.
func (u *inUse) unknown(features []v1alpha1.Feature) []notExamined {
	var all []notExamined
	for _, f := range features {
		if u.results[f.Name] == nil {
			all = append(all, notExamined{f.Name, notCataloged})
		}
	}
	return all
}

// ordered are the results of features, in their order.
func (u *inUse) ordered(features []v1alpha1.Feature) []gateObjects {
	var results []gateObjects
	for _, f := range features {
		if g := u.results[f.Name]; g != nil {
			results = append(results, *g)
		}
	}
	return results
}

// cell is what a table shows of the objects that use a feature.
func (u *inUse) cell(feature string) string {
	g := u.results[feature]
	switch {
	case g == nil:
		return "not known"
	case g.entry.Stateless != "":
		return "stores nothing"
	}
	var parts []string
	for _, l := range g.found {
		parts = append(parts, fmt.Sprintf("%d %s", l.Count, schema.GroupResource{Group: l.Group, Resource: l.Resource}))
	}
	text := strings.Join(parts, ", ")
	switch {
	case len(g.unseen) > 0 && text == "":
		return "not known"
	case len(g.unseen) > 0:
		return "at least " + text
	case text == "":
		return "0"
	}
	return text
}
