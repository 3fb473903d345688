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

import "fmt"

// Role says whose a series is. Pictures show it by color and mark.
type Role string

// The roles of series.
const (
	Ours  Role = "ours"
	Peer  Role = "peer"
	Bound Role = "limit"
)

// Chart is one picture: several series over one pair of axes.
type Chart struct {
	// Name is lower-case words with dashes: the picture is <result>-<name>.svg.
	Name   string   `json:"name"`
	Title  string   `json:"title"`
	X      Axis     `json:"x"`
	Y      Axis     `json:"y"`
	Series []Series `json:"series"`
}

// Axis is one axis of a chart.
type Axis struct {
	Label string `json:"label"`
	Unit  string `json:"unit,omitempty"`
	// Log makes the scale logarithmic, for what spans decades. Values have to be
	// above 0 then.
	Log bool `json:"log,omitempty"`
	// Categories, on the x axis, are names for the places 0, 1, 2 …: the chart has
	// bars.
	Categories []string `json:"categories,omitempty"`
}

// LogAxis is an axis for what spans decades. Unit is "" for numbers of things.
func LogAxis(label, unit string) Axis { return Axis{Label: label, Unit: unit, Log: true} }

// Series is one line, or one kind of bars.
type Series struct {
	Name   string  `json:"name"`
	Role   Role    `json:"role"`
	Points []Point `json:"points"`
}

// Point is one measured point. Low and High are the spread; both are 0 without.
type Point struct {
	X    float64 `json:"x"`
	Y    float64 `json:"y"`
	Low  float64 `json:"low,omitempty"`
	High float64 `json:"high,omitempty"`
}

// Add adds a point to the series of a name, which is made if there is none.
func (c *Chart) Add(series string, role Role, point Point) {
	for i := range c.Series {
		if c.Series[i].Name == series {
			c.Series[i].Points = append(c.Series[i].Points, point)
			return
		}
	}
	c.Series = append(c.Series, Series{Name: series, Role: role, Points: []Point{point}})
}

func (c *Chart) validate() error {
	if c.Name == "" || c.Title == "" || c.X.Label == "" || c.Y.Label == "" || len(c.Series) == 0 {
		return fmt.Errorf("chart %q needs a name, a title, labels of both axes and a series", c.Name)
	}
	if len(c.X.Categories) > 0 && (c.X.Log || c.Y.Log) {
		return fmt.Errorf("chart %q has bars, whose axes have to be linear", c.Name)
	}
	roles := map[Role]bool{}
	for _, s := range c.Series {
		roles[s.Role] = true
		if s.Role != Ours && s.Role != Peer && s.Role != Bound {
			return fmt.Errorf("chart %q: series %q has the role %q, which is none", c.Name, s.Name, s.Role)
		}
		if len(s.Points) == 0 {
			return fmt.Errorf("chart %q: series %q has no points", c.Name, s.Name)
		}
		for _, p := range s.Points {
			if !finite(p.X) || !finite(p.Y) || !finite(p.Low) || !finite(p.High) || c.X.Log && p.X <= 0 || c.Y.Log && p.Y <= 0 {
				return fmt.Errorf("chart %q: series %q has the point %v, %v, which cannot be drawn", c.Name, s.Name, p.X, p.Y)
			}
			if n := len(c.X.Categories); n > 0 && (p.X < 0 || int(p.X) >= n) {
				return fmt.Errorf("chart %q: series %q has a point in the place %v of %d", c.Name, s.Name, p.X, n)
			}
		}
	}
	if !roles[Ours] || !roles[Peer] && !roles[Bound] {
		return fmt.Errorf("chart %q needs a series of ours and one of a peer or a limit beside it", c.Name)
	}
	return nil
}
