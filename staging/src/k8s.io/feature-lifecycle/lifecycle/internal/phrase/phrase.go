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

package phrase

import (
	"fmt"
	"strings"
)

// Count returns a number with what it counts, and a verb if there is one: "1 live user
// has", "2 live users have".
func Count[N int | int32 | int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Objects returns a number of objects of a resource, and a verb: "1 object of widgets
// is", "2 objects of widgets are".
func Objects[N int | int32 | int64](n N, resource fmt.Stringer, one, many string) string {
	return Count(n, fmt.Sprintf("object of %s %s", resource, one), fmt.Sprintf("objects of %s %s", resource, many))
}

// Cut cuts a text to a number of bytes, between characters, and marks the cut: servers'
// answers can be long.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
