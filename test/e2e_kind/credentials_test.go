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

package e2ekind

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/features"
)

const (
	// audience is that of tokens for the plugin.
	audience = "kind-test"
	// refusedToken is what kubelet says as it ends, whose plugin is to get tokens.
	refusedToken = "tokenAttributes is not supported when KubeletServiceAccountTokenForCredentialProviders feature gate is disabled"
)

// credentialPlugin knows the password of the registry, and tells it to those who have a
// token of a service account.
const credentialPlugin = `#!/bin/sh
grep -q '"serviceAccountToken":"' || exit 1
cat <<END
{"kind": "CredentialProviderResponse", "apiVersion": "credentialprovider.kubelet.k8s.io/v1", "cacheKeyType": "Registry",
 "auth": {"%[1]s": {"username": "%[2]s", "password": "%[3]s"}}}
END
`

// credentialConfig has kubelet call the plugin for images of the registry.
const credentialConfig = `kind: CredentialProviderConfig
apiVersion: kubelet.config.k8s.io/v1
providers:
- name: kind-test
  matchImages: ["%[1]s"]
  defaultCacheDuration: 0s
  apiVersion: credentialprovider.kubelet.k8s.io/v1
  tokenAttributes: {serviceAccountTokenAudience: %[2]s, cacheType: ServiceAccount, requireServiceAccount: true}
`

const (
	credentialFolder = "/etc/kubernetes/credentials/"
	credentialFile   = credentialFolder + "config.yaml"
	// kubeletFlags has further flags of kubelet, at the end of its one line.
	kubeletFlags = "/etc/default/kubelet"
)

// tokensForPlugin has a plugin get tokens of Pods' service accounts, by which kubelet pulls an
// image and notes the account. kubelet without the gate ends while the plugin's configuration
// asks for tokens, and leaves the note.
func (n *realNode) tokensForPlugin(t *testing.T) {
	gate := string(features.KubeletServiceAccountTokenForCredentialProviders)
	host := n.serveRegistry(t)
	n.writeNew(credentialFolder+"bin/kind-test", "755", fmt.Sprintf(credentialPlugin, host, registryUser, registryPassword))
	n.writeNew(credentialFile, "600", fmt.Sprintf(credentialConfig, host, audience))
	before := n.ReadFile(n.name, kubeletFlags)
	flags := strings.TrimSpace(string(before)) + " --image-credential-provider-config=" + credentialFile + " --image-credential-provider-bin-dir=" + credentialFolder + "bin\n"
	n.WriteFile(n.name, kubeletFlags, []byte(flags))
	n.restart(gate, true, nil)
	image := host + "/" + privateImage
	using := n.createImagePod(t, "by-token", image, withToken)
	running := func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning }
	was := waitForPodNamed(t, n.Cluster, using, "running", running)
	record := n.recordOf(host)
	if !strings.Contains(record, `"kubernetesServiceAccounts"`) || !strings.Contains(record, `"default"`) {
		t.Errorf("kubelet recorded %q, want the image with the service account", record)
	}

	n.configureGate(gate, false)
	n.RestartKubelet(n.name)
	n.waitForEnd(t, refusedToken)
	n.WriteFile(n.name, kubeletFlags, before)
	n.restart(gate, false, nil)
	n.checkRuns(t, was)
	if now := n.recordOf(host); now != record {
		t.Errorf("with the gate off the record is %q, and it was %q", now, record)
	}
	// It is not asked with which service account a Pod comes.
	again := n.createImagePod(t, "by-token-again", image, withToken)
	waitForPodNamed(t, n.Cluster, again, "refused the image", refusedImage)

	n.WriteFile(n.name, kubeletFlags, []byte(flags))
	n.restart(gate, true, nil)
	waitForPodNamed(t, n.Cluster, again, "running", running)
	n.WriteFile(n.name, kubeletFlags, before)
	n.restart(gate, true, nil)
}

// withToken gives a Pod a token for the plugin, too: a node gets tokens for those audiences
// that its Pods name.
func withToken(spec *corev1.PodSpec) {
	mount(spec, "token", projected(corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: audience, Path: "token"}}))
}

// recordOf returns kubelet's records of images of a registry.
func (n *realNode) recordOf(host string) string {
	return n.Exec(n.name, "sh", "-c", `grep -h "$1" `+records+`/*`, "sh", host)
}

// writeNew writes a file of a node, and its folder.
func (n *realNode) writeNew(file, mode, content string) {
	n.Exec(n.name, "sh", "-ec", `mkdir -p "$(dirname "$1")"; rm -f "$1"`, "sh", file)
	n.WriteFile(n.name, file, []byte(content))
	n.Exec(n.name, "chmod", mode, file)
}
