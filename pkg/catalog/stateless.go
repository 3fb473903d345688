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

// stateless are the features that leave nothing in etcd: what each does instead.
func stateless() []Entry {
	return []Entry{
		{Feature: named("APIResponseCompression"), Nothing: "response gzip"},
		{Feature: named("APIServingWithRoutine"), Nothing: "goroutine per request"},
		{Feature: named("AllowParsingUserUIDFromCertAuth"), Nothing: "x509 UID parsing"},
		{Feature: named("AllowUnsafeMalformedObjectDeletion"), Nothing: "DeleteOptions field, not stored"},
		{Feature: named("AtomicFIFO"), Nothing: "client-go"},
		{Feature: named("AuthorizePodWebsocketUpgradeCreatePermission"), Nothing: "authz"},
		{Feature: named("CRIListStreaming"), Nothing: "CRI RPC"},
		{Feature: named("CSIVolumeHealth"), Nothing: "kubelet stats"},
		{Feature: named("ClearingNominatedNodeNameAfterBinding"), Nothing: "clears existing field"},
		{Feature: named("ClientsAllowCARotation"), Nothing: "client-go"},
		{Feature: named("ClientsAllowCBOR"), Nothing: "wire format"},
		{Feature: named("ClientsAllowTLSCacheGC"), Nothing: "client-go"},
		{Feature: named("ClientsPreferCBOR"), Nothing: "wire format"},
		{Feature: named("CloudControllerManagerWatchBasedRoutesReconciliation"), Nothing: "CCM loop"},
		{Feature: named("CloudControllerManagerWebhook"), Nothing: "cloud-controller-manager webhook serving flags", Config: "cloud-controller-manager webhook serving flags"},
		{Feature: named("ComponentFlagz"), Nothing: "/flagz + RBAC rule", BootstrapRBAC: true},
		{Feature: named("ComponentStatusz"), Nothing: "/statusz + RBAC rule", BootstrapRBAC: true},
		{Feature: named("ConcurrentWatchObjectDecode"), Nothing: "watch decode"},
		{Feature: named("ConstrainedImpersonation"), Nothing: "authz (users may leave RBAC verbs behind)"},
		{Feature: named("ContextualLogging"), Nothing: "logging"},
		{Feature: named("ControllerManagerReleaseLeaderElectionLockOnExit"), Nothing: "lease release"},
		{Feature: named("DRAResourceClaimGranularStatusAuthorization"), Nothing: "authz on claim status + RBAC rules", BootstrapRBAC: true},
		{Feature: named("DRASchedulerFilterTimeout"), Nothing: "DynamicResourcesArgs.filterTimeout forbidden when off", Config: "DynamicResourcesArgs.filterTimeout forbidden when off"},
		{Feature: named("DeclarativeValidationBeta"), Nothing: "validation"},
		{Feature: named("DetectCacheInconsistency"), Nothing: "watch cache"},
		{Feature: named("EventedPLEG"), Nothing: "kubelet"},
		{Feature: named("ExtendWebSocketsToKubelet"), Nothing: "streaming"},
		{Feature: named("GangScheduling"), Nothing: "scheduler plugin"},
		{Feature: named("InOrderInformersBatchProcess"), Nothing: "client-go"},
		{Feature: named("KubeletCrashLoopBackOffMax"), Nothing: "KubeletConfiguration crashLoopBackOff.maxContainerRestartPeriod (rejected when off, required when on)", Config: "KubeletConfiguration crashLoopBackOff.maxContainerRestartPeriod (rejected when off, required when on)"},
		{Feature: named("KubeletInUserNamespace"), Nothing: "none persistent; rootless mode"},
		{Feature: named("KubeletSeparateDiskGC"), Nothing: "kubelet"},
		{Feature: named("KubeletServiceAccountTokenForCredentialProviders"), Nothing: "CredentialProviderConfig tokenAttributes Forbidden when off (kubelet fails)", Config: "CredentialProviderConfig tokenAttributes Forbidden when off (kubelet fails)", BootstrapRBAC: true},
		{Feature: named("ListFromCacheSnapshot"), Nothing: "watch cache"},
		{Feature: named("LoggingAlphaOptions"), Nothing: "--log-text-split-stream, --log-text-info-buffer-size, --log-json-* Forbidden when off", Config: "--log-text-split-stream, --log-text-info-buffer-size, --log-json-* Forbidden when off"},
		{Feature: named("LoggingBetaOptions"), Nothing: "JSON log format (--logging-format=json is registered under this gate)", Config: "JSON log format (--logging-format=json is registered under this gate)"},
		{Feature: named("ManifestBasedAdmissionControlConfig"), Nothing: "staticManifestsDir in AdmissionConfiguration files (--admission-control-config-file): start-up error when off; also reserves a name suffix on stored policies/webhooks", Config: "staticManifestsDir in AdmissionConfiguration files (--admission-control-config-file): start-up error when off; also reserves a name suffix on stored policies/webhooks"},
		{Feature: named("MutablePVNodeAffinity"), Nothing: "relaxed update validation"},
		{Feature: named("MutablePodResourcesForSuspendedJobs"), Nothing: "relaxed update validation"},
		{Feature: named("MutableSchedulingDirectivesForSuspendedJobs"), Nothing: "relaxed update validation"},
		{Feature: named("NativeHistograms"), Nothing: "metrics"},
		{Feature: named("NominatedNodeNameForExpectation"), Nothing: "writes existing pods .status.nominatedNodeName"},
		{Feature: named("OpenAPIEnums"), Nothing: "/openapi only"},
		{Feature: named("OpportunisticBatching"), Nothing: "scheduler"},
		{Feature: named("PLEGOnDemandRelist"), Nothing: "kubelet"},
		{Feature: named("PodAndContainerStatsFromCRI"), Nothing: "none persistent; stats source"},
		{Feature: named("PodDeletionCost"), Nothing: "reads annotation controller.kubernetes.io/pod-deletion-cost; validation relaxed when off"},
		{Feature: named("PodLogsQuerySplitStreams"), Nothing: "PodLogOptions, not stored"},
		{Feature: named("PortForwardWebsockets"), Nothing: "streaming"},
		{Feature: named("PreventStaticPodAPIReferences"), Nothing: "static pod check"},
		{Feature: named("ReduceDefaultCrashLoopBackOffDecay"), Nothing: "kubelet"},
		{Feature: named("ReloadKubeletClientCAFile"), Nothing: "kubelet"},
		{Feature: named("ReloadKubeletServerCertificateFile"), Nothing: "kubelet"},
		{Feature: named("RuntimeClassInImageCriApi"), Nothing: "CRI"},
		{Feature: named("SchedulerAsyncAPICalls"), Nothing: "scheduler"},
		{Feature: named("SchedulerAsyncPreemption"), Nothing: "scheduler"},
		{Feature: named("SchedulerPopFromBackoffQ"), Nothing: "scheduler"},
		{Feature: named("ServiceAccountNodeAudienceRestriction"), Nothing: "NodeRestriction admission"},
		{Feature: named("ShardedListAndWatch"), Nothing: "ListOptions/ListMeta only"},
		{Feature: named("SizeBasedListCostEstimate"), Nothing: "APF"},
		{Feature: named("StaleControllerConsistencyDaemonSet"), Nothing: "controller"},
		{Feature: named("StaleControllerConsistencyJob"), Nothing: "controller"},
		{Feature: named("StaleControllerConsistencyReplicaSet"), Nothing: "controller"},
		{Feature: named("StaleControllerConsistencyStatefulSet"), Nothing: "controller"},
		{Feature: named("StatefulSetSemanticRevisionComparison"), Nothing: "controller"},
		{Feature: named("StorageCapacityScoring"), Nothing: "VolumeBindingArgs.shape rejected when off", Config: "VolumeBindingArgs.shape rejected when off"},
		{Feature: named("StorageVersionHash"), Nothing: "discovery only"},
		{Feature: named("StrictIPCIDRValidation"), Nothing: "tightened create validation (off = looser)"},
		{Feature: named("StructuredAuthenticationConfigurationEgressSelector"), Nothing: "AuthenticationConfiguration issuer.egressSelectorType (--authentication-config)", Config: "AuthenticationConfiguration issuer.egressSelectorType (--authentication-config)"},
		{Feature: named("StructuredAuthenticationConfigurationJWKSMetrics"), Nothing: "only effective with --authentication-config", Config: "only effective with --authentication-config"},
		{Feature: named("TokenRequestServiceAccountUIDValidation"), Nothing: "authn"},
		{Feature: named("TranslateStreamCloseWebsocketRequests"), Nothing: "streaming"},
		{Feature: named("UnauthenticatedHTTP2DOSMitigation"), Nothing: "http2"},
		{Feature: named("UnlockWhileProcessingFIFO"), Nothing: "client-go"},
		{Feature: named("WatchCacheInitializationPostStartHook"), Nothing: "startup"},
		{Feature: named("WatchList"), Nothing: "list/watch"},
		{Feature: named("WatchListClient"), Nothing: "client-go"},
	}
}
