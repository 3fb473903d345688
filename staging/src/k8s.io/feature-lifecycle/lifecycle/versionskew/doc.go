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

// Package versionskew evaluates whether a cluster may move to an adjacent minor
// version as far as one feature is concerned: whether every binary would start
// there, and whether it could read what is stored. It is pure. The caller passes in
// the specs of the other version: for a downgrade this binary's own, for an upgrade
// those of the newer one (KEP-3920, "Upgrade and downgrade"). The controller calls it
// for the conditions UpgradeSafe and DowngradeSafe, the kubectl plugin for upgrade-check.
package versionskew
