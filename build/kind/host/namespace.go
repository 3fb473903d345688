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

package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const (
	initCommand   = "host-namespaces"
	daemonCommand = "host-daemon"
	// answerFile is the descriptor by which the result is passed.
	answerFile = 3
)

// IsChild tells whether a process with these arguments is one that Run has started of
// its own program. Main has to be called for it before anything else.
func IsChild(args []string) bool {
	return len(args) == 3 && (args[1] == initCommand || args[1] == daemonCommand)
}

// Main is the main function of a process for which IsChild is true, and returns its
// exit code.
func Main(args []string) int {
	syscall.CloseOnExec(answerFile)
	answer := os.NewFile(answerFile, "answer")
	var got result
	var err error
	if args[1] == daemonCommand {
		got, err = runDaemon(args[2])
	} else {
		if err = runInit(args, answer); err == nil {
			// The process with the daemon has passed a result on.
			return 0
		}
	}
	if err != nil {
		got.Error = err.Error()
	}
	if err := json.NewEncoder(answer).Encode(got); err != nil {
		fmt.Fprintln(os.Stderr, "Error: cannot pass the result on:", err)
		return 1
	}
	return 0
}

// runInit is the first process of the namespaces: it makes them a place for a daemon,
// and reaps processes that have lost their parents until the one with the daemon ends.
func runInit(args []string, answer *os.File) error {
	if os.Getpid() != 1 {
		return errors.New(initCommand + " is started in namespaces of its own only; run the program without it")
	}
	if err := isolate(); err != nil {
		return err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	cmd := exec.Command("/proc/self/exe", daemonCommand, args[2])
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = os.Stdin, os.Stdout, os.Stderr, []*os.File{answer}
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() {
		for s := range signals {
			// It fails for a process that has ended.
			_ = cmd.Process.Signal(s)
		}
	}()
	return reapUntil(cmd.Process.Pid)
}

func reapUntil(last int) error {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return fmt.Errorf("cannot wait for the process with the daemon: %w", err)
		case pid == last:
			return nil
		}
	}
}

// isolate gives the namespaces mounts of their own. Sockets of a daemon are on /run,
// below which their names are short enough, and nothing is left of them. A daemon's
// /sys shows the machine's interfaces still; Docker uses netlink, and containers get
// a /sys of their own.
func isolate() error {
	const quiet = unix.MS_NOSUID | unix.MS_NODEV
	err := errors.Join(
		mount("", "/", unix.MS_REC|unix.MS_PRIVATE, ""),
		mount("proc", "/proc", quiet|unix.MS_NOEXEC, ""),
	)
	for _, dir := range append(hiddenDirs, "/run") {
		err = errors.Join(err, mount("tmpfs", dir, quiet, "mode=0755"))
	}
	if err != nil {
		return err
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("cannot find the namespaces' interface lo: %w", err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return fmt.Errorf("cannot bring up the namespaces' interface lo: %w", err)
	}
	return nil
}

func mount(kind, target string, flags uintptr, options string) error {
	if err := unix.Mount(kind, target, kind, flags, options); err != nil {
		return fmt.Errorf("cannot mount %s in the namespaces: %w", target, err)
	}
	return nil
}
