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

package pki

import (
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/client-go/tools/clientcmd"
	certutil "k8s.io/client-go/util/cert"
)

func open(t *testing.T, dir string) *Authority {
	t.Helper()
	a, err := Open(dir, ClusterCA)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func load(t *testing.T, dir, name string) *x509.Certificate {
	t.Helper()
	certs, err := certutil.CertsFromFile(CertFile(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return certs[0]
}

func TestCertificatesNameTheirSubjects(t *testing.T) {
	dir := t.TempDir()
	a := open(t, dir)
	if err := a.Server("server", []string{"kubernetes"}, net.IPv4(10, 96, 0, 1)); err != nil {
		t.Fatal(err)
	}
	if err := a.Client("client", "system:node:n1", "system:nodes"); err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(load(t, dir, ClusterCA))
	for _, name := range []string{"localhost", "127.0.0.1", "kubernetes", "10.96.0.1"} {
		if err := load(t, dir, "server").VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
	if _, err := load(t, dir, "server").Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err != nil {
		t.Error(err)
	}
	client := load(t, dir, "client")
	if _, err := client.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Error(err)
	}
	if _, err := client.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err == nil {
		t.Error("a client's certificate works for a server")
	}
	if diff := cmp.Diff([]string{"system:node:n1", "system:nodes"}, append([]string{client.Subject.CommonName}, client.Subject.Organization...)); diff != "" {
		t.Errorf("unexpected subject (-want +got):\n%s", diff)
	}
}

func TestExistingFilesKept(t *testing.T) {
	dir := t.TempDir()
	a := open(t, dir)
	file := filepath.Join(dir, "kubeconfig", "admin")
	if err := a.Kubeconfig(file, "https://127.0.0.1:1", "admin", "me", "system:masters"); err != nil {
		t.Fatal(err)
	}
	before := load(t, dir, "admin")
	if err := open(t, dir).Kubeconfig(file, "https://127.0.0.1:2", "admin", "me", "system:masters"); err != nil {
		t.Fatal(err)
	}
	if !before.Equal(load(t, dir, "admin")) {
		t.Error("the certificate was recreated")
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil || config.Host != "https://127.0.0.1:2" {
		t.Errorf("kubeconfig leads to %v, %v", config, err)
	}
	if err := ServiceAccountKey(dir); err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(KeyFile(dir, ServiceAccounts))
	if err != nil {
		t.Fatal(err)
	}
	if err := ServiceAccountKey(dir); err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile(KeyFile(dir, ServiceAccounts)); err != nil || string(again) != string(key) {
		t.Errorf("the service account key was recreated, %v", err)
	}
}

func TestADamagedAuthorityIsNamed(t *testing.T) {
	dir := t.TempDir()
	open(t, dir)
	if err := os.WriteFile(KeyFile(dir, ClusterCA), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, ClusterCA); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("got %v", err)
	}
}
