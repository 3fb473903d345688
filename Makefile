# Targets have the names that kubernetes/kubernetes gives them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

OUT := _output
BIN := $(OUT)/bin
TOOLS := $(OUT)/tools
LIB := staging/src/k8s.io/feature-lifecycle

# What to build: one or more packages, for example WHAT=cmd/kubectl.
WHAT ?= ./cmd/...
# The version that binaries show. There is no time in it, so that builds are
# cached and the same everywhere.
VERSION ?= v1.36.3+feature.1
version_of = -X $(1).gitVersion=$(VERSION) -X $(1).gitMajor=1 -X $(1).gitMinor=36 -X $(1).gitTreeState=clean
LDFLAGS := $(call version_of,k8s.io/component-base/version) $(call version_of,k8s.io/client-go/pkg/version)

# When a test fails, why is printed last (hack/causes).
GOTESTSUM = $(TOOLS)/gotestsum --format pkgname --jsonfile $(CURDIR)/$(OUT)/tests.json --post-run-command "env -u GOWORK go run -C $(CURDIR) ./hack/causes" --

.PHONY: help
help: ## Say what the targets do.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

.PHONY: all
all: ## Build binaries into _output/bin; WHAT=cmd/kubectl builds one.
	@mkdir -p $(BIN)
	go build -ldflags '$(LDFLAGS)' -o $(BIN)/ $(foreach w,$(WHAT),$(if $(filter ./%,$(w)),$(w),./$(w)))
	@install -m 0755 cmd/kubectl-feature/kubectl_complete-feature $(BIN)/

.PHONY: demo
demo: all ## Turn a gate on, use it, turn it off on a real cluster, and see that nothing is left.
	$(BIN)/local-up demo

.PHONY: up
up: all ## Start a local cluster.
	$(BIN)/local-up up

.PHONY: down
down: ## End the local cluster; its data stays.
	@if [[ -x $(BIN)/local-up ]]; then $(BIN)/local-up down; else echo "No cluster is running"; fi

.PHONY: test
test: test-unit test-integration ## Run all tests.

.PHONY: test-unit
test-unit: tools test-model ## Run the unit tests, those of the library with the race detector.
	cd $(LIB) && $(CURDIR)/$(GOTESTSUM) -race ./...
	$(GOTESTSUM) $$(go list ./... | grep -v /test/)
	cd test/helm && GOWORK=off $(CURDIR)/$(GOTESTSUM) ./...
	@if ! command -v chromium >/dev/null; then echo "Without chromium (Debian's package of that name) the page of kubectl feature report is not looked at in a browser"; fi
	cd test/browser && GOWORK=off $(CURDIR)/$(GOTESTSUM) ./...

.PHONY: coverage
coverage: ## Print what the unit tests of each package run of it, as the table of the KEP.
	@mkdir -p $(OUT)
	@go run ./hack/coverage | tee $(OUT)/coverage.md

# How many schedules the model of several servers runs, and from which seed. They
# are split over the cores: each of them has a process and a seed of its own.
MODEL_SCHEDULES ?= 100000
MODEL_SEED ?= $(shell date +%s)

.PHONY: test-model
test-model: ## Run the model of several servers through 100,000 random schedules.
	@mkdir -p $(OUT)
	cd $(LIB) && go test -c -o $(CURDIR)/$(OUT)/model.test ./lifecycle/controller
	cores=$$(nproc); for ((i = 0; i < cores; i++)); do echo $$(($(MODEL_SEED) + i * 1000000007)); done | \
		MODEL_SCHEDULES=$$((($(MODEL_SCHEDULES) + cores - 1) / cores)) GOMAXPROCS=1 GOGC=400 \
		xargs -P "$$cores" -I{} $(OUT)/model.test -test.run '^TestModel$$' -test.v -test.timeout 30m -rapid.seed={}

# Upstream's own binaries, to test against.
UPSTREAM := kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy

.PHONY: upstream
upstream: ## Build upstream's unchanged binaries into _output/upstream.
	@mkdir -p $(OUT)/upstream
	go build -ldflags '$(subst $(VERSION),v1.36.3,$(LDFLAGS))' -o $(OUT)/upstream/ $(addprefix k8s.io/kubernetes/cmd/,$(UPSTREAM))

