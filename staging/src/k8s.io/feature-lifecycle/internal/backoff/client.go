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
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// ClientConfig returns the configuration of clients that pause by themselves: the given
// one with protobuf, and without client-go's own retries. When a server throttles a
// request that came with thousands of others, client-go sends it again a second later, up
// to ten times, and so do the others.
func ClientConfig(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return noRetries{next} })
	return config
}

// noRetries keeps client-go from retrying, which it does when an answer has the header
// Retry-After (rest/with_retry.go).
type noRetries struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (n noRetries) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := n.next.RoundTrip(request)
	if response != nil {
		response.Header.Del("Retry-After")
	}
	return response, err
}

// WrappedRoundTripper implements RoundTripperWrapper of apimachinery/pkg/util/net, so that
// callers find the transport below.
func (n noRetries) WrappedRoundTripper() http.RoundTripper { return n.next }
