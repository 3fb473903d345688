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

// Package ahead has the gates of the next minor version of Kubernetes, as a published version of it
// lists them, most often a pre-release. kubectl feature upgrade-check reads them, and so does
// docs/gates.md. Nothing here decides, and no server reads it: a pre-release may still change.
//
// hack/ahead reads gates.json out of upstream's modules, which it does not build.
package ahead
