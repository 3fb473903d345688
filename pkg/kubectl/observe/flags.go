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

package observe

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// gatesFlag sets gates, in every component.
const gatesFlag = "feature-gates"

// readFlags are those whose values are read.
var readFlags = []string{gatesFlag, emulationFlag, configFlag}

const (
	emulationFlag = "emulated-version"
	configFlag    = "config"
)

// flagName is the name of a flag, which may have underscores for its hyphens.
func flagName(word string) string {
	return strings.ReplaceAll(strings.TrimPrefix(word, "--"), "_", "-")
}

// flagValues returns the values of a flag in a command line, in order.
func flagValues(args []string, name string) []string {
	var values []string
	for i, arg := range args {
		flag, ok := strings.CutPrefix(arg, "--")
		if !ok {
			continue
		}
		flag, value, found := strings.Cut(flag, "=")
		if flagName(flag) != name {
			continue
		}
		if !found && i+1 < len(args) {
			value = args[i+1]
		}
		values = append(values, value)
	}
	return values
}

// parseGates reads values of --feature-gates: pairs separated by commas, each with the
// prefix of the component that they are for, or without. Pairs for other components than
// "kube" are left out.
func parseGates(values ...string) (map[string]bool, error) {
	gates := map[string]bool{}
	for _, value := range values {
		for pair := range strings.SplitSeq(value, ",") {
			pair = strings.TrimSpace(pair)
			if pair == "" {
				continue
			}
			if component, rest, found := strings.Cut(pair, ":"); found {
				if component != "" && component != "kube" {
					continue
				}
				pair = rest
			}
			name, text, found := strings.Cut(pair, "=")
			enabled, err := strconv.ParseBool(strings.TrimSpace(text))
			if !found || err != nil {
				return nil, fmt.Errorf("%q of --feature-gates is not NAME=true or NAME=false", pair)
			}
			gates[strings.TrimSpace(name)] = enabled
		}
	}
	return gates, nil
}

// textFlag finds the flag in the text of /flagz, whose separator changes from one answer
// to the next.
var textFlag = regexp.MustCompile(`(?m)^feature-gates(?:: |:|=| )(.*)$`)

// flagzAccept asks for the flags in a form for programs, which servers have since 1.35,
// and for text from all others.
const flagzAccept = "application/json;as=Flagz;v=v1beta1;g=config.k8s.io, application/json;as=Flagz;v=v1alpha1;g=config.k8s.io, text/plain"

// parseFlagz reads the gates that /flagz says are set.
func parseFlagz(body []byte) (map[string]bool, error) {
	var flagz struct {
		Flags map[string]string `json:"flags"`
	}
	if json.Unmarshal(body, &flagz) == nil {
		value, shown := flagz.Flags[gatesFlag]
		if !shown {
			return nil, fmt.Errorf("/flagz has no --%s", gatesFlag)
		}
		return parseGates(value)
	}
	m := textFlag.FindSubmatch(body)
	if m == nil {
		return nil, fmt.Errorf("/flagz has no line of --%s", gatesFlag)
	}
	return parseGates(string(m[1]))
}
