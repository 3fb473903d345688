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

// Package disruption does to real clusters what happens to them in life: servers crash,
// freeze, disagree, are cut off or have different versions; the database dies, is full,
// forgets the past; nodes, reporters and objects come and go; gates flip. There is one
// catalog of disruptions and two ways to run it. One after another, each comes in the
// middle of a transition, and after each no state was false, no transition lost and no
// object changed otherwise than by clearing one field. At once, all happen for a time, and
// in the end nothing may be left of them. FAULTS_SHORT=false does each more often and for
// longer, SOAK_DURATION says how long all of them happen at once, SOAK_SEED repeats the
// choices of another run.
package disruption
