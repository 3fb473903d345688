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

package tracker

import (
	"cmp"
	"slices"
	"strings"
	"time"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// Server is a live server or reporter and what it reports of the gate.
type Server struct {
	// ID identifies the server, and is shown to users.
	ID string
	// Reported is false for a live server whose report has not been seen: its
	// configuration is unknown.
	Reported bool
	// Starting is true for a server that has not reported and has been alive for
	// so short a time that its report may be on its way.
	Starting bool
	// ControllerStopped is true for a server that is alive and runs no controller of
	// features: it has to agree like the others, and leads none.
	ControllerStopped bool
	// Knows is true when the report lists the gate; the fields of the gate
	// have no meaning otherwise.
	Knows bool
	// Gate is what the report has of the gate.
	Gate v1alpha1.ReportedFeature
	// Version is the effective (emulation) version, for example 1.36.
	Version string
	// Binary is the version of the binary, for example v1.36.3, "" when not known.
	Binary string
}

// Own returns the value that a server sets itself. The value that it uses follows the
// API, too, if the feature is dynamic.
func (s Server) Own() bool { return s.Gate.Enabled != s.Gate.Overridden }

// Servers returns the live servers, sorted by ID, with what they report of a feature;
// "" is no feature.
func (t *Tracker) Servers(feature string, now time.Time) []Server {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.liveServers(feature, now)
}

// liveServers returns the servers that report and those that only have an identity.
func (t *Tracker) liveServers(feature string, now time.Time) []Server {
	byID := map[string]Server{}
	for _, report := range t.index.ofComponent(t.config.Servers) {
		if !t.live(report, now) {
			continue
		}
		server := Server{ID: report.Spec.Instance, Reported: true, Version: report.Spec.EmulationVersion, Binary: report.Spec.BinaryVersion}
		if r, ok := t.index.reported(report.Name, feature); ok {
			server = serverOf(r)
		}
		server.ControllerStopped = ControllerStopped(report)
		byID[server.ID] = server
	}
	for _, lease := range t.leases {
		if !lease.identity {
			continue
		}
		report := t.config.Servers + "." + lease.server
		if _, listed := byID[lease.server]; listed || !lease.alive(now) {
			delete(t.absences.reports, report)
			continue
		}
		since := noticed(t.absences.reports, report, now)
		byID[lease.server] = Server{ID: lease.server, Starting: now.Before(since.Add(startingDelay))}
	}
	servers := make([]Server, 0, len(byID))
	for _, server := range byID {
		servers = append(servers, server)
	}
	slices.SortFunc(servers, func(a, b Server) int { return cmp.Compare(a.ID, b.ID) })
	return servers
}

// serverOf returns the process of a record as a server.
func serverOf(r record) Server {
	return Server{
		ID:       r.report.Spec.Instance,
		Reported: true,
		Knows:    true,
		Gate:     *r.gate,
		Version:  r.report.Spec.EmulationVersion,
		Binary:   r.report.Spec.BinaryVersion,
	}
}

// serversChanged returns true if the set of live servers differs from that of the last
// call. A change moves leadership.
func (t *Tracker) serversChanged(now time.Time) bool {
	var ids []string
	for _, server := range t.liveServers("", now) {
		id := server.ID
		if server.Starting {
			id += " (starting)"
		}
		if !server.Reported {
			id += " (not reported)"
		}
		if server.ControllerStopped {
			id += " (controller stopped)"
		}
		ids = append(ids, id+"@"+server.Version)
	}
	before := t.servers
	t.servers = strings.Join(ids, ",")
	return before != t.servers
}
