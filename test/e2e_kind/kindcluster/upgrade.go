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

// programs are those that a node has outside of images.
func programs() []string { return []string{"kubeadm", "kubelet", "kubectl"} }

// images are the images of the release that kubeadm runs.
func images() []string { return append(StaticPods(), kubeProxy) }

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
	version, err := os.ReadFile(filepath.Join(dir, "kubernetes", "version"))
	if err != nil {
		c.t.Fatalf("the release's version: %v", err)
	}
	if err := show(c.t.Context(), c.t, "docker", "cp", filepath.Join(dir, "kubernetes", "server", "bin"), node+":"+releaseDir); err != nil {
		c.t.Fatalf("copying the release into %s: %v", node, err)
	}
	tag := strings.ReplaceAll(strings.TrimSpace(string(version)), "+", "_")
	for _, image := range images() {
		c.Exec(node, "ctr", "--namespace=k8s.io", "images", "import", releaseDir+"/"+image+".tar")
		plain := "registry.k8s.io/" + image
		c.Exec(node, "ctr", "--namespace=k8s.io", "images", "tag", "--force", plain+"-"+runtime.GOARCH+":"+tag, plain+":"+tag)
	}
	c.Exec(node, "mkdir", "-p", originalDir)
	for _, program := range programs() {
		c.Exec(node, "cp", "--no-clobber", "/usr/bin/"+program, originalDir+"/")
	}
	return strings.TrimSpace(string(version))
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

// install replaces programs of a node, also those that run.
func (c *Cluster) install(node string, original bool, programs ...string) {
	c.t.Helper()
	dir := releaseDir
	if original {
		dir = originalDir
	}
	for _, program := range programs {
		c.Exec(node, "install", "-m", "0755", dir+"/"+program, "/usr/bin/"+program)
	}
}
