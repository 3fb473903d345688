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
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
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

// Labels of kubeadm's Pods, which most installers give theirs, too.
const (
	controlPlaneLabel = "component in (kube-apiserver,kube-controller-manager,kube-scheduler)"
	proxyLabel        = "k8s-app=kube-proxy"
)

// controlPlanePods reads controller managers and schedulers that run as Pods, and what
// kube-apiservers are told that do so.
func (r *reader) controlPlanePods(ctx context.Context) {
	pods, err := r.pods(ctx, controlPlaneLabel)
	if err != nil {
		why, next := explain(err, "list pods in the namespace kube-system")
		for _, component := range []string{ControllerManager, Scheduler} {
			r.gap(Gap{Component: component, Why: why, Next: next})
		}
		return
	}
	r.expect(len(pods))
	var all sync.WaitGroup
	seen := map[string]bool{}
	for _, pod := range pods {
		component, args := commandLine(&pod, APIServer, ControllerManager, Scheduler)
		if component == "" || component == APIServer {
			if component == APIServer {
				r.serverPods = append(r.serverPods, pod)
			}
			r.finish()
			continue
		}
		seen[component] = true
		all.Go(func() {
			defer r.finish()
			r.pod(ctx, &pod, component, args)
		})
	}
	for _, component := range []string{ControllerManager, Scheduler} {
		if !seen[component] {
			r.gap(Gap{
				Component: component, Why: "no Pod in kube-system has the label component=" + component + " and runs it: it runs elsewhere, as in managed control planes",
				Next: "the address of its metrics",
			})
		}
	}
	all.Wait()
}

// pods lists Pods of kube-system, in pages.
func (r *reader) pods(ctx context.Context, selector string) ([]corev1.Pod, error) {
	var pods []corev1.Pod
	list := pager.New(func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		return r.client.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, opts)
	})
	err := list.EachListItem(ctx, metav1.ListOptions{LabelSelector: selector}, func(object runtime.Object) error {
		pod, ok := object.(*corev1.Pod)
		if !ok {
			return fmt.Errorf("the server sent a %T", object)
		}
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			return nil
		}
		pods = append(pods, *pod)
		return nil
	})
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods, err
}

