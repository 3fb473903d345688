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

package kindcluster

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Client is kubectl with its plugin, as the client archive of the release has them.
type Client struct {
	binary      string
	environment []string
}

// Client unpacks the client archive, and returns its kubectl for an administrator.
func (c *Cluster) Client() Client {
	c.t.Helper()
	dir := c.t.TempDir()
	if err := Unpack(Archive(c.t, "client"), dir, func(string) bool { return true }); err != nil {
		c.t.Fatalf("unpacking the release's clients: %v", err)
	}
	bin := filepath.Join(dir, "kubernetes", "client", "bin")
	return Client{
		binary:      filepath.Join(bin, "kubectl"),
		environment: append(os.Environ(), "HOME="+dir, "KUBECONFIG="+Kubeconfig(c.t), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH")),
	}
}

// Run returns what kubectl printed to its output and its exit code. It
// shows what kubectl printed to its error stream.
func (c Client) Run(t testing.TB, args ...string) (output string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), c.binary, args...)
	cmd.Env, cmd.Stderr = c.environment, t.Output()
	data, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("kubectl %s: %v", strings.Join(args, " "), err)
	}
	return string(data), cmd.ProcessState.ExitCode()
}

// Output is what kubectl printed. It must not fail.
func (c Client) Output(t testing.TB, args ...string) string {
	t.Helper()
	output, code := c.Run(t, args...)
	if code != 0 {
		t.Errorf("kubectl %s: exit code %d\n%s", strings.Join(args, " "), code, output)
	}
	return output
}

// Unpack writes the files of a .tar.gz that are wanted below a directory.
func Unpack(archive, dir string, wanted func(name string) bool) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	packed, err := gzip.NewReader(file)
	if err != nil {
		return fmt.Errorf("%s: %w", archive, err)
	}
	defer func() { _ = packed.Close() }()
	for entries := tar.NewReader(packed); ; {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", archive, err)
		}
		if header.Typeflag != tar.TypeReg || !wanted(header.Name) {
			continue
		}
		if err := write(dir, header.Name, header.FileInfo().Mode(), entries); err != nil {
			return fmt.Errorf("%s of %s: %w", header.Name, archive, err)
		}
	}
}

// write writes one file of an archive, which must not lead out of the directory.
func write(dir, name string, mode os.FileMode, content io.Reader) error {
	if !filepath.IsLocal(name) {
		return errors.New("its path leads out of the archive")
	}
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode.Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}
