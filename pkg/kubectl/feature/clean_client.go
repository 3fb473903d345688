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
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/history"
	"k8s.io/kubernetes-features/pkg/kubectl/observe"
)

const (
	// defaultWrites is how many objects a second are changed. A server flow finds by itself
	// what a server takes; beside it this is careful.
	defaultWrites = 20
	// recheck is how often it is made sure, while objects are changed, that no kube-apiserver
	// has the gate on, and recheckAll that no component has.
	recheck, recheckAll = 30 * time.Second, 5 * time.Minute
)

// clientCleaning are the options of clean --client.
type clientCleaning struct {
	wanted       bool
	dryRun       bool
	allowUntried bool
	writes       float64
	assumeOff    []string
	timeout      time.Duration
}

// clientFlags are those that need --client, and serverFlags those that it excludes.
var (
	clientFlags = []string{"dry-run", "allow-untried", "max-writes", "assume-off", "observe-timeout"}
	serverFlags = []string{"wait", "timeout", "output"}
)

func (c *clientCleaning) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&c.wanted, "client", false, "Remove it by this command, as the caller, in a cluster whose servers do not have the API.")
	flags.BoolVar(&c.dryRun, "dry-run", false, "With --client: have the server try the changes of all objects, and store none.")
	flags.BoolVar(&c.allowUntried, "allow-untried", false, "With --client: also change objects that cannot be tried, as where a webhook does not support dry runs.")
	flags.Float64Var(&c.writes, "max-writes", defaultWrites, "With --client: how many writes a second are sent at most.")
	flags.StringSliceVar(&c.assumeOff, "assume-off", nil, "With --client: components that do not show their gates and of which you know that they have it off: "+strings.Join(builtTogether[1:], ", ")+".")
	flags.DurationVar(&c.timeout, "observe-timeout", observe.DefaultTimeout, "With --client: how long components are asked for their gates.")
	completeList(cmd, "assume-off", always(builtTogether[1:]...))
}

// validate refuses flags that do not go together.
func (c *clientCleaning) validate(cmd *cobra.Command) error {
	refused, why := clientFlags, "is for --client"
	if c.wanted {
		refused, why = serverFlags, "is not for --client, which ends when it is done"
	}
	for _, flag := range refused {
		if cmd.Flags().Changed(flag) {
			return fmt.Errorf("--%s %s", flag, why)
		}
	}
	if c.writes <= 0 {
		return fmt.Errorf("--max-writes=%g is not positive", c.writes)
	}
	for _, component := range c.assumeOff {
		// Kube-apiservers can be observed by everybody who may change what they store.
		if !slices.Contains(builtTogether[1:], component) {
			return fmt.Errorf("--assume-off=%s is unknown; use %s", component, strings.Join(builtTogether[1:], ", "))
		}
	}
	return (&observing{timeout: c.timeout}).validate()
}

// clientCleaner removes through the API of a cluster without this system what a gate left.
type clientCleaner struct {
	*clientCleaning
	b        *base
	name     string
	entry    catalog.Entry
	config   *rest.Config
	visible  *visible
	progress *progress
	// guard looks at writes.
	guard *writeGuard
}

// runClient is run with --client.
func (o *cleanOptions) runClient(ctx context.Context, b *base, name string) error {
	client, _, err := b.readers(ctx, &observing{timeout: o.byClient.timeout})
	if err != nil {
		return err
	}
	if observedOf(client) == nil {
		// An error leaves it open whether they have the API.
		if _, err := client.FeaturesV1alpha1().Features(o.namespace).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
			return fmt.Errorf("finding out whether the servers have the API: %w; nothing was changed", err)
		}
		return errors.New("the servers of this cluster have the API and remove leftovers by themselves, while the cluster is in use: leave out --client")
	}
	if _, err := lookUp(ctx, client.FeaturesV1alpha1().Features(o.namespace), o.namespace, name); err != nil {
		return err
	}
	c := &clientCleaner{clientCleaning: &o.byClient, b: b, name: name, progress: o.progress}
	if c.entry, err = entryOf(name); err != nil {
		return err
	}
	if err := c.refused(observedOf(client)); err != nil {
		return fmt.Errorf("%w; nothing was changed", err)
	}
	if c.config, err = b.config(b.flags); err != nil {
		return err
	}
	clients, err := b.connectTasks(c.limited())
	if err != nil {
		return err
	}
	c.visible = &visible{clients}
	return c.run(ctx)
}

