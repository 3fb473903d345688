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

package feature

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/util/retry"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	featuresclient "k8s.io/feature-lifecycle/client/clientset/versioned/typed/features/v1alpha1"
)

// changer changes the parts of spec that control the transition: spec.paused
// and spec.rollout.
type changer struct {
	dryRun dryRun
	// objects is nil for commands that only print what they did.
	objects *objects

	namespace string
	client    versioned.Interface
	genericiooptions.IOStreams
}

// complete validates the flags and makes the client.
func (c *changer) complete(b *base) (err error) {
	if err := c.dryRun.check(); err != nil {
		return err
	}
	if err := c.objects.complete(); err != nil {
		return err
	}
	c.namespace = b.namespace()
	c.client, err = b.client()
	return err
}

func (c *changer) features() featuresclient.FeatureInterface {
	return c.client.FeaturesV1alpha1().Features(c.namespace)
}

// change applies a function to spec, writes it, and prints the result. The function
// may depend on the object read. After a conflict, such as with a server's write of
// status, it runs again.
func (c *changer) change(ctx context.Context, name, done string, spec func(*v1alpha1.Feature) (map[string]any, error)) error {
	var before, after *v1alpha1.Feature
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() (err error) {
		if before, err = lookUp(ctx, c.features(), c.namespace, name); err != nil {
			return err
		}
		wanted, err := spec(before)
		if err != nil {
			return err
		}
		after, err = c.patch(ctx, before, wanted)
		if err != nil && !apierrors.IsConflict(err) {
			return fmt.Errorf("feature %s in %s could not be changed: %w", name, c.namespace, err)
		}
		return err
	})
	switch {
	case apierrors.IsConflict(err):
		return fmt.Errorf("feature %s in %s changes faster than it can be changed; try again: %w", name, c.namespace, err)
	case err != nil:
		return err
	}
	said := c.dryRun.said(before, after, done)
	if c.dryRun.wanted() {
		return c.show(after, said)
	}
	return c.answer(ctx, after, said)
}

// show prints the state of a feature, as text or as an object.
func (c *changer) show(f *v1alpha1.Feature, said string) error {
	if c.objects.wanted() {
		return c.objects.print(c.Out, f)
	}
	_, err := fmt.Fprintln(c.Out, said)
	return err
}

// patch writes spec if the feature is still what was read.
func (c *changer) patch(ctx context.Context, before *v1alpha1.Feature, spec map[string]any) (*v1alpha1.Feature, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": before.ResourceVersion}, "spec": spec})
	if err != nil {
		return nil, err
	}
	return c.features().Patch(ctx, before.Name, types.MergePatchType, patch, c.dryRun.options())
}

// answer waits briefly for the servers' response, and prints it.
func (c *changer) answer(ctx context.Context, stored *v1alpha1.Feature, said string) error {
	w, cancel := newFollower(ctx, c.client, answerTimeout)
	defer cancel()
	last := stored
	err := w.until(stored, func(f *v1alpha1.Feature) bool {
		last = f
		return answered(f, stored.Generation)
	})
	switch {
	case err == nil:
		return c.show(last, said+": "+progressOf(last))
	case errors.Is(err, errInterrupted):
		return fmt.Errorf("%w; %s", err, said)
	case errors.Is(err, errTimedOut):
		return c.show(last, unanswered(said, stored))
	default:
		return fmt.Errorf("%s, and is not followed any more: %w", said, err)
	}
}
