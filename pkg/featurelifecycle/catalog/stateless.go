/*
Copyright 2026 The Kubernetes Authors.

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

import "slices"

// stateless are the features that leave nothing in etcd: what each does instead.
func stateless() []Entry {
	return slices.Concat(statelessServer(), statelessComponents())
}

// statelessServer are those of kube-apiserver and of its clients' library.
func statelessServer() []Entry {
	return []Entry{
		{Feature: named("APIResponseCompression"), Nothing: "kube-apiserver compresses large responses"},
		{Feature: named("APIServingWithRoutine"), Nothing: "kube-apiserver serves each long-running request in a goroutine of its own"},
		{Feature: named("AllowParsingUserUIDFromCertAuth"), Nothing: "kube-apiserver reads the user's UID from client certificates"},
		{Feature: named("AllowUnsafeMalformedObjectDeletion"), Nothing: "kube-apiserver accepts the delete option ignoreStoreReadErrorWithClusterBreakingPotential, a parameter of requests"},
		{Feature: named("AtomicFIFO"), Nothing: "client-go's informers process a list's events as one, in memory"},
		{Feature: named("AuthorizePodWebsocketUpgradeCreatePermission"), Nothing: "kube-apiserver asks for the verb create on pods/exec, pods/attach and pods/portforward with WebSockets, too"},
		{Feature: named("ClearingNominatedNodeNameAfterBinding"), Nothing: "kube-apiserver empties status.nominatedNodeName, an older field, when a pod is bound, and refuses to set it afterwards"},
		{Feature: named("ClientsAllowCARotation"), Nothing: "client-go reloads CA bundles from files"},
		{Feature: named("ClientsAllowCBOR"), Nothing: "clients may exchange CBOR with the server; the server's own gate CBORServingAndStorage decides what is stored"},
		{Feature: named("ClientsAllowTLSCacheGC"), Nothing: "client-go drops TLS transports that nobody uses from its cache"},
		{Feature: named("ClientsPreferCBOR"), Nothing: "clients send and ask for CBOR first; the server's own gate CBORServingAndStorage decides what is stored"},
		{Feature: named("ConcurrentWatchObjectDecode"), Nothing: "kube-apiserver decodes the events of a watch from etcd concurrently"},
		{Feature: named("ConstrainedImpersonation"), Nothing: "kube-apiserver also permits impersonation by the verbs impersonate:… and impersonate-on:…; RBAC rules with such verbs are their authors' and permit nothing while it is off"},
		{Feature: named("DRAResourceClaimGranularStatusAuthorization"), Nothing: "kube-apiserver asks for more verbs when the status of a ResourceClaim is changed", BootstrapRBAC: true},
		{Feature: named("DeclarativeValidationBeta"), Nothing: "kube-apiserver enforces declarative validation rules of the beta stage: it refuses more"},
		{Feature: named("DetectCacheInconsistency"), Nothing: "kube-apiserver compares the watch cache with etcd, which it only reads"},
		{Feature: named("InOrderInformersBatchProcess"), Nothing: "client-go's informers process events in batches, in memory"},
		{Feature: named("ListFromCacheSnapshot"), Nothing: "kube-apiserver answers lists from snapshots of the watch cache, in memory"},
		{Feature: named("ManifestBasedAdmissionControlConfig"), Nothing: "kube-apiserver reads admission webhooks and policies from files and refuses to create stored ones whose name has their suffix", Config: "staticManifestsDir in the files of kube-apiserver's --admission-control-config-file"},
		{Feature: named("MutablePVNodeAffinity"), Nothing: "kube-apiserver permits a change of spec.nodeAffinity of PersistentVolumes, an older field"},
		{Feature: named("MutablePodResourcesForSuspendedJobs"), Nothing: "kube-apiserver permits a change of the resources in the template of suspended Jobs, an older field"},
		{Feature: named("MutableSchedulingDirectivesForSuspendedJobs"), Nothing: "kube-apiserver permits a change of the template of Jobs that ran before, and the controller empties status.startTime when it suspends them; the fields are older"},
		{Feature: named("OpenAPIEnums"), Nothing: "kube-apiserver publishes the enums of fields in /openapi"},
		{Feature: named("PodLogsQuerySplitStreams"), Nothing: "kube-apiserver and kubelet accept the option stream of pods/log, a parameter of requests"},
		{Feature: named("PortForwardWebsockets"), Nothing: "kube-apiserver translates port-forwards from WebSockets for kubelets"},
		{Feature: named("ServiceAccountNodeAudienceRestriction"), Nothing: "admission NodeRestriction limits the audiences for which kubelets request tokens"},
		{Feature: named("ShardedListAndWatch"), Nothing: "kube-apiserver accepts a shard selector in lists and watches, a parameter of requests"},
		{Feature: named("SizeBasedListCostEstimate"), Nothing: "kube-apiserver estimates the cost of lists by the size of objects"},
		{Feature: named("StorageVersionHash"), Nothing: "kube-apiserver publishes a hash of the storage version in discovery"},
		{Feature: named("StrictIPCIDRValidation"), Nothing: "kube-apiserver refuses ambiguous IP addresses and CIDRs in fields in which they are new"},
		{Feature: named("StructuredAuthenticationConfigurationEgressSelector"), Nothing: "kube-apiserver reaches the issuers of its authentication configuration through an egress proxy", Config: "issuer.egressSelectorType in the file of kube-apiserver's --authentication-config"},
		{Feature: named("StructuredAuthenticationConfigurationJWKSMetrics"), Nothing: "kube-apiserver exposes metrics of the keys of its token issuers"},
		{Feature: named("TokenRequestServiceAccountUIDValidation"), Nothing: "kube-apiserver checks the UID in a TokenRequest"},
		{Feature: named("TranslateStreamCloseWebsocketRequests"), Nothing: "kube-apiserver translates exec and attach from WebSockets for kubelets"},
		{Feature: named("UnauthenticatedHTTP2DOSMitigation"), Nothing: "kube-apiserver closes HTTP/2 connections of unauthenticated clients"},
		{Feature: named("UnlockWhileProcessingFIFO"), Nothing: "client-go's informers accept events while they process others"},
		{Feature: named("WatchCacheInitializationPostStartHook"), Nothing: "kube-apiserver is ready only when its watch caches are"},
		{Feature: named("WatchList"), Nothing: "kube-apiserver streams lists as watches"},
		{Feature: named("WatchListClient"), Nothing: "client-go's informers ask for lists as watches"},
	}
}

// statelessComponents are those of kubelet, of the scheduler and the controllers,
// and of all binaries.
func statelessComponents() []Entry {
	return []Entry{
		{Feature: named("CRIListStreaming"), Nothing: "kubelet lists containers, sandboxes and images by streaming calls to the runtime"},
		{Feature: named("CSIVolumeHealth"), Nothing: "kubelet reports the condition of volumes in its statistics and in Events, which expire"},
		{Feature: named("CloudControllerManagerWatchBasedRoutesReconciliation"), Nothing: "cloud-controller-manager's route controller reconciles when nodes change instead of by time only"},
		{Feature: named("CloudControllerManagerWebhook"), Nothing: "cloud-controller-manager serves webhooks; its flags --webhook… do nothing while it is off"},
		{Feature: named("ComponentFlagz"), Nothing: "components serve /flagz", BootstrapRBAC: true},
		{Feature: named("ComponentStatusz"), Nothing: "components serve /statusz", BootstrapRBAC: true},
		{Feature: named("ContextualLogging"), Nothing: "components log with a logger from the context"},
		{Feature: central("ControllerManagerReleaseLeaderElectionLockOnExit"), Nothing: "kube-controller-manager gives its Lease back when it exits, as an expired one would be taken"},
		{Feature: named("DRASchedulerFilterTimeout"), Nothing: "kube-scheduler ends the search for devices for one node after a time", Config: "filterTimeout of DynamicResourcesArgs in kube-scheduler's configuration"},
		{Feature: named("EventedPLEG"), Nothing: "kubelet learns from the runtime's events what its containers do"},
		{Feature: central("GangScheduling"), Nothing: "kube-scheduler runs the plugin GangScheduling; the policy that it reads belongs to PodGroups, which are there with GenericWorkload", APIs: []API{workloadsAPI}},
		{Feature: named("KubeletCrashLoopBackOffMax"), Nothing: "kubelet takes the longest pause between restarts from its configuration", Config: "crashLoopBackOff.maxContainerRestartPeriod in kubelet's configuration"},
		{Feature: named("KubeletInUserNamespace"), Nothing: "kubelet ignores errors of kernel settings, as in a user namespace they cannot be made"},
		{Feature: named("KubeletSeparateDiskGC"), Nothing: "kubelet's eviction handles images and containers on separate file systems"},
		{Feature: named("KubeletServiceAccountTokenForCredentialProviders"), Nothing: "kubelet hands tokens of service accounts to plugins for image credentials", Config: "tokenAttributes in the file of kubelet's --image-credential-provider-config", Node: "records in <root>/image_manager/pulled name the service account that pulled an image; kubelet prunes them when the image is gone", BootstrapRBAC: true},
		{Feature: named("LoggingAlphaOptions"), Nothing: "components log with options that are alpha", Config: "--log-text-split-stream, --log-text-info-buffer-size, --log-json-split-stream, --log-json-info-buffer-size and the same in logging.options of configuration files, of every binary"},
		{Feature: named("LoggingBetaOptions"), Nothing: "components log with options that are beta: the format JSON", Config: "--logging-format=json and logging.format of configuration files, of every binary"},
		{Feature: named("NativeHistograms"), Nothing: "components expose native histograms as metrics"},
		{Feature: central("NominatedNodeNameForExpectation"), Nothing: "kube-scheduler sets status.nominatedNodeName, an older field, in pods that it is about to bind, too"},
		{Feature: central("OpportunisticBatching"), Nothing: "kube-scheduler reuses the result of one pod for others that are alike, in memory"},
		{Feature: named("PLEGOnDemandRelist"), Nothing: "kubelet lists the containers of a single pod when it needs them"},
		{Feature: named("PodAndContainerStatsFromCRI"), Nothing: "kubelet takes statistics of pods and containers from the runtime instead of cAdvisor"},
		{Feature: dynamic("PodDeletionCost"), Nothing: "kube-controller-manager reads the annotation controller.kubernetes.io/pod-deletion-cost of Pods; only users write it, and they may whether the gate is on or off"},
		{Feature: named("PreventStaticPodAPIReferences"), Nothing: "kubelet refuses static pods that refer to API objects"},
		{Feature: named("ReduceDefaultCrashLoopBackOffDecay"), Nothing: "kubelet uses shorter pauses between restarts"},
		{Feature: named("ReloadKubeletClientCAFile"), Nothing: "kubelet reloads its client CA file when it changes"},
		{Feature: named("ReloadKubeletServerCertificateFile"), Nothing: "kubelet reloads its serving certificate when the file changes"},
		{Feature: named("RuntimeClassInImageCriApi"), Nothing: "kubelet names the runtime class when it pulls an image, and keeps account of images by it in memory"},
		{Feature: central("SchedulerAsyncAPICalls"), Nothing: "kube-scheduler sends its API calls from a queue"},
		{Feature: central("SchedulerAsyncPreemption"), Nothing: "kube-scheduler preempts in the background"},
		{Feature: central("SchedulerPopFromBackoffQ"), Nothing: "kube-scheduler takes pods that back off when no others wait"},
		{Feature: central("StaleControllerConsistencyDaemonSet"), Nothing: "the DaemonSet controller waits until its informers have its own writes"},
		{Feature: central("StaleControllerConsistencyJob"), Nothing: "the Job controller waits until its informers have its own writes"},
		{Feature: central("StaleControllerConsistencyReplicaSet"), Nothing: "the ReplicaSet controller waits until its informers have its own writes"},
		{Feature: central("StaleControllerConsistencyStatefulSet"), Nothing: "the StatefulSet controller waits until its informers have its own writes"},
		{Feature: dynamic("StatefulSetSemanticRevisionComparison"), Nothing: "the StatefulSet controller compares ControllerRevisions by what they mean and so writes fewer"},
		{Feature: named("StorageCapacityScoring"), Nothing: "kube-scheduler scores nodes by their storage capacity", Config: "shape of VolumeBindingArgs in kube-scheduler's configuration"},
	}
}
