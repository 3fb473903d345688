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

// stateless has the features that leave nothing in etcd, with the effect of
// each.
var stateless = []Entry{
	{Feature: named("APIResponseCompression"), Stateless: "kube-apiserver compresses large responses"},
	{Feature: named("APIServingWithRoutine"), Stateless: "kube-apiserver serves each long-running request in a goroutine of its own"},
	{Feature: named("AllowParsingUserUIDFromCertAuth"), Stateless: "kube-apiserver reads the user's UID from client certificates"},
	{Feature: named("AllowUnsafeMalformedObjectDeletion"), Stateless: "kube-apiserver accepts the delete option ignoreStoreReadErrorWithClusterBreakingPotential, a parameter of requests"},
	{Feature: named("AtomicFIFO"), Stateless: "client-go's informers process a list's events as one, in memory"},
	{Feature: named("AuthorizePodWebsocketUpgradeCreatePermission"), Stateless: "kube-apiserver asks for the verb create on pods/exec, pods/attach and pods/portforward with WebSockets, too"},
	{Feature: named("ClearingNominatedNodeNameAfterBinding"), Stateless: "kube-apiserver empties status.nominatedNodeName, an older field, when a pod is bound, and refuses to set it afterwards"},
	{Feature: named("ClientsAllowCARotation"), Stateless: "client-go reloads CA bundles from files"},
	{Feature: named("ClientsAllowCBOR"), Stateless: "clients may exchange CBOR with the server; the server's own gate CBORServingAndStorage decides what is stored"},
	{Feature: named("ClientsAllowTLSCacheGC"), Stateless: "client-go drops unused TLS transports from its cache"},
	{Feature: named("ClientsPreferCBOR"), Stateless: "clients send and ask for CBOR first; the server's own gate CBORServingAndStorage decides what is stored"},
	{Feature: named("ConcurrentWatchObjectDecode"), Stateless: "kube-apiserver decodes the events of a watch from etcd concurrently"},
	{Feature: named("ConstrainedImpersonation"), Stateless: "kube-apiserver also permits impersonation by the verbs impersonate:… and impersonate-on:…; RBAC rules with such verbs are their authors' and permit nothing while it is off"},
	{Feature: named("DRAResourceClaimGranularStatusAuthorization"), Stateless: "kube-apiserver asks for more verbs when the status of a ResourceClaim is changed", BootstrapRBAC: true},
	{Feature: named("DeclarativeValidationBeta"), Stateless: "kube-apiserver enforces declarative validation rules of the beta stage: it refuses more"},
	{Feature: named("DetectCacheInconsistency"), Stateless: "kube-apiserver compares the watch cache with etcd, which it only reads"},
	{Feature: named("InOrderInformersBatchProcess"), Stateless: "client-go's informers process events in batches, in memory"},
	{Feature: named("ListFromCacheSnapshot"), Stateless: "kube-apiserver answers lists from snapshots of the watch cache, in memory"},
	{Feature: named("ManifestBasedAdmissionControlConfig"), Stateless: "kube-apiserver reads admission webhooks and policies from files and refuses to create stored ones whose name has their suffix", Config: "staticManifestsDir in the files of kube-apiserver's --admission-control-config-file"},
	{Feature: named("MutablePVNodeAffinity"), Stateless: "kube-apiserver permits a change of spec.nodeAffinity of PersistentVolumes, an older field"},
	{Feature: named("MutablePodResourcesForSuspendedJobs"), Stateless: "kube-apiserver permits a change of the resources in the template of suspended Jobs, an older field"},
	{Feature: named("MutableSchedulingDirectivesForSuspendedJobs"), Stateless: "kube-apiserver permits a change of the template of Jobs that ran before, and the controller empties status.startTime when it suspends them; the fields are older"},
	{Feature: named("OpenAPIEnums"), Stateless: "kube-apiserver publishes the enums of fields in /openapi"},
	{Feature: named("PodLogsQuerySplitStreams"), Stateless: "kube-apiserver and kubelet accept the option stream of pods/log, a parameter of requests"},
	{Feature: named("PortForwardWebsockets"), Stateless: "kube-apiserver translates port-forwards from WebSockets for kubelets"},
	{Feature: named("ServiceAccountNodeAudienceRestriction"), Stateless: "admission NodeRestriction limits the audiences for which kubelets request tokens"},
	{Feature: named("ShardedListAndWatch"), Stateless: "kube-apiserver accepts a shard selector in lists and watches, a parameter of requests"},
	{Feature: named("SizeBasedListCostEstimate"), Stateless: "kube-apiserver estimates the cost of lists by the size of objects"},
	{Feature: named("StorageVersionHash"), Stateless: "kube-apiserver publishes a hash of the storage version in discovery"},
	{Feature: named("StrictIPCIDRValidation"), Stateless: "kube-apiserver refuses ambiguous IP addresses and CIDRs in fields in which they are new"},
	{Feature: named("StructuredAuthenticationConfigurationEgressSelector"), Stateless: "kube-apiserver reaches the issuers of its authentication configuration through an egress proxy", Config: "issuer.egressSelectorType in the file of kube-apiserver's --authentication-config"},
	{Feature: named("StructuredAuthenticationConfigurationJWKSMetrics"), Stateless: "kube-apiserver exposes metrics of the keys of its token issuers"},
	{Feature: named("TokenRequestServiceAccountUIDValidation"), Stateless: "kube-apiserver checks the UID in a TokenRequest"},
	{Feature: named("TranslateStreamCloseWebsocketRequests"), Stateless: "kube-apiserver translates exec and attach from WebSockets for kubelets"},
	{Feature: named("UnauthenticatedHTTP2DOSMitigation"), Stateless: "kube-apiserver closes HTTP/2 connections of unauthenticated clients"},
	{Feature: named("UnlockWhileProcessingFIFO"), Stateless: "client-go's informers accept events while they process others"},
	{Feature: named("WatchCacheInitializationPostStartHook"), Stateless: "kube-apiserver is ready only when its watch caches are"},
	{Feature: named("WatchList"), Stateless: "kube-apiserver streams lists as watches"},
	{Feature: named("WatchListClient"), Stateless: "client-go's informers ask for lists as watches"},
	{Feature: named("CRIListStreaming"), Stateless: "kubelet lists containers, sandboxes and images by streaming calls to the runtime"},
	{Feature: named("CSIVolumeHealth"), Stateless: "kubelet reports the condition of volumes in its statistics and in Events, which expire"},
	{Feature: named("CloudControllerManagerWatchBasedRoutesReconciliation"), Stateless: "cloud-controller-manager's route controller reconciles when nodes change instead of by time only"},
	{Feature: named("CloudControllerManagerWebhook"), Stateless: "cloud-controller-manager serves webhooks; its flags --webhook… do nothing while it is off"},
	{Feature: named("ComponentFlagz"), Stateless: "components serve /flagz", BootstrapRBAC: true},
	{Feature: named("ComponentStatusz"), Stateless: "components serve /statusz", BootstrapRBAC: true},
	{Feature: named("ContextualLogging"), Stateless: "components log with a logger from the context"},
	{Feature: central("ControllerManagerReleaseLeaderElectionLockOnExit"), Stateless: "kube-controller-manager gives its Lease back when it exits, as an expired one would be taken"},
	{Feature: named("DRASchedulerFilterTimeout"), Stateless: "kube-scheduler ends the search for devices for one node after a time", Config: "filterTimeout of DynamicResourcesArgs in kube-scheduler's configuration"},
	{Feature: named("EventedPLEG"), Stateless: "kubelet learns from the runtime's events what its containers do"},
	{Feature: central("GangScheduling"), Stateless: "kube-scheduler runs the plugin GangScheduling; the policy that it reads belongs to PodGroups, which are there with GenericWorkload", APIs: []API{workloadsAPI}},
	{Feature: named("KubeletCrashLoopBackOffMax"), Stateless: "kubelet takes the longest pause between restarts from its configuration", Config: "crashLoopBackOff.maxContainerRestartPeriod in kubelet's configuration"},
	{Feature: named("KubeletInUserNamespace"), Stateless: "kubelet ignores errors of kernel settings, as in a user namespace they cannot be made"},
	{Feature: named("KubeletSeparateDiskGC"), Stateless: "kubelet's eviction handles images and containers on separate file systems"},
	{Feature: named("KubeletServiceAccountTokenForCredentialProviders"), Stateless: "kubelet hands tokens of service accounts to plugins for image credentials", Config: "tokenAttributes in the file of kubelet's --image-credential-provider-config", Node: "records in <root>/image_manager/pulled name the service account that pulled an image; kubelet prunes them when the image is gone", BootstrapRBAC: true},
	{Feature: named("LoggingAlphaOptions"), Stateless: "components log with options that are alpha", Config: "--log-text-split-stream, --log-text-info-buffer-size, --log-json-split-stream, --log-json-info-buffer-size and the same in logging.options of configuration files, of every binary"},
	{Feature: named("LoggingBetaOptions"), Stateless: "components log with options that are beta: the format JSON", Config: "--logging-format=json and logging.format of configuration files, of every binary"},
	{Feature: named("NativeHistograms"), Stateless: "components expose native histograms as metrics"},
	{Feature: central("NominatedNodeNameForExpectation"), Stateless: "kube-scheduler sets status.nominatedNodeName, an older field, in pods that it is about to bind, too"},
	{Feature: central("OpportunisticBatching"), Stateless: "kube-scheduler reuses the result of one pod for others that are alike, in memory"},
	{Feature: named("PLEGOnDemandRelist"), Stateless: "kubelet lists the containers of a single pod when it needs them"},
	{Feature: named("PodAndContainerStatsFromCRI"), Stateless: "kubelet takes statistics of pods and containers from the runtime instead of cAdvisor"},
	{Feature: dynamic("PodDeletionCost"), Stateless: "kube-controller-manager reads the annotation controller.kubernetes.io/pod-deletion-cost of Pods; only users write it, and they may whether the gate is on or off"},
	{Feature: named("PreventStaticPodAPIReferences"), Stateless: "kubelet refuses static pods that refer to API objects"},
	{Feature: named("ReduceDefaultCrashLoopBackOffDecay"), Stateless: "kubelet uses shorter pauses between restarts"},
	{Feature: named("ReloadKubeletClientCAFile"), Stateless: "kubelet reloads its client CA file when it changes"},
	{Feature: named("ReloadKubeletServerCertificateFile"), Stateless: "kubelet reloads its serving certificate when the file changes"},
	{Feature: named("RuntimeClassInImageCriApi"), Stateless: "kubelet names the runtime class when it pulls an image, and keeps account of images by it in memory"},
	{Feature: central("SchedulerAsyncAPICalls"), Stateless: "kube-scheduler sends its API calls from a queue"},
	{Feature: central("SchedulerAsyncPreemption"), Stateless: "kube-scheduler preempts in the background"},
	{Feature: central("SchedulerPopFromBackoffQ"), Stateless: "kube-scheduler takes pods that back off when no others wait"},
	{Feature: central("StaleControllerConsistencyDaemonSet"), Stateless: "the DaemonSet controller waits until its informers have its own writes"},
	{Feature: central("StaleControllerConsistencyJob"), Stateless: "the Job controller waits until its informers have its own writes"},
	{Feature: central("StaleControllerConsistencyReplicaSet"), Stateless: "the ReplicaSet controller waits until its informers have its own writes"},
	{Feature: central("StaleControllerConsistencyStatefulSet"), Stateless: "the StatefulSet controller waits until its informers have its own writes"},
	{Feature: dynamic("StatefulSetSemanticRevisionComparison"), Stateless: "the StatefulSet controller compares ControllerRevisions by what they mean and so writes fewer"},
	{Feature: named("StorageCapacityScoring"), Stateless: "kube-scheduler scores nodes by their storage capacity", Config: "shape of VolumeBindingArgs in kube-scheduler's configuration"},
}
