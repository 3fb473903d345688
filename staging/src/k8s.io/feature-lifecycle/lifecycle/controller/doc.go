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

// Package controller reconciles Features: it passes what it watches to package tracker,
// lets package transition decide, and commits the decision
// (gather → decide → commit). kube-apiserver runs it in a post-start hook,
// operators run it beside their own controllers. Only this package and package task
// hold clients; nothing here decides.
//
// Every server runs a controller, and one of them leads each feature
// (package leader). Every write of a Feature carries the resourceVersion that
// was read, so that a server with an outdated picture fails to write instead
// of doing harm.
package controller
