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

// Command helm4 is Helm 4 as a library: it installs, upgrades and rolls back a release whose
// chart is the manifest, by server-side apply, which is Helm 4's default.
package main

import (
	"context"
	"errors"
	"fmt"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/cli"
	"helm.sh/helm/v4/pkg/kube"
	"helm.sh/helm/v4/pkg/release"
	storagedriver "helm.sh/helm/v4/pkg/storage/driver"

	"k8s.io/kubernetes-features/test/external/clients/driver"
)

// name is that of the release.
const name = "web"

func main() {
	driver.Main(map[string]driver.Action{
		"dry-run":  with(func(ctx context.Context, c *client) error { return c.upgrade(ctx, action.DryRunServer) }),
		"rollback": with(func(_ context.Context, c *client) error { return c.rollback() }),
		"upgrade":  with(func(ctx context.Context, c *client) error { return c.upgrade(ctx, action.DryRunNone) }),
	})
}

// client is Helm for one request.
type client struct {
	*driver.Request
	configuration *action.Configuration
}

// with makes the client for an action.
func with(do func(context.Context, *client) error) driver.Action {
	return func(ctx context.Context, r *driver.Request) error {
		settings := cli.New()
		settings.KubeConfig = r.Kubeconfig
		settings.SetNamespace(r.Namespace)
		configuration := action.NewConfiguration()
		if err := configuration.Init(settings.RESTClientGetter(), r.Namespace, "secret"); err != nil {
			return err
		}
		return do(ctx, &client{Request: r, configuration: configuration})
	}
}

// upgrade installs the release, or upgrades it.
func (c *client) upgrade(ctx context.Context, dryRun action.DryRunStrategy) error {
	web := &chartv2.Chart{
		Metadata:  &chartv2.Metadata{APIVersion: chartv2.APIVersionV2, Name: name, Version: "1.0.0"},
		Templates: []*common.File{{Name: "templates/all.yaml", Data: c.Manifest}},
	}
	_, err := c.configuration.Releases.Last(name)
	var result release.Releaser
	switch {
	case errors.Is(err, storagedriver.ErrReleaseNotFound):
		install := action.NewInstall(c.configuration)
		install.ReleaseName, install.Namespace = name, c.Namespace
		install.DryRunStrategy, install.WaitStrategy = dryRun, kube.HookOnlyStrategy
		result, err = install.RunWithContext(ctx, web, nil)
	case err == nil:
		up := action.NewUpgrade(c.configuration)
		up.Namespace, up.DryRunStrategy, up.WaitStrategy = c.Namespace, dryRun, kube.HookOnlyStrategy
		result, err = up.RunWithContext(ctx, name, web, nil)
	}
	if err != nil {
		return fmt.Errorf("installing or upgrading release %s: %w", name, err)
	}
	return c.print("upgrade", result)
}

// rollback goes back to the first revision of the release.
func (c *client) rollback() error {
	back := action.NewRollback(c.configuration)
	back.Version, back.WaitStrategy = 1, kube.HookOnlyStrategy
	if err := back.Run(name); err != nil {
		return fmt.Errorf("rolling release %s back: %w", name, err)
	}
	result, err := c.configuration.Releases.Last(name)
	if err != nil {
		return err
	}
	return c.print("rollback", result)
}

func (c *client) print(action string, result release.Releaser) error {
	accessor, err := release.NewAccessor(result)
	if err != nil {
		return err
	}
	return c.Print(driver.Line{Action: action, Object: "Release/" + name, Result: accessor.Status()})
}
