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

package framework

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/moby/sys/mountinfo"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// isolated is set in the environment of a test process that has been isolated.
const isolated = "KUBE_FEATURES_ISOLATED"

// nodeAddress is the machine's address in the namespace: a Node must not have one
// on loopback.
var nodeAddress = &net.IPNet{IP: net.IPv4(192, 0, 2, 10), Mask: net.CIDRMask(24, 32)}

// Isolate runs the tests of a package in network and mount namespaces of their
// own, for TestMain: real kubelets and kube-proxies mount file systems and write
// rules. Clusters and tests live there together, so loopback reaches everything.
// It returns the exit code. Without root and nft it says so and runs none.
func Isolate(m *testing.M) int {
	if os.Getenv(isolated) != "" {
		if err := enter(); err != nil {
			fmt.Fprintln(os.Stderr, "preparing the namespaces of the tests:", err)
			return 1
		}
		return m.Run()
	}
	if _, err := exec.LookPath("nft"); err != nil || os.Getuid() != 0 {
		if os.Getenv("KUBE_FEATURES_REQUIRE_ALL") != "" {
			fmt.Println("These tests need root and nft (Debian's nftables), and KUBE_FEATURES_REQUIRE_ALL forbids to leave them out.")
			return 1
		}
		fmt.Println("SKIP: these tests run real kubelets and kube-proxies in namespaces of their own, which needs root and nft (Debian's nftables); all others do not.")
		return 0
	}
	cmd := exec.Command(os.Args[0], os.Args[1:]...)
	cmd.Env = append(os.Environ(), isolated+"=true")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	default:
		fmt.Fprintln(os.Stderr, "running the tests in namespaces of their own:", err)
		return 1
	}
}

// enter makes the new namespaces habitable.
func enter() error {
	// What is mounted here stays here.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	if err := netlink.LinkSetUp(loopback); err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	node := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "node0"}, PeerName: "node0-peer"}
	if err := netlink.LinkAdd(node); err != nil {
		return fmt.Errorf("the node's interface: %w", err)
	}
	peer, err := netlink.LinkByName(node.PeerName)
	if err == nil {
		err = netlink.LinkSetUp(peer)
	}
	if err != nil {
		return fmt.Errorf("the other end of the node's interface: %w", err)
	}
	if err := netlink.AddrAdd(node, &netlink.Addr{IPNet: nodeAddress}); err != nil {
		return fmt.Errorf("the node's address: %w", err)
	}
	if err := netlink.LinkSetUp(node); err != nil {
		return fmt.Errorf("the node's interface: %w", err)
	}
	// No name server is reached from here; on loopback that is noticed at once.
	resolver, err := os.CreateTemp("", "resolv.conf")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(resolver.Name()) }()
	_, err = resolver.WriteString("nameserver 127.0.0.1\n")
	if err := errors.Join(err, resolver.Close()); err != nil {
		return err
	}
	if err := unix.Mount(resolver.Name(), "/etc/resolv.conf", "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("the name server: %w", err)
	}
	return copySettings()
}

// settings of the kernel are no namespace's, and a real kubelet writes them when it starts.
var settings = []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes"}

// copySettings puts copies in the place of settings, so that the machine keeps its own.
func copySettings() error {
	dir, err := os.MkdirTemp("", "settings")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for i, name := range settings {
		file, mounted := filepath.Join("/proc/sys", name), filepath.Join(dir, strconv.Itoa(i))
		value, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			// What is not there is not written either.
			continue
		}
		if err == nil {
			err = os.WriteFile(mounted, value, 0o644)
		}
		if err == nil {
			err = unix.Mount(mounted, file, "", unix.MS_BIND, "")
		}
		if err != nil {
			return fmt.Errorf("a copy of the kernel's setting %s: %w", name, err)
		}
	}
	return nil
}

// NodeIP is the address of real nodes in isolated tests.
func NodeIP() string { return nodeAddress.IP.String() }

// unmount takes away what kubelets mounted below a directory, in the test's own
// mount namespace; elsewhere no test mounts anything.
func unmount(dir string) error {
	if os.Getenv(isolated) == "" {
		return nil
	}
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir))
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range slices.Backward(mounts) {
		if err := unix.Unmount(m.Mountpoint, unix.MNT_DETACH); err != nil {
			errs = append(errs, fmt.Errorf("unmounting %s: %w", m.Mountpoint, err))
		}
	}
	return errors.Join(errs...)
}
