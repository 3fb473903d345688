# all, verify, lint, update, clean, help and quick-release do here what they do in
# kubernetes/kubernetes. So do test and test-integration with WHAT, the packages whose
# tests they run. Without WHAT these two run shards (hack/shards/table.go), which are more
# than upstream's: test runs the quick ones, unit tests, the model and one pass on real
# processes; test-integration runs all but unit tests and the model.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

OUT := _output
BIN := $(OUT)/bin
TOOLS := $(OUT)/tools
# OUT for commands that run in another folder. Neither may have a space but in the
# path of the checkout, which is quoted.
OUT_DIR = $(if $(filter /%,$(OUT)),$(OUT),$(CURDIR)/$(OUT))
LIB := staging/src/k8s.io/feature-lifecycle

# What a target is for: packages for all, test and test-integration (WHAT=cmd/kubectl),
# checks for verify (WHAT="gofmt tree"), as in kubernetes/kubernetes, the folder of a
# module for lint, and tests for kind-test.
WHAT ?=
# Packages, each with the "./" that the go command wants.
PACKAGES = $(foreach w,$(WHAT),$(if $(filter ./% k8s.io/%,$(w)),$(w),./$(w)))
# The version that binaries show. There is no time in it, so that builds are
# cached and the same everywhere.
UPSTREAM_VERSION := $(shell sed -nE 's/^[[:space:]]*k8s\.io\/kubernetes (v[0-9.]+)$$/\1/p' go.mod)
VERSION ?= $(UPSTREAM_VERSION)+feature.1
minor_of = $(word 2,$(subst ., ,$(1)))
version_of = -X $(1).gitVersion=$(VERSION) -X $(1).gitMajor=1 -X $(1).gitMinor=$(call minor_of,$(UPSTREAM_VERSION)) -X $(1).gitTreeState=clean
# As in kubernetes/kubernetes, DBG=1 builds binaries for debuggers. Without what those
# need, linking takes half of the time.
DBG ?=
LDFLAGS := $(if $(filter 1,$(DBG)),,-s -w) $(call version_of,k8s.io/component-base/version) $(call version_of,k8s.io/client-go/pkg/version)

.PHONY: help
help: ## Say what the targets do.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

.PHONY: all
all: ## Build binaries into _output/bin; WHAT=cmd/kubectl builds one.
	@mkdir -p $(BIN)
	go build -ldflags '$(LDFLAGS)' -o $(BIN)/ $(or $(PACKAGES),./cmd/... ./test/utils/localcluster/kubemark)
	@install -m 0755 cmd/kubectl-feature/kubectl_complete-feature $(BIN)/

# What a release is built for: os/arch, separated by spaces. This machine's
# architecture, as upstream's target of that name, where there are images for it.
KUBE_BUILD_PLATFORMS ?= linux/$(or $(filter amd64 arm64,$(shell go env GOHOSTARCH)),amd64)
# The address of the repository for labels of images and the manifest of the plugin; none
# without it.
SOURCE_URL ?=
# The address of the folder that archives will be in, for the manifest of the plugin: that
# of the releases of a repository on GitHub. "+" may mean a space in an address.
DOWNLOAD_URL ?= $(if $(SOURCE_URL),$(SOURCE_URL)/releases/download/$(subst +,%2B,$(VERSION)))
# Where Debian's packages below images come from; deb.debian.org without it. A
# folder of snapshot.debian.org has those of the lock file for ever.
DEBIAN_MIRROR ?=
DEBIAN_SECURITY_MIRROR ?=

# Set it to build a release with the Go on the PATH, whatever its version is.
FORCE_HOST_GO ?=

DEBIAN_MIRRORS = -debian-mirror '$(DEBIAN_MIRROR)' -debian-security-mirror '$(DEBIAN_SECURITY_MIRROR)'
RELEASE_FLAGS = -root . -output $(OUT) $(DEBIAN_MIRRORS)

# Tools run on this machine, whatever is built. An empty variable does not override
# what "go env -w" wrote, so none is empty; GOEXPERIMENT is a list of nothing.
FOR_HERE = GOWORK=off CGO_ENABLED=0 GOOS=$(shell go env GOHOSTOS) GOARCH=$(shell go env GOHOSTARCH) GOFLAGS=-mod=readonly GOEXPERIMENT=,

# The Go of a release. It builds the program that makes it, too, which compresses:
# that gives other bytes in other versions of Go.
RELEASE_GO = $(if $(FORCE_HOST_GO),local,go$(shell cat build/release/go-version))

$(TOOLS)/release: FORCE
	@mkdir -p $(TOOLS)
	@cause=$$(GOTOOLCHAIN=$(RELEASE_GO) go version 2>&1) || { echo "A release wants $(RELEASE_GO) (build/release/go-version), which cannot be had: $$cause;" \
		"install it, or set FORCE_HOST_GO=y, which gives other bytes than those of other people" >&2; exit 1; }
	cd build/release && $(FOR_HERE) GOTOOLCHAIN=$(RELEASE_GO) go build -o "$(OUT_DIR)/tools/release" .

