//go:build linux

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

package framework

import (
	"fmt"
	"os"
)

// RequireRoot is for the TestMain of packages that run several kube-apiservers:
// without root it says that their tests are left out, and ends the process.
func RequireRoot() {
	if os.Getuid() == 0 {
		return
	}
	const why = "these tests run several kube-apiservers with host names of their own, which needs root"
	if os.Getenv("KUBE_FEATURES_REQUIRE_ALL") != "" {
		fmt.Println(why + ", and KUBE_FEATURES_REQUIRE_ALL forbids to leave them out.")
		os.Exit(1)
	}
	fmt.Println("SKIP: " + why + ".")
	os.Exit(0)
}