# The minor version before, which clusters come from and may go back to.
PREVIOUS = $(shell sed -n 's/^require k8s.io.kubernetes \(v[0-9.]*\).*/\1/p' hack/previous/go.mod)
PREVIOUS_LDFLAGS = $(subst $(VERSION),$(PREVIOUS),$(subst gitMinor=36,gitMinor=$(word 2,$(subst ., ,$(PREVIOUS))),$(LDFLAGS)))

.PHONY: upstream-previous
upstream-previous: ## Build the unchanged kube-apiserver of the minor version before into _output/previous.
	@mkdir -p $(OUT)/previous
	cd hack/previous && GOWORK=off go build -ldflags '$(PREVIOUS_LDFLAGS)' -o $(CURDIR)/$(OUT)/previous/ tool

.PHONY: test-integration
test-integration: tools all upstream upstream-previous ## Run real processes with real etcd, the fault suite in its short form (FAULTS_SHORT=false: whole).
	@echo "The fault suite test/faults runs in its $(if $(filter true,$(FAULTS_SHORT)),short form; \"make test-faults\" runs the whole,whole form)"
	@echo "The lifecycle test test/lifecycle runs whole; \"make test-lifecycle\" runs it alone and prints its table"
	@echo "The moves between versions of test/integration/versions run in their short form; \"make test-versions\" runs the whole"
	@if [[ $$(id -u) != 0 ]] || ! command -v nft >/dev/null; then echo "Left out: tests with real kubelets and kube-proxies need root and nft (Debian's nftables)"; fi
	FAULTS_SHORT=$(FAULTS_SHORT) VERSIONS_SHORT=$(FAULTS_SHORT) $(GOTESTSUM) -timeout 40m -p 1 ./test/...

.PHONY: test-lifecycle
test-lifecycle: all upstream ## Take every open gate through on, used, off and pristine and print the table; FEATURE=X does one.
	FEATURE=$(FEATURE) go test -count=1 -timeout 30m -v $(if $(FEATURE),-run 'TestEveryGate|TestLeftoversOfUpstream') ./test/lifecycle | tee $(OUT)/lifecycle.txt

# The form of the fault suite in test-integration: true for the short one.
FAULTS_SHORT ?= true

.PHONY: test-faults
test-faults: all ## Do all faults to real clusters and print what they did; needs root, about 14 minutes.
	FAULTS_SHORT=false go test -count=1 -timeout 40m -parallel 4 -v ./test/faults | tee $(OUT)/faults.txt

.PHONY: test-versions
test-versions: all upstream-previous ## Move a real control plane 1.35, 1.36, 1.35, 1.36 with a crash at every stage, and between binaries; needs root, 4 to 10 minutes.
	VERSIONS_SHORT=false go test -count=1 -timeout 40m -v -run 'TestUpDownUp|TestBinaries|TestWhatCannotBeDecodedIsSeen' ./test/integration/versions | tee $(OUT)/versions.txt

# One page for docs-test, for example docs/upgrade.md; all without it.
PAGE ?=

.PHONY: docs-test
docs-test: all ## Run the commands of README.md and docs on real clusters; PAGE=docs/upgrade.md does one. 5 to 10 minutes.
	go test -count=1 -timeout 40m -v -run 'TestPages$(if $(PAGE),/^$(PAGE)$$)' ./test/docs | tee $(OUT)/docs.txt

.PHONY: bench-featuregate
bench-featuregate: tools ## Compare the layer's Enabled with upstream's, side by side.
	cd $(LIB) && go test -run '^$$' -bench Enabled -count 6 ./featuregate | tee $(CURDIR)/$(OUT)/bench-featuregate.txt
	$(TOOLS)/benchstat -col /gate $(OUT)/bench-featuregate.txt

.PHONY: verify
verify: tools ## Check format, lint, generated code, modules, licences, sizes, imports, docs.
	hack/verify-all.sh

.PHONY: update
update: ## Write generated code and docs/gates.md.
	hack/update-codegen.sh
	go run ./hack/gates >docs/gates.md

.PHONY: tools
tools: $(TOOLS)/.built

$(TOOLS)/.built: hack/tools/go.mod hack/tools/go.sum
	@mkdir -p $(TOOLS)
	cd hack/tools && GOWORK=off go build -o $(CURDIR)/$(TOOLS)/ tool
	@touch $@

.PHONY: clean
clean: down ## Remove everything that was built.
	rm -rf $(OUT)
