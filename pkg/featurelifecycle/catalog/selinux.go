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

package catalog

import (
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/kubernetes/pkg/features"
)

// selinux are the features of SIG Storage about the SELinux labels of volumes.
var selinux = []Entry{
	{Feature: lifecycle.Feature{
		// kube-controller-manager runs selinux-warning-controller only if it is
		// told to, whatever the gate.
		// Without the gate kubelet mounts volumes with a label, or relabels
		// their files, whatever the Pod says.
		Name:      features.SELinuxChangePolicy,
		OnDisable: lifecycle.WaitForNoneInPods("seLinuxChangePolicy", "spec.securityContext.seLinuxChangePolicy"),
	}, OtherCopies: templateCopies, BootstrapRBAC: true},
	{Feature: lifecycle.Feature{
		// The field is older, and so is its other value, Recursive. Without
		// the gate MountOption is honored for ReadWriteOncePod volumes only;
		// the files of others are relabeled one by one.
		Name:      features.SELinuxMount,
		OnDisable: lifecycle.WaitForNoneInPods("seLinuxChangePolicy MountOption", "spec.securityContext.seLinuxChangePolicy=MountOption"),
		Control:   lifecycle.Central,
	}, OtherCopies: valueCopies,
		Node: "Volumes that are mounted with -o context keep that until their Pods end."},
	{Feature: lifecycle.Feature{
		// While it is on, defaulting writes false into every CSIDriver on
		// every write. Without the gate kubelet relabels the files of all
		// volumes and reads no field.
		Name:      features.SELinuxMountReadWriteOncePod,
		OnDisable: lifecycle.Tasks{lifecycle.ClearField(csiDrivers, "spec.seLinuxMount")},
	}, OtherCopies: appliedCopies,
		Node: "Volumes that are mounted with -o context keep that until their Pods end."},
}
