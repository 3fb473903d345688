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
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/kubernetes-features/build/kind/capless/kernel"
	"k8s.io/kubernetes-features/build/kind/capless/withheld"
	"k8s.io/kubernetes-features/build/release/archive"
)

// probing is the time that a daemon has for one small container.
const probing = 2 * time.Minute

// Withheld returns the capabilities that privileged containers lack in the daemon that the
// environment names: it starts one. That this process has all does not mean that they do,
// and the reverse: the daemon may be outside of a container, or on another machine.
// runtime is the executable of package capless.
func Withheld(ctx context.Context, env []string, runtime string) ([]string, error) {
	return docker{env}.withheld(ctx, runtime)
}

func (d docker) withheld(ctx context.Context, runtime string) ([]string, error) {
	out, err := d.privileged(ctx, runtime, nil, withheld.Command)
	return strings.Fields(string(out)), err
}

// settings has package kernel's command run in a container. On kernels that have settings
// for each namespace of processes, --pid has those of the machine.
func (d docker) settings(ctx context.Context, runtime string, args []string) (answer kernel.Answer, err error) {
	out, err := d.privileged(ctx, runtime, []string{"--pid=host"}, args...)
	if err != nil {
		return answer, err
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		return answer, fmt.Errorf("a container that reads settings of the kernel answers %q: %w", out, err)
	}
	return answer, nil
}

// privileged runs the executable of package capless in a container with all that the daemon
// gives, and returns what it prints.
func (d docker) privileged(ctx context.Context, runtime string, flags []string, args ...string) (out []byte, err error) {
	limited, done := context.WithTimeout(ctx, probing)
	defer done()
	image, err := d.importProgram(limited, runtime)
	if err != nil {
		return nil, err
	}
	defer func() {
		after, done := context.WithTimeout(context.WithoutCancel(ctx), probing)
		defer done()
		_, e := d.lines(after, "image", "rm", image)
		err = errors.Join(err, e)
	}()
	command := slices.Concat([]string{"run", "--rm", "--privileged", "--network=none"}, flags, []string{image, "/" + program}, args)
	return d.output(limited, nil, command...)
}

// program is the name of the executable in its image.
const program = "capless"

// importProgram makes an image of one static executable, without a name, and returns its
// identifier.
func (d docker) importProgram(ctx context.Context, file string) (string, error) {
	r, w := io.Pipe()
	go func() {
		w.CloseWithError(archive.Write(w, []archive.Entry{{Name: program, Path: file, Mode: 0o755}}, time.Unix(0, 0)))
	}()
	// Without a reader, writing ends.
	defer func() { _ = r.Close() }()
	out, err := d.output(ctx, r, "import", "-")
	if err != nil {
		return "", err
	}
	lines := strings.Fields(string(out))
	if len(lines) != 1 {
		return "", fmt.Errorf("docker import answers %q, want the identifier of an image", lines)
	}
	return lines[0], nil
}
