/*
Copyright 2026 The Kubernetes Authors.

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

// Package hostile sends a real kube-apiserver what nobody should send: tables of
// malformed requests to features.k8s.io. Whatever comes, the answer is not the
// server's failure (5xx), it says what is wrong, nothing is stored, and the next
// good request works. Where upstream's own machinery answers with 5xx, the same
// request for a kind of upstream's is beside it, and gets the same.
package hostile