.PHONY: FORCE
FORCE:

# What a release is made of and with, but for the platforms.
MAKE_RELEASE = -version '$(VERSION)' -source '$(SOURCE_URL)' -download '$(DOWNLOAD_URL)' $(if $(FORCE_HOST_GO),-host-go)

.PHONY: quick-release
quick-release: $(TOOLS)/release ## Build archives and images for KUBE_BUILD_PLATFORMS into _output/release-tars; needs no Docker.
	$(TOOLS)/release $(RELEASE_FLAGS) $(MAKE_RELEASE) -platforms '$(KUBE_BUILD_PLATFORMS)'

# All platforms of the plugin are the default here.
.PHONY: plugin-release
plugin-release: $(TOOLS)/release ## Build the archives of kubectl feature and its manifest for krew alone into _output/plugin/release-tars.
	$(TOOLS)/release plugin -root . -output $(OUT)/plugin $(MAKE_RELEASE) $(if $(filter-out file,$(origin KUBE_BUILD_PLATFORMS)),-platforms '$(KUBE_BUILD_PLATFORMS)')

# y has test-release look at what plugin-release made.
PLUGIN ?=
tested_tars = $(if $(filter y,$(PLUGIN)),plugin/)release-tars

.PHONY: test-release
test-release: ## Check how releases are made, and the one in _output/release-tars; PLUGIN=y checks that of plugin-release.
	@test -e $(OUT)/$(tested_tars)/SHA256SUMS || { echo "There is no release in $(OUT)/$(tested_tars): run \"make $(if $(filter y,$(PLUGIN)),plugin,quick)-release\" first" >&2; exit 1; }
	@$(MAKE) -s $(TOOLS)/kind krew-tools
	@$(MAKE) -s all WHAT="cmd/kubectl-feature cmd/local-up"
	@mkdir -p $(OUT)/debian
	@rm -f $(OUT)/left-out.txt
	status=0; (cd build/release && GOWORK=off KIND="$(OUT_DIR)/tools/kind" KREW_TOOLS="$(OUT_DIR)/tools" RELEASE_DEBIAN="$(OUT_DIR)/debian" RELEASE_TOOLS="$(OUT_DIR)/bin" \
		RELEASE_TARS="$(OUT_DIR)/$(tested_tars)" RELEASE_LEFT_OUT="$(OUT_DIR)/left-out.txt" go test -count=1 -p 1 -timeout 30m ./...) || status=$$?; \
		if [[ -e $(OUT)/left-out.txt ]]; then sed 's/^/Left out: /' $(OUT)/left-out.txt; fi; exit $$status

# What the release was made with is read from it; FORCE_HOST_GO has to be said again.
.PHONY: verify-release
verify-release: ## Make the release of this commit again in another directory with an empty cache and compare the hashes.
	@test -e $(OUT)/release-tars/SHA256SUMS || { echo "There is no release in $(OUT)/release-tars: run \"make quick-release\" first" >&2; exit 1; }
	@$(MAKE) -s $(TOOLS)/release
	@$(TOOLS)/release verify $(RELEASE_FLAGS) $(if $(FORCE_HOST_GO),-host-go)

# The node image that kind-image builds and kind-up starts, and the cluster.
KIND_IMAGE ?= kindest/node:$(subst +,_,$(VERSION))
KIND_CLUSTER ?= features
# The image below the node image, and the file that describes the cluster. Without them
# they are kind's own base, and one node.
KIND_BASE ?=
KIND_CONFIG ?=
# Further flags of "kind create cluster", such as --retain.
KIND_FLAGS ?=
# The cluster's own kubeconfig; that of the user stays as it is.
KIND_KUBECONFIG = $(OUT)/kind.kubeconfig
# Nodes have the architecture of the daemon, which may be elsewhere.
KIND_ARCH = $(or $(shell docker version --format '{{.Server.Arch}}' 2>/dev/null),$(shell go env GOHOSTARCH))
SERVER_TAR = $(OUT)/release-tars/kubernetes-server-linux-$(KIND_ARCH).tar.gz
need_docker = command -v docker >/dev/null || { echo "kind needs Docker, and there is no docker command here" >&2; exit 1; }; \
	docker info >/dev/null 2>&1 || { echo "kind needs a Docker daemon, and \"docker info\" finds none" >&2; exit 1; }
need_server_tar = test -e $(SERVER_TAR) || { echo "$(SERVER_TAR) is missing: run \"make quick-release KUBE_BUILD_PLATFORMS=linux/$(KIND_ARCH)\" first" >&2; exit 1; }

