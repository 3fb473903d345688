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

// library is the directory of the staging module.
const library = "staging/src/k8s.io/feature-lifecycle"

// disruption is the package of what happens to clusters.
const disruption = "./test/e2e_features/disruption"

// everything is the input of tests that read files all over the repository.
var everything = []string{"."}

// shards has all tests of the repository. Each test belongs to one of them; a test
// that is in Parts belongs to several, each with a part of its own.
//
// Quick ones come first: units, the model, real processes. The long ones follow in the
// same order. Those with Alone run after all others.
var shards = []Shard{
	{
		Name: "unit-library", Covers: "the library, with the race detector", Quick: true,
		Dir: library, Race: true, Inputs: []string{library},
		Packages: []string{
			".", "./agent", "./examples/...", "./featuregate/...", "./intern/...", "./internal/...", "./lifecycle/controller/...",
			"./lifecycle/task/...", "./lifecycletest/...", "./operator/...", "./watchtools/...",
		},
		Parts: map[string]string{"lifecycle/controller.TestModel": "100 schedules with the race detector"},
	},
	{
		// The exhaustive tables are here. Nothing in these packages starts a goroutine.
		Name: "unit-library-pure", Covers: "decisions of the library, by enumeration", Quick: true,
		Dir: library, Inputs: []string{library},
		Packages: []string{
			"./lifecycle", "./lifecycle/control/...", "./lifecycle/internal/...", "./lifecycle/leader/...", "./lifecycle/versionskew/...",
			"./lifecycle/transition/...", "./lifecycle/tracker/...", "./rollout/...",
		},
	},
	{
		Name: "unit-root", Covers: "API, storage, control plane, catalog, plugin, edits of nodes", Quick: true,
		Packages: []string{"./cmd/...", "./pkg/...", "./test/e2e_features/history/...", "./test/e2e_kind/...", "./test/utils/..."}, Inputs: []string{"docs/kind.md", "docs/upgrade.md", "pkg/features"},
	},
	{
		Name: "unit-pages", Covers: "pages, alerts and the KEP against code", Quick: true,
		Packages: []string{"./docs"}, Skip: "^TestPromtool", Inputs: everything,
	},
	{
		Name: "unit-hack", Covers: "tools, plans of a fork, this runner", Quick: true,
		Packages: []string{"./hack/..."}, Skip: "^(TestAFork|TestBugs|TestStates)$", Inputs: everything,
	},
	{
		Name: "unit-operator", Covers: "the example operator, with the race detector", Quick: true,
		Dir: library + "/examples/widget-operator", Packages: []string{"./..."}, Race: true,
		Inputs: []string{library},
	},
	{
		Name: "unit-draw", Covers: "pictures and tables of benchmarks", Quick: true,
		Dir: "test/benchmark/draw", Packages: []string{"./..."}, Inputs: everything,
	},
	{
		Name: "model", Covers: "several servers through 5,000 random schedules", Quick: true,
		Dir: library, Packages: []string{"./lifecycle/controller"}, Run: "^TestModel$", Schedules: 5000,
		Parts: map[string]string{"lifecycle/controller.TestModel": "5,000 schedules"},
	},
	{
		Name: "api", Covers: "API, RBAC, the plugin, gate off is upstream", Quick: true,
		Packages: []string{"./test/e2e_features/api"}, Run: quickAPI, Needs: []string{"all"},
	},
	{
		Name: "on-used-off", Covers: "gates on, used and off; two servers are killed in the middle", Quick: true,
		Packages: []string{"./test/e2e_features/gates/lifecycle"}, Run: "^TestOnUsedOff$", Needs: []string{"all"},
	},
	{
		Name: "processes", Covers: "all five binaries report and take central values", Quick: true, Root: true,
		Packages: []string{"./test/e2e_features/values/processes"}, Run: quickProcesses, Needs: []string{"all"},
	},
	{
		Name: "tasks", Covers: "clean-ups: cleared fields, waits, blocks", Quick: true,
		Packages: []string{"./test/e2e_features/tasks"}, Needs: []string{"all"},
	},
	{
		Name: "canary", Covers: "a dynamic flip whose canary crashes and is halted", Quick: true,
		Packages: []string{"./test/e2e_features/values"}, Run: quickValues, Needs: []string{"all"},
	},
	{
		Name: "move", Covers: "a move from 1.36 to 1.37 and what forbids it", Quick: true,
		Packages: []string{"./test/e2e_features/versions/upgradecheck"}, Run: "^TestAMoveByEmulation$", Needs: []string{"all"},
	},
	{
		Name: "operators", Covers: "two installations of an operator", Quick: true,
		Packages: []string{"./test/e2e_features/operators"}, Run: "^TestTwoInstallations$", Needs: []string{"all"}, Inputs: everything,
	},
	{
		Name: "disruption", Covers: "a leader killed in the middle, and what the long runs judge by", Quick: true, Root: true,
		Packages: []string{disruption}, Skip: "^(TestDisruptionsOneAfterAnother|TestTheLeaderIsKilled|TestNoLoadAtRest|TestDisruptionsAtOnce|TestNamesThatAreAlwaysNew)$",
		Needs: []string{"all"},
	},

	{
		Name: "alerts", Covers: "alerts and the dashboard in promtool",
		Packages: []string{"./docs"}, Run: "^TestPromtool", Installed: []string{"promtool"}, Inputs: everything,
	},
	{
		Name: "chart", Covers: "the example chart, by Helm's engine",
		Dir: "test/external", Packages: []string{"./helm"}, Needs: []string{"lint-external", "verify-modules-of-long-tests"}, Inputs: []string{"docs"},
	},
	{
		Name: "fork", Covers: "landing in a copy of upstream",
		Packages: []string{"./hack/fork"}, Run: "^TestAFork$", Installed: []string{"python3"}, Inputs: everything,
		Env: []string{"KUBE_FEATURES_REQUIRE_ALL=true"},
	},
	{
		Name: "release", Covers: "releases of small programs, Debian's packages, and what kind and krew take",
		Dir: "build/release", Packages: []string{"./..."}, Inputs: everything,
		Env:       []string{"RELEASE_DEBIAN={out}/debian", "RELEASE_TOOLS={out}/bin", "KIND={out}/tools/kind", "KREW_TOOLS={out}/tools"},
		Needs:     []string{"all", "_output/tools/kind", "krew-tools", "_output/debian", "lint-release"},
		Installed: []string{"apt-get", "containerd", "ctr", "dpkg-deb", "getcap", "runc"},
	},
	{
		Name: "kind", Covers: "what kind needs where there are no registries, and what it leaves",
		Dir: "build/kind", Packages: []string{"./..."}, Race: true, Inputs: []string{"build/kind", "build/release", "go.mod", "hack/e2e", "hack/previous"},
		Needs: []string{"lint-kind", "verify-modules-of-long-tests"},
	},
	{
		Name: "browser", Covers: "the page of kubectl feature report in Chromium",
		Dir: "test/external", Packages: []string{"./browser"}, Needs: []string{"lint-external"}, Installed: []string{"chromium"}, Inputs: everything,
	},
	{
		Name: "model-long-a", Covers: "several servers through 25,000 random schedules",
		Dir: library, Packages: []string{"./lifecycle/controller"}, Run: "^TestModel$", Schedules: 25000, OtherSeeds: 1,
		Parts: map[string]string{"lifecycle/controller.TestModel": "25,000 schedules"},
	},
	{
		Name: "model-long-b", Covers: "25,000 others",
		Dir: library, Packages: []string{"./lifecycle/controller"}, Run: "^TestModel$", Schedules: 25000, OtherSeeds: 2,
		Parts: map[string]string{"lifecycle/controller.TestModel": "25,000 other schedules"},
	},
	{
		Name: "model-long-c", Covers: "25,000 more",
		Dir: library, Packages: []string{"./lifecycle/controller"}, Run: "^TestModel$", Schedules: 25000, OtherSeeds: 3,
		Parts: map[string]string{"lifecycle/controller.TestModel": "25,000 more schedules"},
	},
	{
		Name: "model-long-d", Covers: "the last 25,000 of 100,000",
		Dir: library, Packages: []string{"./lifecycle/controller"}, Run: "^TestModel$", Schedules: 25000, OtherSeeds: 4,
		Parts: map[string]string{"lifecycle/controller.TestModel": "the last 25,000 schedules"},
	},
	{
		Name: "bugs", Covers: "a bug for each invariant, which the model or a test finds",
		Packages: []string{"./hack/mutations"}, Run: "^TestBugs$", Env: []string{"MODEL_BUGS=y"}, Inputs: everything,
	},
	{
		Name: "exhaustive", Covers: "every state of small clusters within budgets of faults and delays",
		Packages: []string{"./hack/mutations"}, Run: "^TestStates$", Env: []string{"MODEL_EXHAUSTIVE=y"}, Inputs: everything,
	},
	{
		Name: "api-long", Covers: "costs, certificates, servers without identity",
		Packages: []string{"./test/e2e_features/api"}, Skip: quickAPI, Needs: []string{"all"},
	},
	{
		Name: "processes-long", Covers: "crashes, bootstraps, kubelets without a server", Root: true,
		Packages: []string{"./test/e2e_features/values/processes"}, Skip: quickProcesses + "|^TestUpstream", Needs: []string{"all"},
	},
	{
		Name: "values-long", Covers: "central and dynamic values with several servers",
		Packages: []string{"./test/e2e_features/values"}, Skip: quickValues, Needs: []string{"all"},
	},
	{
		Name: "upstream", Covers: "upstream's unchanged binaries beside ours", Root: true,
		Packages: []string{"./test/e2e_features/values/processes"}, Run: "^TestUpstream", Needs: []string{"all", "upstream"},
	},
	{
		Name: "stock", Covers: "kubectl feature with upstream's binaries alone, which do not have the API", Root: true,
		Packages: []string{"./test/e2e_features/stock"}, Needs: []string{"all", "upstream", "upstream-kubelets", "upstream-servers"},
	},
	{
		Name: "adopted", Covers: "a cluster that had leftovers before",
		Packages: []string{"./test/e2e_features/gates/lifecycle"}, Skip: "^TestOnUsedOff$", Needs: []string{"all"},
	},
	{
		Name: "queried", Covers: "no gate is asked past the layer", Root: true,
		Packages: []string{"./test/e2e_features/values/queried"}, Needs: []string{"all"},
	},
	{
		Name: "hostile", Covers: "malformed requests",
		Packages: []string{"./test/e2e_features/api/hostile"}, Needs: []string{"all"},
	},
	{
		Name: "localup", Covers: "the local cluster and its demonstration",
		Packages: []string{"./test/e2e_features/localup"}, Needs: []string{"all"},
	},
	{
		Name: "openapi", Covers: "published documents and stored objects",
		Packages: []string{"./test/e2e_features/api/openapi"}, Needs: []string{"all"},
	},
	{
		Name: "readers", Covers: "ways to ask for a feature from outside",
		Packages: []string{"./test/e2e_features/api/readers"}, Needs: []string{"all"}, Inputs: everything,
	},
	{
		Name: "clients", Covers: "kubectl, client-go, controller-runtime, Helm, Flux and Argo CD while gates go off",
		Packages: []string{"./test/e2e_features/clients"}, Needs: []string{"all", "upstream-kubectls", "client-drivers", "lint-clients", "verify-modules-of-long-tests"},
	},
	{
		Name: "operators-long", Covers: "operators with features of their own",
		Packages: []string{"./test/e2e_features/operators"}, Skip: "^TestTwoInstallations$", Needs: []string{"all", "upstream"}, Inputs: everything,
	},
	{
		Name: "upgradecheck", Covers: "what forbids to move between versions",
		Packages: []string{"./test/e2e_features/versions/upgradecheck"}, Skip: "^TestAMoveByEmulation$", Needs: []string{"all"},
	},
	{
		Name: "versions", Covers: "moves between versions, in the short form", Root: true,
		Packages: []string{"./test/e2e_features/versions"}, Skip: ofBinaries, Needs: []string{"all", "upstream-previous"},
		Env: []string{"VERSIONS_SHORT=true"}, Inputs: []string{"pkg/featurelifecycle/catalog"},
	},
	{
		Name: "binaries", Covers: "binaries of two versions, exchanged while clients write and values change", Root: true,
		Packages: []string{"./test/e2e_features/versions"}, Run: ofBinaries, Needs: []string{"all", "upstream-previous", "features-previous"},
		Env: []string{"VERSIONS_SHORT=true"}, Inputs: []string{"pkg/featurelifecycle/catalog", "hack/previous"},
	},
	{
		Name: "kubelets", Covers: "kubelets of three older versions beside ours", Root: true,
		Packages: []string{"./test/e2e_features/versions/kubelets"}, Needs: []string{"all", "upstream-kubelets"},
	},
	{
		Name: "gates", Covers: "every open gate: on, used, off, pristine",
		Packages: []string{"./test/e2e_features/gates"}, Skip: "^TestOlderVersionTurnsOff$", Needs: []string{"all", "upstream"}, Inputs: []string{"pkg"},
		Parts: map[string]string{"test/e2e_features/gates.TestEveryGate": "at the version of the binaries"},
	},
	{
		Name: "gates-older", Covers: "features that an older version turns off",
		Packages: []string{"./test/e2e_features/gates"}, Run: "^TestOlderVersionTurnsOff$", Needs: []string{"all", "upstream"}, Inputs: []string{"pkg"},
	},
	{
		Name: "gates-1.36", Covers: "the same in servers that emulate 1.36",
		Packages: []string{"./test/e2e_features/gates"}, Run: "^TestEveryGate$",
		Parts: map[string]string{"test/e2e_features/gates.TestEveryGate": "emulating 1.36"},
		Needs: []string{"all", "upstream"}, Env: []string{"EMULATED=1.36"}, Inputs: []string{"pkg"},
	},
	{
		Name: "gates-1.35", Covers: "the same in servers that emulate 1.35",
		Packages: []string{"./test/e2e_features/gates"}, Run: "^TestEveryGate$",
		Parts: map[string]string{"test/e2e_features/gates.TestEveryGate": "emulating 1.35"},
		Needs: []string{"all", "upstream"}, Env: []string{"EMULATED=1.35"}, Inputs: []string{"pkg"},
	},
	{
		Name: "gates-1.34", Covers: "the same in servers that emulate 1.34",
		Packages: []string{"./test/e2e_features/gates"}, Run: "^TestEveryGate$",
		Parts: map[string]string{"test/e2e_features/gates.TestEveryGate": "emulating 1.34"},
		Needs: []string{"all", "upstream"}, Env: []string{"EMULATED=1.34"}, Inputs: []string{"pkg"},
	},
	{
		Name: "pages-a", Covers: "commands of pages from A to O",
		Packages: []string{"./test/docs"}, Run: pagesToO,
		Parts: map[string]string{"test/docs.TestPages": "docs/a to docs/o"},
		Needs: []string{"all"}, Installed: []string{"curl"}, Inputs: everything,
	},
	{
		Name: "pages-b", Covers: "commands of all other pages",
		Packages: []string{"./test/docs"}, Skip: pagesToO,
		Parts: map[string]string{"test/docs.TestPages": "all but docs/a to docs/o"},
		Needs: []string{"all"}, Installed: []string{"curl"}, Inputs: everything,
	},
	{
		Name: "benchmarks", Covers: "every benchmark with its smallest sizes",
		Packages: []string{"./test/benchmark/..."}, Needs: []string{"all", "upstream"}, Inputs: everything,
	},
	{
		Name: "faults-stored", Covers: "a leader killed, etcd full, slow or compacted, while stored objects are edited", Root: true,
		Packages: []string{disruption + "/stored"}, Needs: []string{"all"}, Env: []string{"FAULTS_SHORT=true"},
	},
	{
		Name: "faults", Covers: "disruptions one after another, in the short form", Root: true, Alone: true,
		Packages: []string{disruption}, Run: "^(TestDisruptionsOneAfterAnother|TestTheLeaderIsKilled)$",
		Needs: []string{"all"}, Env: []string{"FAULTS_SHORT=true"},
	},
	{
		Name: "quiet", Covers: "what a cluster writes while nothing happens", Root: true, Alone: true,
		Packages: []string{disruption}, Run: "^TestNoLoadAtRest$",
		Needs: []string{"all"}, Env: []string{"FAULTS_SHORT=false"},
	},
	{
		Name: "soak", Covers: "ten minutes of all disruptions at once, their history, and nothing is left", Root: true, Alone: true,
		Packages: []string{disruption}, Run: "^TestDisruptionsAtOnce$",
		Needs: []string{"all"}, Env: []string{"SOAK_DURATION=10m"},
	},
	{
		Name: "names", Covers: "4,000 processes, each with a name of its own, leave nothing in memory", Root: true, Alone: true,
		Packages: []string{disruption}, Run: "^TestNamesThatAreAlwaysNew$",
		Needs: []string{"all"}, Env: []string{"SOAK_NAMES=4"},
	},
}

// pagesToO selects pages. The shard that skips them runs all others, also new ones.
const pagesToO = "^TestPages$/^docs$/^[a-o]"

// Tests that one process takes by Run, another leaves out by Skip.
const (
	ofBinaries     = "^(TestBinariesUnderLoad|TestProcessesFollowServersOfBefore|TestServersServeProcessesOfBefore)$"
	quickAPI       = "^(TestPermissionsOfEachUser|TestKubectlFeature|TestReportsAreBounded|TestReportersAloneWaitForReporters|TestTheReportOfAProcessThatEndedIsDeleted|TestGateOffIsUpstream)$"
	quickProcesses = "^TestEveryBinaryTakesTheServersValues$"
	quickValues    = "^TestCrashLoopingCanaryHalted$"
)
