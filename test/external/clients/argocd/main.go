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

// Command argocd is what Argo CD compares and applies with: its engine, which has
// kubectl of its own version inside.
package main

import (
	"context"
	"fmt"

	"github.com/argoproj/gitops-engine/pkg/diff"
	"github.com/argoproj/gitops-engine/pkg/utils/kube"
	"github.com/argoproj/gitops-engine/pkg/utils/tracing"
	"github.com/go-logr/logr"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"k8s.io/kubernetes-features/test/external/clients/driver"
)

// manager is the field manager of Argo CD.
const manager = "argocd-controller"

func main() {
	driver.Main(map[string]driver.Action{
		"apply":             with(func(ctx context.Context, e *engine) error { return e.apply(ctx, false) }),
		"apply-server-side": with(func(ctx context.Context, e *engine) error { return e.apply(ctx, true) }),
		"diff":              with(func(ctx context.Context, e *engine) error { return e.diff(ctx) }),
		"diff-structured":   with(func(ctx context.Context, e *engine) error { return e.diff(ctx, diff.WithStructuredMergeDiff(true)) }),
		"diff-server-side":  with(func(ctx context.Context, e *engine) error { return e.diff(ctx, diff.WithServerSideDiff(true)) }),
		// The compare option IncludeMutationWebhook: the server's answer is not parsed.
		"diff-include-webhooks": with(func(ctx context.Context, e *engine) error {
			return e.diff(ctx, diff.WithServerSideDiff(true), diff.WithIgnoreMutationWebhook(false))
		}),
	})
}

// engine is that of one request.
type engine struct {
	*driver.Request
	config  *rest.Config
	kubectl *kube.KubectlCmd
	// operations write, and dryRuns answer what a server-side apply would make of an object.
	operations kube.ResourceOperations
	dryRuns    diff.KubeApplier
}

// with makes the engine for an action.
func with(do func(context.Context, *engine) error) driver.Action {
	return func(ctx context.Context, r *driver.Request) error {
		config, err := clientcmd.BuildConfigFromFlags("", r.Kubeconfig)
		if err != nil {
			return err
		}
		config.QPS, config.Burst = 1000, 1000
		e := &engine{Request: r, config: config, kubectl: &kube.KubectlCmd{Log: logr.Discard(), Tracer: tracing.NopTracer{}}}
		schema, _, err := e.kubectl.LoadOpenAPISchema(config)
		if err != nil {
			return fmt.Errorf("reading OpenAPI: %w", err)
		}
		operations, cleanup, err := e.kubectl.ManageResources(config, schema)
		if err != nil {
			return err
		}
		defer cleanup()
		dryRuns, cleanup, err := kube.ManageServerSideDiffDryRuns(config, schema, e.kubectl.Tracer, e.kubectl.Log, nil)
		if err != nil {
			return err
		}
		defer cleanup()
		e.operations, e.dryRuns = operations, dryRuns
		return do(ctx, e)
	}
}

// each does something with each object of the manifest.
func (e *engine) each(do func(name string, u *unstructured.Unstructured) error) error {
	for _, content := range e.Objects {
		u := &unstructured.Unstructured{Object: content}
		name := u.GetKind() + "/" + u.GetName()
		if err := do(name, u); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// apply applies as a sync does. An error is what the user sees as a failed sync; the other
// objects are synced.
func (e *engine) apply(ctx context.Context, serverSide bool) error {
	return e.each(func(name string, u *unstructured.Unstructured) error {
		line := driver.Line{Action: "apply", Object: name}
		var err error
		if line.Message, err = e.operations.ApplyResource(ctx, u, cmdutil.DryRunNone, false, true, serverSide, manager); err != nil {
			line.Result, line.Message = "error", err.Error()
		}
		return e.Print(line)
	})
}

// diff compares as a refresh does. An error is what the user sees as ComparisonError.
func (e *engine) diff(ctx context.Context, options ...diff.Option) error {
	_, parser, err := e.kubectl.LoadOpenAPISchema(e.config)
	if err != nil {
		return err
	}
	options = append(options, diff.WithLogr(logr.Discard()), diff.WithManager(manager), diff.WithGVKParser(parser),
		diff.WithServerSideDryRunner(diff.NewK8sServerSideDryRunner(e.dryRuns)))
	return e.each(func(name string, u *unstructured.Unstructured) error {
		live, err := e.kubectl.GetResource(ctx, e.config, u.GroupVersionKind(), u.GetName(), u.GetNamespace())
		if err != nil {
			return err
		}
		line := driver.Line{Action: "diff", Object: name, Result: "Synced"}
		result, err := diff.Diff(u, live, options...)
		switch {
		case err != nil:
			line.Result, line.Message = "ComparisonError", err.Error()
		case result.Modified:
			line.Result = "OutOfSync"
		}
		return e.Print(line)
	})
}
