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

package tasks

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"

	kms "k8s.io/kms/pkg/service"
)

// startEtcd runs a database in this process, beside that of a cluster.
func startEtcd(t *testing.T) *clientv3.Client {
	t.Helper()
	config := embed.NewConfig()
	config.Dir, config.LogLevel, config.UnsafeNoFsync = t.TempDir(), "error", true
	anyPort := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	config.ListenClientUrls, config.ListenPeerUrls = anyPort, anyPort
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		t.Fatalf("starting another etcd: %v", err)
	}
	t.Cleanup(etcd.Close)
	select {
	case <-etcd.Server.ReadyNotify():
	case err := <-etcd.Err():
		t.Fatalf("another etcd ended: %v", err)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://" + etcd.Clients[0].Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// keyService is a key management service of version 2. It stands in for a real one, which
// would be a program of a cloud's; protocol and socket are those that kube-apiserver uses
// with any.
type keyService struct {
	socket string
	// key is the key's name, from which the key is derived.
	key atomic.Pointer[string]
}

// kmsPrefix begins values that are encrypted by way of the service.
const kmsPrefix = "k8s:enc:kms:v2:service:"

// Names of the service's keys.
const (
	oldKey = "key-before"
	newKey = "key-after"
)

const kmsTimeout = 10 * time.Second

func startKMS(t *testing.T) *keyService {
	t.Helper()
	// Paths of sockets are short, and those of t.TempDir may not be.
	dir, err := os.MkdirTemp("", "kms")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &keyService{socket: filepath.Join(dir, "s")}
	s.use(oldKey)
	server := kms.NewGRPCService(s.socket, kmsTimeout, s)
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	t.Cleanup(func() {
		server.Close()
		if err := <-ended; err != nil {
			t.Errorf("the key service ended: %v", err)
		}
	})
	return s
}

func (s *keyService) use(key string) { s.key.Store(&key) }

// atRest has the same configuration before and after: the service rotates the key, whose
// name is in every value.
func (s *keyService) atRest() atRest {
	config := providers(fmt.Sprintf("  - kms: {apiVersion: v2, name: service, endpoint: 'unix://%s', timeout: %s}\n", s.socket, kmsTimeout))
	has := func(key string) func(string) bool {
		return func(value string) bool { return strings.HasPrefix(value, kmsPrefix) && strings.Contains(value, key) }
	}
	return atRest{
		before: config, after: config, rotate: func() { s.use(newKey) },
		wasBefore: has(oldKey), isAfter: has(newKey),
	}
}

// Status names the key that encrypts.
func (s *keyService) Status(context.Context) (*kms.StatusResponse, error) {
	return &kms.StatusResponse{Version: "v2", Healthz: "ok", KeyID: *s.key.Load()}, nil
}

func sealer(key string) (cipher.AEAD, error) {
	sum := sha256.Sum256([]byte(key))
	block, err := aes.NewCipher(sum[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// Encrypt encrypts a seed of kube-apiserver's.
func (s *keyService) Encrypt(_ context.Context, _ string, data []byte) (*kms.EncryptResponse, error) {
	key := *s.key.Load()
	seal, err := sealer(key)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, seal.NonceSize())
	_, _ = rand.Read(nonce)
	return &kms.EncryptResponse{KeyID: key, Ciphertext: seal.Seal(nonce, nonce, data, nil)}, nil
}

// Decrypt decrypts with whichever key the request names.
func (s *keyService) Decrypt(_ context.Context, _ string, req *kms.DecryptRequest) ([]byte, error) {
	seal, err := sealer(req.KeyID)
	if err != nil {
		return nil, err
	}
	if len(req.Ciphertext) < seal.NonceSize() {
		return nil, fmt.Errorf("%d bytes are too few", len(req.Ciphertext))
	}
	nonce, sealed := req.Ciphertext[:seal.NonceSize()], req.Ciphertext[seal.NonceSize():]
	return seal.Open(nil, nonce, sealed, nil)
}
