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

package controlplane

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/feature-lifecycle/agent"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/client/clientset/versioned/scheme"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/control"
	"k8s.io/feature-lifecycle/lifecycle/controller"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/reporting"
	featurestorage "k8s.io/kubernetes-features/pkg/registry/features/feature/storage"
	featuresrest "k8s.io/kubernetes-features/pkg/registry/features/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
)

const (
	// lifecycleHookName is the post-start hook that reports this server's gates
	// and runs the server flow.
	lifecycleHookName = "start-feature-lifecycle-controller"
	// userAgent is that of the server flow, in the audit log, too.
	userAgent = "feature-lifecycle"
	// lifecycleWorkers is the number of features that are reconciled
	// concurrently. Each pass is short; tasks run beside it.
	lifecycleWorkers = 4
	// readyPatience is the time for which the server flow lets the server become ready
	// first. Some servers do not become ready before a task has run
	// (lifecycle.Task.BlocksStartup).
	readyPatience = 5 * time.Second
	readyPeriod   = 200 * time.Millisecond
)

// addLifecycleHooks makes the server report its gates and run the server flow
// while it serves. The hooks that are given lack what is made here; the token is the
// server flow's.
func addLifecycleHooks(server *controlplaneapiserver.Server, hooks *lifecycleHooks, flowToken string, features []lifecycle.Feature, settings transition.Settings) error {
	generic := server.GenericAPIServer
	own, err := newLifecycleClients(generic.LoopbackClientConfig)
	if err != nil {
		return fmt.Errorf("feature lifecycle: %w", err)
	}
	hooks.own = own
	hooks.clients, err = newLifecycleClients(withToken(generic.LoopbackClientConfig, flowToken))
	if err != nil {
		return fmt.Errorf("feature lifecycle: %w", err)
	}
	collector, err := newCollectorClient(generic.LoopbackClientConfig)
	if err != nil {
		return fmt.Errorf("feature lifecycle: %w", err)
	}
	serverID, err := instance(generic)
	if err != nil {
		return fmt.Errorf("feature lifecycle: %w", err)
	}
	if hooks.agent, err = newAgent(own, serverID, hooks.control); err != nil {
		return fmt.Errorf("feature lifecycle: %w", err)
	}
	hooks.looking = make(chan struct{})
	hooks.leases = leaseInformers(hooks.clients.kube)
	hooks.broadcaster = record.NewBroadcaster()
	gates, binary := reporting.Install(), compatibility.DefaultComponentGlobalsRegistry.EffectiveVersionFor(basecompatibility.DefaultKubeComponent).BinaryVersion()
	hooks.controller, err = controller.New(controller.Config{
		Namespace:    metav1.NamespaceSystem,
		Component:    controlplaneapiserver.KubeAPIServer,
		ServerID:     serverID,
		Features:     features,
		Specs:        gates.GetAllVersioned(),
		SpecsUpTo:    utilversion.MajorMinor(binary.Major(), binary.Minor()),
		SpecsFrom:    utilversion.MajorMinor(binary.Major(), binary.Minor()).SubtractMinor(catalog.EmulatedMinors),
		Dependencies: gates.Dependencies(),
		NotServed:    func(feature string) []string { return hooks.notServed[feature] },
		Settings:     explicit(settings),
		Client:       hooks.clients.features,
		Tasks: task.Clients{
			Dynamic: hooks.clients.dynamic, Metadata: hooks.clients.metadata, Mapper: hooks.clients.mapper,
			HasField: func(resource schema.GroupVersionResource, path string) bool {
				return catalog.HasField(legacyscheme.Scheme, resource, path)
			},
			Storage: hooks.stored, Editor: hooks.editor(), Collector: &task.Collector{Discovery: hooks.clients.kube.Discovery(), Metadata: collector},
		},
		Leases: hooks.leases,
		IsIdentity: func(lease *coordinationv1.Lease) bool {
			return lease.Labels[controlplaneapiserver.IdentityLeaseComponentLabelKey] == controlplaneapiserver.KubeAPIServer
		},
		Nodes:    server.VersionedInformers.Core().V1().Nodes(),
		Recorder: hooks.broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "feature-lifecycle"}),
	})
	if err != nil {
		return fmt.Errorf("feature lifecycle: %w", err)
	}
	if err := generic.AddPostStartHook(lifecycleHookName, hooks.start); err != nil {
		return err
	}
	return generic.AddPreShutdownHook(lifecycleHookName, hooks.shutDown)
}

