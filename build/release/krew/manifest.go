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

package krew

import (
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

// Manifest describes a plugin and where to get it.
type Manifest struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   Metadata `json:"metadata"`
	Spec       Spec     `json:"spec"`
}

// Metadata has the name of the plugin, which is also the manifest's file name without
// its extension: krew refuses another one.
type Metadata struct {
	Name string `json:"name"`
}

// Spec has one version of the plugin.
type Spec struct {
	// Version is a semantic version with a leading v.
	Version  string `json:"version"`
	Homepage string `json:"homepage,omitempty"`
	// ShortDescription is one line.
	ShortDescription string `json:"shortDescription"`
	Description      string `json:"description,omitempty"`
	// Caveats are shown after each installation.
	Caveats   string     `json:"caveats,omitempty"`
	Platforms []Platform `json:"platforms"`
}

// Platform is how to install the plugin on machines of one kind. No two platforms of a
// manifest select the same machine.
type Platform struct {
	Selector Selector `json:"selector"`
	// URI is the address of the archive, which krew downloads by http or https.
	URI string `json:"uri"`
	// SHA256 is the archive's hash in hexadecimal digits.
	SHA256 string `json:"sha256"`
	Files  []File `json:"files"`
	// Bin is the path of the program among the installed files, the only one that krew
	// links into the PATH.
	Bin string `json:"bin"`
}

// Selector matches machines by the labels os and arch, as the go command names both.
type Selector struct {
	MatchLabels map[string]string `json:"matchLabels"`
}

// File copies a file or folder of the archive into the folder of the plugin.
type File struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// New returns a manifest without platforms.
func New(name string, spec Spec) Manifest {
	return Manifest{APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin", Metadata: Metadata{Name: name}, Spec: spec}
}

// YAML returns the manifest as krew reads it. The same manifest gives the same bytes.
func (m Manifest) YAML() ([]byte, error) {
	data, err := yaml.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("cannot write the manifest of the plugin %s: %w", m.Metadata.Name, err)
	}
	return data, nil
}

// Read reads a manifest that YAML returned.
func Read(file string) (Manifest, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return Manifest{}, err
	}
	var m Manifest
	if err := yaml.UnmarshalStrict(data, &m); err != nil {
		return Manifest{}, fmt.Errorf("cannot read %s: %w", file, err)
	}
	return m, nil
}
