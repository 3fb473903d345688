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
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/kubernetes-features/build/release/archive"
	"k8s.io/kubernetes-features/build/release/krew"
	"k8s.io/kubernetes-features/build/release/sbom"
	"k8s.io/kubernetes-features/build/release/targets"
)

// pluginName is the program that kubectl runs for "kubectl feature".
const pluginName = "kubectl-feature"

// krewName is the plugin's name for krew, and manifestFile its manifest, which krew wants
// to be named after it.
const (
	krewName     = "feature"
	manifestFile = krewName + ".yaml"
)

// Names in the archive of the plugin: the license of this repository, which the sources
// have under the same name, and those of the modules in the binary.
const (
	ownLicense     = "LICENSE"
	pluginLicenses = "LICENSES"
)

// maxPluginSize is what the plugin has to be below on each platform that it is released
// for, in bytes. Each user downloads it, for each version.
const maxPluginSize = 40 << 20

// checkPluginSize refuses a plugin for p that has grown too large.
func checkPluginSize(file string, p targets.Platform) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if info.Size() < maxPluginSize {
		return nil
	}
	return fmt.Errorf("%s for %s has %d bytes, and has to be below %d (40 MiB): compare \"go list -deps ./cmd/kubectl-feature\" with an earlier commit, and do without what is new",
		filepath.Base(file), p, info.Size(), maxPluginSize)
}

// hasCompletion reports whether an archive has the completion. kubectl runs it as a
// program, which a shell script is not on Windows. Archives of clients are as upstream's,
// with the same files for each system.
func hasCompletion(c targets.Component, p targets.Platform) bool {
	return c != targets.Plugin || p.OS != "windows"
}

// pluginContents returns what is in the archive of the plugin. There is no folder around
// it, so that the program and its completion can be unpacked into a folder of the PATH.
func (r *release) pluginContents(c targets.Component, p targets.Platform) ([]archive.Entry, error) {
	program := p.Executable(pluginName)
	license := r.sources[ownLicense]
	entries := []archive.Entry{
		{Name: program, Path: filepath.Join(r.bin(p), program), Mode: 0o755},
		{Name: ownLicense, Path: license.Path, Data: license.Data},
	}
	if hasCompletion(c, p) {
		script := r.sources[completionSource]
		entries = append(entries, archive.Entry{Name: completion, Path: script.Path, Data: script.Data, Mode: 0o755})
	}
	modules, err := r.licensesOfModules(c, p)
	for _, e := range modules {
		e.Name = path.Join(pluginLicenses, strings.TrimPrefix(e.Name, licensesFolder))
		entries = append(entries, e)
	}
	return entries, err
}

// pluginFiles are what krew installs of that archive: all of it.
func pluginFiles(p targets.Platform) []krew.File {
	names := []string{p.Executable(pluginName), ownLicense, pluginLicenses}
	if hasCompletion(targets.Plugin, p) {
		names = append(names, completion)
	}
	var files []krew.File
	for _, name := range names {
		files = append(files, krew.File{From: name, To: "."})
	}
	return files
}

const (
	shortDescription = "Inspect and change a cluster's feature gates"

	description = `Shows which feature gates are on in a cluster, which process has which value,
what gates that are off have left in stored objects, and whether an upgrade is
safe.

"gates" and "upgrade-check -f" need no cluster. "list", "describe", "uses",
"diff", "report" and "leftovers" look at any cluster from Kubernetes 1.31 on.
Where servers have the API features.k8s.io, "plan", "enable", "disable" and
others change features, and follow the changes to their end.
`

	// caveats has the version, which is part of the path.
	caveats = `krew links the program, but not the completion of "kubectl feature" (there is
none on Windows). Copy it once:
  cp "${KREW_ROOT:-$HOME/.krew}/store/` + krewName + `/%s/` + completion + `" "${KREW_ROOT:-$HOME/.krew}/bin/"
`
)

// writeManifest writes the manifest for krew of the platforms that the plugin was made
// for, and enters it into the bill.
func (r *release) writeManifest(platforms []targets.Platform) error {
	m := krew.New(krewName, krew.Spec{
		Version: string(r.version), Homepage: r.flags.source,
		ShortDescription: shortDescription, Description: description, Caveats: fmt.Sprintf(caveats, r.version),
	})
	for _, p := range platforms {
		if !slices.Contains(r.components(p), targets.Plugin) {
			continue
		}
		name := archiveName(targets.Plugin, p)
		sum, err := archive.Sum(filepath.Join(r.tars(), name), sha256.New())
		if err != nil {
			return err
		}
		m.Spec.Platforms = append(m.Spec.Platforms, krew.Platform{
			Selector: krew.Selector{MatchLabels: map[string]string{"os": p.OS, "arch": p.Arch}},
			URI:      address(r.download, name), SHA256: sum,
			Files: pluginFiles(p), Bin: p.Executable(pluginName),
		})
	}
	if len(m.Spec.Platforms) == 0 {
		return nil
	}
	data, err := m.YAML()
	if err != nil {
		return err
	}
	file := filepath.Join(r.tars(), manifestFile)
	if err := archive.WriteData(file, data); err != nil {
		return err
	}
	if r.download == "" {
		fmt.Printf("  %s has no address of the archives, so krew takes it with --archive only; DOWNLOAD_URL sets one\n", manifestFile)
	}
	return r.enter(sbom.File{Name: manifestFile}, file)
}

// address is where an archive will be downloaded, or its name alone where that is not
// known: krew wants something there.
func address(folder, name string) string {
	if folder == "" {
		return name
	}
	return strings.TrimSuffix(folder, "/") + "/" + name
}

// addresses reads from a manifest, if there is one, the address of the repository and the
// folder that address was given.
func addresses(manifest string) (source, download string, err error) {
	m, err := krew.Read(manifest)
	if errors.Is(err, fs.ErrNotExist) {
		return "", "", nil
	}
	if err != nil || len(m.Spec.Platforms) == 0 {
		return m.Spec.Homepage, "", err
	}
	uri := m.Spec.Platforms[0].URI
	return m.Spec.Homepage, uri[:max(0, strings.LastIndexByte(uri, '/'))], nil
}

// checkDownload refuses an address that krew cannot download from.
func checkDownload(folder string) error {
	if folder == "" {
		return nil
	}
	u, err := url.Parse(folder)
	if err != nil {
		return fmt.Errorf("DOWNLOAD_URL is no address: %w", err)
	}
	if u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return fmt.Errorf("DOWNLOAD_URL is %q, and krew downloads by http and https only: set the address of the folder that archives will be in, such as https://example.com/downloads", folder)
	}
	return nil
}
