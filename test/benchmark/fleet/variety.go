//go:build linux

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

package fleet

import (
	"fmt"
	"slices"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/feature-lifecycle/featuregate"
)

// Variety is how processes of one component differ from each other, and from the
// template.
type Variety struct {
	// Lists is how many different lists of features they report in turn: they differ in
	// what they have asked for so far, as real processes do.
	Lists int
	// Versions is how many versions they have in turn, of which the template's is the
	// newest.
	Versions int
	// More are features that all of them have asked for besides.
	More []featuregate.Observation
}

// Of makes the templates of a variety of one. A process takes that of its number,
// modulo how many there are.
func (v Variety) Of(t Template) ([]*Template, error) {
	names := map[string]bool{}
	var asked []int
	for i, o := range t.Observations {
		if names[o.Name] = true; o.Queried {
			asked = append(asked, i)
		}
	}
	if bits := len(asked); bits < 62 && v.Lists > 1<<bits {
		return nil, fmt.Errorf("a process that has asked for %d features cannot have %d different lists of them", bits, v.Lists)
	}
	more := slices.DeleteFunc(slices.Clone(v.More), func(o featuregate.Observation) bool { return names[o.Name] })
	var varied []*Template
	for number := range max(v.Lists, 1) {
		one := t
		one.Observations = append(slices.Clone(t.Observations), more...)
		// Which it has not asked for is the number, written in binary.
		for bit, i := range asked {
			one.Observations[i].Queried = number>>min(bit, 62)&1 == 0
		}
		for age := range max(v.Versions, 1) {
			older, err := one.older(uint(age))
			if err != nil {
				return nil, err
			}
			varied = append(varied, older)
		}
	}
	return varied, nil
}

// older is the template of a binary so many patch versions before.
func (t Template) older(by uint) (*Template, error) {
	version, err := utilversion.ParseSemantic(t.BinaryVersion)
	if err != nil {
		return nil, fmt.Errorf("a process has the version %q: %w", t.BinaryVersion, err)
	}
	if version.Patch() < by {
		return nil, fmt.Errorf("there is no version %d before %s", by, t.BinaryVersion)
	}
	t.BinaryVersion = "v" + version.WithPatch(version.Patch()-by).String()
	return &t, nil
}

// Older is the template of a binary of the patch version before.
func (t Template) Older() (Template, error) {
	older, err := t.older(1)
	if err != nil {
		return t, err
	}
	return *older, nil
}

// Vary makes the processes of the fleet, which do not run, those of a variety.
func (f *Fleet) Vary(v Variety) error {
	varied := map[string][]*Template{}
	for component, template := range f.templates {
		var err error
		if varied[component], err = v.Of(*template); err != nil {
			return fmt.Errorf("%s: %w", component, err)
		}
	}
	number := map[string]int{}
	for _, p := range f.processes {
		templates := varied[p.Component]
		p.Become(templates[number[p.Component]%len(templates)])
		number[p.Component]++
	}
	return nil
}
