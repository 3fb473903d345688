//go:build linux

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

package kindcluster

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Folders of a node: of the release that kubeadm upgrades to, and of the programs that the
// node's image has.
const (
	releaseDir  = "/kind/release"
	originalDir = "/kind/original"
)

// releasePrograms is where the server archive has programs and images. The dot has Docker
// copy what is in the folder, and not the folder, also when it is there already.
const releasePrograms = "kubernetes/server/bin/."

// programs are those that a node has outside of images.
func programs() []string { return []string{"kubeadm", "kubelet", "kubectl"} }

// images are the images of the release that kubeadm runs.
func images() []string { return append(StaticPods(), kubeProxy) }

// Flags of the steps in which components of the release emulate the version before.
const (
	emulatedVersion = "emulated-version"
	gracePeriod     = "feature-grace-period"
	// Grace is how long processes of upstream, which do not report, are waited for.
	Grace = "30s"
)

// Flag is a flag of a static pod. An empty value removes it.
type Flag struct{ Component, Name, Value string }

// Emulated returns the flags of the steps in which a control plane emulates a minor version:
// that version, and how long kube-apiserver waits for processes without reports. With empty
// values these flags go. docs/kind.md has them, too.
func Emulated(minor, grace string) []Flag {
	var flags []Flag
	for _, component := range StaticPods() {
		flags = append(flags, Flag{component, emulatedVersion, minor})
	}
	return append(flags, Flag{APIServer, gracePeriod, grace})
}

// UpgradeCheck returns the arguments of kubectl that ask whether the release may be replaced
// by upstream's binaries of a minor version. Upstream's kubelet and kube-proxy do not report,
// so what they set is unknown. docs/kind.md has the command, too.
func UpgradeCheck(minor string) []string {
	return []string{"feature", "upgrade-check", "--to=" + minor, "--allow-missing"}
}

// foldersCommand makes the folders of a node.
func foldersCommand() []string { return []string{"mkdir", "-p", releaseDir, originalDir} }

// keepCommand keeps the node's own programs, which the way back needs. A second time it must
// not replace them by those of the release.
func keepCommand() []string {
	command := []string{"cp", "--no-clobber"}
	for _, program := range programs() {
		command = append(command, "/usr/bin/"+program)
	}
	return append(command, originalDir+"/")
}

// importCommand loads an image of the release into a node's containerd.
func importCommand(image string) []string {
	return []string{"ctr", "--namespace=k8s.io", "images", "import", releaseDir + "/" + image + ".tar"}
}

// tagCommand gives the image the name that kubeadm asks for: archives have it with the
// architecture.
func tagCommand(image, arch, tag string) []string {
	plain := "registry.k8s.io/" + image
	return []string{"ctr", "--namespace=k8s.io", "images", "tag", "--force", plain + "-" + arch + ":" + tag, plain + ":" + tag}
}

// installCommand replaces programs of a node by those in a folder, also those that run.
func installCommand(dir string, programs ...string) []string {
	command := []string{"install"}
	for _, program := range programs {
		command = append(command, dir+"/"+program)
	}
	return append(command, "/usr/bin/")
}

// CopyRelease puts the server archive of the release into a node, with its images in the
// node's containerd under the names that kubeadm asks for, and keeps the node's own
// programs beside. It returns the release's version.
func (c *Cluster) CopyRelease(node string) string {
	c.t.Helper()
	dir := c.t.TempDir()
	err := Unpack(Archive(c.t, "server"), dir, func(name string) bool {
		base := strings.TrimSuffix(filepath.Base(name), ".tar")
		return base == "version" || slices.Contains(programs(), filepath.Base(name)) || strings.HasSuffix(name, ".tar") && slices.Contains(images(), base)
	})
	if err != nil {
		c.t.Fatalf("unpacking the release: %v", err)
	}
	content, err := os.ReadFile(filepath.Join(dir, "kubernetes", "version"))
	if err != nil {
		c.t.Fatalf("the release's version: %v", err)
	}
	version := strings.TrimSpace(string(content))
	c.Exec(node, foldersCommand()...)
	c.Exec(node, keepCommand()...)
	if err := show(c.t.Context(), c.t, "docker", "cp", dir+"/"+releasePrograms, node+":"+releaseDir); err != nil {
		c.t.Fatalf("copying the release into %s: %v", node, err)
	}
	for _, image := range images() {
		c.Exec(node, importCommand(image)...)
		c.Exec(node, tagCommand(image, runtime.GOARCH, strings.ReplaceAll(version, "+", "_"))...)
	}
	return version
}

// upgradeCommand has kubeadm bring a node with a control plane to a version. docs/kind.md
// has it, too.
//
// etcd cannot be taken back to an older minor version, and CoreDNS's configuration is only
// migrated to newer versions, so both stay as they are.
//
// It ignores one of kubeadm's preflight checks. SystemVerification is about the machine, of
// which a node is a container: it fails on cgroup v1 even if kubelet's configuration permits
// that, and where the kernel's configuration is in /boot, which nodes do not have. kind has
// "kubeadm init" and "kubeadm join" run no preflight check at all. All others hold for nodes
// as for machines: IsPrivilegedUser, ContainerRuntimeVersion, CoreDNSUnsupportedPlugins,
// CoreDNSMigration, CreateJob, ControlPlaneNodesReady, StaticPodManifest and ImagePull, which
// finds all images in the node.
func upgradeCommand(version string) []string {
	return []string{
		"kubeadm", "upgrade", "apply", version, "--yes", "--etcd-upgrade=false", "--skip-phases=addon/coredns",
		"--ignore-preflight-errors=SystemVerification",
	}
}

// Upgrade has the kubeadm of the release, or that of the node's image, bring a node with a
// control plane to a version, up or down by one minor version. kubelet stays as it is
// (ReplaceKubelet).
func (c *Cluster) Upgrade(node, version string, original bool) {
	c.t.Helper()
	c.install(node, original, "kubeadm")
	if err := show(c.t.Context(), c.t, "docker", append([]string{"exec", node}, upgradeCommand(version)...)...); err != nil {
		c.t.Fatalf("upgrading %s to %s: %v", node, version, err)
	}
}

// ReplaceKubelet starts the kubelet of the release in a node, or that of its image.
func (c *Cluster) ReplaceKubelet(node string, original bool) {
	c.t.Helper()
	c.Exec(node, "systemctl", "stop", "kubelet")
	c.install(node, original, "kubelet", "kubectl")
	c.Exec(node, "systemctl", "start", "kubelet")
}

// install replaces programs of a node.
func (c *Cluster) install(node string, original bool, programs ...string) {
	c.t.Helper()
	dir := releaseDir
	if original {
		dir = originalDir
	}
	c.Exec(node, installCommand(dir, programs...)...)
}
