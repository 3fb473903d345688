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

package lifecycletest

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// fakeLocalUp notes how it was called, and does for each of its commands what a
// file of that name says.
const fakeLocalUp = `#!/bin/sh
here=$(dirname "$0")
command=$1
shift
for argument; do
	case $argument in
	--data-dir=*) data=${argument#--data-dir=} ;;
	--bin-dir=*) bin=${argument#--bin-dir=} ;;
	*) others="$others $argument" ;;
	esac
done
[ "$bin" = "$here" ] || exit 7
echo "$command$others" >>"$here/calls"
echo "$data" >>"$here/folders"
. "$here/$command"
`

// binaries is a folder with a local-up that starts nothing.
type binaries struct {
	t   *testing.T
	dir string
}

const (
	upWorks   = `echo "Cluster ready after 0.1 s" && mkdir -p "$data" && cp "$here/admin.kubeconfig" "$data"`
	downWorks = `echo "Cluster ended"`
)

func newBinaries(t *testing.T) *binaries {
	t.Helper()
	b := &binaries{t: t, dir: t.TempDir()}
	b.write("local-up", fakeLocalUp)
	b.write("up", upWorks)
	b.write("down", downWorks)
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: "https://127.0.0.1:1"}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"admin": {Token: "the administrator's"}},
		Contexts:       map[string]*clientcmdapi.Context{"admin": {Cluster: "c", AuthInfo: "admin"}},
		CurrentContext: "admin",
	}, filepath.Join(b.dir, "admin.kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *binaries) write(name, text string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o755); err != nil {
		b.t.Fatal(err)
	}
}

// lines are those of a file that local-up wrote, none without the file.
func (b *binaries) lines(name string) []string {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		b.t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

// called compares how local-up was called.
func (b *binaries) called(want ...string) {
	b.t.Helper()
	if diff := cmp.Diff(want, b.lines("calls")); diff != "" {
		b.t.Errorf("calls of local-up (-want +got):\n%s", diff)
	}
}

func TestClusterStartsAndStops(t *testing.T) {
	b := newBinaries(t)
	t.Setenv(binDirVariable, b.dir)
	var output bytes.Buffer
	c := &Cluster{Output: &output}
	config, err := c.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://127.0.0.1:1" || config.BearerToken != "the administrator's" {
		t.Errorf("the configuration is not that of the administrator: %v", config)
	}
	if config.QPS >= 0 {
		t.Errorf("clients wait for themselves: QPS is %v", config.QPS)
	}
	folder := b.lines("folders")[0]
	if want := filepath.Join(folder, "admin.kubeconfig"); c.Kubeconfig() != want {
		t.Errorf("kubeconfig is %s, want %s", c.Kubeconfig(), want)
	}
	if _, err := c.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "call Stop before Start") {
		t.Errorf("a second start: %v", err)
	}
	kit, err := c.For("widgets")
	if err != nil || kit.Dynamic == nil || kit.Features == nil || kit.Mapper == nil || kit.Namespace != "widgets" {
		t.Errorf("the kit is %+v, error %v", kit, err)
	}
	for range 2 {
		if err := c.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	b.called("up --nodes=0", "down")
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the temporary folder %s is still there: %v", folder, err)
	}
	if c.Kubeconfig() != "" {
		t.Errorf("kubeconfig is %s after the end", c.Kubeconfig())
	}
	if want := "Cluster ready after 0.1 s\nCluster ended\n"; output.String() != want {
		t.Errorf("output is %q, want %q", output.String(), want)
	}
	if _, err := c.Start(t.Context()); err != nil {
		t.Errorf("starting again: %v", err)
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestClusterPassesOn(t *testing.T) {
	for name, test := range map[string]struct {
		cluster Cluster
		want    string
	}{
		"everything": {
			cluster: Cluster{Nodes: 2, FeatureGates: "A=true,B=false", DynamicFeatures: []string{"C", "D"}, CentralFeatures: []string{"E"}},
			want:    "up --nodes=2 --feature-gates=A=true,B=false --dynamic-features=C,D --central-features=E",
		},
		"no dynamic and central features": {
			cluster: Cluster{DynamicFeatures: []string{}, CentralFeatures: []string{}},
			want:    "up --nodes=0 --dynamic-features= --central-features=",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBinaries(t)
			c := &test.cluster
			c.BinDir, c.DataDir = b.dir, filepath.Join(t.TempDir(), "data")
			if _, err := c.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := c.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			b.called(test.want, "down")
			if diff := cmp.Diff([]string{c.DataDir, c.DataDir}, b.lines("folders")); diff != "" {
				t.Errorf("data directories (-want +got):\n%s", diff)
			}
			if _, err := os.Stat(c.DataDir); err != nil {
				t.Errorf("the folder of the suite went: %v", err)
			}
		})
	}
}

