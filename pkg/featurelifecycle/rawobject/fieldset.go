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

package rawobject

import (
	"cmp"
	"reflect"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// FieldSet are fields of objects of one resource version that are looked for together: one
// walk through a protobuf message finds all. It is immutable and safe for concurrent use.
type FieldSet struct {
	fields  []*Field
	message *messageSteps
}

// NewFieldSet returns the set of fields, all of which are of one type.
func NewFieldSet(fields []*Field) *FieldSet {
	s := &FieldSet{fields: fields, message: &messageSteps{}}
	for i, f := range fields {
		if f.within != nil {
			s.message.add(i, f.within)
		}
	}
	return s
}

// Hold sets held[i] to whether an object has the i-th field (Field.Holds). After an error
// held says nothing.
func (s *FieldSet) Hold(o Object, held []bool) error {
	clear(held)
	for i, f := range s.fields {
		if o.encoding != jsonText && f.within != nil {
			continue
		}
		var err error
		if held[i], err = f.Holds(o); err != nil {
			return err
		}
	}
	if o.encoding == jsonText {
		return nil
	}
	return s.message.search(o.body, held)
}

// messageSteps are the steps of several paths from one message.
type messageSteps struct {
	// steps are in the order of their numbers.
	steps []*sharedStep
	// shown are the fields that JSON shows whatever the message has.
	shown []int
}

// sharedStep is a step that several paths have in common.
type sharedStep struct {
	*node
	// ends are the fields whose path has no other step in protobuf, next are the steps of
	// the others.
	ends []fieldEnd
	next *messageSteps
	// unwritten are the fields that a message without the number has.
	unwritten []int
}

// fieldEnd is the last node of a field.
type fieldEnd struct {
	field int
	*node
}

// add adds the path of a field, whose first step is a node.
func (m *messageSteps) add(field int, n *node) {
	if n.shown {
		m.shown = append(m.shown, field)
		return
	}
	step := m.shared(n)
	if n.unwritten {
		step.unwritten = append(step.unwritten, field)
	}
	if n.next == nil {
		step.ends = append(step.ends, fieldEnd{field, n})
		return
	}
	if step.next == nil {
		step.next = &messageSteps{}
	}
	step.next.add(field, n.next)
}

// shared returns the step that selects the same values as a node.
func (m *messageSteps) shared(n *node) *sharedStep {
	at, found := slices.BinarySearchFunc(m.steps, n.number, func(s *sharedStep, number protowire.Number) int { return cmp.Compare(s.number, number) })
	for i := at; found && i < len(m.steps) && m.steps[i].number == n.number; i++ {
		if s := m.steps[i]; s.kind == n.kind && s.list == n.list && reflect.DeepEqual(s.chosen, n.chosen) {
			return s
		}
	}
	step := &sharedStep{node: n}
	m.steps = slices.Insert(m.steps, at, step)
	return step
}

// search sets held for the fields that a message has.
func (m *messageSteps) search(message []byte, held []bool) error {
	for _, field := range m.shown {
		held[field] = true
	}
	if len(m.steps) == 0 {
		return nil
	}
	// No message of upstream has steps to so many of its fields; more are allocated.
	var few [64]bool
	written := few[:]
	if len(m.steps) > len(few) {
		written = make([]bool, len(m.steps))
	}
	f := fields{message: message}
	// Encoders write fields in the order of their numbers, so that the next step is mostly
	// not far behind the last one.
	at, last := 0, protowire.Number(0)
	for {
		more, err := f.next()
		if err != nil {
			return err
		}
		if !more {
			break
		}
		if f.number < last {
			at = 0
		}
		for last = f.number; at < len(m.steps) && m.steps[at].number < f.number; {
			at++
		}
		for i := at; i < len(m.steps) && m.steps[i].number == f.number; i++ {
			written[i] = true
			if err := m.steps[i].search(&f, held); err != nil {
				return err
			}
		}
	}
	for i, step := range m.steps {
		if written[i] {
			continue
		}
		for _, field := range step.unwritten {
			held[field] = true
		}
	}
	return nil
}

// search sets held for the fields that the step leads to from a field with its number.
func (s *sharedStep) search(f *fields, held []bool) error {
	if err := s.check(f); err != nil {
		return err
	}
	value := f.value()
	if s.chosen != nil {
		if selected, err := s.chosen.selects(value); !selected || err != nil {
			return err
		}
	}
	for _, end := range s.ends {
		if held[end.field] {
			continue
		}
		var err error
		if held[end.field], err = end.endsAt(value, f.kind); err != nil {
			return err
		}
	}
	if s.next == nil {
		return nil
	}
	return s.next.search(value, held)
}
