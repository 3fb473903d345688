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

package main

import (
	"context"
	"fmt"
	"net/url"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
)

// etcdOptions are the options of the cluster's database.
type etcdOptions struct {
	dataDir                   string
	clientPort, peerPort      int
	caFile, certFile, keyFile string
	unsafeNoFsync             bool
	quota                     int64
}

// newEtcdCommand runs the cluster's database. It is a process of its own, since
// the cluster outlives the command that starts it.
func newEtcdCommand() *cobra.Command {
	o := &etcdOptions{}
	cmd := &cobra.Command{
		Use:    "etcd",
		Short:  "Run the database of a local cluster",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	fs := cmd.Flags()
	fs.StringVar(&o.dataDir, "data-dir", "", "Where the data is.")
	fs.IntVar(&o.clientPort, "client-port", 0, "Port for clients, on loopback.")
	fs.IntVar(&o.peerPort, "peer-port", 0, "Port for peers, on loopback.")
	fs.StringVar(&o.caFile, "ca-file", "", "Certificate authority of clients.")
	fs.StringVar(&o.certFile, "cert-file", "", "Serving certificate.")
	fs.StringVar(&o.keyFile, "key-file", "", "Key of the serving certificate.")
	fs.BoolVar(&o.unsafeNoFsync, "unsafe-no-fsync", false, "Do not wait for the disk. A crash of the machine may lose data; one of the process does not.")
	fs.Int64Var(&o.quota, "quota-backend-bytes", 0, "The size of the database at which it refuses writes. 0 means the default of etcd.")
	return cmd
}

func (o *etcdOptions) run(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	config := embed.NewConfig()
	config.Dir = o.dataDir
	config.LogLevel = "warn"
	config.UnsafeNoFsync = o.unsafeNoFsync
	config.QuotaBackendBytes = o.quota
	client := url.URL{Scheme: "https", Host: fmt.Sprintf("127.0.0.1:%d", o.clientPort)}
	peer := url.URL{Scheme: "https", Host: fmt.Sprintf("127.0.0.1:%d", o.peerPort)}
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	tls := transport.TLSInfo{CertFile: o.certFile, KeyFile: o.keyFile, TrustedCAFile: o.caFile, ClientCertAuth: true}
	config.ClientTLSInfo, config.PeerTLSInfo = tls, tls
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return fmt.Errorf("starting etcd in %s: %w", o.dataDir, err)
	}
	defer etcd.Close()
	select {
	case <-ctx.Done():
		return nil
	case err := <-etcd.Err():
		return err
	}
}