// limited is the configuration of a client whose writes are limited in rate, and guarded.
// Dry runs cost the server as much as writes, but for storage.
func (c *clientCleaner) limited() *rest.Config {
	config := rest.CopyConfig(c.config)
	c.guard = &writeGuard{limiter: flowcontrol.NewTokenBucketRateLimiter(float32(c.writes), 1), observe: c.check, now: time.Now}
	config.Wrap(c.guard.wrap)
	return config
}

// writeGuard limits the rate of requests that are not reads. Once it is armed it sends none
// before it has made sure, from time to time, that the gate is still off. It is safe for
// concurrent use.
type writeGuard struct {
	limiter flowcontrol.RateLimiter
	// observe returns an error unless the gate is off, in kube-apiservers alone or everywhere.
	observe func(ctx context.Context, serversOnly bool) error
	now     func() time.Time

	mu    sync.Mutex
	armed bool
	// servers and all are when these were observed last. failed is what was found then.
	servers, all time.Time
	failed       error
}

// arm begins to look, after all components were observed just now.
func (g *writeGuard) arm() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.armed, g.servers, g.all = true, g.now(), g.now()
}

// permit returns an error if the gate is not off any more. Writes wait while it is found out.
func (g *writeGuard) permit(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	if !g.armed || g.failed != nil || now.Sub(g.servers) < recheck {
		return g.failed
	}
	serversOnly := now.Sub(g.all) < recheckAll
	g.failed = g.observe(ctx, serversOnly)
	if g.servers = g.now(); !serversOnly {
		g.all = g.servers
	}
	return g.failed
}

func (g *writeGuard) wrap(next http.RoundTripper) http.RoundTripper { return guardedWrites{g, next} }

type guardedWrites struct {
	guard *writeGuard
	next  http.RoundTripper
}

func (w guardedWrites) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet {
		if err := w.guard.limiter.Wait(request.Context()); err != nil {
			return nil, err
		}
		if err := w.guard.permit(request.Context()); err != nil {
			return nil, err
		}
	}
	return w.next.RoundTrip(request)
}

// refused returns an error unless the gate is off wherever it is.
func (c *clientCleaner) refused(cluster *observe.Cluster) error {
	s := observedStanding(cluster, history.Load(), c.name, c.assumeOff)
	if s.off() {
		return nil
	}
	next := "turn it off there first (--feature-gates)"
	switch {
	case !s.servers:
		next = "get the permission to read their metrics (ClusterRole system:monitoring)"
	case !s.known:
		next = "kubectl feature list shows which gates they have"
	case len(s.on) == 0:
		next = "let it be observed, or name with --assume-off the components of which you know it"
	}
	return fmt.Errorf("feature %s: %s; %s", c.name, s.problem(), next)
}

// check makes sure that no component has the gate on, or no kube-apiserver: an administrator
// who turns it on while objects are changed does not know of that.
func (c *clientCleaner) check(ctx context.Context, serversOnly bool) error {
	cluster, err := c.b.observe(ctx, c.config, observe.Options{Timeout: c.timeout, ServersOnly: serversOnly})
	if err != nil {
		return fmt.Errorf("finding out whether %s is still off: %w", c.name, err)
	}
	if serversOnly {
		// All else is observed less often.
		cluster.Gaps = slices.DeleteFunc(cluster.Gaps, func(g observe.Gap) bool { return g.Component != observe.APIServer })
	} else {
		cluster.Derive(history.Load())
	}
	return c.refused(cluster)
}

