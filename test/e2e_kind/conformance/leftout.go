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

package conformance

// cannot is a spec that cannot run, and why.
type cannot struct {
	// spec is an expression for the names of specs, and why says in a few words why
	// they cannot run.
	spec, why string
}

// unable are the specs that cannot run where these images are missing. Without any
// missing image, nodes can pull, and all can run.
func unable(missing []string) []cannot {
	if len(missing) == 0 {
		return nil
	}
	return offline
}

// offline are specs that need more than what is made without a registry. A failed pull
// harms more than its own Pod: kubelet records it, and takes an image that was loaded for
// one that was pulled from then on (KubeletEnsureSecretPulledImages), so that the next Pod
// with the same image has it pulled, too.
var offline = []cannot{
	{`Projected PodCertificate .*(should issue|establish an|SPIFFE)`, "its Pods pull their image always"},
	{`Container Runtime blackbox test when running a container with a new image`, "pulls from a registry"},
	{`ImageVolume .*pull policy of Always`, "pulls from a registry"},
	{`read only busybox container should not write to root filesystem`, "expects the words of another shell than that of the images made here"},
	{`PrivilegedPod`, "needs a kernel with dummy network devices"},
}
