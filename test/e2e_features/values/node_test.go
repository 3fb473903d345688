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

package values

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

// component is a process that this test runs itself: it has to start without a
// server.
type component struct {
	t     *testing.T
	cmd   *exec.Cmd
	ended chan struct{}

	mu  sync.Mutex
	log []string
}

// runKubelet starts it; dir is its TMPDIR, in which it keeps values, too.
func runKubelet(t *testing.T, c *framework.Cluster, dir string, args ...string) *component {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return run(t, "kubemark", append([]string{
		"--morph=kubelet", "--name=node-1", "--kubeconfig=" + c.Kubeconfig(localcluster.Kubelet("node-1")), "--kubelet-port=" + strconv.Itoa(port),
		"--feature-values-file=" + valuesFile(dir),
	}, args...), "TMPDIR="+dir)
}

// valuesFile is the file of the kubelet with a TMPDIR.
func valuesFile(dir string) string { return filepath.Join(dir, "feature-values.json") }

// run starts a binary.
func run(t *testing.T, binary string, args []string, env ...string) *component {
	t.Helper()
	k := &component{t: t, ended: make(chan struct{})}
	k.cmd = exec.Command(filepath.Join(framework.BinDir(t), binary), args...)
	k.cmd.Env = append(os.Environ(), env...)
	k.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	output, err := k.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := k.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(k.ended)
		for lines := bufio.NewScanner(output); lines.Scan(); {
			k.mu.Lock()
			k.log = append(k.log, lines.Text())
			k.mu.Unlock()
		}
		_ = k.cmd.Wait()
	}()
	t.Cleanup(k.kill)
	return k
}

// says is true when one line of the log has all parts.
func (k *component) says(parts ...string) bool {
	return framework.HasLine(k.said(), parts...)
}

// waitSays waits for a line of the log.
func (k *component) waitSays(parts ...string) {
	k.t.Helper()
	framework.Eventually(k.t, "the component to say "+strings.Join(parts, " … "), func() error {
		// Whether it has ended is asked first: it may say so at its end.
		ended := false
		select {
		case <-k.ended:
			ended = true
		default:
		}
		switch {
		case k.says(parts...):
			return nil
		case ended:
			k.t.Fatalf("the component ended and never said %q:\n%s", parts, k.said())
		}
		return fmt.Errorf("it has said:\n%s", k.said())
	})
}

// said is its log.
func (k *component) said() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return strings.Join(k.log, "\n")
}

func (k *component) kill() {
	_ = k.cmd.Process.Kill()
	<-k.ended
}

// TestANodeStartsWithoutAServer with the last known values, with a damaged file,
// and with none; it corrects itself, and ends itself if it may.
func TestANodeStartsWithoutAServer(t *testing.T) {
	t.Parallel()
	c := start(t, nil)
	dir := framework.DataDir(t)
	file := valuesFile(dir)

	// Nothing is set centrally: there is no file.
	k := runKubelet(t, c, dir)
	c.WaitForValue("kubelet", nodeFeature, true)
	k.kill()
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("there is a file although nothing is set centrally: %v", err)
	}

	c.SetConfigured(nodeFeature, central, false)
	c.SetConfigured(sharedFeature, dynamic, true)
	k = runKubelet(t, c, dir)
	k.waitSays(framework.InEffect(nodeFeature, false)...)
	k.waitSays(framework.InEffect(sharedFeature, true)...)
	framework.Eventually(t, "the values to be on disk", func() error {
		_, err := os.Stat(file)
		return err
	})
	k.kill()

	c.MustStop(localcluster.APIServer)
	k = runKubelet(t, c, dir)
	k.waitSays("Waiting for kube-apiserver", `component="kubelet"`)
	k.waitSays("Starting with the last known feature values from disk", file)
	k.waitSays(framework.InEffect(nodeFeature, false)...)
	k.waitSays(framework.InEffect(sharedFeature, true)...)
	k.kill()

	// A crash of the machine has cut the file off.
	if err := os.Truncate(file, 100); err != nil {
		t.Fatal(err)
	}
	k = runKubelet(t, c, dir, "--feature-values-timeout=1s", "--feature-change-policy=Restart", "--feature-restart-window=1ms")
	k.waitSays("Failed to read the last known feature values", file)
	k.waitSays("Starting without central feature values")
	if _, err := os.Stat(file + ".bad"); err != nil {
		t.Errorf("the damaged file was not kept: %v", err)
	}

	// A scheduler waits for the server.
	scheduler := run(t, "kube-scheduler", []string{"--kubeconfig=" + c.Kubeconfig(localcluster.Scheduler), "--secure-port=0", "--leader-elect=false"})
	scheduler.waitSays("Waiting for kube-apiserver", `component="kube-scheduler"`, "nextAttemptIn", "continues with last known or its own values")

	// The kubelet started with its own default. The server is back and says otherwise: the
	// dynamic value is taken at once, and for the other one it ends itself.
	c.MustStart(localcluster.APIServer)
	scheduler.waitSays(framework.InEffect(nodeFeature, false)...)
	scheduler.kill()
	k.waitSays(framework.InEffect(sharedFeature, true)...)
	k.waitSays("Central feature value not in effect", nodeFeature, `reason="Outdated"`)
	k.waitSays("Restarting for changed feature values")
	<-k.ended
	k = runKubelet(t, c, dir, "--feature-change-policy=Restart", "--feature-restart-window=1ms")
	k.waitSays(framework.InEffect(nodeFeature, false)...)
	c.WaitForValue("kubelet", nodeFeature, false)
	if k.says("Restart planned") {
		t.Error("it is about to end itself again")
	}
}

// TestWithoutTheSystem is S6: with the gate off, and on a server without the API,
// nothing is waited for and nothing is taken.
func TestWithoutTheSystem(t *testing.T) {
	t.Parallel()
	c := start(t, nil)
	c.SetConfigured(nodeFeature, central, false)
	k := runKubelet(t, c, framework.DataDir(t))
	k.waitSays(framework.InEffect(nodeFeature, false)...)
	k.waitSays("Starting kubelet main sync loop")
	k.kill()

	k = runKubelet(t, c, framework.DataDir(t), "--feature-gates=FeatureLifecycle=false", "--v=1")
	k.waitSays("Starting kubelet main sync loop")
	if k.says("entral feature value") || k.says("Feature values come from this process alone") {
		t.Errorf("with the gate off it looks for values:\n%s", k.said())
	}
	k.kill()

	c.MustRestartWith("FeatureLifecycle=false", localcluster.APIServer)
	k = runKubelet(t, c, framework.DataDir(t), "--v=1")
	k.waitSays("Feature values come from this process alone")
	k.waitSays("Starting kubelet main sync loop")
	// Later it lists again, and logs that central feature values are unavailable.
	if k.says("Waiting for kube-apiserver") || k.says("Central feature value ") {
		t.Errorf("on a server without the API it waited, or took a value:\n%s", k.said())
	}
}
