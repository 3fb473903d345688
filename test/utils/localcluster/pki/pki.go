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

// Package pki makes the certificates and kubeconfigs of a local cluster, with
// kubeadm's helpers. What is there already is kept, so that kubeconfigs that
// people use go on working after a restart.
package pki

import (
	"crypto"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"path/filepath"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	kubeadmapi "k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm"
	"k8s.io/kubernetes/cmd/kubeadm/app/util/kubeconfig"
	"k8s.io/kubernetes/cmd/kubeadm/app/util/pkiutil"
)

// Authorities of a cluster, as kubeadm has them.
const (
	ClusterCA    = "ca"
	FrontProxyCA = "front-proxy-ca"
	EtcdCA       = "etcd-ca"
	// ServiceAccounts is the key that service account tokens are signed with.
	ServiceAccounts = "sa"
)

// algorithm makes keys fast: a cluster of three nodes needs a dozen.
const algorithm = kubeadmapi.EncryptionAlgorithmECDSAP256

// Authority issues certificates into one directory.
type Authority struct {
	dir  string
	cert *x509.Certificate
	key  crypto.Signer
	name string
}

// Open loads an authority from a directory, or makes it.
func Open(dir, name string) (*Authority, error) {
	a := &Authority{dir: dir, name: name}
	var err error
	if pkiutil.CertOrKeyExist(dir, name) {
		a.cert, a.key, err = pkiutil.TryLoadCertAndKeyFromDisk(dir, name)
		if err != nil {
			return nil, fmt.Errorf("certificate authority %s in %s is damaged; remove the directory and start again: %w", name, dir, err)
		}
		return a, nil
	}
	a.cert, a.key, err = pkiutil.NewCertificateAuthority(&pkiutil.CertConfig{
		Config:              certutil.Config{CommonName: "local-up-" + name},
		EncryptionAlgorithm: algorithm,
	})
	if err != nil {
		return nil, fmt.Errorf("making certificate authority %s: %w", name, err)
	}
	return a, pkiutil.WriteCertAndKey(dir, name, a.cert, a.key)
}

// CertFile is the authority's certificate.
func (a *Authority) CertFile() string { return CertFile(a.dir, a.name) }

// KeyFile is the authority's key.
func (a *Authority) KeyFile() string { return KeyFile(a.dir, a.name) }

// CertFile and KeyFile are where a certificate and its key are.
func CertFile(dir, name string) string { return filepath.Join(dir, name+".crt") }

// KeyFile is where the key of a certificate is.
func KeyFile(dir, name string) string { return filepath.Join(dir, name+".key") }

// Server issues a serving certificate for loopback and for the names given. It
// also works for a client, since etcd uses one for both.
func (a *Authority) Server(name string, dnsNames []string, ips ...net.IP) error {
	return a.issue(name, certutil.Config{
		CommonName: name,
		Usages:     []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		AltNames: certutil.AltNames{
			DNSNames: append([]string{"localhost"}, dnsNames...),
			IPs:      append([]net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}, ips...),
		},
	})
}

// Client issues a certificate for an identity.
func (a *Authority) Client(name, user string, groups ...string) error {
	return a.issue(name, certutil.Config{
		CommonName:   user,
		Organization: groups,
		Usages:       []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

func (a *Authority) issue(name string, config certutil.Config) error {
	if pkiutil.CertOrKeyExist(a.dir, name) {
		return nil
	}
	cert, key, err := pkiutil.NewCertAndKey(a.cert, a.key, &pkiutil.CertConfig{Config: config, EncryptionAlgorithm: algorithm})
	if err != nil {
		return fmt.Errorf("issuing certificate %s: %w", name, err)
	}
	return pkiutil.WriteCertAndKey(a.dir, name, cert, key)
}

// Kubeconfig issues a client certificate for an identity and writes a kubeconfig
// with it. The server's address is rewritten each time: its port may change.
func (a *Authority) Kubeconfig(file, server, name, user string, groups ...string) error {
	if err := a.Client(name, user, groups...); err != nil {
		return err
	}
	cert, key, err := pkiutil.TryLoadCertAndKeyFromDisk(a.dir, name)
	if err != nil {
		return fmt.Errorf("client certificate of %s: %w", user, err)
	}
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return fmt.Errorf("client key of %s: %w", user, err)
	}
	config := kubeconfig.CreateWithCerts(server, "local-up", name, pkiutil.EncodeCertPEM(a.cert), encoded, pkiutil.EncodeCertPEM(cert))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return kubeconfig.WriteToDisk(file, config)
}

// ServiceAccountKey makes the key pair that signs service account tokens.
func ServiceAccountKey(dir string) error {
	if pkiutil.CertOrKeyExist(dir, ServiceAccounts) {
		return nil
	}
	key, err := pkiutil.GeneratePrivateKey(algorithm)
	if err != nil {
		return fmt.Errorf("making the service account key: %w", err)
	}
	if err := pkiutil.WriteKey(dir, ServiceAccounts, key); err != nil {
		return err
	}
	return pkiutil.WritePublicKey(dir, ServiceAccounts, key.Public())
}
