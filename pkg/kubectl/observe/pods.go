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

package observe

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/yaml"
)

// metricsPorts are those on which components serve metrics, and how.
var metricsPorts = map[string]string{
	ControllerManager: "https:%s:10257", Scheduler: "https:%s:10259", Proxy: "http:%s:10249",
}

// systemPod is a Pod of kube-system with one of the components that it runs.
type systemPod struct {
	corev1.Pod
	line commandLine
}

// systemPods reads the components that run as Pods. Their command lines tell them from
// others: installers label them differently.
func (r *reader) systemPods(ctx context.Context) {
	pods, err := r.pods(ctx)
	if err != nil {
		why, next := explain(ctx, err, "list pods in the namespace kube-system")
		for _, component := range podComponents {
			r.gap(Gap{Component: component, Why: why, Next: next})
		}
		return
	}
	var proxies []systemPod
	var all sync.WaitGroup
	seen := map[string]bool{}
	r.expect(len(pods))
	for _, pod := range pods {
		seen[pod.line.component] = true
		switch pod.line.component {
		case APIServer:
			r.serverPods = append(r.serverPods, pod)
			r.finish()
		case Proxy:
			proxies = append(proxies, pod)
		default:
			all.Go(func() {
				r.pod(ctx, pod)
				r.finish()
			})
		}
	}
	for _, component := range podComponents {
		if !seen[component] {
			r.gap(Gap{Component: component, Why: "no Pod that runs it was found in kube-system", Next: "the address of its metrics"})
		}
	}
	if len(proxies) > 0 {
		r.proxies(ctx, proxies)
	}
	all.Wait()
}

// podComponents are those that are observed as Pods alone.
var podComponents = []string{ControllerManager, Scheduler, Proxy}

// pods lists the Pods of kube-system that run components, in pages.
func (r *reader) pods(ctx context.Context) ([]systemPod, error) {
	var pods []systemPod
	list := pager.New(func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		return r.client.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, opts)
	})
	err := list.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		pod, ok := object.(*corev1.Pod)
		if !ok {
			return fmt.Errorf("the server sent a %T", object)
		}
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			return nil
		}
		for _, line := range commandLines(pod, APIServer, ControllerManager, Scheduler, Proxy) {
			pods = append(pods, systemPod{*pod, line})
		}
		return nil
	})
	slices.SortFunc(pods, func(a, b systemPod) int { return strings.Compare(a.Name, b.Name) })
	return pods, err
}

// imageVersion is the version in the tag of a component's image, "" if it has none.
func imageVersion(pod *corev1.Pod, component string) string {
	for _, c := range pod.Spec.Containers {
		if !strings.Contains(c.Image, component) && c.Name != component {
			continue
		}
		image, _, _ := strings.Cut(c.Image, "@")
		tag := strings.ReplaceAll(image[strings.LastIndexByte(image, ':')+1:], "_", "+")
		if _, err := utilversion.ParseSemantic(tag); err == nil {
			return tag
		}
	}
	return ""
}

// process is the one that a Pod runs, without its gates.
func (pod *systemPod) process() Process {
	component := pod.line.component
	return Process{Component: component, Instance: pod.Name, Node: pod.Spec.NodeName, Version: imageVersion(&pod.Pod, component), Gates: map[string]Value{}}
}

// pod reads a component by its metrics, and what it is told by its command line.
func (r *reader) pod(ctx context.Context, pod systemPod) {
	p := pod.process()
	if s, err := r.podMetrics(ctx, &pod); err == nil {
		p.Complete, p.Gates = true, sourced(s.gates, "its metrics")
		p.Version = cmp.Or(s.version, p.Version)
		r.conflicts(p, s)
	}
	r.told(&p, pod)
	r.process(p)
}

// podMetrics reads metrics through the proxy of a Pod.
func (r *reader) podMetrics(ctx context.Context, pod *systemPod) (*scrape, error) {
	address := "/api/v1/namespaces/" + pod.Namespace + "/pods/" + fmt.Sprintf(metricsPorts[pod.line.component], pod.Name) + "/proxy/metrics"
	return r.scrape(ctx, r.client.CoreV1().RESTClient(), address)
}

