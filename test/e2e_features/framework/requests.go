//go:build linux

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

package framework

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	requestSeries = regexp.MustCompile(`(?m)^apiserver_request_total\{([^}]*)\} ([0-9.e+]+)$`)
	requestLabel  = regexp.MustCompile(`([a-z_]+)="([^"]*)"`)
)

// Requests counts the requests that the first kube-apiserver has answered since it
// started, by group, verb and resource: "features.k8s.io POST features". That of
// the core group is empty. The request that asks is not among them.
func (c *Cluster) Requests() map[string]int {
	c.t.Helper()
	counts := map[string]int{}
	for _, series := range requestSeries.FindAllStringSubmatch(c.metrics(), -1) {
		labels := map[string]string{}
		for _, label := range requestLabel.FindAllStringSubmatch(series[1], -1) {
			labels[label[1]] = label[2]
		}
		count, err := strconv.ParseFloat(series[2], 64)
		if err != nil {
			c.t.Fatalf("the metric %s: %v", series[0], err)
		}
		resource := strings.TrimSuffix(labels["resource"]+"/"+labels["subresource"], "/")
		counts[labels["group"]+" "+labels["verb"]+" "+resource] += int(count)
	}
	if len(counts) == 0 {
		c.t.Fatal("kube-apiserver counts no requests; this function does not understand its metrics any more")
	}
	return counts
}

// Metric is the value of a metric without labels of the first kube-apiserver, for
// example process_cpu_seconds_total.
func (c *Cluster) Metric(name string) float64 {
	c.t.Helper()
	match := regexp.MustCompile("(?m)^" + regexp.QuoteMeta(name) + ` ([0-9.e+]+)$`).FindStringSubmatch(c.metrics())
	if match == nil {
		c.t.Fatalf("kube-apiserver does not show the metric %s", name)
	}
	value, err := strconv.ParseFloat(match[1], 64)
	if err != nil {
		c.t.Fatalf("the metric %s: %v", name, err)
	}
	return value
}

// metrics are those of the first kube-apiserver, as it writes them.
func (c *Cluster) metrics() string {
	c.t.Helper()
	data, err := c.Kube.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(c.t.Context())
	if err != nil {
		c.t.Fatalf("reading the metrics of kube-apiserver: %v", err)
	}
	return string(data)
}