// commandLine returns which of some components a Pod runs, and its arguments; "" for none.
func commandLine(pod *corev1.Pod, components ...string) (component string, args []string) {
	for _, c := range pod.Spec.Containers {
		line := slices.Concat(c.Command, c.Args)
		if name := program(line, func(name string) bool { return slices.Contains(components, name) }); name != "" {
			return name, line
		}
		// An entry point of the image's, with flags alone.
		if slices.Contains(components, c.Name) {
			return c.Name, line
		}
	}
	return "", nil
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

// pod reads a component by its metrics, and what it is told by its command line.
func (r *reader) pod(ctx context.Context, pod *corev1.Pod, component string, args []string) {
	p := Process{Component: component, Instance: pod.Name, Node: pod.Spec.NodeName, Version: imageVersion(pod, component), Gates: map[string]Value{}}
	if s, err := r.podMetrics(ctx, pod, component); err == nil {
		p.Complete, p.Gates = true, sourced(s.gates, "its metrics")
		if s.version != "" {
			p.Version = s.version
		}
		r.conflicts(p, s)
	}
	r.told(&p, args, "the flags of Pod "+pod.Name)
	r.process(p)
}

// podMetrics reads metrics through the proxy of a Pod.
func (r *reader) podMetrics(ctx context.Context, pod *corev1.Pod, component string) (*scrape, error) {
	path := "/api/v1/namespaces/" + pod.Namespace + "/pods/" + fmt.Sprintf(metricsPorts[component], pod.Name) + "/proxy/metrics"
	return r.scrape(ctx, r.client.CoreV1().RESTClient(), path)
}

// told adds what a process is told by its command line.
func (r *reader) told(p *Process, args []string, source string) {
	set, err := parseGates(flagValues(args, gatesFlag)...)
	if err != nil {
		r.gap(Gap{Component: p.Component, Instances: []string{p.Instance}, Why: source + ": " + err.Error(), Next: "a command line that can be read"})
		return
	}
	explicitly(p.Gates, set, source)
	if values := flagValues(args, "emulated-version"); len(values) > 0 {
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
func (r *reader) proxies(ctx context.Context) {
	pods, err := r.pods(ctx, proxyLabel)
	if err != nil {
		why, next := explain(err, "list pods in the namespace kube-system")
		r.gap(Gap{Component: Proxy, Why: why, Next: next})
		return
	}
	if len(pods) == 0 {
		r.gap(Gap{Component: Proxy, Why: "no Pod in kube-system has the label " + proxyLabel + ": nodes run it as a service, or do without it", Next: "the address of its metrics"})
		return
	}
	r.expect(len(pods))
	shared, configErr := r.proxyConfig(ctx)
	// kubeadm has them listen on the loopback address of their nodes.
	var silent atomic.Bool
	var all sync.WaitGroup
	next := make(chan corev1.Pod)
	for range min(r.options.Parallel, len(pods)) {
		all.Go(func() {
			for pod := range next {
				r.proxy(ctx, &pod, shared, configErr, &silent)
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

// proxyConfigMap is what kubeadm calls the ConfigMap with a KubeProxyConfiguration, and
// proxyConfigKey where that is.
const (
	proxyConfigMap = "kube-proxy"
	proxyConfigKey = "config.conf"
)

// proxyConfig are the gates in the configuration that kube-proxies share.
func (r *reader) proxyConfig(ctx context.Context) (map[string]bool, error) {
	object, err := r.client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, proxyConfigMap, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	var config struct {
		FeatureGates map[string]bool `json:"featureGates"`
	}
	if err := yaml.Unmarshal([]byte(object.Data[proxyConfigKey]), &config); err != nil {
		return nil, fmt.Errorf("the key %s of the ConfigMap %s: %w", proxyConfigKey, proxyConfigMap, err)
	}
	return config.FeatureGates, nil
}

// proxy reads one kube-proxy.
func (r *reader) proxy(ctx context.Context, pod *corev1.Pod, shared map[string]bool, configErr error, silent *atomic.Bool) {
	_, args := commandLine(pod, Proxy)
	p := Process{Component: Proxy, Instance: pod.Name, Node: pod.Spec.NodeName, Version: imageVersion(pod, Proxy), Gates: map[string]Value{}}
	if !silent.Load() {
		s, err := r.podMetrics(ctx, pod, Proxy)
		if err == nil {
			p.Complete, p.Gates = true, sourced(s.gates, "its metrics")
			r.conflicts(p, s)
		} else {
			silent.Store(true)
		}
	}
	// With a configuration file kube-proxy does not look at flags of gates.
	if len(flagValues(args, "config")) > 0 {
		if configErr != nil && !p.Complete {
			why, next := explain(configErr, "get the ConfigMap "+proxyConfigMap+" in the namespace kube-system")
			r.gap(Gap{Component: Proxy, Instances: []string{pod.Name}, Why: why, Next: next})
			return
		}
		if configErr == nil {
			explicitly(p.Gates, shared, "the ConfigMap "+proxyConfigMap)
		}
	} else {
		r.told(&p, args, "the flags of Pod "+pod.Name)
	}
	r.process(p)
}

// kubeadm reads what it gives to nodes that join.
func (r *reader) kubeadm(ctx context.Context) {
	kubelet, err := r.client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, "kubelet-config", metav1.GetOptions{})
	if err != nil {
		// Other installers have none.
		return
	}
	var config struct {
		FeatureGates map[string]bool `json:"featureGates"`
	}
	const source = "the ConfigMap kubelet-config"
	if err := yaml.Unmarshal([]byte(kubelet.Data["kubelet"]), &config); err != nil {
		r.gap(Gap{Component: Kubelet, Why: source + ": " + err.Error(), Next: "a configuration that can be read"})
		return
	}
	r.settings(Kubelet, config.FeatureGates, source)
	r.clusterConfiguration(ctx)
}

// clusterConfiguration reads what kubeadm gives to control planes that join.
func (r *reader) clusterConfiguration(ctx context.Context) {
	object, err := r.client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, "kubeadm-config", metav1.GetOptions{})
	if err != nil {
		return
	}
	// v1beta3 has a map of arguments, v1beta4 a list.
	type section struct {
		ExtraArgs any `json:"extraArgs"`
	}
	var config struct {
		APIServer         section `json:"apiServer"`
		ControllerManager section `json:"controllerManager"`
		Scheduler         section `json:"scheduler"`
	}
	const source = "the ConfigMap kubeadm-config"
	if err := yaml.Unmarshal([]byte(object.Data["ClusterConfiguration"]), &config); err != nil {
		r.gap(Gap{Component: APIServer, Why: source + ": " + err.Error(), Next: "a configuration that can be read"})
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
	for name, enabled := range gates {
		r.found.Settings = append(r.found.Settings, Setting{Component: component, Gate: name, Enabled: enabled, Source: source})
	}
}
