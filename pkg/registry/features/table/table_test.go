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

package table

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/printers"
)

func TestCells(t *testing.T) {
	if got := OrNone(""); got != "<none>" {
		t.Errorf("nothing is shown as %q", got)
	}
	if got := OrNone("x"); got != "x" {
		t.Errorf("x is shown as %q", got)
	}
	if got := Age(metav1.Time{}); got != "<unknown>" {
		t.Errorf("no age is shown as %q", got)
	}
	if got := Age(metav1.NewTime(time.Now().Add(-2*time.Hour - time.Minute))); got != "121m" {
		t.Errorf("two hours are shown as %q", got)
	}
}

func TestRows(t *testing.T) {
	broken := errors.New("broken")
	row := func(i *int, _ printers.GenerateOptions) ([]metav1.TableRow, error) {
		if *i < 0 {
			return nil, broken
		}
		return []metav1.TableRow{{Cells: []any{*i}}}, nil
	}
	rows, err := Rows([]int{1, 2}, printers.GenerateOptions{}, row)
	if err != nil || len(rows) != 2 || rows[1].Cells[0] != 2 {
		t.Errorf("rows %v, %v", rows, err)
	}
	if _, err := Rows([]int{-1}, printers.GenerateOptions{}, row); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}
