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
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// spinArgument makes this program a process that keeps a core busy.
const spinArgument = "spin"

// spin computes until the process is killed.
func spin() {
	for i := 0; ; i++ {
		if i < 0 {
			i = 0
		}
	}
}

// busy is a number of processes that each keep a core busy.
type busy []*exec.Cmd

// startBusy starts so many processes for each core. The kernel kills them when this
// program ends.
func startBusy(perCore int) (busy, error) {
	var all busy
	for range perCore * runtime.NumCPU() {
		cmd := exec.Command("/proc/self/exe", spinArgument)
		// One thread each, so that the load is what it is said to be.
		cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			all.end()
			return nil, fmt.Errorf("starting a busy process: %w", err)
		}
		all = append(all, cmd)
	}
	return all, nil
}

// end kills the processes.
func (b busy) end() {
	for _, cmd := range b {
		_ = cmd.Process.Kill()
		// It was killed, which is an error.
		_ = cmd.Wait()
	}
}

// repeat runs the chosen shards several times and prints how each run ended. It
// returns true when every run passed, and ends early when the context does.
func repeat(ctx context.Context, runs int, stdout io.Writer, now func() time.Time, once func(run int) (passed bool, failed []string, err error)) (bool, error) {
	var rows []string
	passed := 0
	for i := range runs {
		begun := now()
		ok, failed, err := once(i)
		if err != nil {
			return false, err
		}
		result := passedResult
		switch {
		case ctx.Err() != nil:
			result = interruptedResult
		case !ok:
			result = failedResult
		default:
			passed++
		}
		rows = append(rows, strings.TrimRight(fmt.Sprintf("%4d  %-11s  %8s  %s", i+1, result, seconds(now().Sub(begun)), strings.Join(failed, ", ")), " "))
		if ctx.Err() != nil {
			break
		}
	}
	fmt.Fprintf(stdout, "\n run  result        seconds  failed shards\n%s\n\n%d of %d runs passed\n", strings.Join(rows, "\n"), passed, runs)
	return passed == runs, nil
}
