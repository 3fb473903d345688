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
	"crypto/tls"
	"net"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"k8s.io/apiserver/pkg/server/egressselector"
	"k8s.io/apiserver/pkg/storage/storagebackend"
)

// How long connections may take and stay silent, as in upstream's client
// (k8s.io/apiserver/pkg/storage/storagebackend/factory).
const (
	dialTimeout      = 20 * time.Second
	keepaliveTime    = 30 * time.Second
	keepaliveTimeout = 10 * time.Second
)

// client connects once to each set of etcd servers. It needs the lock.
func (s *Stored) client(config storagebackend.TransportConfig) (*clientv3.Client, error) {
	key := strings.Join(config.ServerList, ",")
	if client := s.clients[key]; client != nil {
		return client, nil
	}
	var secure *tls.Config
	if config.CertFile != "" || config.KeyFile != "" || config.TrustedCAFile != "" {
		info := transport.TLSInfo{CertFile: config.CertFile, KeyFile: config.KeyFile, TrustedCAFile: config.TrustedCAFile}
		var err error
		if secure, err = info.ClientConfig(); err != nil {
			return nil, err
		}
	}
	dialing, err := egress(config)
	if err != nil {
		return nil, err
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: config.ServerList, TLS: secure, DialOptions: dialing,
		DialTimeout: dialTimeout, DialKeepAliveTime: keepaliveTime, DialKeepAliveTimeout: keepaliveTimeout,
	})
	if err == nil {
		s.clients[key] = client
	}
	return client, err
}

// egress dials as --egress-selector-config-file says.
func egress(config storagebackend.TransportConfig) ([]grpc.DialOption, error) {
	if config.EgressLookup == nil {
		return nil, nil
	}
	dial, err := config.EgressLookup(egressselector.Etcd.AsNetworkContext())
	if err != nil || dial == nil {
		return nil, err
	}
	return []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
		return dial(ctx, "tcp", address)
	})}, nil
}
