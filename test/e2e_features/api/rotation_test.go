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

package api

import (
	"context"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	componentfeaturegate "k8s.io/component-base/featuregate"
	"k8s.io/feature-lifecycle/agent"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster/pki"
	kubeadmapi "k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm"
	"k8s.io/kubernetes/cmd/kubeadm/app/util/pkiutil"
)

// certificatePeriod is how often client-go looks at files of certificates here. Its
// variable for this is one for the process (TestMain).
const certificatePeriod = 500 * time.Millisecond

// TestACertificateThatRotates: a kubelet's certificate is replaced on disk before
// it expires; its reporter continues with the new one.
func TestACertificateThatRotates(t *testing.T) {
	t.Parallel()
	c := shared.Cluster(t)
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "client.crt"), filepath.Join(dir, "client.key")
	const life = 6 * time.Second
	issue(t, c.PKI(), certFile, keyFile, time.Now().Add(life))
	config := &rest.Config{Host: c.Config.Host, TLSClientConfig: rest.TLSClientConfig{CertFile: certFile, KeyFile: keyFile, CAData: c.Config.CAData}}

	gate := featuregate.Wrap(componentfeaturegate.NewVersionedFeatureGate(utilversion.MustParse("1.36")))
	if err := gate.Add(map[componentfeaturegate.Feature]componentfeaturegate.FeatureSpec{"Rotating": {PreRelease: componentfeaturegate.Alpha}}); err != nil {
		t.Fatal(err)
	}
	gate.Enabled("Rotating")
	reporter, err := agent.NewReporter(agent.ReporterConfig{
		Namespace: system, Component: "kubelet", Instance: "node-1", NodeName: "node-1", Source: gate,
		Clients: agent.Clients{Features: versioned.NewForConfigOrDie(config), Kube: kubernetes.NewForConfigOrDie(config)},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		reporter.Run(ctx)
	}()
	defer func() {
		cancel()
		<-done
	}()
	if _, err := c.Kube.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	says := func(enabled bool) func([]v1alpha1.FeatureReport) bool {
		return func(reports []v1alpha1.FeatureReport) bool {
			for _, r := range reports {
				if r.Name == "kubelet.node-1" && len(r.Spec.Features) == 1 {
					return r.Spec.Features[0].Enabled == enabled
				}
			}
			return false
		}
	}
	// On a busy machine that may take longer than a certificate lives.
	issued := time.Now()
	framework.Eventually(t, "the first report", func() error {
		if time.Since(issued) > life/2 {
			issued = time.Now()
			issue(t, c.PKI(), certFile, keyFile, issued.Add(life))
		}
		if reports := c.Reports(); !says(false)(reports) {
			return fmt.Errorf("it is not among %d reports", len(reports))
		}
		return nil
	})
	old := rest.CopyConfig(c.Config)
	old.TLSClientConfig = rest.TLSClientConfig{CAData: c.Config.CAData, CertData: read(t, certFile), KeyData: read(t, keyFile)}
	framework.Eventually(t, "the certificate to expire", func() error {
		_, err := kubernetes.NewForConfigOrDie(old).CoreV1().Nodes().Get(t.Context(), "node-1", metav1.GetOptions{})
		if apierrors.IsUnauthorized(err) {
			return nil
		}
		return fmt.Errorf("a request with it gets: %w", err)
	})
	issue(t, c.PKI(), certFile, keyFile, time.Now().Add(time.Hour))
	if err := gate.SetFromMap(map[string]bool{"Rotating": true}); err != nil {
		t.Fatal(err)
	}
	c.WaitForReports("of the kubelet, with the new certificate", says(true))
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// issue writes a client certificate of the kubelet of node-1.
func issue(t *testing.T, dir, certFile, keyFile string, notAfter time.Time) {
	t.Helper()
	ca, caKey, err := pkiutil.TryLoadCertAndKeyFromDisk(dir, pki.ClusterCA)
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := pkiutil.NewCertAndKey(ca, caKey, &pkiutil.CertConfig{
		Config: certutil.Config{
			CommonName: "system:node:node-1", Organization: []string{"system:nodes"}, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		},
		NotAfter: notAfter.UTC(), EncryptionAlgorithm: kubeadmapi.EncryptionAlgorithmECDSAP256,
	})
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, data := range map[string][]byte{certFile: pkiutil.EncodeCertPEM(cert), keyFile: encoded} {
		if err := os.WriteFile(file+".new", data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// The pair is not replaced in one step; client-go tries again.
	for _, file := range []string{keyFile, certFile} {
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
}
