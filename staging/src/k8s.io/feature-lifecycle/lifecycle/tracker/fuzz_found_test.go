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

package tracker

import "testing"

// foundUses adds inputs that a fuzzer found to reach code beyond the other seeds.
func foundUses(f *testing.F) {
	f.Add([]byte(""), uint16(204), uint16(60), uint16(0), false, false)
	f.Add([]byte("\x00x\x00+8\x00,\x00\x01z+\x80\x00\x001\x02\x02+\x80\x00\x00\x01c\x00+\x80\x00\x00\x01\x01\x01+\x80\x00\x00\x01\x02\x02+\x80\x00\x00"), uint16(311), uint16(60), uint16(10), true, false)
	f.Add([]byte("zB8b7ax B0+y A\x00\x020&9\x00c(\x00\x00+\x80'\x00CZ\x01+b8\x00AC98\x80B\x00"), uint16(300), uint16(60), uint16(10), true, true)
	f.Add([]byte("000C0000001000000\x0f000"), uint16(5), uint16(5), uint16(85), false, true)
}