// run tries all changes, makes them, and finds out whether something is left.
func (c *clientCleaner) run(ctx context.Context) error {
	held, unseen, err := c.try(ctx)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%w; nothing was changed", errInterrupted)
	case err != nil:
		return err
	case held:
		fmt.Fprintf(c.b.ErrOut, "%s: nothing was changed, since not all of it could be\n", title(c.name))
		return exitError(ExitHeld)
	case c.dryRun:
		fmt.Fprintf(c.b.Out, "%s: dry run: nothing was changed\n", title(c.name))
		return exitIf(len(unseen) > 0, ExitUnknown)
	}
	// Trying takes a while.
	if err := c.check(ctx, false); err != nil {
		if ctx.Err() != nil {
			err = errInterrupted
		}
		return fmt.Errorf("%w; nothing was changed", err)
	}
	c.guard.arm()
	for _, t := range c.entry.OnDisable {
		var err error
		switch {
		case t.Waits:
			err = c.waitedFor(ctx, t)
		case !t.NeedsStorage && t.Try != nil:
			err = c.perform(ctx, t)
		}
		if err != nil {
			return err
		}
	}
	return c.conclude(ctx)
}

// waitedFor ends the command if a task has something to wait for since it was tried: what
// comes after it may be in use.
func (c *clientCleaner) waitedFor(ctx context.Context, t task.Task) error {
	line, held, unseen := c.tryTask(ctx, t)
	if ctx.Err() != nil {
		return fmt.Errorf("%w before %s; the same command continues with what is left", errInterrupted, t.Name)
	}
	if !held {
		return nil
	}
	fmt.Fprintf(c.b.ErrOut, "%s: %s: %s; the same command continues with what is left once that has changed\n", title(c.name), printable(t.Name), printableLines(cmp.Or(unseen.String(), line), "  "))
	return exitError(ExitHeld)
}

// try has the server try each change, and prints what came of it. Held is true if one could
// not be made.
func (c *clientCleaner) try(ctx context.Context) (held bool, unseen gaps, err error) {
	c.visible.clients.Mapper.Reset()
	fmt.Fprintf(c.b.Out, "%s is off wherever it was observed\n", title(c.name))
	for i, t := range c.entry.OnDisable {
		line, problem, gap := c.tryTask(ctx, t)
		c.progress.clear()
		if err := ctx.Err(); err != nil {
			return false, nil, err
		}
		held = held || problem
		unseen = append(unseen, gap...)
		if len(gap) > 0 {
			line = "not done: " + gap.String()
		}
		if _, err := fmt.Fprintf(c.b.Out, "  %d. %s: %s\n", i+1, printable(t.Name), printableLines(line, "     ")); err != nil {
			return false, nil, err
		}
	}
	return held, unseen, nil
}

// tryTask tries the changes of one task.
func (c *clientCleaner) tryTask(ctx context.Context, t task.Task) (line string, held bool, unseen gaps) {
	missing := func(err error) gaps { return gaps{{resourcesOf(t), "", err}} }
	if closed, is := c.visible.closed(t); is {
		// A task behind a wait must not run while there may be something to wait for.
		lasting := errors.Is(closed.err, errInStorage) || errors.Is(closed.err, task.ErrNotServed)
		return "", t.Waits || !lasting, gaps{closed}
	}
	switch {
	case t.Waits:
		found, err := t.Find(ctx, c.visible.clients)
		if err != nil {
			return "", true, missing(err)
		}
		return waited(found), len(found) > 0, nil
	case t.Try == nil:
		return "", false, missing(errors.New("no client can do it"))
	}
	trial, err := t.Try(ctx, c.visible.clients, task.Attempt{Feature: c.name, Report: func(p task.Progress) {
		if c.progress.live {
			c.progress.say(fmt.Sprintf("%s: %d of %d tried", t.Name, p.Done, p.Total))
		}
	}})
	if err != nil {
		return "", true, missing(err)
	}
	return c.tried(&trial), trial.Refused > 0 || trial.Untried > 0 && !c.allowUntried, nil
}

