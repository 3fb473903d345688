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

// Package driver is what the programs below test/external/clients share. Each of them is
// a client of Kubernetes as third parties publish it, in a version of its own, and does
// one action: a test starts it, and reads from its standard output what it saw, as lines of
// JSON. The test judges; nothing here does.
package driver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
)

// Line is one thing that a client did or saw.
type Line struct {
	// Action is what the client did, in its own words: apply, diff, add, update, delete.
	Action string `json:"action"`
	// Object is the kind and the name, separated by a slash.
	Object string `json:"object,omitempty"`
	// Result is the client's own word for what became of it: configured, unchanged.
	Result string `json:"result,omitempty"`
	// Message is what the client has to say beyond that.
	Message string `json:"message,omitempty"`
	// Content is the object as the client's types have it.
	Content any `json:"content,omitempty"`
}

// Request is what a test asks for.
type Request struct {
	// Kubeconfig and Namespace are where.
	Kubeconfig, Namespace string
	// Manifest has objects in JSON, separated by lines of three hyphens.
	Manifest []byte
	// Objects are those of the manifest.
	Objects []map[string]any

	mu  sync.Mutex
	out *json.Encoder
}

// Action is one that a program knows.
type Action func(ctx context.Context, r *Request) error

// Main does the action that the arguments name.
func Main(actions map[string]Action) {
	if err := run(os.Args[1:], actions); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(args []string, actions map[string]Action) error {
	r := &Request{out: json.NewEncoder(os.Stdout)}
	flags := flag.NewFlagSet("client", flag.ContinueOnError)
	flags.StringVar(&r.Kubeconfig, "kubeconfig", "", "path of the kubeconfig")
	flags.StringVar(&r.Namespace, "namespace", "default", "namespace of the objects")
	manifest := flags.String("f", "", "path of the manifest: objects in JSON, separated by lines of ---")
	if err := flags.Parse(args); err != nil {
		return err
	}
	action, ok := actions[flags.Arg(0)]
	if !ok {
		return fmt.Errorf("no action is called %q; there are %s", flags.Arg(0), strings.Join(names(actions), ", "))
	}
	if *manifest != "" {
		if err := r.read(*manifest); err != nil {
			return err
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	return action(ctx, r)
}

func names(actions map[string]Action) []string {
	var all []string
	for name := range actions {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// read reads the manifest.
func (r *Request) read(file string) error {
	var err error
	if r.Manifest, err = os.ReadFile(file); err != nil {
		return err
	}
	for i, document := range bytes.Split(r.Manifest, []byte("\n---\n")) {
		var object map[string]any
		decoder := json.NewDecoder(bytes.NewReader(document))
		if err := decoder.Decode(&object); err != nil {
			return fmt.Errorf("object %d of %s is not JSON: %w", i, file, err)
		}
		r.Objects = append(r.Objects, object)
	}
	return nil
}

// Print writes a line. It may be called by several goroutines.
func (r *Request) Print(line Line) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.Encode(line)
}

// UntilInputEnds returns a context that ends when the test closes this program's standard
// input, or has itself ended.
func UntilInputEnds(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		_, err := io.Copy(io.Discard, os.Stdin)
		cancel(errors.Join(err, context.Canceled))
	}()
	return ctx
}
