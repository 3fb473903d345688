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

package main

import (
	"bytes"
	"fmt"
	"image/color"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"k8s.io/kubernetes-features/test/benchmark/result"
)

const (
	width  = 7.5 * vg.Inch
	height = 4 * vg.Inch
	// legendLine is the height of one line of the legend, which is below the axes,
	// where it covers nothing.
	legendLine = 15
	margin     = 8
)

// shades are the colors of the series of each role, in their order. Color is
// not all that tells them apart: each has a mark of its own.
var shades = map[result.Role][]color.RGBA{
	result.Ours:  {{0x1f, 0x5f, 0xbf, 0xff}, {0x5b, 0xa3, 0xe6, 0xff}, {0x0b, 0x35, 0x75, 0xff}},
	result.Peer:  {{0xd9, 0x6c, 0x06, 0xff}, {0xf2, 0xa6, 0x4b, 0xff}, {0x8f, 0x42, 0x00, 0xff}},
	result.Bound: {{0x6b, 0x6f, 0x76, 0xff}, {0xa5, 0xa9, 0xb0, 0xff}, {0x3c, 0x40, 0x46, 0xff}},
}

var marks = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.PyramidGlyph{}, draw.RingGlyph{}, draw.BoxGlyph{}, draw.CrossGlyph{}, draw.PlusGlyph{}}

// look is how a series is drawn.
type look struct {
	color color.RGBA
	mark  draw.GlyphStyle
	line  draw.LineStyle
}

// looks are those of a chart's series.
func looks(chart *result.Chart) []look {
	var all []look
	seen := map[result.Role]int{}
	for i, series := range chart.Series {
		c := shades[series.Role][seen[series.Role]%len(shades[series.Role])]
		seen[series.Role]++
		l := look{
			color: c,
			mark:  draw.GlyphStyle{Color: c, Radius: 3, Shape: marks[i%len(marks)]},
			line:  draw.LineStyle{Color: c, Width: 1.5},
		}
		if series.Role == result.Bound {
			l.line.Dashes = []vg.Length{4, 3}
		}
		all = append(all, l)
	}
	return all
}

// picture draws a chart as SVG.
func picture(chart *result.Chart) ([]byte, error) {
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	p := plot.New()
	p.Title.Text, p.Title.TextStyle.Font.Size, p.Title.Padding = chart.Title, 13, 8
	setAxis(&p.X, chart.X)
	setAxis(&p.Y, chart.Y)
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{0xd8}, color.Gray{0xd8}
	p.Add(grid)
	legend := plot.NewLegend()
	legend.TextStyle.Font.Size, legend.ThumbnailWidth, legend.Left, legend.Top = 10, 26, true, true
	legend.Padding = 2
	add := addLines
	if len(chart.X.Categories) > 0 {
		add = addBars
		p.NominalX(chart.X.Categories...)
		grid.Vertical.Width = 0
	}
	if err := add(p, &legend, chart, looks(chart)); err != nil {
		return nil, err
	}
	setRange(p, chart)

	below := vg.Length(legendLine*len(chart.Series) + margin)
	canvas := vgsvg.New(width, height+below)
	all := draw.New(canvas)
	all.SetColor(color.White)
	all.Fill(all.Rectangle.Path())
	p.BackgroundColor = color.White
	p.Draw(draw.Crop(all, margin, -2*margin, below, -margin))
	legend.Draw(draw.Crop(all, 6*margin, 0, margin/2, -height))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return nil, err
	}
	return portable(b.String()), nil
}

// portable names fonts that are there where those are not with which the text was
// measured; these have the same widths.
func portable(svg string) []byte {
	return []byte(strings.ReplaceAll(svg, "font-family:Liberation Sans", "font-family:'Liberation Sans',Arial,Helvetica,sans-serif"))
}

func setAxis(axis *plot.Axis, a result.Axis) {
	axis.Label.Text = a.Label
	if a.Unit != "" {
		axis.Label.Text += " (" + a.Unit + ")"
	}
	axis.Label.TextStyle.Font.Size, axis.Tick.Label.Font.Size = 11, 10
	axis.Label.Padding = 4
	axis.Tick.Marker = linearTicks{}
	if a.Log {
		axis.Scale, axis.Tick.Marker = plot.LogScale{}, logTicks{}
	}
}

