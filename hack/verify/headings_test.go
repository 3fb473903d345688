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
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAddresses(t *testing.T) {
	const page = "# v1.36.3+feature.1\n\n```bash\n# no heading\n```\n\n## Source Code\n#no heading\n### (No, really, `you` MUST)\n## Source Code\n#### [A link](x.md#y), and Ärger\n"
	want := []string{"v1363feature1", "source-code", "no-really-you-must", "source-code-1", "a-link-and-ärger"}
	if diff := cmp.Diff(want, addresses(page)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
