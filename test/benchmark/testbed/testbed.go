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

package testbed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"

	"k8s.io/kubernetes-features/test/utils/localcluster"
	"k8s.io/kubernetes-features/test/utils/localcluster/pki"
)

// endPatience is the time that a cluster may take to end.
const endPatience = time.Minute

// Bed is where benchmarks run.
type Bed struct {
	// Root is the repository's root.
	Root string
	// BinDir has what "make all" builds, UpstreamDir what "make upstream" builds.
	BinDir, UpstreamDir string
	// Out gets tables and a line for each step.
	Out io.Writer
}

// Say writes a line about a step, with the time.
func (b *Bed) Say(format string, args ...any) {
	fmt.Fprintf(b.Out, time.Now().Format("15:04:05")+" "+format+"\n", args...)
}

// Upstream is upstream's unchanged binary of a name.
func (b *Bed) Upstream(name string) (string, error) {
	file := filepath.Join(b.UpstreamDir, name)
	if _, err := os.Stat(file); err != nil {
		return "", fmt.Errorf("upstream's %s is not there: %w; build it with \"make upstream\"", name, err)
	}
	return file, nil
}

// Cluster is a running cluster of a benchmark.
type Cluster struct {
	*localcluster.Cluster
	// Config is how an administrator reaches the server, without a limit of the
	// client's own. Kube, Features and Dynamic are its clients.
	Config   *rest.Config
	Kube     kubernetes.Interface
	Features versioned.Interface
	Dynamic  dynamic.Interface
	// Etcd is the cluster's database.
	Etcd *clientv3.Client

	dir string
}

// Start starts a cluster in a directory of its own and waits until it is ready.
// Config needs neither directories nor DieWithParent. Close ends it.
func (b *Bed) Start(ctx context.Context, config localcluster.Config) (*Cluster, error) {
	c, err := b.Prepare(config)
	if err != nil {
		return nil, err
	}
	if err := c.Up(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	if err := c.Connect(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Prepare makes a cluster that is not started, for those who start its components
// one by one; they call Connect once kube-apiserver runs.
func (b *Bed) Prepare(config localcluster.Config) (*Cluster, error) {
	dir, err := os.MkdirTemp("", "kf-benchmark")
	if err != nil {
		return nil, err
	}
	config.DataDir, config.DieWithParent = dir, true
	config.BinDir = cmp.Or(config.BinDir, b.BinDir)
	config.Progress = b.Out
	local, err := localcluster.Open(config)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &Cluster{Cluster: local, dir: dir}, nil
}

// Connect makes the clients.
func (c *Cluster) Connect() error {
	var err error
	if c.Config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig("admin")); err != nil {
		return err
	}
	c.Config.QPS = -1
	if c.Kube, err = kubernetes.NewForConfig(c.Config); err != nil {
		return err
	}
	if c.Features, err = versioned.NewForConfig(c.Config); err != nil {
		return err
	}
	if c.Dynamic, err = dynamic.NewForConfig(c.Config); err != nil {
		return err
	}
	c.Etcd, err = c.EtcdClient()
	return err
}

// As returns how a user of any name reaches the server, with a certificate of its
// own: the server treats it as any user.
func (c *Cluster) As(user string, groups ...string) (*rest.Config, error) {
	authority, err := pki.Open(c.PKI(), pki.ClusterCA)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(c.dir, "users", user+".kubeconfig")
	if err := authority.Kubeconfig(file, c.Server(localcluster.APIServer), user+"-user", user, groups...); err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}

// FrontProxy returns how a front proxy reaches the server: it says in headers of each
// request whose it is (transport.SetAuthProxyHeaders), and the server believes it.
func (c *Cluster) FrontProxy() *rest.Config {
	config := rest.CopyConfig(c.Config)
	config.CertData, config.KeyData = nil, nil
	config.CertFile, config.KeyFile = pki.CertFile(c.PKI(), "front-proxy-client"), pki.KeyFile(c.PKI(), "front-proxy-client")
	return config
}

// PID is the process of a component, for example localcluster.APIServer.
func (c *Cluster) PID(component string) (int, error) {
	for _, p := range c.Processes() {
		if p.Name == component && p.Alive() {
			return p.PID, nil
		}
	}
	return 0, fmt.Errorf("%s does not run; the end of its log:\n%s", component, c.Log(component, 20))
}

// Close ends all processes and removes the data. It works after the context of the
// benchmark has ended.
func (c *Cluster) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), endPatience)
	defer cancel()
	var errs []error
	if c.Etcd != nil {
		errs = append(errs, c.Etcd.Close())
	}
	errs = append(errs, c.Down(ctx))
	c.Cluster.Close()
	return errors.Join(append(errs, os.RemoveAll(c.dir))...)
}

// UntilRests waits until a feature rests in the state of a value: the transition to it
// has ended.
func (c *Cluster) UntilRests(ctx context.Context, feature string, enabled bool) error {
	state := v1alpha1.StateOff
	if enabled {
		state = v1alpha1.StateOn
	}
	var last *v1alpha1.Feature
	err := localcluster.WatchFeature(ctx, c.Features, feature, func(f *v1alpha1.Feature) (bool, error) {
		last = f
		return f.Status.State == state && len(f.Status.Tasks) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for feature %s to be %s: %w; it is %+v", feature, state, err, last)
	}
	return nil
}