// setRange makes linear axes begin at 0, so that lengths compare, and gives marks
// some room.
func setRange(p *plot.Plot, chart *result.Chart) {
	room := func(axis *plot.Axis, log bool) {
		if log {
			axis.Min, axis.Max = axis.Min/1.25, axis.Max*1.25
			return
		}
		axis.Min, axis.Max = min(0, axis.Min), axis.Max*1.08
		if axis.Max <= axis.Min {
			axis.Max = axis.Min + 1
		}
	}
	room(&p.Y, chart.Y.Log)
	if len(chart.X.Categories) == 0 {
		room(&p.X, chart.X.Log)
		return
	}
	p.X.Min, p.X.Max = -0.5, float64(len(chart.X.Categories))-0.5
}

// spread are the points of a series that have a spread.
type spread struct {
	plotter.XYs
	plotter.YErrors
}

func spreadOf(points []result.Point) spread {
	var s spread
	for _, point := range points {
		if point.Low != 0 || point.High != 0 {
			s.XYs = append(s.XYs, plotter.XY{X: point.X, Y: point.Y})
			s.YErrors = append(s.YErrors, struct{ Low, High float64 }{point.Y - point.Low, point.High - point.Y})
		}
	}
	return s
}

func addLines(p *plot.Plot, legend *plot.Legend, chart *result.Chart, looks []look) error {
	for i, series := range chart.Series {
		var points plotter.XYs
		for _, point := range series.Points {
			points = append(points, plotter.XY{X: point.X, Y: point.Y})
		}
		line, scatter, err := plotter.NewLinePoints(points)
		if err != nil {
			return fmt.Errorf("series %q: %w", series.Name, err)
		}
		line.LineStyle, scatter.GlyphStyle = looks[i].line, looks[i].mark
		p.Add(line, scatter)
		if s := spreadOf(series.Points); len(s.XYs) > 0 {
			bars, err := plotter.NewYErrorBars(s)
			if err != nil {
				return fmt.Errorf("series %q: %w", series.Name, err)
			}
			bars.LineStyle = draw.LineStyle{Color: looks[i].color, Width: 1}
			p.Add(bars)
		}
		legend.Add(series.Name, line, scatter)
	}
	return nil
}

func addBars(p *plot.Plot, legend *plot.Legend, chart *result.Chart, looks []look) error {
	// The bars of one place take most of its width.
	group := 0.75 * float64(width-80) / float64(len(chart.X.Categories))
	each := vg.Length(min(group/float64(len(chart.Series)), 34))
	for i, series := range chart.Series {
		values := make(plotter.Values, len(chart.X.Categories))
		for _, point := range series.Points {
			values[int(point.X)] = point.Y
		}
		bars, err := plotter.NewBarChart(values, each)
		if err != nil {
			return fmt.Errorf("series %q: %w", series.Name, err)
		}
		bars.Color, bars.LineStyle.Width = looks[i].color, 0
		bars.Offset = each * (vg.Length(i) - vg.Length(len(chart.Series)-1)/2)
		p.Add(bars)
		if s := spreadOf(series.Points); len(s.XYs) > 0 {
			whiskers, err := plotter.NewYErrorBars(s)
			if err != nil {
				return fmt.Errorf("series %q: %w", series.Name, err)
			}
			whiskers.LineStyle = draw.LineStyle{Color: color.Gray{0x20}, Width: 1}
			p.Add(shifted{whiskers, bars.Offset})
		}
		legend.Add(series.Name, bars)
	}
	return nil
}

// shifted moves whiskers to the bar that they belong to.
type shifted struct {
	*plotter.YErrorBars
	by vg.Length
}

// Plot implements plot.Plotter.
func (s shifted) Plot(c draw.Canvas, p *plot.Plot) {
	c.Push()
	c.Translate(vg.Point{X: s.by})
	s.YErrorBars.Plot(c, p)
	c.Pop()
}
