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

package task

import "testing"

// foundCheckpoint adds inputs that a fuzzer found to reach code beyond the other seeds.
func foundCheckpoint(f *testing.F) {
	f.Add("10000000000000000 0", int64(57))
	f.Add("100000000 0", int64(57))
	f.Add("10 0", int64(75))
	f.Add("10000 0", int64(-37))
}

// foundClearField adds inputs that a fuzzer found to reach code beyond the other seeds.
func foundClearField(f *testing.F) {
	f.Add("\xb6\xb6\xb6\xb6\xb6\xb6\xb6\xce ", []byte("0"))
	f.Add("0\xdd0\xaa\xb6\xb00\x80\xe50\xf30\xad\xe30\xff0\xaa\x89\xeb0\xad\xe10\xa8 ", []byte("0"))
	f.Add("0000000000000 00000000", []byte("0"))
	f.Add("0", []byte("{\"000\":{\"0\":true,\"0\"\x80"))
	f.Add("8", []byte("{\"91\xae\xae\xae\xae\xaecz\":{\"u21Xzb,Xt1C1\":{\"27a27A,%,97AX\":{\"2X0a#090Y1AY77\xd8\xcf1A\":\"092\",\"z0b18AAz \":0}}}}"))
	f.Add(" \f\f\f\f\f\f\f\f\f\f\f", []byte("0"))
	f.Add(" \a\a\a\a\a\a\a\a\a\a\a\a\a\a\a\a\a\a\a\a\a\a", []byte("0"))
	f.Add("\xcc\xcc\xcc\xcc\xcc\xcc\xcc\xd2\xce ", []byte("0"))
	f.Add("\xa8\xa8\xa8\xa8\xa8\xa8\xa8\xa8\xa8\xa8\xa8\xa8\xa8\xa8\xa8 ", []byte("0"))
	f.Add("ڳ˺ڳںڳںںڳںڳڳ˺ ", []byte("0"))
}

// foundDecodeList adds inputs that a fuzzer found to reach code beyond the other seeds.
func foundDecodeList(f *testing.F) {
	f.Add([]byte("{\"kind\":\"WidgetList\",\"apiversion\":\"example.com/v1\",\"metadata\":{\"r2sourceVersion\":\"7\",\"continue\":\"x\",\"remain\\ngItemCount\":3},\"items\":[{\"metadata\":{\"name\":\"a\"},\"spec\":{\"n\":1,\"f\":1.5,\"big\":92e3372036854775807,\"none\":null}},{\"kind\":\"Other\",\"apiVersion\":\"other/v1\"}]}"))
	f.Add([]byte("{\"kind\":\"\xd4\xd4\xd4\xd4\xd4WidgetList\",\"apiVersion\":\"exampb\x90ᖿkle.com/v1\",\"metadata\":{\"resourc%Version\":\"7\",\"continue\"\x00\x04"))
	f.Add([]byte("{\"kind\":\"WidgetList\",\tap"))
	f.Add([]byte("{\"eoʀ.V\":\"exampl\xabite\x80/Ve\"\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t"))
	f.Add([]byte("{\"p\xd3\xd3\xd3\xd3sion\":\"example.com/v1\",\"items\":[{}]}"))
	f.Add([]byte("{\"kind\":\"WidgetList\",\"apiVersion\":\"exampb\x90ᖿkle.com/v1\",\"metadata\":{\"resourceVn\":\"7\",\"continue\":\"x\",\"remain\\ngItemCount\":3},\"items\":[{\"metadata\":{\"name\":\"a\"},\"spec\":{\"n"))
	f.Add([]byte("{\"kind\":\"WppiVe\xfegetList\",\"apiVe\u009ct\\r\x7f\xff\xff\xff\":\"example.com\\r\x7f\xff\xff/v1\",\"items\":[null]}"))
	f.Add([]byte("\"\"   "))
	f.Add([]byte("-"))
	f.Add([]byte("{\"Kind\":\"Widg\x86t2222222222222222222222222222222222222222\",\"itevs\":[{}]}"))
}

// foundMatcher adds inputs that a fuzzer found to reach code beyond the other seeds.
func foundMatcher(f *testing.F) {
	f.Add("\x1a\x1a\x1a\x1a\x1a\x1a\x1a\x1a ", []byte("0"))
	f.Add("0", []byte("{\"\":{\"\":\"\",\"\":[{\"\"0"))
	f.Add("\xff\xfb\xff\xfb\xd1\xd1", []byte("0"))
	f.Add(" \xd30\x96\x98\xa2\xa9\x83\xcd\xee", []byte("0"))
	f.Add(" \xd0\xd0\xd0\xd0\xd0\xd0\xd0", []byte("0"))
	f.Add(" 0\xf9\xf9\xf9\xf9\xf9\xf9", []byte("0"))
	f.Add("000 0000000000000000000000000000", []byte("0"))
	f.Add("0\xb0\x97\x90\x97\x90\xc3\xcb", []byte("0"))
	f.Add("0", []byte("{\"\":{\"\":\"\",\"0000\":0"))
	f.Add("\x80\xff\xff\xff\xd0\xd0\xd0\xd0", []byte("0"))
}

// foundMigrationName adds inputs that a fuzzer found to reach code beyond the other seeds.
func foundMigrationName(f *testing.F) {
	f.Add("0000000000000000000000000000000 ", "00", "00", "")
	f.Add("0", "0", "", "")
	f.Add("00000000000000000000000000000000000000000000000000000000000000000000000000000000000000 ", "0", "0", "0")
	f.Add("000ä", "0", "0", "0")
	f.Add("0000000000000000 ", "0", "0", "0")
	f.Add("a2A101a0000 ", "1", "2", "0")
	f.Add("0\xea\xaa", "0", "0", "0")
	f.Add(" ", "00000000000000000000000000000000000000000000000000", "0", "0")
	f.Add("BoxaCoooycooooycoo00\xc3", "0", "0", "0")
	f.Add("aYaAaaaa0aaaaaaaaaaaaaaaaaaaaaaaa a", "z08", "921", "012")
}
