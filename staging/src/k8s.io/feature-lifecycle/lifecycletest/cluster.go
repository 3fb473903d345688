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
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
)

const (
	// binDirVariable names the folder with the binaries, for Cluster.BinDir.
	binDirVariable = "KUBE_FEATURES_BIN_DIR"
	// localUp is the command that does the work.
	localUp = "local-up"
	// endPatience is the time that local-up may take to end what a failed start
	// started. It gives each of three groups of processes 30 seconds.
	endPatience = 2 * time.Minute
	// interruptPatience is the time that local-up may take to end itself when the
	// context has ended.
	interruptPatience = 30 * time.Second
	// tokenDuration is the time that the tokens of As are valid: longer than a suite
	// runs.
	tokenDuration = 24 * time.Hour
)

// Cluster is a cluster of the fork's binaries for a test suite: a control plane as
// processes of this machine, with controllers and a scheduler, without containers.
// It is made by the fork's command local-up, which needs Linux and no root.
//
// The processes outlive the one that called Start, however that ends, so Stop has
// to be called, for example in t.Cleanup or at the end of TestMain. A suite that is
// killed leaves them; "local-up down --data-dir" with the same DataDir ends them.
//
// The fields are set before Start. Start and Stop are for one goroutine; after
// Start the other methods may be called by several.
type Cluster struct {
	// BinDir is the folder with local-up, kube-apiserver and the other binaries.
	// "" means that of the environment variable KUBE_FEATURES_BIN_DIR.
	BinDir string
	// DataDir is where the cluster keeps everything, logs, too. It stays, and so
	// does what the cluster stores: the next Start finds that again. "" means a
	// new temporary folder that Stop removes.
	DataDir string
	// Nodes is the number of hollow nodes.
	Nodes int
	// FeatureGates are those of all components: A=true,B=false.
	FeatureGates string
	// DynamicFeatures and CentralFeatures are gates of Kubernetes that can be
	// changed through the API, and those whose value kube-apiserver decides for
	// all components. Nil means those of local-up, empty means none. An
	// operator's own features are for its own flags.
	DynamicFeatures, CentralFeatures []string
	// Output gets what local-up prints. Errors have it in any case.
	Output io.Writer

	// binDir and dataDir are absolute. The second is "" while there is nothing
	// to stop.
	binDir, dataDir string
	config          *rest.Config
}

// Start starts the cluster and returns the administrator's configuration when it
// is ready. It is an error if DataDir has a cluster that runs, which keeps running.
// After any other error, what was started has been ended again, and a temporary
// folder removed. The error has the output of local-up.
func (c *Cluster) Start(ctx context.Context) (*rest.Config, error) {
	if c.dataDir != "" {
		return nil, fmt.Errorf("the cluster in %s was started already; call Stop before Start", c.dataDir)
	}
	if err := c.locate(); err != nil {
		return nil, err
	}
	if err := c.claim(); err != nil {
		return nil, err
	}
	if err := c.up(ctx); err != nil {
		if ended(err, exitInUse) {
			c.dataDir = ""
			return nil, err
		}
		// The context may be what ended the start.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endPatience)
		defer cancel()
		return nil, errors.Join(err, c.Stop(ctx))
	}
	return rest.CopyConfig(c.config), nil
}

// locate finds the binaries.
func (c *Cluster) locate() error {
	dir := c.BinDir
	if dir == "" {
		dir = os.Getenv(binDirVariable)
	}
	const build = "run \"make all\" in the fork of Kubernetes"
	if dir == "" {
		return fmt.Errorf("the folder with the binaries of the cluster is not set; %s, and set %s, or BinDir, to its folder _output/bin", build, binDirVariable)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("finding the binaries of the cluster: %w", err)
	}
	if _, err := os.Stat(filepath.Join(dir, localUp)); err != nil {
		return fmt.Errorf("%s is not the folder with the binaries of the cluster: %w; %s, and set %s, or BinDir, to its folder _output/bin", dir, err, build, binDirVariable)
	}
	c.binDir = dir
	return nil
}

// claim finds the data directory.
func (c *Cluster) claim() (err error) {
	if c.DataDir != "" {
		c.dataDir, err = filepath.Abs(c.DataDir)
	} else {
		c.dataDir, err = os.MkdirTemp("", "feature-lifecycle-")
	}
	if err != nil {
		return fmt.Errorf("finding a folder for the cluster: %w", err)
	}
	return nil
}

