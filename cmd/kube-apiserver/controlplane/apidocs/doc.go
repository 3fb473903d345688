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

// Package apidocs makes published OpenAPI documents honest: while a gate is off,
// the fields that it guards are not in them, and so not in kubectl explain
// (KEP-3920; docs/architecture.md). It is pure. kube-apiserver's composition in
// Package controlplane is its caller and decides where documents come from and who is
// served which.
//
// The catalog has the fields of each gate: the paths of a feature's tasks, and
// its other leftovers. A document's paths map resources to types. So a path of
// the catalog leads, from type to type, to one property of one type in each
// version of the resource.
//
// A type may be in many places, and a property goes only when each place of it
// that the document's resources have belongs to gates that are off.
// Container.restartPolicy of init containers is older than the gate that lets
// other containers have it, so it stays. Properties below such a place go with
// it.
//
// A place may belong to several gates. Those that another one of them needs do
// not count, since that one is off when they are; of the others, one that is on
// keeps the place.
//
// Only a value of a field may belong to a gate, if the field is older than the
// gate. The value is then left out of the property's enum and of the list of values
// that is part of the description, by the same rule. Prose is left as it is.
//
// Fields of requests and answers are in no stored object, and so in no path of the
// catalog: a list of their own has them (requestFields). Query parameters go out
// of all paths, and out of what paths share.
//
// The given documents and definitions are never changed here. Server-side apply
// has its models from the same definitions (apiserver's
// GenericAPIServer.getOpenAPIModels), and has to know the fields that stored
// objects have, gate or not.
package apidocs
