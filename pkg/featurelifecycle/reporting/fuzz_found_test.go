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

package reporting

import "testing"

// foundArguments adds inputs that a fuzzer found to reach code beyond the other seeds.
func foundArguments(f *testing.F) {
	f.Add("-haicyre_change_ph")
	f.Add("--name-override\x00")
	f.Add("--secure-port=700\x160")
	f.Add("-hostnvODE\x1e-hhhhhhhhn")
	f.Add("g\x00-\x15\xff")
	f.Add("-me-\xff\x00errive\x00")
	f.Add("--e-ature_change_")
	f.Add("\x00-+fhhhhhehhhhh")
	f.Add("--secure-port=7\x160")
	f.Add("-\xfb\xe1z\xe1\x90")
	f.Add("dir=\n\x00-+fe\x00")
	f.Add("--t-id\x00\x00\x00\x00--f")
	f.Add("-\xfb\xe1z\x90")
	f.Add("=\n\x00-+fehhhhhhhh")
	f.Add("-\x10\x00\x00")
	f.Add("--ature_chaneg_")
	f.Add("--on@\x00")
	f.Add("-hcyrec_hae_phige_ph")
	f.Add("m\x00-e\xff-em\x00-e")
	f.Add("-teafrue_ch=Re")
}

// foundConfigFile adds inputs that a fuzzer found to reach code beyond the other seeds.
func foundConfigFile(f *testing.F) {
	f.Add([]byte("-1"))
	f.Add([]byte("\t"))
	f.Add([]byte("Y"))
	f.Add([]byte(">"))
	f.Add([]byte("''"))
	f.Add([]byte("}"))
	f.Add([]byte("\\"))
	f.Add([]byte("08"))
	f.Add([]byte("|"))
	f.Add([]byte("'0"))
	f.Add([]byte("+"))
	f.Add([]byte(","))
	f.Add([]byte(":"))
	f.Add([]byte("?"))
	f.Add([]byte("*"))
	f.Add([]byte("!"))
	f.Add([]byte("F"))
	f.Add([]byte("#"))
	f.Add([]byte("-"))
	f.Add([]byte("%"))
}

// foundInstanceOf adds inputs that a fuzzer found to reach code beyond the other seeds.
func foundInstanceOf(f *testing.F) {
	f.Add("\xf8", "4643")
	f.Add("ho\xf3t", "6413")
	f.Add("0", "64644343")
	f.Add("-\x10-_", "46")
	f.Add("A\u07bb", "6441")
	f.Add("AARR", "6443")
	f.Add("a.R", "6443")
	f.Add("0", "")
	f.Add("0", "64R3")
	f.Add("0", "\x05\xff")
	f.Add("Ý", "6443")
	f.Add("0", "1")
	f.Add("_s`", "6443")
	f.Add("aA", "6443")
	f.Add("0", "6\x7f43")
	f.Add("A", "6443")
	f.Add("AR", "6443")
	f.Add("0", "6443(")
	f.Add("Y\xb6Q", "6443")
	f.Add("0", "644F")
}
