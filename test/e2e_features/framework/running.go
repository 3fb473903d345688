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

// MustStart starts components that do not run.
func (c *Cluster) MustStart(names ...string) {
	c.t.Helper()
	if err := c.Start(c.t.Context(), names...); err != nil {
		c.t.Fatal(err)
	}
}

// MustStop ends components in order.
func (c *Cluster) MustStop(names ...string) {
	c.t.Helper()
	if err := c.Stop(c.t.Context(), names...); err != nil {
		c.t.Fatal(err)
	}
}

// MustKill ends a component without a chance to do anything.
func (c *Cluster) MustKill(name string) {
	c.t.Helper()
	if err := c.Kill(c.t.Context(), name); err != nil {
		c.t.Fatal(err)
	}
}

// MustRestart ends and starts components.
func (c *Cluster) MustRestart(names ...string) {
	c.t.Helper()
	if err := c.Restart(c.t.Context(), nil, names...); err != nil {
		c.t.Fatal(err)
	}
}

// MustRestartWith ends and starts components with other feature gates.
func (c *Cluster) MustRestartWith(gates string, names ...string) {
	c.t.Helper()
	if err := c.Restart(c.t.Context(), &gates, names...); err != nil {
		c.t.Fatal(err)
	}
}