.PHONY: kind-image
kind-image: ## Build a node image for kind from the release in _output/release-tars; needs Docker; KIND_BASE=image is its base.
	@$(need_docker)
	@$(need_server_tar)
	@$(MAKE) -s $(TOOLS)/kind
	@# kind leaves the archive that it has unpacked, 1 GB, in the folder for temporary files.
	scratch=$$(mktemp -d) && trap 'rm -rf "$$scratch"' EXIT && TMPDIR="$$scratch" $(TOOLS)/kind build node-image --type file$(if $(KIND_BASE), --base-image '$(KIND_BASE)') --image $(KIND_IMAGE) $(SERVER_TAR)

# Where Docker has cgroup v1, kubelet ends unless its configuration permits that: then the
# cluster is that of a copy which does.
on_cgroup_v1 = $(filter 1,$(shell docker info --format '{{.CgroupVersion}}' 2>/dev/null))
kind_config = $(if $(on_cgroup_v1),$(OUT)/kind/config.yaml,$(KIND_CONFIG))
write_config = $(MAKE) -s $(TOOLS)/kind-build; $(TOOLS)/kind-build cgroup1 -dir $(OUT)/kind$(if $(KIND_CONFIG), '$(KIND_CONFIG)')

.PHONY: kind-up
kind-up: ## Create a cluster from that image and show its features; needs Docker; KIND_CONFIG=file describes it.
	@$(need_docker)
	@docker image inspect $(KIND_IMAGE) >/dev/null 2>&1 || { echo "Docker has no image $(KIND_IMAGE): run \"make kind-image\" first" >&2; exit 1; }
	@$(MAKE) -s $(TOOLS)/kind
	@! $(TOOLS)/kind get clusters 2>/dev/null | grep -x '$(KIND_CLUSTER)' >/dev/null || { echo "There is a cluster $(KIND_CLUSTER) already: run \"make kind-down$(if $(filter-out features,$(KIND_CLUSTER)), KIND_CLUSTER=$(KIND_CLUSTER))\" first" >&2; exit 1; }
	@$(if $(on_cgroup_v1),$(write_config))
	$(TOOLS)/kind create cluster$(if $(kind_config), --config '$(kind_config)') --name $(KIND_CLUSTER) --image $(KIND_IMAGE) --kubeconfig $(KIND_KUBECONFIG) --wait 5m$(if $(KIND_FLAGS), $(KIND_FLAGS))
	$(KIND_KUBECTL) wait --for=create --timeout=2m -n kube-system features/$(KIND_FEATURE)
	$(KIND_KUBECTL) get features -n kube-system
	@echo "For kubectl: export KUBECONFIG='$(if $(filter /%,$(KIND_KUBECONFIG)),,$(CURDIR)/)$(KIND_KUBECONFIG)'"

# A feature whose gate every kube-apiserver announces.
KIND_FEATURE := MaxUnavailableStatefulSet
KIND_KUBECTL = docker exec $(KIND_CLUSTER)-control-plane kubectl --kubeconfig /etc/kubernetes/admin.conf

.PHONY: kind-down
kind-down: ## Delete that cluster; needs Docker.
	@$(need_docker)
	@$(MAKE) -s $(TOOLS)/kind
	$(TOOLS)/kind delete cluster --name $(KIND_CLUSTER) --kubeconfig $(KIND_KUBECONFIG)

$(TOOLS)/kind-build: FORCE
	@mkdir -p $(TOOLS)
	cd build/kind && $(FOR_HERE) go build -o "$(OUT_DIR)/tools/kind-build" .

# yes makes what kind would pull, no lets kind pull it, auto asks registry.k8s.io first.
KIND_OFFLINE ?= auto
# The command of kind-run; y has kind-test run long tests, too. WHAT is an expression, so
# that it may have any part of their names; those that it selects otherwise fail without y.
COMMAND ?=
LONG ?=
kind_long = $(or $(LONG),$(if $(findstring Three,$(WHAT))$(findstring Upgrade,$(WHAT)),y))
# Tests that do without upstream's minor version before, which takes long to build.
kind_without_previous := TestGatesOfKubelet TestGatesWithPods TestOneNode TestThreeControlPlanes
kind_named = $(subst |, ,$(WHAT))
kind_previous = $(if $(filter y,$(kind_long)),$(if $(kind_named),$(if $(filter-out $(kind_without_previous),$(kind_named)),y),y))
# run_with_kind runs the command $(1) where Docker runs kind's nodes, without registries.
# $(2) are flags on its cluster and its input, and $(3) further flags of "kind-build fetch".
define run_with_kind
$(TOOLS)/kind-build fetch -dir $(OUT)/kind -offline $(KIND_OFFLINE)$(if $(kind_previous), -previous)$(3) -release $(SERVER_TAR) -kind "$$(cd hack/tools && GOWORK=off go list -m -f '{{.Dir}}' sigs.k8s.io/kind)" $(DEBIAN_MIRRORS)
$(TOOLS)/kind-build run -dir $(OUT)/kind $(2) -- $(1)
endef

