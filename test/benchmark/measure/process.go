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

package measure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// clockTicks is the unit of CPU time in /proc/PID/stat, in ticks a second: USER_HZ
// of proc(5), 100 on all architectures that Kubernetes supports.
const clockTicks = 100

// Tick is the resolution of processor time. What takes less may be counted as nothing.
const Tick = time.Second / clockTicks

// Usage is what a process used between two moments.
type Usage struct {
	// Wall is the time between them, CPU the processor time, of user and kernel.
	Wall, CPU time.Duration
	// RSSPeak is the largest resident memory in bytes. The kernel keeps it, so none is
	// missed.
	RSSPeak int64
	// HeapPeak is the largest heap in use that was sampled, in bytes; 0 when
	// the heap was not asked for.
	HeapPeak int64
}

// Cores is how many processors were busy on average.
func (u Usage) Cores() float64 { return u.CPU.Seconds() / u.Wall.Seconds() }

// With is what was used in this time and in another.
func (u Usage) With(o Usage) Usage {
	return Usage{Wall: u.Wall + o.Wall, CPU: u.CPU + o.CPU, RSSPeak: max(u.RSSPeak, o.RSSPeak), HeapPeak: max(u.HeapPeak, o.HeapPeak)}
}

// Process observes one process. It is for one goroutine.
type Process struct {
	pid   int
	begun time.Time
	cpu   time.Duration

	stop   context.CancelFunc
	done   sync.WaitGroup
	mu     sync.Mutex
	heap   int64
	failed error
}

// HeapPeriod is how often the heap is sampled. Reading all metrics of a
// kube-apiserver costs it some 20 ms of processor time.
const HeapPeriod = 5 * time.Second

// ObserveProcess begins to observe a process of the same user. Heap, if not nil,
// is asked for the heap in bytes now and every HeapPeriod.
func ObserveProcess(ctx context.Context, pid int, heap func(context.Context) (int64, error)) (*Process, error) {
	// 5 resets the peak of resident memory (proc(5), clear_refs).
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		return nil, fmt.Errorf("resetting the peak memory of process %d: %w", pid, err)
	}
	p := &Process{pid: pid, begun: time.Now()}
	var err error
	if p.cpu, err = CPU(pid); err != nil {
		return nil, err
	}
	ctx, p.stop = context.WithCancel(ctx)
	if heap != nil {
		p.done.Go(func() { p.sampleHeap(ctx, heap) })
	}
	return p, nil
}

func (p *Process) sampleHeap(ctx context.Context, heap func(context.Context) (int64, error)) {
	ticker := time.NewTicker(HeapPeriod)
	defer ticker.Stop()
	for {
		size, err := heap(ctx)
		if ctx.Err() != nil {
			return
		}
		p.mu.Lock()
		p.heap = max(p.heap, size)
		if err != nil {
			p.failed = err
		}
		p.mu.Unlock()
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// Stop ends the observation and returns what the process used.
func (p *Process) Stop() (Usage, error) {
	p.stop()
	p.done.Wait()
	cpu, err := CPU(p.pid)
	if err != nil {
		return Usage{}, err
	}
	_, peak, err := Memory(p.pid)
	if err != nil {
		return Usage{}, err
	}
	return Usage{Wall: time.Since(p.begun), CPU: cpu - p.cpu, RSSPeak: peak, HeapPeak: p.heap}, p.failed
}

// CPU is the processor time that a process has used since its start.
func CPU(pid int) (time.Duration, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The second field is a name that may have spaces; utime and stime are the
	// fields 14 and 15 (proc(5)).
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields behind the name; this is not Linux as proc(5) has it", pid, len(fields))
	}
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/%d/stat: %w", pid, err)
		}
		ticks += n
	}
	return time.Duration(ticks) * Tick, nil
}

// Memory is the resident memory of a process and its peak, in bytes.
func Memory(pid int) (rss, peak int64, err error) {
	values, err := kilobytes(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	if values["VmRSS"] == 0 || values["VmHWM"] == 0 {
		return 0, 0, fmt.Errorf("process %d has no memory any more: it has ended", pid)
	}
	return values["VmRSS"], values["VmHWM"], nil
}

// MachineMemory is the memory of the machine, in bytes.
func MachineMemory() (int64, error) {
	values, err := kilobytes("/proc/meminfo")
	if err == nil && values["MemTotal"] == 0 {
		err = errors.New("/proc/meminfo does not say how much memory the machine has; this is not Linux as proc(5) has it")
	}
	return values["MemTotal"], err
}

// kilobytes are the sizes in a file that says them as "name: number kB", in bytes.
func kilobytes(file string) (map[string]int64, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	values := map[string]int64{}
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(line, ":")
		number, isSize := strings.CutSuffix(strings.TrimSpace(value), " kB")
		if !isSize {
			continue
		}
		size, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		values[name] = size << 10
	}
	return values, nil
}

// Kernel is the version of the running kernel.
func Kernel() (string, error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return "", err
	}
	return unix.ByteSliceToString(name.Release[:]), nil
}
