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

// Package stored disrupts real clusters while kube-apiserver clears a field of stored objects:
// the leader is killed, two servers lead at once, etcd is full, slow or forgets the past. After
// each case every object is as it was without the field, byte by byte, and clients that
// watched throughout know its last state. FAULTS_SHORT=false runs the whole form with 20,000
// objects, STORED_OBJECTS sets another number, STORED_SEED repeats the choices of a run, and
// CLEAR_THROUGH is the value of --feature-clear-through.
package stored