.PHONY: kind-tools
kind-tools:
	@$(need_server_tar)
	@$(MAKE) -s $(TOOLS)/kind $(TOOLS)/kind-build
	@mkdir -p $(OUT)/kind

.PHONY: kind-run
kind-run: export KIND_COMMAND := $(value COMMAND)
kind-run: kind-tools ## Run COMMAND="make kind-image kind-up kind-down", or another, such as bash, with what kind would pull; needs root where no Docker runs.
	@$(if $(COMMAND),:,false) || { echo "COMMAND is not set: run \"make kind-run COMMAND='make kind-image kind-up kind-down'\", or another command" >&2; exit 1; }
	$(call run_with_kind,bash -euo pipefail -c "$$KIND_COMMAND",-input -cluster '$(KIND_CLUSTER)')

.PHONY: kind-test
kind-test: kind-tools ## Take a gate through on, used and off on a real node of kind; LONG=y adds three control planes and an upgrade with kubeadm; WHAT=TestOneNode runs one test, and several with | between them.
	go test -c -o $(OUT)/kind/kind.test ./test/e2e_kind
	$(call run_with_kind,env KIND_TEST=y KIND_WHAT='$(WHAT)' LONG='$(kind_long)' OUT="$(OUT_DIR)" $(OUT)/kind/kind.test -test.v -test.timeout 2h -test.run '$(or $(WHAT),.)',-fresh -cluster kind-test, -own) | tee -i $(OUT)/kind/test.txt

# Which of upstream's specs kind-conformance runs: those whose labels match ginkgo's
# filter LABELS and whose names match FOCUS, PROCESSES at a time. Time on small machines
# is why the default leaves out other groups of conformance and slow specs of nodes'
# conformance; docs/kind.md has their numbers.
LABELS ?= (Conformance || NodeConformance && !Slow) && !Disruptive && (sig-apps || sig-auth || sig-network || sig-node || sig-storage)
FOCUS ?=
PROCESSES ?=
.PHONY: kind-conformance
kind-conformance: kind-tools ## Run upstream's conformance tests on a cluster of the release and on one of upstream's binaries, and compare; FOCUS=expression runs some, LABELS=filter others.
	go test -c -o $(OUT)/kind/conformance.test ./test/e2e_kind/conformance
	$(call run_with_kind,env KIND_TEST=y LABELS='$(LABELS)' FOCUS='$(FOCUS)' PROCESSES='$(PROCESSES)' OUT="$(OUT_DIR)" $(OUT)/kind/conformance.test -test.v -test.timeout 8h -test.run TestConformance,-fresh -cluster kind-test, -e2e) | tee -i $(OUT)/kind/conformance.txt

.PHONY: update-kind-lock
update-kind-lock: $(TOOLS)/kind-build ## Write build/kind/debian.lock, e2e.lock and trials.lock with Debian's newest packages.
	$(TOOLS)/kind-build lock -dir $(OUT)/kind $(DEBIAN_MIRRORS)

.PHONY: update-release-lock
update-release-lock: $(TOOLS)/release ## Write build/release/debian.lock with Debian's newest packages.
	$(TOOLS)/release lock $(RELEASE_FLAGS)

.PHONY: demo
demo: all ## Turn a gate on, use it, turn it off on a real cluster, and see that nothing is left.
	$(BIN)/local-up demo

.PHONY: example
example: all ## Deploy the widget operator onto a local cluster of its own: on, use, a live flip, a crash, off; about two minutes.
	OUT='$(OUT)' hack/example.sh

.PHONY: up
up: all ## Start a local cluster.
	$(BIN)/local-up up

.PHONY: down
down: ## End the local cluster; its data stays.
	@if [[ -x $(BIN)/local-up && -e _output/local/state.json ]]; then $(BIN)/local-up down; else echo "There is no cluster in _output/local"; fi

# What runs tests, in shards (hack/shards/table.go). The program is built first, so
# that signals reach it. MODEL_SEED repeats the schedules of the model, of which
# "make test-shard SHARD=model-long-*" runs 100,000.
LANES ?= 2
RUN_SHARDS = $(TOOLS)/shards -out '$(OUT)' -lanes $(LANES) -seed '$(MODEL_SEED)'

.PHONY: shards-tool
shards-tool:
	@mkdir -p $(TOOLS)
	@env -u GOOS -u GOARCH go build -o $(TOOLS)/shards ./hack/shards

# As in kubernetes/kubernetes: KUBE_COVER=y measures coverage, KUBE_RACE=-race looks for
# races, KUBE_TEST_ARGS are further arguments for the go command.
KUBE_COVER ?=
KUBE_RACE ?=
KUBE_TEST_ARGS ?=
GO_TEST = go test $(KUBE_RACE) $(if $(filter y,$(KUBE_COVER)),-cover) $(KUBE_TEST_ARGS) $(PACKAGES)

