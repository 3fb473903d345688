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

package control

import "testing"

// foundFlags adds inputs that a fuzzer found to reach code beyond the other seeds.
func foundFlags(f *testing.F) {
	f.Add(",\xe6\xd20", "\xd90,,\xd5\xef00")
	f.Add("0", ",0000,00,\xd0\xd0\xd0\xd0\xd0\xd0\xd0\xd0")
	f.Add("000000000000000000000000000\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb\xcb,0000000000000000000,000000000\xcb,00000\"0000000000000000000000000", "0")
	f.Add("0", ",\x7f\x7f\x7f\xce\xce\xce")
	f.Add("\xb8\xf00\xb4\xce0\x97", "\xb0")
	f.Add("", "\xd90\x9f,0\x86,0\xd5\xf9\x83\xef0\x96")
	f.Add("000000", ",000000000000000000000000,0000000\x87000")
	f.Add(",00Ç0,00\x940,\x980\x0000\xbb0\x1d0\x12", "\xc1")
	f.Add(",000,\xf6,\xc1\xc8\xf1\xfd0", ",\x84\xce\xce")
}
