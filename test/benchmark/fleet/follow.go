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

package fleet

import (
	"context"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/rest"
	componentfeaturegate "k8s.io/component-base/featuregate"
	"k8s.io/feature-lifecycle/agent"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/klog/v2"
)

// asked is a feature that processes ask for and follow.
type asked struct {
	name componentfeaturegate.Feature
	spec componentfeaturegate.FeatureSpec
}

// Ask gives each process that is added from now on a gate of its own, which it asks
// for a feature: the layer that real processes have, on upstream's gate. That one
// knows this feature alone. A real one knows 253, and takes milliseconds of its own
// machine's time to apply a change (benchmark flip measures it), but here thousands
// share one machine. What else a process reports is its template's.
func (f *Fleet) Ask(feature string, byDefault bool) {
	f.asks = &asked{componentfeaturegate.Feature(feature), componentfeaturegate.FeatureSpec{Default: byDefault, PreRelease: componentfeaturegate.Beta}}
	for component, template := range f.templates {
		without := template.without(feature)
		f.templates[component] = &without
	}
}

// LookForValues lets each process that starts from now on look which features are set
// centrally before it reports, and from time to time after that, as all real ones do.
func (f *Fleet) LookForValues() { f.looks = true }

// without is the template less a feature.
func (t Template) without(feature string) Template {
	kept := t
	kept.Observations = nil
	for _, o := range t.Observations {
		if o.Name != feature {
			kept.Observations = append(kept.Observations, o)
		}
	}
	return kept
}

// With is the template with a feature that is asked for, in place of what it says of
// it.
func (t Template) With(o featuregate.Observation) Template {
	t = t.without(o.Name)
	o.Queried = true
	t.Observations = append(t.Observations, o)
	return t
}

// emptyGate is the gate of a process that knows no feature.
func emptyGate(version *utilversion.Version) *featuregate.Gate {
	return featuregate.Wrap(componentfeaturegate.NewVersionedFeatureGate(version))
}

// gate makes the gate of one process, which has asked already.
func (a *asked) gate(version *utilversion.Version) *featuregate.Gate {
	inner := componentfeaturegate.NewVersionedFeatureGate(version)
	if err := inner.Add(map[componentfeaturegate.Feature]componentfeaturegate.FeatureSpec{a.name: a.spec}); err != nil {
		panic(fmt.Sprintf("a gate that is empty refuses the feature %s: %v", a.name, err))
	}
	gate := featuregate.Wrap(inner)
	gate.Enabled(a.name)
	return gate
}

// valuesClient is for following values, as real binaries do it: with a client of its
// own on the connection that the process has, and without a time limit, which would
// end watches.
func valuesClient(config *rest.Config, client *http.Client) (versioned.Interface, error) {
	config = agent.ClientConfig(config)
	config.Timeout = 0
	config.UserAgent = "feature-lifecycle-fleet/feature-values"
	return versioned.NewForConfigAndClient(config, &http.Client{Transport: client.Transport})
}

// Follow makes the process follow dynamic values with the library's own Syncer until the
// process is killed. As a real one does, it waits some seconds for the first response
// before this returns, and otherwise retries later; it watches from then on. Changed is
// called after each change of the feature that was given to Ask, as code that subscribes
// is called; it has to be quick.
func (p *Process) Follow(ctx context.Context, changed func(enabled bool)) error {
	gate := p.source.gate
	if gate == nil {
		return fmt.Errorf("%s asks for no feature; call Ask before it is added", p.Name())
	}
	syncer, err := p.newSyncer(gate)
	if err != nil {
		return err
	}
	feature := p.fleet.asks.name
	gate.OnChange(func(now featuregate.Snapshot) { changed(now.Enabled(feature)) }, feature)
	ctx, p.unfollow = context.WithCancel(silently(p.As(ctx)))
	syncer.Load(ctx)
	gate.Finalize()
	p.syncer.Store(syncer)
	p.running.Go(func() { syncer.Run(ctx) })
	return nil
}

// look checks whether there are values to follow as a real process does: it waits a
// while for the first response, and retries from time to time. Nothing is told to a
// process of a cluster that sets no features centrally.
func (p *Process) look(ctx context.Context, syncer *agent.Syncer) {
	syncer.Load(ctx)
	p.running.Go(func() { syncer.Run(ctx) })
}

// newSyncer makes the syncer of the process.
func (p *Process) newSyncer(gate agent.Gate) (*agent.Syncer, error) {
	return agent.NewSyncer(agent.SyncerConfig{
		Namespace:   metav1.NamespaceSystem,
		Component:   p.Component,
		Instance:    p.Node,
		Gate:        gate,
		Connect:     func() (versioned.Interface, error) { return p.clients.values, nil },
		LoadTimeout: lookPatience,
		Ready: func(ctx context.Context, client versioned.Interface) error {
			return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
		},
	})
}

// silently is the context of a syncer: a line of each process for each change would be
// as many as there are processes.
func silently(ctx context.Context) context.Context { return klog.NewContext(ctx, klog.Logger{}) }

// lookPatience is the time that a process waits for the first answer, as real ones do on nodes.
const lookPatience = 5 * time.Second
