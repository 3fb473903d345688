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

package backoff

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IsNotFound returns true if the server answered that it lacks the API, or the object.
// No other error means that: a request that is forbidden or invalid reveals nothing.
func IsNotFound(err error) bool { return apierrors.IsNotFound(err) }

// IsAPINotServed returns true if the server answered that it lacks the API: the path is
// unknown to it. A server with the API answers with a Status of its own that an object is
// missing, or its namespace.
func IsAPINotServed(err error) bool {
	return IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// IsForbidden returns true if the server does not allow the request, because it does not
// know the client or because permissions are missing. A server that has just started
// forbids requests for some seconds, until its RBAC policy is written.
func IsForbidden(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) }
