/*
Copyright 2026 The Kubernetes Authors.

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
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/pflag"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"
)

// arguments are what a reporter needs to know of a binary's command line. They
// are read beside the binary's own parser: kubelet keeps its flags from cobra,
// and kube-proxy's and kube-scheduler's kubeconfig may stand in a file.
type arguments struct {
	kubeconfig, master, config string
	bootstrapKubeconfig        string
	nodeName, hollowName       string
	morph                      string
	securePort                 string
	rootDir                    string
	args                       []string
}

func parseArguments(args []string) *arguments {
	a := &arguments{args: args}
	fs := pflag.NewFlagSet("reporting", pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	// What is not known here belongs to the binary, which complains itself.
	fs.ParseErrorsAllowlist.UnknownFlags = true
	fs.StringVar(&a.kubeconfig, "kubeconfig", "", "")
	fs.StringVar(&a.bootstrapKubeconfig, "bootstrap-kubeconfig", "", "")
	fs.StringVar(&a.master, "master", "", "")
	fs.StringVar(&a.config, "config", "", "")
	fs.StringVar(&a.nodeName, "hostname-override", "", "")
	fs.StringVar(&a.hollowName, "name", "", "")
	fs.StringVar(&a.morph, "morph", "", "")
	fs.StringVar(&a.securePort, "secure-port", "", "")
	fs.StringVar(&a.rootDir, "root-dir", "", "")
	fs.BoolP("help", "h", false, "")
	_ = fs.Parse(args)
	return a
}

// configuration is the part of a component's configuration file that says how
// it reaches the server. All Kubernetes' components name it alike.
type configuration struct {
	ClientConnection struct {
		Kubeconfig string `json:"kubeconfig"`
	} `json:"clientConnection"`
	HostnameOverride string `json:"hostnameOverride"`
}

// clientConfig returns how the component itself reaches the server.
func (a *arguments) clientConfig(component string) (*rest.Config, error) {
	kubeconfig := a.kubeconfig
	if file, err := a.readConfig(); err != nil {
		return nil, err
	} else if file != nil && file.ClientConnection.Kubeconfig != "" {
		kubeconfig = file.ClientConnection.Kubeconfig
	}
	if kubeconfig == "" && a.master == "" {
		if component == "kubelet" {
			// It never looks for a server around it, but runs alone.
			return nil, errNoServer
		}
		return rest.InClusterConfig()
	}
	config, err := clientcmd.BuildConfigFromFlags(a.master, kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %q, master %q: %w", kubeconfig, a.master, err)
	}
	return config, nil
}

// bootstraps is true as long as a kubelet has no kubeconfig and is going to get
// one: its Run requests a certificate, after its feature gates were final
// (cmd/kubelet/app/server.go, buildKubeletClientConfig).
func (a *arguments) bootstraps(component string) bool {
	if component != "kubelet" || a.bootstrapKubeconfig == "" || a.kubeconfig == "" {
		return false
	}
	_, err := os.Stat(a.kubeconfig)
	return errors.Is(err, fs.ErrNotExist)
}

// bootstrapConfig returns how a kubelet that bootstraps reaches the server. Its
// user may do little, but read Features as everybody who is authenticated.
func (a *arguments) bootstrapConfig() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", a.bootstrapKubeconfig)
	if err != nil {
		return nil, fmt.Errorf("bootstrap kubeconfig %q: %w", a.bootstrapKubeconfig, err)
	}
	return config, nil
}

func (a *arguments) readConfig() (*configuration, error) {
	if a.config == "" {
		return nil, nil
	}
	data, err := os.ReadFile(a.config)
	if err != nil {
		return nil, fmt.Errorf("reading --config: %w", err)
	}
	file := &configuration{}
	if err := yaml.Unmarshal(data, file); err != nil {
		return nil, fmt.Errorf("reading --config %s: %w", a.config, err)
	}
	return file, nil
}

// node is the name of the node that a node component runs on.
func (a *arguments) node() (string, error) {
	name := a.hollowName
	if name == "" {
		name = a.nodeName
	}
	if file, err := a.readConfig(); name == "" && err == nil && file != nil {
		name = file.HostnameOverride
	}
	if name == "" {
		host, err := os.Hostname()
		if err != nil {
			return "", fmt.Errorf("the node's name is not known: %w", err)
		}
		name = host
	}
	return strings.ToLower(strings.TrimSpace(name)), nil
}

// Instance is the instance name of this process of a control plane component, as
// its command line has it.
func Instance() (string, error) { return parseArguments(os.Args[1:]).instance() }

// maxHost leaves room for the component and the port in a report's name.
const maxHost = 180

var notDNS = regexp.MustCompile(`[^a-z0-9.-]+`)

// instance tells the processes of a control plane component apart: two on one
// host listen on different ports.
func (a *arguments) instance() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("the instance's name is not known: %w", err)
	}
	return instanceOf(host, a.securePort), nil
}

// instanceOf is the name of a process on a host that listens on a port. Hosts may be
// called what objects may not.
func instanceOf(host, port string) string {
	var labels []string
	for label := range strings.SplitSeq(notDNS.ReplaceAllString(strings.ToLower(host), "-"), ".") {
		if label = strings.Trim(label, "-"); label != "" {
			labels = append(labels, label)
		}
	}
	// Linux has 64 characters at most; the name of the report has 253.
	name := strings.Join(labels, ".")
	if name = strings.TrimRight(name[:min(len(name), maxHost)], ".-"); name == "" {
		name = "localhost"
	}
	if port != "" && port != "0" {
		name += "-" + port
	}
	return name
}
