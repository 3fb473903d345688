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

package controlplane

import (
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	authenticatorunion "k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"
	featurestorage "k8s.io/kubernetes-features/pkg/registry/features/feature/storage"
)

// identifyFlow makes a server take a new token for the identity of its server flow, as
// it has one for itself (k8s.io/apiserver/pkg/server/config.go,
// AuthorizeClientBearerToken), and returns the token, which stays in the process. With
// impersonation instead, audit would know every request by the server, and rules of an
// audit policy for the flow's own name would match none.
func identifyFlow(authentication *genericapiserver.AuthenticationInfo) string {
	token := string(uuid.NewUUID())
	flow := &user.DefaultInfo{Name: featurestorage.FlowUser, UID: string(uuid.NewUUID()), Groups: []string{user.AllAuthenticated}}
	authentication.Authenticator = authenticatorunion.New(
		authenticatorfactory.NewFromTokens(map[string]*user.DefaultInfo{token: flow}, authentication.APIAudiences), authentication.Authenticator)
	return token
}

// withToken is a configuration with other credentials.
func withToken(config *rest.Config, token string) *rest.Config {
	config = rest.CopyConfig(config)
	config.BearerToken = token
	return config
}
