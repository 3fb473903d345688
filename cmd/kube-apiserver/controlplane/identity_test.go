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
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"
	featurestorage "k8s.io/kubernetes-features/pkg/registry/features/feature/storage"
)

// TestFlowHasItsOwnName: audit rules match the user of a request before
// impersonation.
func TestFlowHasItsOwnName(t *testing.T) {
	refused := errors.New("refused")
	authentication := &genericapiserver.AuthenticationInfo{Authenticator: authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		if r.Header.Get("Authorization") == "Bearer jane's" {
			return &authenticator.Response{User: &user.DefaultInfo{Name: "jane"}}, true, nil
		}
		return nil, false, refused
	})}
	token, other := identifyFlow(authentication), identifyFlow(&genericapiserver.AuthenticationInfo{})
	if token == "" || token == other {
		t.Errorf("two servers have the tokens %q and %q", token, other)
	}
	for with, want := range map[string]string{token: featurestorage.FlowUser, "jane's": "jane", other: "", "": ""} {
		request := httptest.NewRequest(http.MethodGet, "/", nil)
		if with != "" {
			request.Header.Set("Authorization", "Bearer "+with)
		}
		answer, ok, err := authentication.Authenticator.AuthenticateRequest(request)
		switch {
		case ok != (want != "") || ok != (err == nil):
			t.Errorf("with %q: %v, %v", with, ok, err)
		case ok && answer.User.GetName() != want:
			t.Errorf("with %q it is from %s, want %s", with, answer.User.GetName(), want)
		}
	}
	loopback := &rest.Config{BearerToken: "the server's"}
	if got := withToken(loopback, token); got.BearerToken != token || got.Impersonate.UserName != "" || loopback.BearerToken != "the server's" {
		t.Errorf("the flow's clients have %+v, the server's %+v", got, loopback)
	}
}
