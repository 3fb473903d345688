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

package build

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/kubernetes-features/build/release/targets"
)

// VersionFile names, below a checkout, the version of Go that its release is
// built with. Another one gives other bytes. Upstream has .go-version for this, which
// a release branch moves with its patch releases; ours is the newest patch release of
// the same minor version, because binaries of today would else have errors of the
// standard library that are known and fixed. It is never older than upstream's.
const VersionFile = "build/release/go-version"

// Go is the go command of a release.
type Go struct {
	// Version is what it says it is, such as go1.26.8.
	Version string
	// toolchain is the value of GOTOOLCHAIN that gives Version.
	toolchain string
	// settings are the caller's, as NAME=value: where modules and caches are.
	settings []string
}

// handed are the settings that a release takes from its caller, from the
// environment or from the file that "go env -w" writes. None of them changes a
// byte: go.sum has the hashes of modules.
var handed = []string{
	"GOAUTH", "GOCACHE", "GOCACHEPROG", "GOINSECURE", "GOMODCACHE", "GONOPROXY", "GONOSUMDB", "GOPATH", "GOPRIVATE",
	"GOPROXY", "GOROOT", "GOSUMDB", "GOTMPDIR", "GOVCS",
}

// FindGo asks the go command on the PATH for its settings and its version, which
// has to be that of VersionFile; where it is not, GOTOOLCHAIN may fetch that. host
// takes any version.
func FindGo(ctx context.Context, root string, host bool) (Go, error) {
	content, err := os.ReadFile(filepath.Join(root, VersionFile))
	if err != nil {
		return Go{}, fmt.Errorf("a release needs to know its version of Go: %w", err)
	}
	wanted := "go" + strings.TrimSpace(string(content))
	cmd := exec.CommandContext(ctx, "go", append([]string{"env", "-json", "GOVERSION"}, handed...)...)
	cmd.Dir = root
	out, err := output(cmd)
	if err != nil {
		return Go{}, fmt.Errorf("cannot ask the go command for its settings: %w", err)
	}
	settings := map[string]string{}
	if err := json.Unmarshal([]byte(out), &settings); err != nil {
		return Go{}, fmt.Errorf("cannot read what \"go env -json\" says: %w", err)
	}
	found := settings["GOVERSION"]
	delete(settings, "GOVERSION")
	g := Go{toolchain: wanted}
	if host || found != wanted {
		// Another toolchain brings its own.
		delete(settings, "GOROOT")
	}
	if host {
		g.toolchain = "local"
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		g.settings = append(g.settings, name+"="+settings[name])
	}
	cmd = exec.CommandContext(ctx, "go", "env", "GOVERSION")
	cmd.Dir = root
	cmd.Env = g.Env(root, targets.Platform{OS: "linux", Arch: "amd64"})
	out, err = output(cmd)
	g.Version = strings.TrimSpace(out)
	if err == nil && (host || g.Version == wanted) {
		return g, nil
	}
	cause := ""
	if err != nil {
		cause = fmt.Sprintf(", and it cannot fetch the other: %v", err)
	}
	return Go{}, fmt.Errorf("the release wants %s (%s), found %s%s; install %s, or set FORCE_HOST_GO=y, which gives other bytes than those of other people",
		wanted, VersionFile, found, cause, wanted)
}

// settingOfGo matches variables that the go command, its compilers or its
// runtime read, but not GOMAXPROCS and the limits of memory, which only take time.
var (
	settingOfGo = regexp.MustCompile(`^(GO[A-Z0-9]+|GO_[A-Z_]+|CGO_[A-Z_]+)$`)
	harmless    = []string{"GOMAXPROCS", "GOGC", "GOMEMLIMIT"}
)

// Env returns the environment of go commands for p in the checkout root. From
// the caller's settings of Go it has only those that are passed on.
func (g Go) Env(root string, p targets.Platform) []string {
	env := slices.DeleteFunc(os.Environ(), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return settingOfGo.MatchString(name) && !slices.Contains(harmless, name)
	})
	env = append(env, g.settings...)
	return append(env,
		// An empty variable does not override the file, so the file is off.
		"GOENV=off", "GOTOOLCHAIN="+g.toolchain, "GOWORK="+filepath.Join(root, "go.work"),
		"CGO_ENABLED=0", "GO_EXTLINK_ENABLED=0", "GOOS="+p.OS, "GOARCH="+p.Arch, "GOFLAGS=", "GOEXPERIMENT=", "GODEBUG=", "GOFIPS140=off",
		"GOAMD64=v1", "GOARM=7", "GOARM64=v8.0", "GO386=sse2", "GOPPC64=power8")
}
