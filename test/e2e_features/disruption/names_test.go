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

package disruption

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"k8s.io/kubernetes-features/test/e2e_features/framework"
)

const (
	// namesInRound is how many processes come and go between two looks at the heap, and
	// together how many of them there are at a time.
	namesInRound, together = 1000, 80
	// mostForName is how much of kube-apiserver's heap a name may keep that is gone, in
	// bytes: a report in memory is some 6 KB. What servers have from their start fills up in the
	// first half of a run, so the second half counts.
	mostForName = 1 << 10
	// heapVaries is by how much the heap of a server differs between two looks without any
	// leak: four rounds that kept nothing were seen 3.6 MiB apart. With the least number of
	// names, a report that is kept for each is three times as much.
	heapVaries = 4 << 20
	// withoutHistory keeps past events of these resources out of kube-apiserver's memory: upstream's
	// caches hold those of at least 75 seconds (cacher's eventFreshDuration), and grow as long as
	// names come fast.
	withoutHistory = "--watch-cache-sizes=featurereports.features.k8s.io#0,leases.coordination.k8s.io#0,features.features.k8s.io#0"
)

// TestNamesThatAreAlwaysNew pile up nowhere: processes come, report and end in order, each
// with a name that none had before, as those of Pods are. SOAK_NAMES says how many
// thousands of them.
func TestNamesThatAreAlwaysNew(t *testing.T) {
	rounds, err := strconv.Atoi(os.Getenv("SOAK_NAMES"))
	if err != nil || rounds < 4 {
		t.Skip("SOAK_NAMES does not say how many thousands of names, 4 and more; make soak SOAK_NAMES=20 does")
	}
	w := newWhole(t, settings{duration: time.Hour, seed: 1, extra: []string{withoutHistory}})
	p := &population{w: w, version: w.cluster.Version(), nodes: map[string]*node{}, agents: map[string]*simulated{}, gone: map[string]time.Time{}}
	p.ctx, p.cancel = context.WithCancel(context.WithoutCancel(t.Context()))
	defer p.close()
	w.people = p
	heaps := make([]float64, 0, rounds)
	for round := range rounds {
		if err := p.comeAndGo(t.Context(), uint64(round)); err != nil {
			t.Fatal(err)
		}
		if err := w.until("after all have ended", w.miscounted); err != nil {
			t.Fatal(err)
		}
		heap, err := heapInUse(t.Context(), w.kept().kube.CoreV1().RESTClient())
		if err != nil {
			t.Fatal(err)
		}
		heaps = append(heaps, float64(heap))
		w.said("%d names, the heap of %s is %s", p.number, w.kept().name, mib(float64(heap)))
	}
	half := rounds / 2
	grown, names := heaps[rounds-1]-heaps[half-1], float64((rounds-half)*namesInRound)
	fmt.Fprintf(t.Output(), "a name that is gone keeps %.0f bytes, by the second half of %d names; %d are allowed, and %s for all\n", grown/names, rounds*namesInRound, mostForName, mib(heapVaries))
	if grown > mostForName*names+heapVaries {
		t.Errorf("names that are gone pile up: the heap grew by %s with %.0f names, want %d bytes each and %s at most", mib(grown), names, mostForName, mib(heapVaries))
	}
}

// comeAndGo starts as many processes as are in a round, and ends each once it has reported.
func (p *population) comeAndGo(ctx context.Context, seed uint64) error {
	names := make(chan string)
	failed := make(chan error, together)
	var running sync.WaitGroup
	for worker := range together {
		running.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(worker)))
			for name := range names {
				if err := p.once(ctx, random, name); err != nil {
					select {
					case failed <- fmt.Errorf("%s: %w", name, err):
					default:
					}
				}
			}
		})
	}
	for range namesInRound {
		names <- p.name("agent")
	}
	close(names)
	running.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// once is the life of one process.
func (p *population) once(ctx context.Context, random *rand.Rand, name string) error {
	process, err := p.simulate(random, agentComponent, name, "")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, framework.Patience)
	defer cancel()
	select {
	case <-process.reporter.Started():
		// A removal has a short limit of its own: a process that ends cannot wait for long.
		var last error
		if err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			last = process.end(ctx)
			return last == nil, nil
		}); err != nil {
			return errors.Join(err, last)
		}
		return nil
	case <-ctx.Done():
		process.crash()
		return fmt.Errorf("it does not report; its log:\n%s", process.log)
	}
}