// told adds what a process is told by the command line of its Pod. What cannot be read of
// that is a gap, unless the metrics have all values.
func (r *reader) told(p *Process, pod systemPod) {
	source := "the flags of Pod " + pod.Name
	set, err := parseGates(flagValues(pod.line.args, gatesFlag)...)
	why := pod.line.unread
	if err != nil {
		why = err.Error()
	}
	if p.Unread = why != ""; !p.Unread {
		explicitly(p.Gates, set, source)
	} else if !p.Complete {
		setBy(p.Gates, set, source)
		r.gap(Gap{Component: p.Component, Instances: []string{p.Instance}, Why: "its metrics do not answer, and " + why, Next: "its metrics, or a command line that can be read"})
	}
	if values := flagValues(pod.line.args, emulationFlag); len(values) > 0 {
		for value := range strings.SplitSeq(values[len(values)-1], ",") {
			component, version, found := strings.Cut(value, "=")
			if !found {
				component, version = "kube", value
			}
			if component == "kube" {
				p.Emulates = version
			}
		}
	}
}

// proxies reads kube-proxies: by their metrics where the first ones answer, and else by
// the configuration that they share.
func (r *reader) proxies(ctx context.Context, pods []systemPod) {
	configs := map[configRef]proxyConfig{}
	for _, pod := range pods {
		if ref, ok := pod.configRef(); ok {
			if _, read := configs[ref]; !read {
				configs[ref] = r.proxyConfig(ctx, ref)
			}
		}
	}
	// kubeadm has them listen on the loopback address of their nodes.
	var silent atomic.Bool
	var all sync.WaitGroup
	next := make(chan systemPod)
	for range min(r.options.Parallel, len(pods)) {
		all.Go(func() {
			for pod := range next {
				r.proxy(ctx, pod, configs, &silent)
				r.finish()
			}
		})
	}
	for _, pod := range pods {
		next <- pod
	}
	close(next)
	all.Wait()
}

// configRef is the place of a configuration: a key of a ConfigMap of kube-system.
type configRef struct{ name, key string }

// configRef returns where the file of --config is from. It is false for a file that no ConfigMap has, as one of the
// node: a ConfigMap with a likely name may be that of something else.
func (pod *systemPod) configRef() (ref configRef, ok bool) {
	values := flagValues(pod.line.args, configFlag)
	if len(values) == 0 {
		return ref, false
	}
	file := values[len(values)-1]
	longest := -1
	for _, mount := range pod.line.mounts {
		inside, ok := strings.CutPrefix(file, strings.TrimSuffix(mount.MountPath, "/"))
		if !ok || inside != "" && inside[0] != '/' || len(mount.MountPath) <= longest {
			continue
		}
		longest, ref = len(mount.MountPath), configRef{}
		at := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		if at < 0 || pod.Spec.Volumes[at].ConfigMap == nil {
			continue
		}
		volume := pod.Spec.Volumes[at].ConfigMap
		ref = configRef{volume.Name, strings.TrimPrefix(path.Join("/", mount.SubPath, inside), "/")}
		for _, item := range volume.Items {
			if item.Path == ref.key {
				ref.key = item.Key
				break
			}
		}
	}
	return ref, ref.name != ""
}

// proxyConfig has the gates in a configuration that kube-proxies share.
type proxyConfig struct {
	gates map[string]bool
	err   error
}

func (r *reader) proxyConfig(ctx context.Context, ref configRef) proxyConfig {
	object, err := r.client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, ref.name, metav1.GetOptions{})
	if err != nil {
		return proxyConfig{err: err}
	}
	var config struct {
		FeatureGates map[string]bool `json:"featureGates"`
	}
	if err := unmarshalKey(object, ref.key, &config); err != nil {
		return proxyConfig{err: fmt.Errorf("the ConfigMap %s: %w", ref.name, err)}
	}
	return proxyConfig{gates: config.FeatureGates}
}

// proxy reads one kube-proxy.
func (r *reader) proxy(ctx context.Context, pod systemPod, configs map[configRef]proxyConfig, silent *atomic.Bool) {
	p := pod.process()
	if !silent.Load() {
		s, err := r.podMetrics(ctx, &pod)
		if err == nil {
			p.Complete, p.Gates = true, sourced(s.gates, "its metrics")
			p.Version = cmp.Or(s.version, p.Version)
			r.conflicts(p, s)
		} else {
			silent.Store(true)
		}
	}
	// With a configuration file kube-proxy does not look at flags of gates.
	if len(flagValues(pod.line.args, configFlag)) == 0 {
		r.told(&p, pod)
		r.process(p)
		return
	}
	ref, shown := pod.configRef()
	config := configs[ref]
	switch {
	case shown && config.err == nil:
		explicitly(p.Gates, config.gates, "the ConfigMap "+ref.name)
	case p.Complete:
		// What is set is not known, and the values are.
	case !shown:
		r.gap(Gap{Component: Proxy, Instances: []string{pod.Name}, Why: "its configuration is a file that no ConfigMap of its volumes has", Next: "its metrics"})
		return
	default:
		why, next := explain(ctx, config.err, "get the ConfigMap "+ref.name+" in the namespace kube-system")
		r.gap(Gap{Component: Proxy, Instances: []string{pod.Name}, Why: why, Next: next})
		return
	}
	r.process(p)
}