func TestClusterThatDoesNotStart(t *testing.T) {
	b := newBinaries(t)
	t.Setenv(binDirVariable, "")
	for name, dir := range map[string]string{"no folder is set": "", "nothing is there": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			c := &Cluster{BinDir: dir}
			_, err := c.Start(t.Context())
			if err == nil || !strings.Contains(err.Error(), `run "make all"`) || !strings.Contains(err.Error(), binDirVariable) || !strings.Contains(err.Error(), dir) {
				t.Errorf("error %v, want one that says what to do", err)
			}
			if err := c.Stop(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	b.called("")

	b.write("up", `echo "starting etcd"; echo "Error: no port is free" >&2; exit 1`)
	c := &Cluster{BinDir: b.dir}
	_, err := c.Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "starting etcd\nError: no port is free") {
		t.Errorf("error %v, want one with what local-up said", err)
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	b.called("up --nodes=0", "down")
	if folder := b.lines("folders")[0]; folder == "" {
		t.Error("local-up was told no folder")
	} else if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the temporary folder %s is still there: %v", folder, err)
	}
	if _, err := c.For("widgets"); !errors.Is(err, errNotStarted) {
		t.Errorf("a kit of no cluster: %v", err)
	}
	if _, err := c.As(t.Context(), "widgets", "operator"); !errors.Is(err, errNotStarted) {
		t.Errorf("a token of no cluster: %v", err)
	}
}

// TestClusterThatNeverWas: a start that failed before there was anything to end leaves
// nothing behind, and only its own error.
func TestClusterThatNeverWas(t *testing.T) {
	b := newBinaries(t)
	b.write("up", `echo "Error: binaries are missing" >&2; exit 1`)
	b.write("down", `echo "Error: there is no cluster" >&2; exit 4`)
	_, err := (&Cluster{BinDir: b.dir}).Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "binaries are missing") || strings.Contains(err.Error(), "there is no cluster") {
		t.Errorf("got %v, want why it did not start", err)
	}
	if _, err := os.Stat(b.lines("folders")[0]); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the temporary folder is still there: %v", err)
	}
}

// TestClusterOfSomebodyElse: a cluster that runs in the folder is not ended.
func TestClusterOfSomebodyElse(t *testing.T) {
	for _, refusal := range []string{
		"the cluster in $data is running already; use it",
		"another local-up is working on $data; wait for it",
	} {
		b := newBinaries(t)
		b.write("up", `echo "Error: `+refusal+`" >&2; exit 3`)
		c := &Cluster{BinDir: b.dir, DataDir: t.TempDir()}
		if _, err := c.Start(t.Context()); err == nil || !strings.Contains(err.Error(), c.DataDir) {
			t.Errorf("error %v, want what local-up said", err)
		}
		if err := c.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		b.called("up --nodes=0")
	}
}

// TestClusterThatDoesNotEnd: Stop can be called again.
func TestClusterThatDoesNotEnd(t *testing.T) {
	b := newBinaries(t)
	c := &Cluster{BinDir: b.dir}
	if _, err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.write("down", `echo "Error: stopping etcd" >&2; exit 1`)
	folder := b.lines("folders")[0]
	err := c.Stop(t.Context())
	if err == nil || !strings.Contains(err.Error(), folder) || !strings.Contains(err.Error(), "stopping etcd") {
		t.Errorf("error %v, want one with the folder and what local-up said", err)
	}
	if _, err := os.Stat(folder); err != nil {
		t.Errorf("the folder of processes that may run: %v", err)
	}
	b.write("down", downWorks)
	if err := c.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	b.called("up --nodes=0", "down", "down")
}

// TestServiceAccountsHaveNothingOfTheAdministrator but how to reach the server.
func TestServiceAccountsHaveNothingOfTheAdministrator(t *testing.T) {
	admin := &rest.Config{
		Host: "https://127.0.0.1:1", BearerToken: "the administrator's", Username: "admin", Password: "secret",
		TLSClientConfig: rest.TLSClientConfig{CAData: []byte("the authority"), CertData: []byte("certificate"), KeyData: []byte("key")},
		Impersonate:     rest.ImpersonationConfig{UserName: "jane"},
	}
	server := kubefake.NewSimpleClientset()
	if _, err := configAs(t.Context(), server, admin, "widgets", "operator"); err == nil || !strings.Contains(err.Error(), "service account widgets/operator") {
		t.Errorf("without the service account: %v", err)
	}
	var asked *authenticationv1.TokenRequest
	server.PrependReactor("create", "serviceaccounts", func(action clienttesting.Action) (bool, runtime.Object, error) {
		create := action.(clienttesting.CreateActionImpl)
		if create.Subresource != "token" || create.Namespace != "widgets" || create.Name != "operator" {
			return false, nil, nil
		}
		asked = create.Object.(*authenticationv1.TokenRequest)
		answer := asked.DeepCopy()
		answer.Status.Token = "the operator's"
		return true, answer, nil
	})
	got, err := configAs(t.Context(), server, admin, "widgets", "operator")
	if err != nil {
		t.Fatal(err)
	}
	want := &rest.Config{Host: "https://127.0.0.1:1", BearerToken: "the operator's", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("the authority")}}
	if got.String() != want.String() || got.BearerToken != want.BearerToken || !bytes.Equal(got.CAData, want.CAData) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got.Username != "" || got.Password != "" || len(got.CertData) > 0 || len(got.KeyData) > 0 || got.Impersonate.UserName != "" {
		t.Errorf("something of the administrator is in %v", got)
	}
	if seconds := asked.Spec.ExpirationSeconds; seconds == nil || *seconds != int64(tokenDuration.Seconds()) {
		t.Errorf("the token ends after %v seconds", seconds)
	}
}

// TestKitForMakesAMapperThatForgets, and leaves the configuration as it is.
func TestKitForMakesAMapperThatForgets(t *testing.T) {
	config := &rest.Config{Host: "https://127.0.0.1:1", QPS: 3}
	kit, err := KitFor(config, "widgets")
	if err != nil {
		t.Fatal(err)
	}
	if kit.Mapper == nil || kit.Dynamic == nil || kit.Features == nil || config.QPS != 3 {
		t.Errorf("the kit is %+v, the configuration %v", kit, config)
	}
	if _, err := KitFor(&rest.Config{Host: "://"}, "widgets"); err == nil {
		t.Error("a configuration that names no server is none")
	}
}
