//go:build linux

/*
Copyright 2026 The Kubernetes Authors.

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
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"k8s.io/kubernetes-features/cmd/local-up/cluster"
	"k8s.io/kubernetes-features/test/integration/framework"
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
func (w *world) runKubelet(dir string, args ...string) *component {
	w.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		w.t.Fatal(err)
	}
	return w.run("kubemark", append([]string{
		"--morph=kubelet", "--name=node-1", "--kubeconfig=" + w.Kubeconfig(cluster.Kubelet("node-1")), "--kubelet-port=" + strconv.Itoa(port),
		"--feature-values-file=" + valuesFile(dir),
	}, args...), "TMPDIR="+dir)
}

// valuesFile is the file of the kubelet with a TMPDIR.
func valuesFile(dir string) string { return filepath.Join(dir, "feature-values.json") }

// run starts a binary.
func (w *world) run(binary string, args []string, env ...string) *component {
	w.t.Helper()
	k := &component{t: w.t, ended: make(chan struct{})}
	k.cmd = exec.Command(filepath.Join(framework.BinDir(w.t), binary), args...)
	k.cmd.Env = append(os.Environ(), env...)
	k.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	output, err := k.cmd.StderrPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := k.cmd.Start(); err != nil {
		w.t.Fatal(err)
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
	w.t.Cleanup(k.kill)
	return k
}

// says is true when one line of the log has all parts.
func (k *component) says(parts ...string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, line := range k.log {
		all := true
		for _, part := range parts {
			all = all && strings.Contains(line, part)
		}
		if all {
			return true
		}
	}
	return false
}

// waitSays waits for a line of the log.
func (k *component) waitSays(parts ...string) {
	k.t.Helper()
	framework.WaitFor(k.t, "the component to say "+strings.Join(parts, " … "), func() bool {
		select {
		case <-k.ended:
			if !k.says(parts...) {
				k.t.Fatalf("the component ended and never said %q:\n%s", parts, strings.Join(k.log, "\n"))
			}
		default:
		}
		return k.says(parts...)
	})
}

func (k *component) kill() {
	_ = k.cmd.Process.Kill()
	<-k.ended
}

// inEffect is what a component says of a value.
func inEffect(feature, enabled string) []string {
	return []string{"The centrally set value of a feature is in effect", `feature="` + feature + `"`, "enabled=" + enabled}
}

// TestANodeStartsWithoutAServer with the last known values, with a damaged file,
// and with none; it corrects itself, and ends itself if it may.
func TestANodeStartsWithoutAServer(t *testing.T) {
	t.Parallel()
	w := start(t, nil)
	dir := framework.DataDir(t)
	file := valuesFile(dir)

	// Nothing is set centrally: there is no file.
	k := w.runKubelet(dir)
	w.waitFound("kubelet", nodeFeature, true)
	k.kill()
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("there is a file although nothing is set centrally: %v", err)
	}

	w.set(nodeFeature, central, false)
	w.set(sharedFeature, dynamic, true)
	k = w.runKubelet(dir)
	k.waitSays(inEffect(nodeFeature, "false")...)
	k.waitSays(inEffect(sharedFeature, "true")...)
	framework.WaitFor(t, "the values to be on disk", func() bool {
		_, err := os.Stat(file)
		return err == nil
	})
	k.kill()

	w.stop(cluster.APIServer)
	k = w.runKubelet(dir)
	k.waitSays("Waiting for kube-apiserver", `component="kubelet"`)
	k.waitSays("Starting with the last known values of features from disk", file)
	k.waitSays(inEffect(nodeFeature, "false")...)
	k.waitSays(inEffect(sharedFeature, "true")...)
	k.kill()

	// A crash of the machine has cut the file off.
	if err := os.Truncate(file, 100); err != nil {
		t.Fatal(err)
	}
	k = w.runKubelet(dir, "--feature-values-timeout=1s", "--feature-change-policy=Restart", "--feature-restart-window=1ms")
	k.waitSays("cannot be used; they are treated as absent", file)
	k.waitSays("Starting without knowing which values of features are set centrally")
	if _, err := os.Stat(file + ".bad"); err != nil {
		t.Errorf("the damaged file was not kept: %v", err)
	}

	// A scheduler waits for the server.
	scheduler := w.run("kube-scheduler", []string{"--kubeconfig=" + w.Kubeconfig(cluster.Scheduler), "--secure-port=0", "--leader-elect=false"})
	scheduler.waitSays("Waiting for kube-apiserver", `component="kube-scheduler"`, "nextAttemptIn", "goes on with last known or its own values")

	// The kubelet started with its own default. The server is back and says otherwise: the
	// dynamic value is taken at once, and for the other one it ends itself.
	w.start(cluster.APIServer)
	scheduler.waitSays(inEffect(nodeFeature, "false")...)
	scheduler.kill()
	k.waitSays(inEffect(sharedFeature, "true")...)
	k.waitSays("The centrally set value of a feature is not in effect", nodeFeature, `reason="Outdated"`)
	k.waitSays("Ending, so that the process is started again")
	<-k.ended
	k = w.runKubelet(dir, "--feature-change-policy=Restart", "--feature-restart-window=1ms")
	k.waitSays(inEffect(nodeFeature, "false")...)
	w.waitFound("kubelet", nodeFeature, false)
	if k.says("Going to end") {
		t.Error("it is about to end itself again")
	}
}

// TestWithoutTheSystem is S6: with the gate off, and on a server without the API,
// nothing is waited for and nothing is taken.
func TestWithoutTheSystem(t *testing.T) {
	t.Parallel()
	w := start(t, nil)
	w.set(nodeFeature, central, false)
	k := w.runKubelet(framework.DataDir(t))
	k.waitSays(inEffect(nodeFeature, "false")...)
	k.waitSays("Starting kubelet main sync loop")
	k.kill()

	k = w.runKubelet(framework.DataDir(t), "--feature-gates=FeatureLifecycle=false", "--v=1")
	k.waitSays("Starting kubelet main sync loop")
	if k.says("centrally") || k.says("The values of features come from this process alone") {
		t.Error("with the gate off it looks for values")
	}
	k.kill()

	gates := "FeatureLifecycle=false"
	if err := w.Restart(t.Context(), &gates, cluster.APIServer); err != nil {
		t.Fatal(err)
	}
	k = w.runKubelet(framework.DataDir(t), "--v=1")
	k.waitSays("The values of features come from this process alone")
	k.waitSays("Starting kubelet main sync loop")
	if k.says("Waiting for kube-apiserver") || k.says("centrally set value") {
		t.Error("on a server without the API it waited, or took a value")
	}
}
