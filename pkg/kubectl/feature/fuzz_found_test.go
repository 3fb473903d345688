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

package feature

import "testing"

// foundPrintable adds inputs that a fuzzer found to reach code beyond the other seeds.
func foundPrintable(f *testing.F) {
	f.Add("\n\n\n\n")
	f.Add("\t")
	f.Add("\u200d\xf0")
	f.Add("\u200d👩")
	f.Add("\x7f\ue000")
	f.Add("ößerö")
	f.Add("\xef")
	f.Add("CCCCC\x00")
	f.Add("\x80\ue000")
	f.Add("\xa2")
	f.Add("\n")
	f.Add("\n\x05")
	f.Add("`Gvr\xcac")
	f.Add("\n\xae")
	f.Add("00")
	f.Add("퀀")
	f.Add("\x7f")
	f.Add("\x02\xdbԍ")
	f.Add("\xe6\xe6")
	f.Add("\xc5")
}

// foundShown adds inputs that a fuzzer found to reach code beyond the other seeds.
func foundShown(f *testing.F) {
	f.Add([]byte("{\""), []byte("{\"spec\":{\x81\"component\":\"kubelet\",\"instance\":\"a\",\"features\":[{\"name\":\"A\",\"asked\":true}]}}"))
	f.Add([]byte("{\"spec\":{\"liveness\":{\"\x8eease\":{\"name\":\"\\u0001\"}}}}a"), []byte("{\"spec\":{\"liveness\":{\"\x8eease\":{\"name\":\"\\u0001\"}}}}"))
	f.Add([]byte("{\"status\":{\"conpigured\":{\"value\":trueC\xf6\xcc"), []byte("{\"spec\":{\"liveness\":{\"lease\":{\"name\":\"\\u0001\"}}}}"))
	f.Add([]byte("0\b"), []byte("{\"metadaa\":{\"name\":\"A\"}}}b\x80let\",\"instance\":\"a\",\"features\":[{\"name\":\"A\",\"asked\":true}]}}"))
	f.Add([]byte("{\"status\":{\"conpigured\":{\"value\":true,\"source\":\"javascript:alert(1)\"},\"default\":false,\"stateSince\":\"0001-01-01T00:00:00Z\",\"storedVersions\":[\"\\u2066\"]}}"), []byte("{\"spec\":{\"liveness\":{\"lease\":{\"name\":\"\\u0001\"}}}}"))
	f.Add([]byte("{\"spec\":{\"rollout\":{\"percent\":-5,\"components\":[\"\\r\"]}},\"status\":\x9c\""), []byte("{}"))
	f.Add([]byte("{\x01"), []byte("{\"spec\":{\x81\"component\":\"kubelet\",\"instance\":\"a\",\"features\":[{\"name\":\"A\",\"asked\":true}]}}"))
	f.Add([]byte("\"metada\t"), []byte("{\"metada\ta\":{\"na\xede\":fA\"}}\"ket\",\"instance\":\"a\",\"features\x80\xff[{\"name\":\"A\",\"asked\":true}]}}"))
	f.Add([]byte("{\"status\":{\"conpigured\":{\"value\":true,\"source\":\"javascript:alert(1)\"},\"default\":false,\"stateSince\":\"0001-01-01T00:00:00Z\",\"storedVersions\":[\"\\u2066\"]}}"), []byte("{\"spec\":{\"livenpec\":{\"leese\":{\"name\":\"\\u0001\"}}}}"))
	f.Add([]byte(" "), []byte(" \x00\x02\x00"))
	f.Add([]byte("{\"pec\":{\"liveness\":{\"lease\":{\"name\":\"\\u"), []byte("{\"spec\":{\"liveness\":{\"lease\":{\"name\":\"\\u0\xff\xff1\"}}}}"))
	f.Add([]byte("{\"wp"), []byte("b\x84\x84q"))
	f.Add([]byte("{\"status\":\x00"), []byte("{\"spec\":{\"liveness\":{\"lease\":{\"name\":\"\\u0001\"}}}}"))
	f.Add([]byte("{\"sp"), []byte("b\x84\x84q"))
	f.Add([]byte("{\"status\":{\"conpigured\":{\"value\":true\xa3"), []byte("{\"spec\":{\"liveness\":{\"lease\":{\"name\":\"\\u0001\"}}}}"))
	f.Add([]byte("77s"), []byte("77"))
	f.Add([]byte("\"met"), []byte("{\"met\x8d\x16\xbc\x19adaa\"\"me\":\"A\"}}}b\x80let\",\"instanCe\"atures\":[\"met\x8d\x16\":\"A\",\"asked\":true}\",\""))
	f.Add([]byte("{\"pec\":{\"liveness\":{\"\x8eease\":{\"name\":\"\\u0001\"}}}}"), []byte("{\"spec\":{\"liveness\":{\"\x8eease\":{\"name\":\"\\u0001\"}}}}"))
	f.Add([]byte("{\"status\":{\"configured\":{\"value\":true,\""), []byte("{\"spec\":{\"li```````:{\"lease\":{\"name\":\"\\u0001\"}}}}"))
	f.Add([]byte("{\"metadaa\"\""), []byte("{\"metadaa\":{\"name\":\"A\"}}}b\x80let\",\"instance\":\"a\",\"features\":[{\"name\":\"A\",\"asked\":true}]}}"))
}
