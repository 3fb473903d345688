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
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"sigs.k8s.io/yaml"
)

// files are where the resources of Envoy are.
type files struct{ clusters, listeners string }

// bootstrap is the part of Envoy's configuration that kind writes.
type bootstrap struct {
	DynamicResources struct {
		CDS source `json:"cds_config"`
		LDS source `json:"lds_config"`
	} `json:"dynamic_resources"`
}

type source struct {
	Path struct {
		Path string `json:"path"`
	} `json:"path_config_source"`
}

type address struct {
	Socket struct {
		Address string `json:"address"`
		Port    int    `json:"port_value"`
	} `json:"socket_address"`
}

func (a address) String() string {
	return net.JoinHostPort(a.Socket.Address, strconv.Itoa(a.Socket.Port))
}

// listeners is the content of lds.yaml.
type listeners struct {
	Resources []struct {
		Address address `json:"address"`
	} `json:"resources"`
}

// clusters is the content of cds.yaml.
type clusters struct {
	Resources []struct {
		HealthChecks []struct {
			HTTP struct {
				Path string `json:"path"`
			} `json:"http_health_check"`
		} `json:"health_checks"`
		LoadAssignment struct {
			Endpoints []struct {
				LB []struct {
					Endpoint struct {
						Address address `json:"address"`
					} `json:"endpoint"`
				} `json:"lb_endpoints"`
			} `json:"endpoints"`
		} `json:"load_assignment"`
	} `json:"resources"`
}

// config is what the balancer does; an empty listen is no listener.
type config struct {
	listen    string
	endpoints []string
	// health is the path of the check, empty for none.
	health string
}

func readBootstrap(file string) (files, error) {
	var b bootstrap
	if err := readYAML(file, &b); err != nil {
		return files{}, err
	}
	f := files{b.DynamicResources.CDS.Path.Path, b.DynamicResources.LDS.Path.Path}
	if f.clusters == "" || f.listeners == "" {
		return files{}, fmt.Errorf("%s names no files in dynamic_resources: cds_config and lds_config have to have a path_config_source", file)
	}
	return f, nil
}

// read reads both files, of which each may have no resource.
func (f files) read() (config, error) {
	var l listeners
	var c clusters
	if err := errors.Join(readYAML(f.listeners, &l), readYAML(f.clusters, &c)); err != nil {
		return config{}, err
	}
	if len(l.Resources) > 1 || len(c.Resources) > 1 {
		return config{}, fmt.Errorf("%d listeners and %d clusters are configured; the balancer has one of each", len(l.Resources), len(c.Resources))
	}
	var read config
	for _, resource := range l.Resources {
		read.listen = resource.Address.String()
	}
	for _, resource := range c.Resources {
		for _, check := range resource.HealthChecks {
			read.health = check.HTTP.Path
		}
		for _, locality := range resource.LoadAssignment.Endpoints {
			for _, e := range locality.LB {
				read.endpoints = append(read.endpoints, e.Endpoint.Address.String())
			}
		}
	}
	return read, nil
}

func readYAML(file string, to any) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("cannot read the configuration: %w", err)
	}
	if err := yaml.Unmarshal(content, to); err != nil {
		return fmt.Errorf("cannot parse %s: %w", file, err)
	}
	return nil
}