// waited describes what a task waits for.
func waited(found []v1alpha1.ResourceLeftovers) string {
	if len(found) == 0 {
		return "nothing"
	}
	var parts []string
	for _, l := range found {
		parts = append(parts, describe(l))
	}
	return strings.Join(parts, "; ") + "; their owners have to delete or replace them"
}

// tried describes a trial.
func (c *clientCleaner) tried(trial *task.Trial) string {
	if trial.Objects == 0 {
		return "nothing"
	}
	text := fmt.Sprintf("%s, of which %d can be changed", count(trial.Objects, "object"), trial.Ready)
	if trial.Refused > 0 {
		text += fmt.Sprintf("\n%d cannot: %s", trial.Refused, strings.Join(trial.RefusedExamples, "; "))
	}
	if trial.Untried > 0 {
		text += fmt.Sprintf("\n%d could not be tried (--allow-untried changes them, too): %s", trial.Untried, strings.Join(trial.UntriedExamples, "; "))
	}
	return text
}

// perform runs a task until nothing is left, or until the first surprise.
func (c *clientCleaner) perform(ctx context.Context, t task.Task) error {
	if closed, is := c.visible.closed(t); is && errors.Is(closed.err, task.ErrNotServed) {
		return nil
	}
	var mu sync.Mutex
	last := task.Progress{}
	err := t.Run(ctx, c.visible.clients, task.Attempt{
		Feature: c.name, StopAtFirst: true,
		Report: func(p task.Progress) {
			mu.Lock()
			defer mu.Unlock()
			last = p
			if c.progress.live {
				c.progress.say(fmt.Sprintf("%s %s %s", t.Name, bar(p.Done, p.Total), p.Message))
			}
		},
	})
	c.progress.clear()
	var blocked *task.BlockedError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%w in %s, %s; the same command continues with what is left", errInterrupted, t.Name, doneBy(last))
	case errors.As(err, &blocked):
		fmt.Fprintf(c.b.ErrOut, "%s: %s: %s\n", title(c.name), printable(t.Name), printableLines(blocked.Message, "  "))
		return exitError(ExitHeld)
	}
	return fmt.Errorf("feature %s: stopped at the first surprise, in task %s, %s: %w; what was changed stays so; find out why, and repeat the command, which continues with what is left", c.name, t.Name, doneBy(last), err)
}

// doneBy describes the progress of an attempt that ended early. Objects of the page that was
// under way are not counted.
func doneBy(last task.Progress) string {
	if last.Total == 0 {
		return "in the first page of objects"
	}
	return fmt.Sprintf("with at least %d of %d objects done", last.Done, last.Total)
}

// conclude finds out whether something is left, and says so.
func (c *clientCleaner) conclude(ctx context.Context) error {
	results := c.visible.examine(ctx, []catalog.Entry{c.entry}, examination{}, c.progress.examined)
	c.progress.clear()
	if ctx.Err() != nil {
		return fmt.Errorf("%w; what was found was removed", errInterrupted)
	}
	if results[0].left() {
		var parts []string
		for _, t := range results[0].tasks {
			for _, l := range t.found {
				parts = append(parts, describe(l))
			}
		}
		fmt.Fprintf(c.b.ErrOut, "%s: something is left, or was written meanwhile: %s\n", title(c.name), printable(strings.Join(parts, "; ")))
		return exitError(ExitHeld)
	}
	if len(results[0].unseen) > 0 {
		fmt.Fprintf(c.b.Out, "%s: nothing is left of what can be seen\n", title(c.name))
		if err := printUnseen(c.b.ErrOut, results); err != nil {
			return err
		}
		return exitError(ExitUnknown)
	}
	_, err := fmt.Fprintf(c.b.Out, "%s: nothing is left\n", title(c.name))
	return err
}

// exitIf ends a command with a code under a condition.
func exitIf(condition bool, code int) error {
	if condition {
		return exitError(code)
	}
	return nil
}