// editor returns what edits stored objects, nil if nothing does.
func (h *lifecycleHooks) editor() task.Editor {
	if h.throughAPI {
		return nil
	}
	return NewEditor(h.stored, EditorConfig{
		Namespaces: h.clients.kube.CoreV1().Namespaces(), Authorizer: h.authorizer, Definition: h.definition,
		AuditBackend: h.audit.backend, AuditPolicy: h.audit.policy,
	})
}

// lifecycleHooks start and end what runs while the server serves.
type lifecycleHooks struct {
	// notServed are the APIs that gates need and this server lacks, by gate.
	notServed map[string][]string
	// own are clients of the server itself, clients those of the server flow.
	own     *lifecycleClients
	clients *lifecycleClients
	// agent reports this server's gates and takes the values of its dynamic features.
	agent       *agent.Agent
	controller  *controller.Controller
	leases      []cache.SharedIndexInformer
	broadcaster record.EventBroadcaster
	flow        *featurestorage.Flow
	stored      *Stored
	// throughAPI has fields cleared through the API, and audit logs what is edited in
	// storage otherwise.
	throughAPI bool
	audit      auditor
	definition func(name string) (*apiextensionsv1.CustomResourceDefinition, error)
	authorizer authorizer.UnconditionalAuthorizer
	control    control.Options
	// started is closed when reporting begins, looking when the server flow
	// begins to reconcile features.
	started atomic.Bool
	looking chan struct{}
}

// start reports this server's gates, then runs the server flow.
func (h *lifecycleHooks) start(hook genericapiserver.PostStartHookContext) error {
	h.started.Store(true)
	// The server is ready only once it has the values that were set through the API.
	h.agent.Load(hook)
	// The hook's context ends when no new requests are accepted.
	go h.agent.Run(hook)
	go func() {
		defer h.stored.Close() //nolint:errcheck // the process ends
		// Other servers must not mistake the report of an earlier process for
		// this one's, and neither must this one.
		select {
		case <-h.agent.Started():
		case <-hook.Done():
			return
		}
		if !h.waitForPermission(hook) {
			return
		}
		h.letBecomeReady(hook, readyPatience)
		for _, informer := range h.leases {
			go informer.RunWithContext(hook)
		}
		h.broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: h.clients.kube.CoreV1().Events("")})
		defer h.broadcaster.Shutdown()
		// A plan made before the caches are complete would be wrong.
		h.controller.Run(hook, lifecycleWorkers, func() {
			h.flow.Set(h.controller)
			close(h.looking)
		})
	}()
	h.valuesWait().wait(hook)
	return nil
}

// waitForPermission waits until the server flow's identity may do what it does:
// the first server of a cluster writes the roles a moment after it starts to
// serve. It returns false when the server ends first.
func (h *lifecycleHooks) waitForPermission(ctx context.Context) bool {
	const patience = 30 * time.Second
	begun, told := time.Now(), false
	// Asking the authorizer of this process is cheap, unless it is a webhook.
	pause := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 1.2, Steps: 25, Cap: 10 * time.Second}
	err := pause.DelayFunc().Until(ctx, true, false, func(ctx context.Context) (bool, error) {
		missing := h.missingPermission(ctx)
		if missing != "" && !told && time.Since(begun) > patience {
			told = true
			klog.FromContext(ctx).Error(nil, "The server flow of feature gates waits for permissions; without RBAC the authorizer has to permit it what the roles system:feature-lifecycle say, and discovery",
				"user", featurestorage.FlowUser, "missing", missing)
		}
		return missing == "", nil
	})
	return err == nil
}

