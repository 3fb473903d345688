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

// Command judge judges histories of clusters: files that package history recorded, such as
// history.jsonl of a soak that failed. It prints what each shows, and exits with status 1
// for one that breaks an invariant, or is not whole.
package main

import (
	"fmt"
	"io"
	"os"

	"k8s.io/kubernetes-features/test/e2e_features/history"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "Name the files of histories to judge")
		os.Exit(2)
	}
	ok := true
	for _, file := range os.Args[1:] {
		ok = judge(os.Stdout, file) && ok
	}
	if !ok {
		os.Exit(1)
	}
}

// judge prints the verdict of a file, and returns true if all is well.
func judge(out io.Writer, file string) bool {
	verdict, err := history.JudgeFile(file)
	if err != nil {
		fmt.Fprintf(out, "%s: %v\n", file, err)
		return false
	}
	fmt.Fprintf(out, "%s: %s\n", file, verdict)
	for _, violation := range verdict.Violations {
		fmt.Fprintln(out, violation)
	}
	return len(verdict.Violations) == 0
}
