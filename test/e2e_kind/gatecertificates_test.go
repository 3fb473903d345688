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
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         ed25519.PrivateKey
}

func newAuthority(t *testing.T) authority {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kind-test"}, NotBefore: time.Now(), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	data, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(data)
	if err != nil {
		t.Fatal(err)
	}
	return authority{certificate, private}
}

func asPEM(certificate []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}))
}

// createBundle creates a ClusterTrustBundle with the authority.
func (n *usedNode) createBundle() {
	n.Eventually("the ClusterTrustBundle to be created", func(ctx context.Context) error {
		_, err := n.Kube.CertificatesV1().ClusterTrustBundles().Create(ctx, &certificatesv1.ClusterTrustBundle{
			ObjectMeta: metav1.ObjectMeta{Name: bundle}, Spec: certificatesv1.ClusterTrustBundleSpec{TrustBundle: asPEM(n.authority.certificate.Raw)},
		}, metav1.CreateOptions{})
		return err
	})
}

// hasBundle returns an error unless a Pod's file has the authority.
func (n *usedNode) hasBundle(pod string) error {
	return want("the bundle", n.inPod(pod, "cat", "/"+pod+"/bundle.pem"), strings.TrimSpace(asPEM(n.authority.certificate.Raw)))
}

// signCertificates signs what kubelet requests for the Pod with a certificate.
func (n *usedNode) signCertificates() {
	n.Eventually("a certificate to be requested for a Pod", func(ctx context.Context) error {
		requests := n.Kube.CertificatesV1().PodCertificateRequests(metav1.NamespaceDefault)
		list, err := requests.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(list.Items) == 0 {
			return fmt.Errorf("there is no request")
		}
		for i := range list.Items {
			if err := n.authority.sign(&list.Items[i]); err != nil {
				return err
			}
			if _, err := requests.UpdateStatus(ctx, &list.Items[i], metav1.UpdateOptions{}); err != nil {
				return err
			}
		}
		return nil
	})
}

// sign issues a certificate for an hour, the shortest time that the server takes.
func (a authority) sign(request *certificatesv1.PodCertificateRequest) error {
	stub, err := x509.ParseCertificateRequest(request.Spec.StubPKCS10Request)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: request.Spec.PodName},
		NotBefore: time.Now().Truncate(time.Second), NotAfter: time.Now().Truncate(time.Second).Add(time.Hour),
	}
	data, err := x509.CreateCertificate(rand.Reader, template, a.certificate, stub.PublicKey, a.key)
	if err != nil {
		return err
	}
	request.Status = certificatesv1.PodCertificateRequestStatus{
		Conditions: []metav1.Condition{{
			Type: certificatesv1.PodCertificateRequestConditionTypeIssued, Status: metav1.ConditionTrue, Reason: "Test", Message: "issued by the test", LastTransitionTime: metav1.Now(),
		}},
		CertificateChain: asPEM(data), NotBefore: ptr.To(metav1.NewTime(template.NotBefore)), NotAfter: ptr.To(metav1.NewTime(template.NotAfter)),
		BeginRefreshAt: ptr.To(metav1.NewTime(template.NotAfter.Add(-15 * time.Minute))),
	}
	return nil
}

// hasCertificate returns an error unless a Pod's file has a key and a certificate of the authority.
func (n *usedNode) hasCertificate(pod string) error {
	content := n.inPod(pod, "cat", "/"+pod+"/bundle.pem")
	for rest := []byte(content); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return fmt.Errorf("the file has no certificate: it is %q", content)
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return err
		}
		return certificate.CheckSignatureFrom(n.authority.certificate)
	}
}
