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

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// runGroup runs a command, which was made with the context, in a process group of its
// own. When the context ends, the group gets SIGTERM, and after the grace period
// SIGKILL. Nothing of the group is left afterwards.
func runGroup(cmd *exec.Cmd, grace time.Duration) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = grace
	if err := cmd.Start(); err != nil {
		return err
	}
	err := cmd.Wait()
	if killErr := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); killErr != nil && !errors.Is(killErr, syscall.ESRCH) {
		return errors.Join(err, fmt.Errorf("ending what %s left: %w", cmd.Path, killErr))
	}
	return err
}

// test runs the processes of a shard and returns what they printed, and what they left
// running, which it ends.
func (r *runner) test(ctx context.Context, s Shard) (read *results, left []string, err error) {
	raw, err := os.Create(r.file(s, ".json"))
	if err != nil {
		return nil, nil, err
	}
	defer raw.Close()
	log, err := os.Create(r.file(s, ".log"))
	if err != nil {
		return nil, nil, err
	}
	defer log.Close()
	read = newResults(raw, log)
	m := mark(s)
	env := append(s.environment(r.out), m)
	if s.Schedules > 0 {
		err = r.testSchedules(ctx, s, env, read)
	} else {
		err = process{dir: s.moduleDir(r.root), env: env, args: s.arguments()}.run(ctx, r.grace, read)
	}
	return read, endLeft(m), err
}

// process is one process of the go command.
type process struct {
	dir       string
	env, args []string
	// part distinguishes processes that run the same test.
	part string
}

func (p process) run(ctx context.Context, grace time.Duration, read *results) error {
	cmd := exec.CommandContext(ctx, "go", p.args...)
	cmd.Dir, cmd.Env = p.dir, p.env
	events, other := &lines{take: func(line string) { read.addLine(line, p.part) }}, &lines{take: read.addOther}
	cmd.Stdout, cmd.Stderr = events, other
	err := runGroup(cmd, grace)
	events.end()
	other.end()
	return err
}

// testSchedules shares random schedules among processes, one a core. The test binary
// is built once, and runs in the directory of its package, as tests expect.
func (r *runner) testSchedules(ctx context.Context, s Shard, env []string, read *results) error {
	dir, binary := s.moduleDir(r.root), r.file(s, ".test")
	args := append([]string{"test", "-c", "-vet=off", "-o", binary}, s.buildFlags()...)
	building := process{dir: dir, env: env, args: append(args, s.Packages...)}
	if err := building.run(ctx, r.grace, read); err != nil {
		return fmt.Errorf("building the test: %w", err)
	}
	cores := runtime.GOMAXPROCS(0)
	share := (s.Schedules + cores - 1) / cores
	errs := make([]error, cores)
	var all sync.WaitGroup
	for i := range cores {
		all.Go(func() {
			errs[i] = process{
				dir:  filepath.Join(dir, s.Packages[0]),
				env:  append(slices.Clone(env), "GOMAXPROCS=1", "GOGC=400", "MODEL_SCHEDULES="+strconv.Itoa(share)),
				part: fmt.Sprintf(" (%d of %d)", i+1, cores),
				args: []string{"tool", "test2json", "-t", "-p", path.Join(s.Dir, s.Packages[0]), binary,
					"-test.v=test2json", "-test.timeout=" + timeout, "-test.run=" + s.Run, "-rapid.seed=" + seedOf(r.seed, s.OtherSeeds*cores+i)},
			}.run(ctx, r.grace, read)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
