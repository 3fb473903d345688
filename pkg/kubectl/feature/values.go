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

package feature

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/transition"
)

// noState is that of a feature without a status.
const noState = "none yet"

// configuredOf returns the requested value and its source.
func configuredOf(f *v1alpha1.Feature) string {
	c := f.Status.Configured
	if c == nil && isObserved(f) {
		return "kube-apiservers do not agree, or were not observed"
	}
	if c == nil {
		return fmt.Sprintf("not known yet: %s have not reported, or do not agree", serversOf(f))
	}
	text := transition.OnOff(c.Value)
	switch c.Source {
	case v1alpha1.SourceAPI:
		text += ", requested in spec.enabled"
		if who := f.Annotations[v1alpha1.AnnotationRequestedBy]; who != "" {
			text += " by " + printable(who)
		}
	case v1alpha1.SourceCommandLine:
		text += ", by --feature-gates of kube-apiserver"
		if f.Namespace != metav1.NamespaceSystem {
			text = transition.OnOff(c.Value) + ", by the operator's own settings"
		}
	default:
		text += ", by default"
	}
	if wanted := f.Spec.Enabled; wanted != nil && (c.Source != v1alpha1.SourceAPI || c.Value != *wanted) {
		text += fmt.Sprintf("; spec.enabled asks for %s, which is not in effect", transition.OnOff(*wanted))
	}
	return text
}

func controlOf(f *v1alpha1.Feature) string {
	switch {
	case isObserved(f):
		return "Local: the server has no other"
	case f.Status.Control == v1alpha1.ControlDynamic:
		return "Dynamic: processes follow changes while they run"
	case f.Status.Control == v1alpha1.ControlCentral:
		return "Central: processes take the value when they start"
	case controlUnknown(f):
		return fmt.Sprintf("not known yet: %s have not reported", serversOf(f))
	default:
		return "Local: each process has the value of its own settings"
	}
}

// controlUnknown returns true while the feature has no status. Later, no
// control means Local.
func controlUnknown(f *v1alpha1.Feature) bool { return f.Status.Control == "" && f.Status.State == "" }

// serversOf returns the reporters of a feature's values.
func serversOf(f *v1alpha1.Feature) string {
	if f.Namespace == metav1.NamespaceSystem {
		return "kube-apiservers"
	}
	return "the replicas of its operator"
}

func stateOf(status *v1alpha1.FeatureStatus) string {
	if status.State == "" {
		return noState
	}
	if status.StateSince == nil {
		return printable(string(status.State))
	}
	return fmt.Sprintf("%s, for %s (since %s)", printable(string(status.State)), ago(status.StateSince.Time), status.StateSince.UTC().Format(time.RFC3339))
}

// namespaceFlag returns the flag that a command for an operator's feature
// needs.
func namespaceFlag(f *v1alpha1.Feature) string {
	if f.Namespace == metav1.NamespaceSystem {
		return ""
	}
	return " -n " + f.Namespace
}
