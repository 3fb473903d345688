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

package task

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/feature-lifecycle/lifecycle/internal/phrase"
)

// Outlook is what is known of a task before it runs.
type Outlook struct {
	// Held are sentences about what would hold it until people act.
	Held []string
	// Unknown are sentences about what cannot be seen beforehand.
	Unknown []string
	// Tried is the number of objects that were tried, in words, if not all were; ""
	// otherwise.
	Tried string
}

// maxTried is the number of objects that a plan tries to change. Admission decides by
// namespaces more often than by objects, so each namespace comes first with one.
const maxTried = 20

// dryRun has the server do all of a write, admission too, but store it.
var dryRun = []string{metav1.DryRunAll}

// tryEach tries a change of up to maxTried objects that match without storing it, first
// one of each namespace, and returns which are refused by admission or for lack of
// permissions. Doing is what is tried: "to have spec.x removed".
//
// Validation is left out: it may decide otherwise once the gate is off.
func tryEach(ctx context.Context, clients Clients, resource schema.GroupVersionResource, matches func(*unstructured.Unstructured) bool, doing string, try func(context.Context, *unstructured.Unstructured) error) (Outlook, error) {
	objects, tried, err := someOf(ctx, clients, resource, matches)
	if err != nil {
		return Outlook{}, err
	}
	results := make([]error, len(objects))
	inParallel(len(objects), func(i int) { results[i] = try(ctx, objects[i]) })
	var refused, untold []string
	for i, err := range results {
		name := objectName(objects[i].GetNamespace(), objects[i].GetName())
		switch hinders, tells := admits(err); {
		case !tells:
			untold = append(untold, name+": "+cut(err))
		case hinders:
			refused = append(refused, name+": "+cut(err))
		}
	}
	outlook := Outlook{Tried: tried}
	if len(refused) > 0 {
		outlook.Held = []string{fmt.Sprintf("%s %s, of %d that were tried: %s",
			phrase.Objects(len(refused), resource.GroupResource(), "refuses", "refuse"), doing, len(objects), firstOf(refused))}
	}
	if len(untold) > 0 {
		outlook.Unknown = []string{fmt.Sprintf("whether admission lets objects of %s be changed: %s", resource.GroupResource(), firstOf(untold))}
	}
	return outlook, ctx.Err()
}

// someOf returns up to maxTried objects that match, first one of each namespace, and how many
// these are if there are others.
func someOf(ctx context.Context, clients Clients, resource schema.GroupVersionResource, matches func(*unstructured.Unstructured) bool) (objects []*unstructured.Unstructured, tried string, err error) {
	var others []*unstructured.Unstructured
	seen, enough, total := map[string]bool{}, errors.New("enough"), 0
	err = forEachPage(ctx, clients, resource, "", func(page *unstructured.UnstructuredList) error {
		for i := range page.Items {
			o := &page.Items[i]
			if !matches(o) {
				continue
			}
			total++
			switch namespace := o.GetNamespace(); {
			case len(objects) == maxTried:
				return enough
			case !seen[namespace]:
				seen[namespace] = namespace != ""
				objects = append(objects, o.DeepCopy())
			case len(others) < maxTried:
				others = append(others, o.DeepCopy())
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, enough) {
		return nil, "", err
	}
	objects = append(objects, others[:min(len(others), maxTried-len(objects))]...)
	switch {
	case err != nil:
		tried = fmt.Sprintf("admission was tried with %d objects of %s, and there are more", len(objects), resource.GroupResource())
	case total > len(objects):
		tried = fmt.Sprintf("admission was tried with %d of %s", len(objects), phrase.Objects(total, resource.GroupResource(), "", ""))
	}
	return objects, strings.TrimSpace(tried), nil
}

// firstOf returns the first of some texts, in their order.
func firstOf(texts []string) string {
	slices.Sort(texts)
	return strings.Join(texts[:min(len(texts), maxExamples)], "; ")
}

// admits returns, for the answer to a write that is not stored, whether admission or a
// missing permission prevents it, and whether that is known. A webhook with side
// effects is not called then, and a server in trouble has not got that far.
func admits(err error) (hinders, tells bool) {
	switch {
	case err == nil, apierrors.IsNotFound(err) && !denied(err), apierrors.IsConflict(err) && !denied(err):
		return false, true
	case strings.Contains(err.Error(), "does not support dry run"):
		// Only the text shows it (k8s.io/apiserver/pkg/admission/plugin/webhook/errors).
		return false, false
	case denied(err):
		return true, true
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return false, true
	default:
		return refuses(err), refuses(err)
	}
}

// note adds the answer to a write that is not stored.
func (o *Outlook) note(doing string, err error) {
	switch hinders, tells := admits(err); {
	case !tells:
		o.Unknown = append(o.Unknown, "whether admission permits "+doing+": "+cut(err))
	case hinders:
		o.Held = append(o.Held, doing+": "+cut(err))
	}
}

// outlookIn returns an outlook in whichever version of a resource has the fields.
func outlookIn(declared schema.GroupVersionResource, fields []Path, look func(context.Context, Clients, schema.GroupVersionResource) (Outlook, error)) func(context.Context, Clients) (Outlook, error) {
	return func(ctx context.Context, clients Clients) (outlook Outlook, err error) {
		err = anyVersion(ctx, clients, declared, fields, func(resource schema.GroupVersionResource) error {
			outlook, err = look(ctx, clients, resource)
			return err
		})
		return outlook, err
	}
}
