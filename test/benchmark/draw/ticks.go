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
	"fmt"
	"math"
	"strconv"

	"gonum.org/v1/plot"
)

// linearTicks are gonum's, with figures as tables have them.
type linearTicks struct{}

// Ticks implements plot.Ticker.
func (linearTicks) Ticks(low, high float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(low, high)
	for i := range ticks {
		if ticks[i].Label != "" {
			ticks[i].Label = short(ticks[i].Value)
		}
	}
	return ticks
}

// logTicks are the powers of ten, with 2 and 5 times them, or all digits, where there
// are few.
type logTicks struct{}

// Ticks implements plot.Ticker.
func (logTicks) Ticks(low, high float64) []plot.Tick {
	from, to := int(math.Floor(math.Log10(low))), int(math.Ceil(math.Log10(high)))
	decades := math.Log10(high / low)
	var ticks []plot.Tick
	for power := from; power <= to; power++ {
		for digit := 1; digit <= 9; digit++ {
			v := float64(digit) * math.Pow10(power)
			if v < low || v > high {
				continue
			}
			label := ""
			if digit == 1 || decades < 3 && (digit == 2 || digit == 5) || decades < 1 {
				label = short(v)
			}
			ticks = append(ticks, plot.Tick{Value: v, Label: label})
		}
	}
	return ticks
}

// short is a figure for an axis: 30 k, 1 M.
func short(v float64) string {
	switch size := math.Abs(v); {
	case size >= 1e6:
		return digits(v/1e6) + " M"
	case size >= 1e4:
		return digits(v/1e3) + " k"
	default:
		return digits(v)
	}
}

// digits drops what floating point adds.
func digits(v float64) string {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
	if err != nil {
		return fmt.Sprint(v)
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}
