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

package catalog

import (
	"sync"

	"k8s.io/apiserver/pkg/cel/environment"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/utils/lru"
	"k8s.io/utils/ptr"
)

// Selectors of devices are expressions, and some gates add words to the
// language. A stored expression is compiled with all words, gate or not; a new
// one is not, so a copy by a template or a user is refused. See upstream's
// pkg/apis/resource/validation, validateCELSelector.

// waitForNoneInSelectors waits until no selector of devices needs words that the
// server knows only with a gate. Without has the options of upstream's compiler
// with the gate off.
func waitForNoneInSelectors(using string, without dracel.Features) lifecycle.Tasks {
	needs := needsWords(without)
	return lifecycle.Tasks{
		lifecycle.WaitForNoneWhere(deviceClasses, using, needs, "spec.selectors[*].cel.expression"),
		lifecycle.WaitForNoneWhere(resourceClaimTemplates, using, needs,
			"spec.spec.devices.requests[*].exactly.selectors[*].cel.expression",
			"spec.spec.devices.requests[*].firstAvailable[*].selectors[*].cel.expression"),
		lifecycle.WaitForNoneWhere(resourceClaims, using, needs,
			"spec.devices.requests[*].exactly.selectors[*].cel.expression",
			"spec.devices.requests[*].firstAvailable[*].selectors[*].cel.expression"),
	}
}

// Options with which the server compiles stored expressions, and new ones while
// a gate is off.
var (
	allWords                  = dracel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true}
	withoutConsumableCapacity = dracel.Features{EnableListTypeAttributes: true}
	withoutListTypeAttributes = dracel.Features{EnableConsumableCapacity: true}
)

// rememberedSelectors is the number of cached results. Claims of one template
// have the same expressions.
const rememberedSelectors = 1000

// needsWords returns a function that returns true for an expression which
// compiles as a new one with all words, and not without those of a gate.
func needsWords(without dracel.Features) func(value any) bool {
	// Upstream's package keeps one compiler and makes a new one for each
	// change of options, so each is requested once.
	compilers := sync.OnceValues(func() (off, all compile) {
		return dracel.GetCompiler(without).CompileCELExpression, dracel.GetCompiler(allWords).CompileCELExpression
	})
	remembered := lru.New(rememberedSelectors)
	return func(value any) bool {
		expression, _ := value.(string)
		if known, ok := remembered.Get(expression); ok {
			return known.(bool)
		}
		options := dracel.Options{EnvType: ptr.To(environment.NewExpressions), DisableCostEstimation: true}
		off, all := compilers()
		needs := off(expression, options).Error != nil && all(expression, options).Error == nil
		remembered.Add(expression, needs)
		return needs
	}
}

type compile func(expression string, options dracel.Options) dracel.CompilationResult
