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

package reporting

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"
)

// kubeletArguments decide with which certificate a kubelet identifies itself, and which pods
// it runs by itself.
type kubeletArguments struct {
	certDir, configDir string
	// rotate is --rotate-certificates, set if rotateChanged returns true.
	rotate        bool
	rotateChanged func() bool
	// staticPods is --pod-manifest-path, set if staticPodsChanged returns true.
	staticPods        string
	staticPodsChanged func() bool
}

const (
	// defaultCertDir is kubelet's default of --cert-dir.
	defaultCertDir = "/var/lib/kubelet/pki"
	// currentCertificate is the file in it that kubelet's store of client certificates
	// keeps (pkg/kubelet/certificate/kubelet.go).
	currentCertificate = "kubelet-client-current.pem"
	// dropIn is the suffix of files in --config-dir.
	dropIn = ".conf"
)

func (k *kubeletArguments) addTo(fs *pflag.FlagSet) {
	fs.StringVar(&k.certDir, "cert-dir", defaultCertDir, "")
	fs.StringVar(&k.configDir, "config-dir", "", "")
	const rotate = "rotate-certificates"
	fs.BoolVar(&k.rotate, rotate, false, "")
	k.rotateChanged = func() bool { return fs.Changed(rotate) }
	const staticPods = "pod-manifest-path"
	fs.StringVar(&k.staticPods, staticPods, "", "")
	k.staticPodsChanged = func() bool { return fs.Changed(staticPods) }
}

// bootstraps returns true while a kubelet has no kubeconfig and will get one. Its Run
// requests a certificate after its feature gates are final (cmd/kubelet/app/server.go,
// buildKubeletClientConfig).
func (a *arguments) bootstraps(component string) bool {
	if component != "kubelet" || a.bootstrapKubeconfig == "" || a.kubeconfig == "" {
		return false
	}
	_, err := os.Stat(a.kubeconfig)
	return errors.Is(err, fs.ErrNotExist)
}

// bootstrapConfig returns the client configuration of a kubelet that bootstraps. Its user
// has few permissions, and may read Features like all authenticated users.
func (a *arguments) bootstrapConfig() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", a.bootstrapKubeconfig)
	if err != nil {
		return nil, fmt.Errorf("bootstrap kubeconfig %q: %w", a.bootstrapKubeconfig, err)
	}
	return config, nil
}

// hasFirstCredentials returns true as long as a kubelet lacks the credentials of its final
// identity.
func (a *arguments) hasFirstCredentials(component string) bool {
	if a.bootstraps(component) {
		return true
	}
	file, err := a.ownCertificate(component)
	if file == "" || err != nil {
		return false
	}
	_, err = os.Stat(file)
	return errors.Is(err, fs.ErrNotExist)
}

// withOwnCertificate replaces the credentials of a kubelet's kubeconfig by the certificate
// that the kubelet uses instead, once it exists. With rotation, it is in --cert-dir, and the
// credentials of the kubeconfig are for the first request alone. They may belong to another
// identity, and have expired years ago.
func (a *arguments) withOwnCertificate(component string, config *rest.Config) (*rest.Config, error) {
	file, err := a.ownCertificate(component)
	if file == "" || err != nil || a.hasFirstCredentials(component) {
		return config, err
	}
	config = rest.AnonymousClientConfig(config)
	config.CertFile, config.KeyFile = file, file
	return config, nil
}

// awaitsCertificate returns why a kubelet cannot report yet: its first certificate was not
// issued yet, and the credentials of its kubeconfig are not those of its final identity.
// With files in the kubeconfig, the kubelet uses these until it has its own certificate.
func (a *arguments) awaitsCertificate(component string, config *rest.Config) error {
	file, err := a.ownCertificate(component)
	if file == "" || err != nil || config.CertFile != "" {
		return err
	}
	return fmt.Errorf("the kubelet rotates its client certificate and has none in %s yet", filepath.Dir(file))
}

// ownCertificate returns the file with the client certificate of a kubelet that rotates it,
// and "" for all others.
func (a *arguments) ownCertificate(component string) (string, error) {
	// A hollow node has its kubeconfig alone.
	if component != "kubelet" || a.morph != "" {
		return "", nil
	}
	rotates, err := a.rotates()
	if err != nil || !rotates {
		return "", err
	}
	return filepath.Join(a.kubelet.certDir, currentCertificate), nil
}

// rotates returns true if a kubelet rotates its client certificate.
func (a *arguments) rotates() (bool, error) {
	if a.kubelet.rotateChanged() {
		return a.kubelet.rotate, nil
	}
	config, err := a.kubeletConfig()
	return config.RotateCertificates, err
}

// kubeletConfiguration is the part of a kubelet's configuration files that its agent needs.
// Flags override it.
type kubeletConfiguration struct {
	RotateCertificates bool   `json:"rotateCertificates"`
	StaticPodPath      string `json:"staticPodPath"`
}

// kubeletConfig reads --config and the files in --config-dir, which override it, and of
// which the last one wins.
func (a *arguments) kubeletConfig() (config kubeletConfiguration, err error) {
	read := func(file string) error {
		data, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("reading a configuration of the kubelet: %w", err)
		}
		// What the file does not have stays.
		if err := yaml.Unmarshal(data, &config); err != nil {
			return fmt.Errorf("reading a configuration of the kubelet, %s: %w", file, err)
		}
		return nil
	}
	if a.config != "" {
		if err := read(a.config); err != nil {
			return config, err
		}
	}
	if a.kubelet.configDir == "" {
		return config, nil
	}
	err = filepath.WalkDir(a.kubelet.configDir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(entry.Name()) != dropIn {
			return err
		}
		return read(path)
	})
	return config, err
}

// runsServer returns true for a kubelet among whose static pods is a kube-apiserver: that may
// be the only one, and starts after the kubelet. What cannot be read has none.
func (a *arguments) runsServer(component string) bool {
	// A hollow node runs no pods.
	if component != "kubelet" || a.morph != "" {
		return false
	}
	path := a.kubelet.staticPods
	if !a.kubelet.staticPodsChanged() {
		config, err := a.kubeletConfig()
		if err != nil {
			return false
		}
		path = config.StaticPodPath
	}
	if path == "" {
		return false
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		// It may be one file.
		return isServerManifest(path)
	}
	return slices.ContainsFunc(entries, func(entry os.DirEntry) bool {
		// Kubelets ignore files that start with a dot.
		return !strings.HasPrefix(entry.Name(), ".") && isServerManifest(filepath.Join(path, entry.Name()))
	})
}

// isServerManifest returns true for the file of a pod that runs kube-apiserver. Kubelets, too,
// read regular files alone; others could block.
func isServerManifest(file string) bool {
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
		return false
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return false
	}
	var pod struct {
		Spec struct {
			Containers []struct {
				Name    string   `json:"name"`
				Command []string `json:"command"`
			} `json:"containers"`
		} `json:"spec"`
	}
	if yaml.Unmarshal(data, &pod) != nil {
		return false
	}
	const server = "kube-apiserver"
	for _, container := range pod.Spec.Containers {
		if container.Name == server || len(container.Command) > 0 && filepath.Base(container.Command[0]) == server {
			return true
		}
	}
	return false
}