.PHONY: test
test: shards-tool ## Run the quick tests: units, the model, and one pass on real processes; WHAT=./pkg/kubectl/... runs the tests of packages.
	@$(if $(WHAT),$(GO_TEST),$(RUN_SHARDS) -quick)

# 1 lists the shards; "failed" repeats those that failed; 1 runs unchanged ones, too.
LIST ?=
ONLY ?=
FORCE ?=
# 1 leaves out tests for which this machine lacks root or a program; without it they fail.
ALLOW_MISSING ?=
REQUIRE_ALL = $(if $(filter 1 true,$(ALLOW_MISSING)),,KUBE_FEATURES_REQUIRE_ALL=true)

.PHONY: test-all
test-all: shards-tool ## Run all shards of tests that changed; LIST=1 lists them, ONLY=failed repeats what failed, FORCE=1 runs unchanged ones, too; ALLOW_MISSING=1 leaves out what this machine lacks.
	@$(REQUIRE_ALL) $(RUN_SHARDS) $(if $(filter-out 0 false,$(LIST)),-list) $(if $(ONLY),-only '$(ONLY)') $(if $(filter-out 0 false,$(FORCE)),-force)

# The names of shards, separated by commas; * stands for any letters.
SHARD ?=

.PHONY: test-shard
test-shard: shards-tool ## Run the shard SHARD of "make test-all LIST=1".
	@[[ -n '$(SHARD)' ]] || { echo "SHARD is not set: run \"make test-all LIST=1\" for the names, then \"make test-shard SHARD=name\"" >&2; exit 1; }
	@$(RUN_SHARDS) -shard '$(SHARD)'

.PHONY: test-stock
test-stock: ## Run kubectl feature against clusters of upstream's unmodified binaries; needs root.
	@$(MAKE) -s test-shard SHARD=stock

.PHONY: test-clients
test-clients: ## Run kubectl of four versions and third parties' clients while gates go off.
	@$(MAKE) -s test-shard SHARD=clients

# How often test-load runs the quick tests, and how many processes keep each core busy.
RUNS ?= 10
BUSY ?= 2

.PHONY: test-load
test-load: shards-tool ## Run the quick tests RUNS times beside two busy processes a core; all have to pass.
	@$(REQUIRE_ALL) $(RUN_SHARDS) -quick -runs '$(RUNS)' -busy '$(BUSY)'

# Names of mutations, separated by commas; all without it. BUG is one of
# hack/mutations/bugs.go.
MUTATION ?=
BUG ?=

.PHONY: test-mutations
test-mutations: ## Break some twenty lines of the product, one at a time, and see that tests fail; MUTATION=name takes one.
	@mkdir -p $(TOOLS)
	@go build -o $(TOOLS)/mutations ./hack/mutations
	@$(TOOLS)/mutations -all -only '$(MUTATION)'

.PHONY: test-model-bugs
test-model-bugs: ## Compile a bug for each invariant into the model, one at a time, and see that it is found, by random schedules and by a short one; BUG=name takes one, UPDATE=y keeps what is found.
	MODEL_BUGS=y go test -count=1 -timeout 60m -v -run '^TestBugs$$$(if $(BUG),/./^$(BUG)$$)' ./hack/mutations$(if $(filter y,$(UPDATE)), -update)

.PHONY: test-model-exhaustive
test-model-exhaustive: ## Take small clusters of the model through every state within budgets of faults and delays, and count the states; UPDATE=y keeps the counts.
	MODEL_EXHAUSTIVE=y go test -count=1 -timeout 3h -v -run '^TestStates$$' ./hack/mutations$(if $(filter y,$(UPDATE)), -update)

# Where tests of releases keep Debian's packages.
$(OUT)/debian:
	@mkdir -p $@

# The seed of the model's schedules. What is set on the command line would go to all
# commands, and through them to the same test in the library's unit tests.
MODEL_SEED ?= $(shell date +%s)
unexport MODEL_SEED

# How long each fuzz target runs, and which: a regular expression of their names.
FUZZTIME ?= 1m
FUZZ ?= .

