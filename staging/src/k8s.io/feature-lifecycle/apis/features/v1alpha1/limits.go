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

package v1alpha1

import (
	"fmt"
	"strings"
)

// Limits that validation holds and that writers have to keep: a status that is
// refused for one long name would stop everything.
const (
	// MaxNameLength is the longest name of a gate, component, instance or task.
	MaxNameLength = 253
	// MaxVersionLength is the longest version of a binary.
	MaxVersionLength = 128
	// MaxReportedFeatures is the most features that one report lists, and
	// MaxReportedNames the most characters that their names have together.
	MaxReportedFeatures = 1000
	MaxReportedNames    = 64 << 10
	// MaxTasks is the most tasks that one transition has, TaskWaitForUses
	// included.
	MaxTasks = 100
	// MaxCheckpointLength is the longest checkpoint of a task. A continue token
	// has some hundred characters.
	MaxCheckpointLength = 4096
	// MaxFailedInstances is how many instances status.rollout.failedInstances names.
	MaxFailedInstances = 20
)

// GateNameProblems returns what is wrong with the name of a feature gate. Gates are named
// like Go identifiers. Nothing that is allowed means anything in the path of a URL.
func GateNameProblems(name string) []string {
	var problems []string
	if len(name) > MaxNameLength {
		problems = append(problems, fmt.Sprintf("must be no more than %d characters", MaxNameLength))
	}
	letter := func(c rune) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }
	other := func(c rune) bool { return !letter(c) && (c < '0' || c > '9') && !strings.ContainsRune("_.-", c) }
	if name == "" || !letter(rune(name[0])) || strings.ContainsFunc(name, other) {
		problems = append(problems, "must begin with a letter and consist of letters, digits, '_', '.' and '-', as the names of feature gates do")
	}
	return problems
}
