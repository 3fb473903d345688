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

package catalog

import "testing"

func TestSelectorsThatNeedAGate(t *testing.T) {
	capacity, lists := needsWords(withoutConsumableCapacity), needsWords(withoutListTypeAttributes)
	for expression, want := range map[string]struct{ capacity, lists bool }{
		`device.driver == "d"`: {false, false},
		`device.attributes["d"].name == "allowMultipleAllocations"`:             {false, false},
		`device.allowMultipleAllocations`:                                       {true, false},
		`device.driver == "d" && !device.allowMultipleAllocations`:              {true, false},
		`device.attributes["d"].models.includes("a")`:                           {false, true},
		`device.attributes["d"].models.exists(m, m == "a")`:                     {false, true},
		`device.attributes["d"].l.includes(1)&&device.allowMultipleAllocations`: {true, true},
		`this is no expression`:                                                 {false, false},
	} {
		for range 2 { // The second answer is remembered.
			if got := capacity(expression); got != want.capacity {
				t.Errorf("%s needs DRAConsumableCapacity: %t, want %t", expression, got, want.capacity)
			}
			if got := lists(expression); got != want.lists {
				t.Errorf("%s needs DRAListTypeAttributes: %t, want %t", expression, got, want.lists)
			}
		}
	}
	if capacity(nil) {
		t.Error("nothing needs the gate")
	}
}