# The targets are found, so that none is forgotten. An input that fails is written
# below testdata/fuzz of its package; keep it there with the fix.
.PHONY: fuzz
fuzz: ## Fuzz every target for FUZZTIME (1m); FUZZ=FuzzUses takes those whose names match.
	@targets=$$(grep -rHoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' --exclude-dir=$(notdir $(OUT)) . | sort | sed -E 's/:func /:/' | grep -E ':.*($(FUZZ))') || \
		{ echo "No fuzz target has a name that matches FUZZ=$(FUZZ)" >&2; exit 1; }; \
	for target in $$targets; do \
		echo "$${target##*:} in $$(dirname "$$target") for $(FUZZTIME)"; \
		(cd "$$(dirname "$$target")" && go test -run '^$$' -fuzz "^$${target##*:}$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x .) || exit 1; \
	done

# Upstream's own binaries, to test against.
UPSTREAM := kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy

.PHONY: upstream
upstream: ## Build upstream's unchanged binaries into _output/upstream.
	@mkdir -p $(OUT)/upstream
	go build -ldflags '$(subst $(VERSION),$(UPSTREAM_VERSION),$(LDFLAGS))' -o $(OUT)/upstream/ $(addprefix k8s.io/kubernetes/cmd/,$(UPSTREAM))

# Older versions, unmodified, each of a module of its own. go.mod of a module has the version.
older_version = $(shell sed -n 's/^require k8s.io.kubernetes \(v[0-9.]*\).*/\1/p' hack/$(1)/go.mod)
older_ldflags = $(subst $(VERSION),$(1),$(subst gitMinor=$(call minor_of,$(UPSTREAM_VERSION)),gitMinor=$(call minor_of,$(1)),$(LDFLAGS)))
# build_older builds the command $(2) of the version $(3) of the module hack/$(1) into $(4).
define build_older
@mkdir -p "$(4)"
cd hack/$(1) && GOWORK=off go build -ldflags '$(call older_ldflags,$(3))' -o "$(4)/" k8s.io/kubernetes/cmd/$(2)

endef

# The minor version before, which clusters come from and may go back to.
.PHONY: upstream-previous
upstream-previous: ## Build the unchanged kube-apiserver of the minor version before into _output/previous.
	$(call build_older,previous,kube-apiserver,$(call older_version,previous),$(OUT_DIR)/previous)

# Kubelets that a node may have: those of three minor versions before.
KUBELETS := previous kubelets/1.35 kubelets/1.34

.PHONY: upstream-kubelets
upstream-kubelets: ## Build the unchanged kubelets of three minor versions before into _output/kubelets.
	$(foreach module,$(KUBELETS),$(call build_kubelet,$(module),$(call older_version,$(module))))
build_kubelet = $(call build_older,$(1),kubelet,$(2),$(OUT_DIR)/kubelets/1.$(call minor_of,$(2)))

# kube-apiservers of clusters that kubectl feature looks at: those of two minor versions before.
SERVERS := previous kubelets/1.35

.PHONY: upstream-servers
upstream-servers: ## Build the unchanged kube-apiservers of two minor versions before into _output/servers.
	$(foreach module,$(SERVERS),$(call build_server,$(module),$(call older_version,$(module))))
build_server = $(call build_older,$(1),kube-apiserver,$(2),$(OUT_DIR)/servers/1.$(call minor_of,$(2)))

# kubectl of this version and of three before. cmd/kubectl is upstream's, unchanged.
.PHONY: upstream-kubectls
upstream-kubectls: ## Build the unchanged kubectl of this minor version and of three before into _output/kubectls.
	@mkdir -p $(OUT)/kubectls/1.$(call minor_of,$(UPSTREAM_VERSION))
	go build -ldflags '$(subst $(VERSION),$(UPSTREAM_VERSION),$(LDFLAGS))' -o $(OUT)/kubectls/1.$(call minor_of,$(UPSTREAM_VERSION))/ k8s.io/kubernetes/cmd/kubectl
	$(foreach module,$(KUBELETS),$(call build_kubectl,$(module),$(call older_version,$(module))))
build_kubectl = $(call build_older,$(1),kubectl,$(2),$(OUT_DIR)/kubectls/1.$(call minor_of,$(2)))

# Third parties' clients, each with the versions that it was published with.
CLIENTS := clientgo controllerruntime helm3 helm4 flux argocd
define build_client
cd test/external/clients/$(1) && GOWORK=off go build -ldflags '-s -w' -o "$(OUT_DIR)/clients/" .

endef

.PHONY: client-drivers
client-drivers: ## Build programs that use third parties' clients as libraries into _output/clients.
	@mkdir -p $(OUT)/clients
	$(foreach client,$(CLIENTS),$(call build_client,$(client)))

.PHONY: features-previous
features-previous: ## Build this repository's own binaries of the minor version before into _output/previous.
	OUT='$(OUT_DIR)' hack/build-previous.sh

.PHONY: test-integration
test-integration: shards-tool ## Run all shards but unit tests and the model, most of them with real processes; WHAT=./test/e2e_features/api runs the tests of packages.
	$(if $(WHAT),@$(MAKE) -s all WHAT=)
	@$(if $(WHAT),$(GO_TEST),$(RUN_SHARDS) -shard '*,!unit-*,!model*')

.PHONY: test-lifecycle
test-lifecycle: all upstream ## Take every open gate through on, used, off and pristine and print the table; FEATURE=X does one, EMULATED=1.36 those that are open in servers that emulate it.
	FEATURE=$(FEATURE) EMULATED=$(EMULATED) go test -count=1 -timeout 30m -v $(if $(EMULATED),-run TestEveryGate,$(if $(FEATURE),-run 'TestEveryGate|TestLeftoversOfUpstream')) ./test/e2e_features/gates | tee $(OUT)/lifecycle.txt

.PHONY: test-faults
test-faults: all ## Do all disruptions to real clusters, one after another, and print what they did; needs root, more than 14 minutes.
	FAULTS_SHORT=false SOAK_SEED=$(SOAK_SEED) STORED_SEED=$(SOAK_SEED) go test -count=1 -p 1 -timeout 40m -parallel 4 -v \
		-run '^(TestDisruptionsOneAfterAnother|TestTheLeaderIsKilled|TestNoLoadAtRest|TestLeaderKilled|TestTwoLeaders|TestDisturbed)$$' ./test/e2e_features/disruption ./test/e2e_features/disruption/stored | tee $(OUT)/faults.txt

# How long all disruptions happen at once, and the seed of a run to repeat its
# choices.
SOAK_DURATION ?= 2h
SOAK_SEED ?=

# How many thousands of processes come and go instead, each with a new name: 20 take 16
# minutes.
SOAK_NAMES ?=

.PHONY: soak
soak: all ## Run a cluster under flips, crashes, churn and compaction for two hours and see that nothing is left; needs root; SOAK_DURATION=30m for less, SOAK_NAMES=20 for 20,000 processes that come and go.
	SOAK_DURATION=$(SOAK_DURATION) SOAK_SEED=$(SOAK_SEED) SOAK_NAMES=$(SOAK_NAMES) go test -count=1 -timeout 0 -v -run $(if $(SOAK_NAMES),TestNamesThatAreAlwaysNew,TestDisruptionsAtOnce) ./test/e2e_features/disruption | tee $(OUT)/soak.txt

.PHONY: test-versions
test-versions: all upstream-previous features-previous upstream-kubelets ## Move a real control plane 1.36, 1.37, 1.36, 1.37 with a crash at every stage, and between binaries, and run kubelets of older versions; needs root, 10 to 25 minutes.
	VERSIONS_SHORT=false go test -count=1 -timeout 60m -p 1 -v ./test/e2e_features/versions ./test/e2e_features/versions/kubelets | tee $(OUT)/versions.txt

# One page for docs-test, for example docs/upgrade.md; all without it.
PAGE ?=

.PHONY: docs-test
docs-test: all ## Run the commands of README.md and docs on real clusters; PAGE=docs/upgrade.md does one. 5 to 10 minutes.
	go test -count=1 -timeout 40m -v -run 'TestPages$(if $(PAGE),/^$(PAGE)$$)' ./test/docs | tee $(OUT)/docs.txt

# All benchmarks of test/benchmark, in their order. Each has a target, for its help.
BENCHMARKS := featuregate clear clear-large reporters start flip transition

.PHONY: bench
bench: ## Run all benchmarks and write BENCHMARKS.md, its pictures and the tables of docs/contributors/scale.md; needs root; 6 to 7 hours.
	@[[ $$(id -u) == 0 ]] || { echo "The benchmark transition starts three kube-apiservers in namespaces of their own, which needs root: run this as root, or the others one by one with \"make bench-NAME\"" >&2; exit 1; }
	failed=(); for name in $(BENCHMARKS); do $(MAKE) bench-$$name || failed+=(bench-$$name); done; \
	if (($${#failed[@]})); then echo "Failed: $${failed[*]}; the others are done" >&2; exit 1; fi

.PHONY: $(addprefix bench-,$(BENCHMARKS)) bench-draw
bench-featuregate: ## Compare the layer's Enabled with upstream's gate; 3 minutes.
	$(run_benchmark)

bench-clear: all ## Clear a field from 10,000 objects, beside the storage version migrator, patches and etcd alone; 8 minutes. LONG=y: up to 100,000, three hours.
	$(run_benchmark)

bench-clear-large: all ## The same with 3,000 objects of 20 KiB; 6 minutes. LONG=y: up to 30,000, two hours.
	$(run_benchmark)

bench-reporters: all ## Let 1,000, 10,000 and 30,000 simulated processes report; two hours.
	$(run_benchmark)

bench-start: all upstream ## Start kube-apiserver and upstream's, cold and warm; 14 minutes.
	$(run_benchmark)

# The commit that bench-flip measures this build beside: the last one before processes
# followed FeatureValues. Empty for none.
BEFORE ?= c7bc92df7f51b24dc7cc23a4c8d2d0be25f97b2b

bench-flip: all ## Change a dynamic value that 100, 1,000 and 10,000 simulated processes follow, beside kube-apiserver of the commit BEFORE; 80 minutes.
	$(if $(BEFORE),COMMIT='$(BEFORE)' OUT='$(OUT_DIR)' hack/build-previous.sh)
	$(run_benchmark)

bench-transition: all ## Measure transitions from the last report on, with 1 and 3 servers, as root; 50 minutes.
	$(run_benchmark)

bench-draw: ## Write BENCHMARKS.md, its pictures and the tables of docs/contributors/scale.md from docs/benchmarks.
	hack/update-benchmarks.sh

# The program is built first, so that signals reach it.
define run_benchmark
@mkdir -p $(OUT)
go build -o $(OUT)/benchmark ./test/benchmark
$(OUT)/benchmark $(@:bench-%=%) $(if $(BEFORE),$(if $(filter bench-flip,$@),--before $(OUT_DIR)/previous/$(BEFORE)/kube-apiserver)) $(if $(filter y,$(LONG)),$(if $(filter bench-clear%,$@),--long))
@$(MAKE) -s bench-draw
endef

.PHONY: verify
verify: tools ## Check format, lint, generated code, modules, licenses, sizes, imports, what the library exports, docs; WHAT="gofmt tree" runs some checks.
	WHAT='$(WHAT)' hack/verify-all.sh

.PHONY: update
update: ## Write generated code, docs/gates.md, tables of contents and the API's documents.
	hack/update-codegen.sh
	hack/update-gates.sh
	hack/update-toc.sh
	hack/update-openapi-spec.sh

.PHONY: findings
findings: ## Show what is surprising in public libraries, on pinned packages; needs the network.
	@findings/run-all.sh

.PHONY: update-upstream
update-upstream: ## Move to the release KUBE_VERSION of Kubernetes, of this minor version or of the next one.
	KUBE_VERSION='$(KUBE_VERSION)' hack/update-upstream.sh

.PHONY: update-ahead
update-ahead: ## Write and list the gates of the next minor version, as its version KUBE_VERSION has them; needs the network.
	KUBE_VERSION='$(KUBE_VERSION)' hack/update-ahead.sh

# A checkout of kubernetes/kubernetes, a new directory for a series, and 1 to land
# although files of upstream differ that landing does not write.
KUBE_ROOT ?=
PATCH ?=
ALLOW_DIFFERENT ?=

.PHONY: fork
fork: ## Land this repository in the checkout KUBE_ROOT; PATCH=DIR writes a series for git am instead.
	go run ./hack/fork --kube-root "$(KUBE_ROOT)" --patch "$(PATCH)" $(if $(filter 1 true,$(ALLOW_DIFFERENT)),--allow-different)

.PHONY: test-fork
test-fork: ## Land in a copy of upstream, build its binaries and run an integration test there; 10 to 25 minutes.
	KUBE_FEATURES_TEST_FORK=true go test -count=1 -timeout 60m -v -run '^TestAFork$$' ./hack/fork

.PHONY: tools
tools: $(TOOLS)/golangci-lint $(TOOLS)/apidiff $(TOOLS)/mdtoc ## Build what "make verify" checks with.

# Each tool is built when it is needed: "make _output/tools/benchstat".
$(TOOLS)/golangci-lint: TOOL := github.com/golangci/golangci-lint/v2/cmd/golangci-lint
$(TOOLS)/apidiff: TOOL := golang.org/x/exp/cmd/apidiff
$(TOOLS)/benchstat: TOOL := golang.org/x/perf/cmd/benchstat
$(TOOLS)/kind: TOOL := sigs.k8s.io/kind
$(TOOLS)/krew: TOOL := sigs.k8s.io/krew/cmd/krew
$(TOOLS)/mdtoc: TOOL := sigs.k8s.io/mdtoc
$(TOOLS)/validate-krew-manifest: TOOL := sigs.k8s.io/krew/cmd/validate-krew-manifest

$(TOOLS)/golangci-lint $(TOOLS)/apidiff $(TOOLS)/benchstat $(TOOLS)/kind $(TOOLS)/krew $(TOOLS)/mdtoc $(TOOLS)/validate-krew-manifest: hack/tools/go.mod hack/tools/go.sum
	@mkdir -p $(TOOLS)
	cd hack/tools && $(filter-out CGO_ENABLED=0,$(FOR_HERE)) go build -o "$(OUT_DIR)/tools/" $(TOOL)
	@touch $@

# What installs the plugin in tests of releases, and what krew's index checks manifests with.
.PHONY: krew-tools
krew-tools: $(TOOLS)/krew $(TOOLS)/validate-krew-manifest

.PHONY: lint
lint: tools ## Lint the root and the library; WHAT=test/external lints the module in a folder.
	hack/verify-golangci-lint.sh $(or $(WHAT),.)

# Modules whose dependencies only long tests need are linted with these.
.PHONY: lint-external
lint-external:
	hack/verify-golangci-lint.sh test/external

.PHONY: lint-clients
lint-clients:
	hack/verify-golangci-lint.sh $(addprefix test/external/clients/,driver $(CLIENTS))

.PHONY: lint-kind
lint-kind:
	hack/verify-golangci-lint.sh build/kind

.PHONY: lint-release
lint-release:
	hack/verify-golangci-lint.sh build/release

.PHONY: verify-modules-of-long-tests
verify-modules-of-long-tests:
	hack/verify-modules.sh long

.PHONY: clean
clean: down ## Remove everything that was built.
	rm -rf $(OUT)
