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

package observe

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Metrics that are read, of the many that a component has.
const (
	enabledMetric = "kubernetes_feature_enabled"
	buildMetric   = "kubernetes_build_info"
	startMetric   = "process_start_time_seconds"
)

// scrape is what is read of a component's metrics.
type scrape struct {
	gates map[string]Value
	// conflicts are gates of which the metrics have both values: a gauge that was written
	// with another stage stays.
	conflicts []string
	version   string
	// start tells one process from another behind the same address.
	start float64
}

// parseMetrics reads metrics in the text format. Lines of other metrics, which are
// thousands, are passed over before they are parsed.
func parseMetrics(r io.Reader) (*scrape, error) {
	var wanted bytes.Buffer
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			// None of those that are wanted is that long.
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = lines.ReadSlice('\n')
			}
			line = nil
		}
		for _, name := range []string{enabledMetric, buildMetric, startMetric} {
			if rest, ok := bytes.CutPrefix(line, []byte(name)); ok && len(rest) > 0 && (rest[0] == '{' || rest[0] == ' ') {
				wanted.Write(line)
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	if wanted.Len() > 0 && !bytes.HasSuffix(wanted.Bytes(), []byte("\n")) {
		wanted.WriteByte('\n')
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(&wanted)
	if err != nil {
		return nil, fmt.Errorf("its metrics: %w", err)
	}
	if families[enabledMetric] == nil {
		return nil, fmt.Errorf("its metrics have no %s, which components have since 1.26", enabledMetric)
	}
	s := &scrape{gates: map[string]Value{}}
	for _, m := range families[enabledMetric].GetMetric() {
		s.add(label(m, "name"), Value{Enabled: value(m) == 1, Stage: label(m, "stage")})
	}
	for _, m := range families[buildMetric].GetMetric() {
		s.version = label(m, "git_version")
	}
	for _, m := range families[startMetric].GetMetric() {
		s.start = value(m)
	}
	return s, nil
}

// add adds a value, unless the metrics have the other one, too.
func (s *scrape) add(name string, v Value) {
	if slices.Contains(s.conflicts, name) {
		return
	}
	if was, ok := s.gates[name]; ok && was.Enabled != v.Enabled {
		delete(s.gates, name)
		s.conflicts = append(s.conflicts, name)
		return
	}
	s.gates[name] = v
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// value is that of a gauge, whose lines here have no type.
func value(m *dto.Metric) float64 {
	if m.Untyped != nil {
		return m.GetUntyped().GetValue()
	}
	return m.GetGauge().GetValue()
}
