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

// Command helm3 is Helm 3 as a library: it installs, upgrades and rolls back a release whose
// chart is the manifest, by three-way patches that Helm itself makes.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/cli"
	"helm.sh/helm/v3/pkg/release"
	storagedriver "helm.sh/helm/v3/pkg/storage/driver"

	"k8s.io/kubernetes-features/test/external/clients/driver"
)

// name is that of the release.
const name = "web"

func main() {
	driver.Main(map[string]driver.Action{
		"dry-run":  with(func(ctx context.Context, c *client) error { return c.upgrade(ctx, true) }),
		"rollback": with(func(_ context.Context, c *client) error { return c.rollback() }),
		"upgrade":  with(func(ctx context.Context, c *client) error { return c.upgrade(ctx, false) }),
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
		configuration := &action.Configuration{}
		err := configuration.Init(settings.RESTClientGetter(), r.Namespace, "secret", func(format string, args ...any) {
			fmt.Fprintf(os.Stderr, format+"\n", args...)
		})
		if err != nil {
			return err
		}
		return do(ctx, &client{Request: r, configuration: configuration})
	}
}

// upgrade installs the release, or upgrades it. A dry run asks the server.
func (c *client) upgrade(ctx context.Context, dryRun bool) error {
	web := &chart.Chart{
		Metadata:  &chart.Metadata{APIVersion: chart.APIVersionV2, Name: name, Version: "1.0.0"},
		Templates: []*chart.File{{Name: "templates/all.yaml", Data: c.Manifest}},
	}
	_, err := c.configuration.Releases.Last(name)
	var result *release.Release
	switch {
	case errors.Is(err, storagedriver.ErrReleaseNotFound):
		install := action.NewInstall(c.configuration)
		install.ReleaseName, install.Namespace, install.DryRun = name, c.Namespace, dryRun
		result, err = install.RunWithContext(ctx, web, nil)
	case err == nil:
		up := action.NewUpgrade(c.configuration)
		up.Namespace, up.DryRun = c.Namespace, dryRun
		if dryRun {
			up.DryRunOption = "server"
		}
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
	back.Version = 1
	if err := back.Run(name); err != nil {
		return fmt.Errorf("rolling release %s back: %w", name, err)
	}
	result, err := c.configuration.Releases.Last(name)
	if err != nil {
		return err
	}
	return c.print("rollback", result)
}

func (c *client) print(action string, result *release.Release) error {
	return c.Print(driver.Line{Action: action, Object: "Release/" + name, Result: result.Info.Status.String(), Message: result.Info.Description})
}
