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

package validation

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes-features/pkg/apis/features"
	"k8s.io/utils/ptr"
)

func featureValue(change func(*features.FeatureValue)) *features.FeatureValue {
	v := &features.FeatureValue{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "SomeGate", ResourceVersion: "8"},
		Control:    features.ControlDynamic, Value: true, FeatureVersion: "7",
	}
	if change != nil {
		change(v)
	}
	return v
}

func TestValidateFeatureValue(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*features.FeatureValue)
		want   []problem
	}{
		"a value for all": {},
		"a value for a part": {change: func(v *features.FeatureValue) {
			v.Previous, v.Rollout = ptr.To(false), &features.FeatureRollout{Percent: ptr.To[int32](25)}
		}},
		"a value for a part, and others are not known": {change: func(v *features.FeatureValue) { v.Rollout = &features.FeatureRollout{Percent: ptr.To[int32](25)} }},
		"a central value":        {change: func(v *features.FeatureValue) { v.Control = features.ControlCentral }},
		"the longest time":       {change: func(v *features.FeatureValue) { v.ReportWithinSeconds = MaxReportWithinSeconds }},
		"no gate's name":         {change: func(v *features.FeatureValue) { v.Name = "a/b" }, want: []problem{{"metadata.name", "a/b"}}},
		"no control":             {change: func(v *features.FeatureValue) { v.Control = "" }, want: []problem{{"control", "when processes take"}}},
		"a local value":          {change: func(v *features.FeatureValue) { v.Control = features.ControlLocal }, want: []problem{{"control", `"Central", "Dynamic"`}}},
		"no version":             {change: func(v *features.FeatureValue) { v.FeatureVersion = "" }, want: []problem{{"featureVersion", "resourceVersion of the Feature"}}},
		"a version of no server": {change: func(v *features.FeatureValue) { v.FeatureVersion = "v7" }, want: []problem{{"featureVersion", "123456"}}},
		"a version that is too long": {change: func(v *features.FeatureValue) { v.FeatureVersion = strings.Repeat("7", MaxFeatureVersionLength+1) },
			want: []problem{{"featureVersion", "64"}}},
		"others without a rollout": {change: func(v *features.FeatureValue) { v.Previous = ptr.To(true) }, want: []problem{{"previous", "without rollout"}}},
		"a rollout that is wrong":  {change: func(v *features.FeatureValue) { v.Rollout = &features.FeatureRollout{Percent: ptr.To[int32](101)} }, want: []problem{{"rollout.percent", "between 0 and 100"}}},
		"a negative time":          {change: func(v *features.FeatureValue) { v.ReportWithinSeconds = -1 }, want: []problem{{"reportWithinSeconds", "between 0 and 35"}}},
		"a time that is too long":  {change: func(v *features.FeatureValue) { v.ReportWithinSeconds = MaxReportWithinSeconds + 1 }, want: []problem{{"reportWithinSeconds", "between 0 and 35"}}},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, ValidateFeatureValue(featureValue(tc.change)), tc.want...)
			if name != "no gate's name" {
				check(t, ValidateFeatureValueUpdate(featureValue(tc.change), featureValue(nil)), tc.want...)
			}
		})
	}
	check(t, ValidateFeatureValueUpdate(featureValue(func(v *features.FeatureValue) { v.Name = "Other" }), featureValue(nil)), problem{"metadata.name", "immutable"})
}
