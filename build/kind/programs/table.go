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

package programs

// Program is an executable of a Go module.
type Program struct {
	// Name is the name of the file.
	Name string
	// Module is the module in which Package is.
	Module Module
	// Package is the package's path below the module.
	Package string
	// Tags are build tags.
	Tags []string
	// Flags are further flags of the linker.
	Flags string
	// Test is true for the tests of Package instead of a command.
	Test bool
	// Cgo is true for a program that is C in part. It is linked against the C
	// library of this machine, which has to be older than that of nodes.
	Cgo bool
}

// Module is a module from which programs are built.
type Module struct {
	// Path and Version are as in a go.mod.
	Path, Version string
	// Sum is the hash of the module's files, as in a go.sum.
	Sum string
	// Dir is the directory of a module that is not fetched, below the checkout;
	// Path, Version and Sum are empty then.
	Dir string
}

// The versions are those of the base image of the kind that hack/tools/go.mod
// pins, where that has the program; CoreDNS is the one that kubeadm of the release
// wants, and etcd comes with the module of this repository.
var (
	containerd = Module{
		Path: "github.com/containerd/containerd/v2", Version: "v2.3.4",
		Sum: "h1:c2PJo/9UGVdiiw8SwrxuLxWGY+9b3jQ6Xp9zntneIvI=",
	}
	runc = Module{
		Path: "github.com/opencontainers/runc", Version: "v1.4.3",
		Sum: "h1:/bq84roxG30xEICkFodXzMEVQFs7kzo4lCiZME1uKxI=",
	}
	crictl = Module{
		Path: "sigs.k8s.io/cri-tools", Version: "v1.36.0",
		Sum: "h1:Xt+LLvBVH1Fnp/AR2EyHApyWS/88y2KlWjlDc2HR+aw=",
	}
	plugins = Module{
		Path: "github.com/containernetworking/plugins", Version: "v1.9.1",
		Sum: "h1:8oU6WsIsU3bpnNZuvHp74a6cE1MJwbj2P7s4/yTUNlA=",
	}
	coreDNS = Module{
		Path: "github.com/coredns/coredns", Version: "v1.14.6",
		Sum: "h1:V2g2JdCWJVqYGdX8tlBiK0iQo23Pnt8xs8gHqKyFYs8=",
	}
	coreDNSBefore = Module{
		Path: "github.com/coredns/coredns", Version: "v1.14.2",
		Sum: "h1:L6ECLwm4Fjg7NJamtGBFDBjk/uqvCJjfgAEhrxh5zJo=",
	}
	localPath = Module{
		Path: "github.com/rancher/local-path-provisioner", Version: "v0.0.30",
		Sum: "h1:OkiuofkCSscddl7tma/B9Ox1wu+JEVSrP7IcZI65Ggo=",
	}
	root     = Module{Dir: "."}
	previous = Module{Dir: "hack/previous"}
	rig      = Module{Dir: "build/kind"}
	e2e      = Module{Dir: "hack/e2e"}
)

// noSnapshotters leaves out what containerd needs C for and kind never selects.
var noSnapshotters = []string{"no_btrfs", "no_devmapper", "no_zfs"}

// containerdVersion makes containerd tell its version, which kubelets parse.
var containerdVersion = "-X github.com/containerd/containerd/v2/version.Version=" + containerd.Version

// Node are the programs of a node, by their paths in it.
var Node = map[string]Program{
	"usr/local/bin/containerd":              {Name: "containerd", Module: containerd, Package: "./cmd/containerd", Tags: noSnapshotters, Flags: containerdVersion},
	"usr/local/bin/containerd-shim-runc-v2": {Name: "containerd-shim-runc-v2", Module: containerd, Package: "./cmd/containerd-shim-runc-v2", Tags: noSnapshotters, Flags: containerdVersion},
	"usr/local/libexec/ctr":                 {Name: "ctr", Module: containerd, Package: "./cmd/ctr", Tags: noSnapshotters, Flags: containerdVersion},
	"usr/local/sbin/runc":                   {Name: "runc", Module: runc, Package: ".", Tags: []string{"seccomp"}, Cgo: true},
	"usr/local/bin/crictl":                  {Name: "crictl", Module: crictl, Package: "./cmd/crictl"},
	"opt/cni/bin/host-local":                {Name: "host-local", Module: plugins, Package: "./plugins/ipam/host-local"},
	"opt/cni/bin/loopback":                  {Name: "loopback", Module: plugins, Package: "./plugins/main/loopback"},
	"opt/cni/bin/portmap":                   {Name: "portmap", Module: plugins, Package: "./plugins/meta/portmap"},
	"opt/cni/bin/ptp":                       {Name: "ptp", Module: plugins, Package: "./plugins/main/ptp"},
}

// The programs of images. Etcd and CoreDNS have those of the release and of the minor
// version before, by the tags that kubeadm of each wants.
var (
	Etcd = map[string]Program{
		"3.7.0-0": {Name: "etcd", Module: root, Package: "go.etcd.io/etcd/server/v3"},
		"3.6.8-0": {Name: "etcd-before", Module: previous, Package: "go.etcd.io/etcd/server/v3"},
	}
	CoreDNS = map[string]Program{
		coreDNS.Version:       {Name: "coredns", Module: coreDNS, Package: "."},
		coreDNSBefore.Version: {Name: "coredns-before", Module: coreDNSBefore, Package: "."},
	}
	LocalPath = Program{Name: "local-path-provisioner", Module: localPath, Package: "."}
	Runtime   = Program{Name: "capless", Module: rig, Package: "./capless"}
	Pause     = Program{Name: "pause", Module: rig, Package: "./standins/pause"}
	Netd      = Program{Name: "netd", Module: rig, Package: "./standins/netd"}
	Balancer  = Program{Name: "balancer", Module: rig, Package: "./standins/balancer"}
)

// CoreDNSNewest is the CoreDNS of the release, for images of tests.
var CoreDNSNewest = CoreDNS[coreDNS.Version]

// Upstream's end-to-end tests, what runs them in parallel, and the programs of the
// images that they ask for.
var (
	E2E                = Program{Name: "e2e.test", Module: e2e, Package: "k8s.io/kubernetes/test/e2e", Test: true}
	Ginkgo             = Program{Name: "ginkgo", Module: e2e, Package: "github.com/onsi/ginkgo/v2/ginkgo"}
	Agnhost            = Program{Name: "agnhost", Module: e2e, Package: "k8s.io/kubernetes/test/images/agnhost"}
	NoNewPrivileges    = Program{Name: "nnp", Module: e2e, Package: "k8s.io/kubernetes/test/images/nonewprivs"}
	Regression74839    = Program{Name: "regression-issue-74839", Module: e2e, Package: "k8s.io/kubernetes/test/images/regression-issue-74839"}
	HealthDriver       = Program{Name: "healthdriver", Module: e2e, Package: "./healthdriver"}
	SampleDevicePlugin = Program{Name: "sampledeviceplugin", Module: e2e, Package: "k8s.io/kubernetes/test/images/sample-device-plugin"}
)
