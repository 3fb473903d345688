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
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/pflag"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	cliflag "k8s.io/component-base/cli/flag"
	"sigs.k8s.io/yaml"
)

// arguments are the part of a binary's command line that its agent needs. They are parsed
// in addition to the binary's own parser: kubelet hides its flags from cobra, and the
// kubeconfig of kube-proxy and kube-scheduler may be named in a file. Each binary's own
// rules decide what they mean.
type arguments struct {
	kubeconfig, master, config string
	bootstrapKubeconfig        string
	nodeName, hollowName       string
	morph                      string
	securePort                 string
	rootDir                    string
	kubelet                    kubeletArguments
	args                       []string
}

func parseArguments(args []string) *arguments {
	a := &arguments{args: args}
	fs := pflag.NewFlagSet("reporting", pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	// Unknown flags belong to the binary, which reports errors itself.
	fs.ParseErrorsAllowlist.UnknownFlags = true
	// All binaries take --secure_port for --secure-port.
	fs.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	fs.StringVar(&a.kubeconfig, "kubeconfig", "", "")
	fs.StringVar(&a.bootstrapKubeconfig, "bootstrap-kubeconfig", "", "")
	fs.StringVar(&a.master, "master", "", "")
	fs.StringVar(&a.config, "config", "", "")
	fs.StringVar(&a.nodeName, "hostname-override", "", "")
	fs.StringVar(&a.hollowName, "name", "", "")
	fs.StringVar(&a.morph, "morph", "", "")
	fs.StringVar(&a.securePort, "secure-port", "", "")
	fs.StringVar(&a.rootDir, "root-dir", "", "")
	a.kubelet.addTo(fs)
	fs.BoolP("help", "h", false, "")
	_ = fs.Parse(args)
	return a
}

// configuration is the part of a component's configuration file about its connection to the
// server. All components of Kubernetes name it alike.
type configuration struct {
	ClientConnection struct {
		Kubeconfig string `json:"kubeconfig"`
	} `json:"clientConnection"`
	HostnameOverride string `json:"hostnameOverride"`
}

// hasConnectionInFile returns true for components that take their connection to the server
// from --config alone, if it is given. They ignore --kubeconfig then, also if the file has
// no connection (cmd/kube-scheduler/app/options/options.go, ApplyTo;
// cmd/kube-proxy/app/options.go, Complete).
func hasConnectionInFile(component string) bool {
	return component == "kube-scheduler" || component == "kube-proxy"
}

// connection returns the kubeconfig that a component uses, and the address that overrides
// the one of the kubeconfig. Both may be empty.
func (a *arguments) connection(component string) (kubeconfig, master string, err error) {
	switch {
	case component == "kubelet":
		return a.kubeconfig, "", nil
	case hasConnectionInFile(component):
		file, err := a.readConfig()
		if err != nil || file != nil {
			return file.kubeconfig(), a.master, err
		}
	}
	return a.kubeconfig, a.master, nil
}

// clientConfig returns how the component itself reaches the server.
func (a *arguments) clientConfig(component string) (*rest.Config, error) {
	kubeconfig, master, err := a.connection(component)
	if err != nil {
		return nil, err
	}
	if kubeconfig == "" && master == "" {
		if component == "kubelet" {
			// It does not try the configuration of a pod, but runs alone.
			return nil, errNoServer
		}
		return rest.InClusterConfig()
	}
	config, err := clientcmd.BuildConfigFromFlags(master, kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %q, master %q: %w", kubeconfig, master, err)
	}
	return a.withOwnCertificate(component, config)
}

// kubeconfig returns the file's; "" without a file.
func (c *configuration) kubeconfig() string {
	if c == nil {
		return ""
	}
	return c.ClientConnection.Kubeconfig
}

// readConfig reads the file that --config names; nil without one.
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

// node returns the name of the node that a node component runs on. Only kube-proxy
// takes it from its --config, and from the flag before that.
func (a *arguments) node(component string) (string, error) {
	name := a.hollowName
	if name == "" {
		name = a.nodeName
	}
	if component == "kube-proxy" && name == "" {
		if file, err := a.readConfig(); err == nil && file != nil {
			name = file.HostnameOverride
		}
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

// Instance returns the instance name of this process of a control plane component, by its
// command line.
func Instance() (string, error) { return parseArguments(os.Args[1:]).instance() }

// maxHost leaves room for the component and the port in a report's name.
const maxHost = 180

var notDNS = regexp.MustCompile(`[^a-z0-9.-]+`)

// instance returns a name that distinguishes the processes of a control plane component:
// two on one host listen on different ports.
func (a *arguments) instance() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("the instance's name is not known: %w", err)
	}
	return instanceOf(host, a.securePort), nil
}

// instanceOf returns the name of a process on a host that listens on a port. Names of hosts
// may be invalid as names of objects.
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
