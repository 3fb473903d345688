/*
Copyright 2026 The Kubernetes Authors.

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

package retry

import (
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// ClientConfig returns how clients that pause by themselves should reach the server:
// as the configuration says, but with protobuf, and without client-go's own
// repetitions. When a server turns a request away that came with thousands of others,
// client-go sends it again a second later, ten times, and so do the others.
func ClientConfig(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return once{next} })
	return config
}

// once keeps client-go from sending a request again: it does so when an answer says
// when (rest/with_retry.go).
type once struct{ next http.RoundTripper }

// RoundTrip is for the client.
func (o once) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := o.next.RoundTrip(request)
	if response != nil {
		response.Header.Del("Retry-After")
	}
	return response, err
}

// WrappedRoundTripper is for those who look for the transport below
// (apimachinery/pkg/util/net).
func (o once) WrappedRoundTripper() http.RoundTripper { return o.next }
