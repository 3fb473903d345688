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

package main

import (
	"archive/tar"
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"k8s.io/kubernetes-features/build/release/archive"
	"k8s.io/kubernetes-features/build/release/image"
	"k8s.io/kubernetes-features/build/release/leftout"
	"k8s.io/kubernetes-features/build/release/rootfs"
	"k8s.io/kubernetes-features/build/release/targets"
)

// The tests in this file run what is in the images of a real release.

// showsVersion is what shows the version in the image of a binary, beginning
// with the image's entry point.
func showsVersion(b targets.Binary) []string {
	if b.EntryPoint() {
		return []string{inImage(b), "version", "--client"}
	}
	return []string{image.Runner, inImage(b), "--version"}
}

// inImage is where the image of a binary has it.
func inImage(b targets.Binary) string {
	if b.EntryPoint() {
		return "/bin/" + b.Name
	}
	return "/usr/local/bin/" + b.Name
}

// fileSystem lays down the layers of an image in a new folder, as root.
func fileSystem(t *testing.T, file string) (string, *v1.ConfigFile) {
	t.Helper()
	img, err := tarball.ImageFromPath(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	// The default mask would keep others from reading what they may.
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, l := range layers {
		r, err := l.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		if err := layDown(dir, r); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	// Every runtime gives a container this device.
	if err := os.Mkdir(filepath.Join(dir, "dev"), 0o755); err != nil {
		t.Fatal(err)
	}
	null := filepath.Join(dir, "dev", "null")
	if err := syscall.Mknod(null, syscall.S_IFCHR, 1<<8|3); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(null, 0o666); err != nil {
		t.Fatal(err)
	}
	return dir, config
}

// layDown unpacks a layer of an image of ours, which has no whiteouts.
func layDown(dir string, layer io.Reader) error {
	tr := tar.NewReader(layer)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := filepath.Join(dir, h.Name)
		switch h.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(name, 0o755)
		case tar.TypeSymlink:
			err = os.Symlink(h.Linkname, name)
		case tar.TypeReg:
			err = writeFile(name, tr)
		default:
			err = fmt.Errorf("%s has the type %q", h.Name, h.Typeflag)
		}
		if err == nil && h.Typeflag != tar.TypeSymlink {
			// os.FileMode has other bits than tar above 0777.
			err = syscall.Chmod(name, uint32(h.Mode))
		}
		if err != nil {
			return err
		}
	}
}

// inside runs a command with nothing but the files below dir, as a user.
func inside(t *testing.T, dir string, user uint32, env []string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir, cmd.Env = "/", env
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: dir, Credential: &syscall.Credential{Uid: user, Gid: user}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v in the image as %d: %v: %s", args, user, err, out)
	}
	return string(out)
}

// TestImagesRun runs the entry point of each image on the image's files alone,
// as the default user and as another, and compares the binary with that of the
// archive.
func TestImagesRun(t *testing.T) {
	dir, version := server(t)
	if os.Getuid() != 0 {
		leftout.Skip(t, "chroot needs root")
	}
	for _, b := range targets.Images() {
		t.Run(b.Name, func(t *testing.T) {
			bin := filepath.Join(dir, "server", "bin", b.Name)
			root, config := fileSystem(t, bin+".tar")
			command := showsVersion(b)
			if got := config.Config.Entrypoint; len(got) != 1 || got[0] != command[0] {
				t.Errorf("the entry point is %v, want %s", got, command[0])
			}
			var sums [2]string
			for i, file := range []string{bin, filepath.Join(root, inImage(b))} {
				sum, err := archive.Sum(file, sha256.New())
				if err != nil {
					t.Fatal(err)
				}
				sums[i] = sum
			}
			if sums[0] != sums[1] {
				t.Errorf("the image and the archive have different binaries: %v", sums)
			}
			for _, user := range []uint32{rootfs.Root, rootfs.NonRoot} {
				if got := inside(t, root, user, config.Config.Env, command...); !strings.Contains(got, string(version)) {
					t.Errorf("%v says %q as %d, want %s", command, got, user, version)
				}
			}
			if b.EntryPoint() {
				return
			}
			// GCE's manifests have the runner write the file that they show.
			inside(t, root, rootfs.NonRoot, config.Config.Env, image.Runner, "--log-file=/tmp/log", inImage(b), "--version")
			if log, err := os.ReadFile(filepath.Join(root, "tmp", "log")); err != nil || !strings.Contains(string(log), string(version)) {
				t.Errorf("the runner wrote %q: %v; want %s", log, err, version)
			}
		})
	}
}