// letBecomeReady lets the first server of a cluster become ready first. The server flow
// makes some hundred Features then, which takes a second of processor time that other
// hooks need. Where components take values from here they wait for the Features, and so
// does the server (valuesWait); and existing Features are corrected before components
// use them.
func (h *lifecycleHooks) letBecomeReady(ctx context.Context, patience time.Duration) {
	if len(h.control.Names()) > 0 {
		return
	}
	some, err := h.own.features.FeaturesV1alpha1().Features(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil || len(some.Items) > 0 {
		return
	}
	ready := h.own.kube.Discovery().RESTClient()
	_ = wait.PollUntilContextTimeout(ctx, readyPeriod, patience, true, func(ctx context.Context) (bool, error) {
		return ready.Get().AbsPath("/readyz").Do(ctx).Error() == nil, nil
	})
}

// missingPermission returns the first permission that the server flow does not
// have, "" when there is none. Tasks report theirs themselves.
func (h *lifecycleHooks) missingPermission(ctx context.Context) string {
	flow := &user.DefaultInfo{Name: featurestorage.FlowUser, Groups: []string{user.AllAuthenticated}}
	for namespace, rules := range featuresrest.FlowRules() {
		for _, rule := range rules {
			resource, subresource, _ := strings.Cut(rule.Resources[0], "/")
			for _, verb := range rule.Verbs {
				decision, reason, err := h.authorizer.Authorize(ctx, authorizer.AttributesRecord{
					User: flow, Verb: verb, Namespace: namespace, APIGroup: rule.APIGroups[0], APIVersion: "*", Resource: resource, Subresource: subresource, ResourceRequest: true,
				})
				if decision != authorizer.DecisionAllow {
					return fmt.Sprintf("%s %s in %s: %s %v", verb, rule.Resources[0], namespace, reason, err)
				}
			}
		}
	}
	return ""
}

// shutDown marks the report of this server as terminating. The server still
// serves for a while, --shutdown-delay-duration and longer, and its
// configuration counts until then. The report stays, and its Lease is renewed
// until no new request is accepted. Another server deletes the report once the
// Lease has lapsed. Upstream deletes the identity Lease at this point already
// (component-helpers/apimachinery/lease).
func (h *lifecycleHooks) shutDown() error {
	if h.started.Load() {
		h.agent.MarkTerminating(context.Background())
	}
	return nil
}

// instance returns the name of this server among others: its identity, and
// without the gate APIServerIdentity the name of the host and the port.
func instance(server *genericapiserver.GenericAPIServer) (string, error) {
	if server.APIServerID != "" {
		return server.APIServerID, nil
	}
	return reporting.Instance()
}

// lifecycleClients are loopback clients.
type lifecycleClients struct {
	features versioned.Interface
	kube     kubernetes.Interface
	dynamic  dynamic.Interface
	metadata metadata.Interface
	mapper   meta.ResettableRESTMapper
}

// newLifecycleClients makes clients of this server.
func newLifecycleClients(loopback *rest.Config) (*lifecycleClients, error) {
	config := rest.CopyConfig(loopback)
	config.UserAgent = userAgent
	// Creating Features needs a few hundred writes at the very first start. Clearing a
	// field needs one for each object. The default of 50 a second would limit
	// that.
	config.QPS = -1
	clients := &lifecycleClients{}
	var err error
	if clients.features, err = versioned.NewForConfig(config); err != nil {
		return nil, err
	}
	if clients.kube, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	clients.mapper = task.NewMapper(clients.kube.Discovery())
	if clients.metadata, err = metadata.NewForConfig(config); err != nil {
		return nil, err
	}
	clients.dynamic, err = task.NewDynamicClient(config)
	return clients, err
}

// leaseInformers watch the identities of servers and the Leases of reporters,
// and no others: a cluster's nodes renew thousands.
func leaseInformers(client kubernetes.Interface) []cache.SharedIndexInformer {
	watched := func(namespace, selector string) cache.SharedIndexInformer {
		return informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace),
			informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = selector })).
			Coordination().V1().Leases().Informer()
	}
	return []cache.SharedIndexInformer{
		watched(metav1.NamespaceSystem, controlplaneapiserver.IdentityLeaseComponentLabelKey+"="+controlplaneapiserver.KubeAPIServer),
		watched(metav1.NamespaceSystem, v1alpha1.LabelComponent+"="+controlplaneapiserver.KubeAPIServer),
		watched(v1alpha1.LeaseNamespace, ""),
	}
}
