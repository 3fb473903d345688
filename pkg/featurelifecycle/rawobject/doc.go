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

// Package rawobject finds and removes fields of API objects in the bytes that etcd holds,
// after decryption, without decoding an object. kube-apiserver's tasks call it for whole
// collections. It knows protobuf and JSON; what is stored as CBOR is refused.
//
// Bytes that are no part of an edit stay as they are, in their order, and so do fields
// that this version's types lack. Nothing here reads from etcd or calls an API, keeps an
// object, or quotes one in an error. Bytes that cannot be read are an error, never a panic.
package rawobject