// containerd starts a daemon of its own and returns a function that runs ctr.
func containerd(t *testing.T) (root string, ctr func(stdin io.Reader, args ...string) string) {
	t.Helper()
	for _, name := range []string{"containerd", "ctr", "runc"} {
		if _, err := exec.LookPath(name); err != nil || os.Getuid() != 0 {
			leftout.Skip(t, "needs root, containerd and runc (Debian's packages of these names)")
		}
	}
	// A socket's path has to be short.
	dir, err := os.MkdirTemp("", "ctr")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	socket := filepath.Join(dir, "socket")
	config := fmt.Sprintf("version = 2\nroot = %q\nstate = %q\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n[grpc]\naddress = %q\n",
		filepath.Join(dir, "root"), filepath.Join(dir, "state"), socket)
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	daemon := exec.Command("containerd", "--config", filepath.Join(dir, "config.toml"))
	stderr, err := daemon.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	ready, ended := make(chan struct{}), make(chan struct{})
	var log strings.Builder
	go func() {
		defer close(ended)
		booted := false
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			log.WriteString(lines.Text() + "\n")
			if !booted && strings.Contains(lines.Text(), "successfully booted") {
				booted = true
				close(ready)
			}
		}
	}()
	t.Cleanup(func() {
		if err := daemon.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		<-ended
		if err := daemon.Wait(); err != nil || t.Failed() {
			t.Logf("containerd ended: %v: %s", err, log.String())
		}
	})
	select {
	case <-ready:
	case <-ended:
		t.Fatal("containerd did not start")
	case <-time.After(5 * time.Minute):
		t.Fatal("containerd was not ready after five minutes")
	}
	return filepath.Join(dir, "root"), func(stdin io.Reader, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "ctr", append([]string{"--address", socket, "--namespace", "k8s.io"}, args...)...)
		cmd.Stdin = stdin
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("ctr %v: %v: %s", args, err, out)
		}
		return string(out)
	}
}

// plainName is the name that kubeadm asks for.
func plainName(v targets.Version, binary string) string {
	return strings.Replace(v.ImageName(binary, runtime.GOARCH), "-"+runtime.GOARCH+":", ":", 1)
}

// TestContainerdRunsTheImages imports the images into a real containerd as kind
// does on its nodes, tags them as kind does, and runs them as containers.
func TestContainerdRunsTheImages(t *testing.T) {
	dir, version := server(t)
	root, ctr := containerd(t)
	for _, b := range targets.Images() {
		f, err := os.Open(filepath.Join(dir, "server", "bin", b.Name+".tar"))
		if err != nil {
			t.Fatal(err)
		}
		ctr(f, "images", "import", "--all-platforms", "--no-unpack", "--digests", "-")
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		plain := plainName(version, b.Name)
		ctr(nil, "images", "tag", "--force", version.ImageName(b.Name, runtime.GOARCH), plain)
		// ctr takes a command in place of the entry point.
		if got := ctr(nil, append([]string{"run", "--rm", plain, b.Name}, showsVersion(b)...)...); !strings.Contains(got, string(version)) {
			t.Errorf("%s says %q in a container, want %s", b.Name, got, version)
		}
	}
	if got := ctr(nil, "run", "--rm", plainName(version, "kubectl"), "entry-point"); !strings.Contains(got, "kubectl controls the Kubernetes cluster manager") {
		t.Errorf("the entry point of kubectl says %q", got)
	}
	t.Run("kube-apiserver keeps its capability", func(t *testing.T) { keepsCapability(t, root) })
	t.Run("kube-proxy has its programs", func(t *testing.T) {
		proxy := plainName(version, "kube-proxy")
		for i, c := range []struct{ command, want string }{
			{"nft add table ip kube-proxy", ""},
			{"nft --json list ruleset", "json_schema_version"},
			{"iptables -t nat -N KUBE-SERVICES", ""},
			{"iptables -t filter -A OUTPUT -m comment --comment kubernetes -m conntrack --ctstate NEW -j ACCEPT", ""},
			{"ip6tables-save", ""},
			{"conntrack -C", "0"},
			{"modprobe --version", "kmod version"},
		} {
			args := append([]string{"run", "--rm", "--cap-add", "CAP_NET_ADMIN", proxy, fmt.Sprintf("proxy-%d", i)}, strings.Fields(c.command)...)
			if got := ctr(nil, args...); !strings.Contains(got, c.want) {
				t.Errorf("%s says %q in a container, want %q", c.command, got, c.want)
			}
		}
	})
}

// keepsCapability looks for kube-apiserver among what containerd unpacked.
func keepsCapability(t *testing.T, root string) {
	found, err := filepath.Glob(filepath.Join(root, "io.containerd.snapshotter.v1.*", "snapshots", "*", "fs", "usr", "local", "bin", "kube-apiserver"))
	if err != nil || len(found) != 1 {
		t.Fatalf("containerd unpacked kube-apiserver to %v, want one place: %v", found, err)
	}
	value := make([]byte, 64)
	n, err := syscall.Getxattr(found[0], image.CapabilityAttribute, value)
	if err != nil || string(value[:n]) != image.NetBindService() {
		t.Errorf("kube-apiserver has the capabilities %x: %v; want %x", value[:max(n, 0)], err, image.NetBindService())
	}
}
