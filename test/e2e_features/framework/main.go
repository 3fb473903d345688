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

package framework

import (
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// MainWithTable is the TestMain of a package that runs several kube-apiservers. It prints
// what write has to show of the run, also when something failed, looks for goroutines that
// the tests left in this process, and ends it.
func MainWithTable(m *testing.M, write func(out io.Writer, took time.Duration)) {
	RequireRoot()
	begun := time.Now()
	code := m.Run()
	write(os.Stdout, time.Since(begun))
	if code == 0 {
		if err := goleak.Find(leftByDesign...); err != nil {
			fmt.Printf("FAIL: the test's own process has goroutines left: %v\n", err)
			code = 1
		}
	}
	os.Exit(code)
}

// leftByDesign are goroutines that live as long as a process.
var leftByDesign = []goleak.Option{
	// The thread that starts processes has to live as long as they do.
	goleak.IgnoreTopFunction("k8s.io/kubernetes-features/test/utils/localcluster/process.NewStarter.func1"),
	// klog flushes what it buffers as long as there is a process.
	goleak.IgnoreAnyFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"),
}