const (
	// exitInUse is the exit code of local-up when it did nothing, because the directory
	// belongs to a cluster that runs, or to another local-up that works on it.
	exitInUse = 3
	// exitNoCluster is the one when the directory has no cluster.
	exitNoCluster = 4
)

// ended returns true for the error of a command that ended with an exit code.
func ended(err error, code int) bool {
	exit := (*exec.ExitError)(nil)
	return errors.As(err, &exit) && exit.ExitCode() == code
}

// up runs the command and reads the configuration that it wrote.
func (c *Cluster) up(ctx context.Context) error {
	args := []string{fmt.Sprintf("--nodes=%d", c.Nodes)}
	if c.FeatureGates != "" {
		args = append(args, "--feature-gates="+c.FeatureGates)
	}
	if c.DynamicFeatures != nil {
		args = append(args, "--dynamic-features="+strings.Join(c.DynamicFeatures, ","))
	}
	if c.CentralFeatures != nil {
		args = append(args, "--central-features="+strings.Join(c.CentralFeatures, ","))
	}
	if said, err := c.run(ctx, "up", args...); err != nil {
		return fmt.Errorf("starting a cluster: %w\n%s", err, said)
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return fmt.Errorf("reading what the started cluster wrote for its administrator: %w", err)
	}
	// The server throttles, not the client.
	config.QPS = -1
	c.config = config
	return nil
}

// Stop ends the cluster, and removes its folder if that was a temporary one. It
// does nothing when there is no cluster: before Start, after one that failed, or
// when it was called before. After an error the folder is still there, and Stop
// can be called again.
func (c *Cluster) Stop(ctx context.Context) error {
	if c.dataDir == "" {
		return nil
	}
	c.config = nil
	// A start may fail before there is anything to end.
	if said, err := c.run(ctx, "down"); err != nil && !ended(err, exitNoCluster) {
		return fmt.Errorf("ending the cluster in %s: %w\n%s", c.dataDir, err, said)
	}
	if c.DataDir == "" {
		if err := os.RemoveAll(c.dataDir); err != nil {
			return fmt.Errorf("the cluster has ended, and its folder is still there: %w", err)
		}
	}
	c.dataDir = ""
	return nil
}

// run runs local-up and returns what it said.
func (c *Cluster) run(ctx context.Context, command string, args ...string) (string, error) {
	args = append([]string{command, "--bin-dir=" + c.binDir, "--data-dir=" + c.dataDir}, args...)
	cmd := exec.CommandContext(ctx, filepath.Join(c.binDir, localUp), args...)
	var said bytes.Buffer
	cmd.Stdout = &said
	if c.Output != nil {
		cmd.Stdout = io.MultiWriter(&said, c.Output)
	}
	cmd.Stderr = cmd.Stdout
	// It writes down what it has started, and must not be killed in the middle.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = interruptPatience
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return said.String(), err
}

// Kubeconfig returns the file with which the administrator reaches the cluster, for
// commands such as kubectl; "" while there is no cluster.
func (c *Cluster) Kubeconfig() string {
	if c.dataDir == "" {
		return ""
	}
	return filepath.Join(c.dataDir, "admin.kubeconfig")
}

// errNotStarted is what needs a running cluster.
var errNotStarted = errors.New("the cluster does not run; call Start before")

// For returns a kit of the administrator, for the features of a namespace. It is
// an error before Start.
func (c *Cluster) For(namespace string) (*Kit, error) {
	if c.config == nil {
		return nil, errNotStarted
	}
	return KitFor(c.config, namespace)
}

// As returns the configuration of a service account, which has to exist: a token
// for a day, and nothing of the administrator's. Operators that run with it show
// that they have the permissions that they need, and need no others. It is an error
// before Start.
func (c *Cluster) As(ctx context.Context, namespace, serviceAccount string) (*rest.Config, error) {
	if c.config == nil {
		return nil, errNotStarted
	}
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return nil, fmt.Errorf("making a client for tokens: %w", err)
	}
	return configAs(ctx, client, c.config, namespace, serviceAccount)
}

func configAs(ctx context.Context, client kubernetes.Interface, admin *rest.Config, namespace, serviceAccount string) (*rest.Config, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(tokenDuration.Seconds()))}}
	answer, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, serviceAccount, request, metav1.CreateOptions{FieldManager: manager})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no service account %s for a token: %w; create it first", name(namespace, serviceAccount), err)
	}
	if err != nil {
		return nil, fmt.Errorf("asking for a token of service account %s: %w", name(namespace, serviceAccount), err)
	}
	config := rest.AnonymousClientConfig(admin)
	config.BearerToken = answer.Status.Token
	return config, nil
}
