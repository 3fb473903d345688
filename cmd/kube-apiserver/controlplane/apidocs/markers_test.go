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

package apidocs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/pkg/features"
)

// marker matches what upstream writes above a field that a gate guards.
var marker = regexp.MustCompile(`\+featureGate=([\w,]+)|\+k8s:if(?:En|Dis)abled\("?(\w+)"?\)`)

// markedField is a property, and the gates that guard it by upstream's markers.
type markedField struct {
	property
	gates []featuregate.Feature
}

// markedFields returns the fields of upstream's API types whose markers name gates
// that are alpha or beta.
func markedFields(t *testing.T) []markedField {
	t.Helper()
	known := knownGates(t).GetAll()
	var found []markedField
	for module, folder := range map[string]string{"k8s.io/api": ".", "k8s.io/apimachinery": "pkg/apis/meta/v1", "k8s.io/apiextensions-apiserver": "pkg/apis/apiextensions/v1"} {
		out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
		if err != nil {
			t.Fatalf("finding the source of %s: %v", module, err)
		}
		root := strings.TrimSpace(string(out))
		err = filepath.WalkDir(filepath.Join(root, folder), func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, ".pb.go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			within, err := filepath.Rel(root, filepath.Dir(name))
			if err != nil {
				return err
			}
			definition := "io.k8s." + strings.ReplaceAll(path.Join(strings.TrimPrefix(module, "k8s.io/"), filepath.ToSlash(within)), "/", ".") + "."
			found = append(found, markersOf(file, definition, known)...)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(found) < 100 {
		t.Fatalf("only %d fields with markers were found; teach this test how upstream marks them now", len(found))
	}
	return found
}

func markersOf(file *ast.File, prefix string, known map[featuregate.Feature]featuregate.FeatureSpec) []markedField {
	var found []markedField
	ast.Inspect(file, func(n ast.Node) bool {
		kind, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		fields, ok := kind.Type.(*ast.StructType)
		if !ok {
			return false
		}
		for _, field := range fields.Fields.List {
			if field.Tag == nil || field.Doc == nil {
				continue
			}
			key, _, _ := strings.Cut(reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json"), ",")
			m := markedField{property: property{prefix + kind.Name.Name, key}}
			for _, line := range field.Doc.List {
				for _, match := range marker.FindAllStringSubmatch(line.Text, -1) {
					for gate := range strings.SplitSeq(match[1]+match[2], ",") {
						m.add(featuregate.Feature(gate), known)
					}
				}
			}
			if len(m.gates) > 0 {
				found = append(found, m)
			}
		}
		return false
	})
	return found
}

func (m *markedField) add(gate featuregate.Feature, known map[featuregate.Feature]featuregate.FeatureSpec) {
	if gate == "PodCertificateProjection" {
		// The marker spells a name that no gate has (k8s.io/kubernetes/pkg/api/pod).
		gate = features.PodCertificateRequest
	}
	spec := known[gate]
	if open := spec.PreRelease == featuregate.Alpha || spec.PreRelease == featuregate.Beta; open && !spec.LockToDefault && !slices.Contains(m.gates, gate) {
		m.gates = append(m.gates, gate)
	}
}

var (
	// older are properties with a marker that stay when the gate is off, and why.
	older = map[string]string{
		"io.k8s.api.autoscaling.v1.HorizontalPodAutoscalerSpec.minReplicas": "the gate lets in the value 0",
		"io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerSpec.minReplicas": "the gate lets in the value 0",
		"io.k8s.api.core.v1.VolumeStatus.image":                             "volumeStatus goes, and nothing else has the type",
	}
	// within are properties in others that belong to another gate, which has to be
	// on for them to be there.
	within = map[string]featuregate.Feature{
		"io.k8s.api.core.v1.ClusterTrustBundleProjection.user":                      features.ClusterTrustBundleProjection,
		"io.k8s.api.core.v1.PodCertificateProjection.user":                          features.PodCertificateRequest,
		"io.k8s.api.core.v1.ResourceHealth.message":                                 features.ResourceHealthStatus,
		"io.k8s.api.resource.v1.AllocatedDeviceStatus.shareID":                      features.DRAResourceClaimDeviceStatus,
		"io.k8s.api.resource.v1.DeviceCounterConsumption.compatibilityGroups":       features.DRAPartitionableDevices,
		"io.k8s.api.resource.v1.DeviceSubRequest.capacity":                          features.DRAPrioritizedList,
		"io.k8s.api.resource.v1.DeviceSubRequest.derivedAttributes":                 features.DRAPrioritizedList,
		"io.k8s.api.resource.v1beta1.AllocatedDeviceStatus.shareID":                 features.DRAResourceClaimDeviceStatus,
		"io.k8s.api.resource.v1beta1.DeviceCounterConsumption.compatibilityGroups":  features.DRAPartitionableDevices,
		"io.k8s.api.resource.v1beta1.DeviceSubRequest.capacity":                     features.DRAPrioritizedList,
		"io.k8s.api.resource.v1beta1.DeviceSubRequest.derivedAttributes":            features.DRAPrioritizedList,
		"io.k8s.api.resource.v1beta2.AllocatedDeviceStatus.shareID":                 features.DRAResourceClaimDeviceStatus,
		"io.k8s.api.resource.v1beta2.DeviceCounterConsumption.compatibilityGroups":  features.DRAPartitionableDevices,
		"io.k8s.api.resource.v1beta2.DeviceSubRequest.capacity":                     features.DRAPrioritizedList,
		"io.k8s.api.resource.v1beta2.DeviceSubRequest.derivedAttributes":            features.DRAPrioritizedList,
		"io.k8s.api.scheduling.v1alpha3.CompositePodGroupTemplate.preemptionPolicy": features.CompositePodGroup,
		"io.k8s.api.scheduling.v1beta1.CompositePodGroupTemplate.preemptionPolicy":  features.CompositePodGroup,
	}
)

// TestMarkers: every field that upstream marks goes with its gates, in every
// version, and stays while they are on.
func TestMarkers(t *testing.T) {
	document := completeV2(t)
	cuts, parameters := newGuards(t).OfV2(document), parametersV2(document)
	unused := map[string]bool{}
	for name := range older {
		unused[name] = true
	}
	for _, m := range markedFields(t) {
		name := Cut{property: m.property}.String()
		if definition, ok := document.Definitions[m.definition]; !ok {
			// Types that are never a body are query parameters, or are not
			// served.
			if !parameters.Has(m.key) || !strings.HasSuffix(m.definition, "Options") {
				continue
			}
			name = Cut{property: m.property, about: parameter}.String()
		} else if _, ok := definition.Properties[m.key]; !ok {
			t.Errorf("the complete document has no %s.%s", m.definition, m.key)
			continue
		}
		gone := slices.Contains(names(cuts.While(except(true, m.gates...))), name)
		switch _, stays := older[name]; {
		case stays && !gone:
			delete(unused, name)
		case !gone:
			t.Errorf("%s is in the document while %v are off; add the path to the catalog, to pathInVersion, to requestFields, or to older with the reason", name, m.gates)
		}
		if slices.Contains(names(cuts.While(except(false, append(m.gates, within[name])...))), name) {
			t.Errorf("%s is not in the document while %v are on and all others are off", name, m.gates)
		}
	}
	for name := range unused {
		t.Errorf("%s needs no exception any more; remove it from older", name)
	}
}
