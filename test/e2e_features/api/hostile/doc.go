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

// Package hostile sends tables of malformed requests for features.k8s.io to a
// real kube-apiserver. No response is a failure of the server (5xx). Each names
// the cause, nothing is stored, and the next good request works. Where
// upstream's own machinery answers with 5xx, the same request for a kind of
// upstream's is beside it, and gets the same.
package hostile