// ConfigMaps that kubeadm keeps for nodes and control planes that join.
const (
	kubeletConfig = "kubelet-config"
	kubeadmConfig = "kubeadm-config"
)

// kubeadm reads what it gives to nodes that join.
func (r *reader) kubeadm(ctx context.Context) {
	r.kubeletConfiguration(ctx)
	r.clusterConfiguration(ctx)
}

// joinData reads a key of a ConfigMap of kubeadm's for some components. Other installers
// have none; any other error is a gap of these components.
func (r *reader) joinData(ctx context.Context, name, key string, into any, components ...string) bool {
	object, err := r.client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false
	}
	gap := Gap{Next: "a configuration that can be read"}
	if err != nil {
		gap.Why, gap.Next = explain(ctx, err, "get the ConfigMap "+name+" in the namespace kube-system")
	} else if err = unmarshalKey(object, key, into); err != nil {
		gap.Why = err.Error()
	}
	if err == nil {
		return true
	}
	gap.Why = "what joins is told by the ConfigMap " + name + ", which could not be read: " + gap.Why
	for _, component := range components {
		gap.Component = component
		r.gap(gap)
	}
	return false
}

// unmarshalKey reads a key of a ConfigMap. One that is missing tells nothing of what is set.
func unmarshalKey(object *corev1.ConfigMap, key string, into any) error {
	text, ok := object.Data[key]
	if !ok {
		return fmt.Errorf("it has no key %s", key)
	}
	if err := yaml.Unmarshal([]byte(text), into); err != nil {
		return fmt.Errorf("its key %s: %w", key, err)
	}
	return nil
}

// kubeletConfiguration reads what kubeadm gives to kubelets that join.
func (r *reader) kubeletConfiguration(ctx context.Context) {
	var config struct {
		FeatureGates map[string]bool `json:"featureGates"`
	}
	if r.joinData(ctx, kubeletConfig, "kubelet", &config, Kubelet) {
		r.settings(Kubelet, config.FeatureGates, "the ConfigMap "+kubeletConfig)
	}
}

// clusterConfiguration reads what kubeadm gives to control planes that join.
func (r *reader) clusterConfiguration(ctx context.Context) {
	// v1beta3 has a map of arguments, v1beta4 a list.
	type section struct {
		ExtraArgs any `json:"extraArgs"`
	}
	var config struct {
		APIServer         section `json:"apiServer"`
		ControllerManager section `json:"controllerManager"`
		Scheduler         section `json:"scheduler"`
	}
	const source = "the ConfigMap " + kubeadmConfig
	if !r.joinData(ctx, kubeadmConfig, "ClusterConfiguration", &config, APIServer, ControllerManager, Scheduler) {
		return
	}
	for component, s := range map[string]section{APIServer: config.APIServer, ControllerManager: config.ControllerManager, Scheduler: config.Scheduler} {
		gates, err := parseGates(extraArgs(s.ExtraArgs)...)
		if err != nil {
			r.gap(Gap{Component: component, Why: source + ": " + err.Error(), Next: "a configuration that can be read"})
			continue
		}
		r.settings(component, gates, source)
	}
}

// extraArgs are the values of the flag in arguments of either form.
func extraArgs(args any) []string {
	var values []string
	switch args := args.(type) {
	case map[string]any:
		if value, ok := args[gatesFlag].(string); ok {
			values = append(values, value)
		}
	case []any:
		for _, arg := range args {
			pair, _ := arg.(map[string]any)
			if value, ok := pair["value"].(string); ok && pair["name"] == gatesFlag {
				values = append(values, value)
			}
		}
	}
	return values
}

// settings adds settings for what joins.
func (r *reader) settings(component string, gates map[string]bool, source string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.found.Joins == nil {
		r.found.Joins = map[string]string{}
	}
	r.found.Joins[component] = source
	for name, enabled := range gates {
		r.found.Settings = append(r.found.Settings, Setting{Component: component, Gate: name, Enabled: enabled, Source: source})
	}
}
