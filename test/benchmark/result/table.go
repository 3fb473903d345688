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

package result

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Table is figures with names and units.
type Table struct {
	Title   string   `json:"title"`
	Columns []Column `json:"columns"`
	Rows    [][]Cell `json:"rows"`
	// Note is a sentence below the table.
	Note string `json:"note,omitempty"`
}

// Column is the head of a column. Unit is empty for text and plain counts.
type Column struct {
	Name string `json:"name"`
	Unit string `json:"unit,omitempty"`
}

// Cell is a number or a text. In JSON it is one or the other.
type Cell struct {
	text   string
	number float64
	isText bool
}

// Number is a cell with a figure.
func Number(v float64) Cell { return Cell{number: v} }

// Text is a cell with words.
func Text(s string) Cell { return Cell{text: s, isText: true} }

// Value is the figure of a cell; ok is false for words.
func (c Cell) Value() (v float64, ok bool) { return c.number, !c.isText }

// String is the cell as people read it.
func (c Cell) String() string {
	if c.isText {
		return c.text
	}
	return Format(c.number)
}

// MarshalJSON writes a number or a string.
func (c Cell) MarshalJSON() ([]byte, error) {
	if c.isText {
		return json.Marshal(c.text)
	}
	return json.Marshal(c.number)
}

// UnmarshalJSON reads a number or a string.
func (c *Cell) UnmarshalJSON(data []byte) error {
	*c = Cell{isText: len(data) > 0 && data[0] == '"'}
	if c.isText {
		return json.Unmarshal(data, &c.text)
	}
	return json.Unmarshal(data, &c.number)
}

// AddRow adds a row of strings and numbers. What is neither is written as text.
func (t *Table) AddRow(values ...any) {
	var row []Cell
	for _, value := range values {
		switch v := value.(type) {
		case Cell:
			row = append(row, v)
		case int:
			row = append(row, Number(float64(v)))
		case int64:
			row = append(row, Number(float64(v)))
		case uint64:
			row = append(row, Number(float64(v)))
		case float64:
			row = append(row, Number(v))
		default:
			row = append(row, Text(fmt.Sprint(v)))
		}
	}
	t.Rows = append(t.Rows, row)
}

func (t *Table) validate() error {
	if t.Title == "" || len(t.Columns) == 0 || len(t.Rows) == 0 {
		return fmt.Errorf("table %q is empty", t.Title)
	}
	for i, row := range t.Rows {
		if len(row) != len(t.Columns) {
			return fmt.Errorf("table %q: row %d has %d cells, not %d", t.Title, i+1, len(row), len(t.Columns))
		}
		for j, cell := range row {
			if v, ok := cell.Value(); ok && !finite(v) {
				return fmt.Errorf("table %q: row %d, column %q is %v", t.Title, i+1, t.Columns[j].Name, v)
			}
		}
	}
	return nil
}

// head is the text of a column's head.
func (c Column) head() string {
	if c.Unit == "" {
		return c.Name
	}
	return c.Name + " (" + c.Unit + ")"
}

// Format writes a figure with three or more digits that count, and thousands apart.
func Format(v float64) string {
	size := math.Abs(v)
	switch {
	case v == math.Trunc(v) && size < 1e15:
		return thousands(strconv.FormatFloat(v, 'f', 0, 64))
	case size >= 100:
		return thousands(strconv.FormatFloat(v, 'f', 0, 64))
	case size >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case size >= 1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	default:
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
}

// thousands puts commas into the digits of a whole number.
func thousands(digits string) string {
	sign := ""
	if rest, negative := strings.CutPrefix(digits, "-"); negative {
		sign, digits = "-", rest
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}
