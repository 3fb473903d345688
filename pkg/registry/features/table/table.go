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

// Package table has what the columns of features and reports have in common.
// The storages' print handlers are the only callers.
package table

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/kubernetes/pkg/printers"
)

// None is shown where there is nothing, as kubectl does.
const None = "<none>"

// OrNone returns the text, or None when it is empty.
func OrNone(text string) string {
	if text == "" {
		return None
	}
	return text
}

// Age returns the time since something, as kubectl shows it.
func Age(since metav1.Time) string {
	if since.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(time.Since(since.Time))
}

// Rows prints every item of a list.
func Rows[T any](items []T, options printers.GenerateOptions, row func(*T, printers.GenerateOptions) ([]metav1.TableRow, error)) ([]metav1.TableRow, error) {
	rows := make([]metav1.TableRow, 0, len(items))
	for i := range items {
		r, err := row(&items[i], options)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r...)
	}
	return rows, nil
}
