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

// Command balancer spreads connections over the API servers of a cluster with several
// control planes, in place of the image of Envoy. kind starts it as "envoy -c FILE"
// and writes the files that FILE names while it runs.
//
// It reads of Envoy's configuration what kind writes: a listener, and a cluster with
// endpoints and a health check. A connection goes to the next endpoint in turn whose
// health check passes and which accepts.
//
// kind runs bash, sh, mkdir, cp, chmod, mv and sleep in the container.
package main
