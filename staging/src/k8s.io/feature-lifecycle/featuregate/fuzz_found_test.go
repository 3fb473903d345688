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

package featuregate

import "testing"

// foundFlag adds inputs that a fuzzer found to reach code beyond the other seeds.
func foundFlag(f *testing.F) {
	f.Add("=0\xee\x05\xec\x12\xae\xfb", false)
	f.Add("=\xdb\xdb\xdb\xdb\xdb\xdb\xdb ", true)
	f.Add("=\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05", true)
	f.Add("=0\xf0\xe7\xc2\xc3\xda\xd6", false)
	f.Add("=\xb2\xde0\x85\xaa\xf1\xe70\xf9\x9c0\x9c000\xe50\xbd\xbf\xd9\xe20\xc80\xcc", true)
	f.Add("=0\xf0\xe7\xc2\xc3\xda\xd6", true)
	f.Add("AllAlpha=true,Alpha=false", false)
	f.Add("=\x99\x99\x99\x99\x99\x99\x99\x99\x99\x99\x99\x99\x99\x99\x99\x99\x99\x99\x99\x99\x99\x99\x99\x99\x99\x99\x99\x99\x99\x99\x99\x99", true)
	f.Add("=\x80\xff\xff\xff\xab\xb5\xbe\xcd\v0", false)
}

// foundRemote adds inputs that a fuzzer found to reach code beyond the other seeds.
func foundRemote(f *testing.F) {
	f.Add("S=\x83\xea\xea\xea\xea\xea\xea\ua638")
	f.Add("S=\xa6\x88\x88\x88\x88\x88\x88\x88\x88\x88\x88\x88\x88\x88\x88\x88")
}
