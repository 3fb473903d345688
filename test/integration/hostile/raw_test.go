//go:build linux

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

package hostile

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"k8s.io/client-go/rest"
	"k8s.io/kubernetes-features/test/integration/framework"
)

// raw is what is written to a connection, and what may come back.
type raw struct {
	// text is sent as it is.
	text string
	// hangUp closes the connection then, in the middle of a request.
	hangUp bool
	// codes are the allowed ones; 0 is that the server closes the connection
	// without an answer, as it may where there is no request. Where a client hangs
	// up, the end of its request and the end of its body race, and the first is a
	// timeout to upstream's filters.
	codes []int
	// says is in the answer, which need not be a Status: net/http refuses what is
	// no HTTP before upstream's handlers see it.
	says string
}

// head is a request's first lines.
func head(method, path string, headers ...string) string {
	return method + " " + path + " HTTP/1.1\r\nHost: x\r\nAccept: application/json\r\n" + strings.Join(headers, "\r\n") + "\r\n\r\n"
}

func raws() map[string]raw {
	const isJSON = "Content-Type: application/json"
	body := feature("A", "")
	post := func(rest string, headers ...string) string {
		return head("POST", features, append(headers, isJSON, "Connection: close")...) + rest
	}
	var headers []string
	for i := range 5000 {
		headers = append(headers, fmt.Sprintf("X-Header-%d: %s", i, strings.Repeat("x", 20)))
	}
	return map[string]raw{
		"chunks of nonsense":                     {text: post("zz\r\nhello\r\n0\r\n\r\n", "Transfer-Encoding: chunked"), codes: []int{500}, says: "invalid byte in chunk length"},
		"a chunk that is longer than it says":    {text: post("3\r\nhello\r\n0\r\n\r\n", "Transfer-Encoding: chunked"), codes: []int{500}, says: "chunk"},
		"a chunk of a negative length":           {text: post("-5\r\nhello\r\n0\r\n\r\n", "Transfer-Encoding: chunked"), codes: []int{500}, says: "chunk length"},
		"a chunk beyond 64 bits":                 {text: post("fffffffffffffffff\r\nhello\r\n0\r\n\r\n", "Transfer-Encoding: chunked"), codes: []int{500}, says: "chunk length too large"},
		"chunks that end early":                  {text: post("5\r\nhello\r\n", "Transfer-Encoding: chunked"), hangUp: true, codes: []int{0, 400, 504}},
		"a body that ends before its length":     {text: post(body[:20], fmt.Sprintf("Content-Length: %d", len(body))), hangUp: true, codes: []int{0, 400, 504}},
		"a body that never ends":                 {text: post(`{"x":"`+strings.Repeat("x", 100<<10), "Transfer-Encoding: chunked", "Expect: 100-continue"), hangUp: true, codes: []int{0, 100, 400, 504}},
		"a length that is shorter than the body": {text: post(body, "Content-Length: 20"), codes: []int{400}, says: "unexpected end of JSON input"},
		"a length below 0":                       {text: post(body, "Content-Length: -1"), codes: []int{400}, says: "400 Bad Request"},
		"a length that is text":                  {text: post(body, "Content-Length: many"), codes: []int{400}, says: "400 Bad Request"},
		"two lengths":                            {text: post(body, "Content-Length: 5", "Content-Length: 6"), codes: []int{400}, says: "400 Bad Request"},
		"a length and chunks":                    {text: post("0\r\n\r\n", "Content-Length: 500", "Transfer-Encoding: chunked"), codes: []int{400}, says: "unexpected end of JSON input"},
		"a coding that is none":                  {text: post(body, "Transfer-Encoding: whim"), codes: []int{400, 501}, says: "transfer encoding"},
		"a length beyond 3 MiB":                  {text: post(body, "Content-Length: 99999999999"), hangUp: true, codes: []int{0, 413, 400, 504}},
		"an expectation that is none":            {text: post(body, "Expect: whim", fmt.Sprintf("Content-Length: %d", len(body))), codes: []int{417}},
		"5,000 headers":                          {text: head("GET", good, append(headers, "Connection: close")...), codes: []int{200, 431}},
		"headers of 2 MiB":                       {text: head("GET", good, "X: "+strings.Repeat("x", 2<<20), "Connection: close"), codes: []int{431, 0}},
		"a header without a name":                {text: head("GET", good, ": x"), codes: []int{400}},
		"a header with NUL":                      {text: head("GET", good, "X: a\x00b"), codes: []int{400}},
		"no host":                                {text: "GET " + good + " HTTP/1.1\r\n\r\n", codes: []int{400}, says: "Host"},
		"two hosts":                              {text: head("GET", good, "Host: y"), codes: []int{400}, says: "400 Bad Request"},
		"a version of HTTP that is none":         {text: "GET " + good + " HTTP/9.9\r\nHost: x\r\n\r\n", codes: []int{400, 505}},
		"no HTTP":                                {text: "hello\r\n\r\n", codes: []int{400}},
		"binary":                                 {text: "\x16\x03\x01\x00\x00\x00\r\n\r\n", codes: []int{400}},
		"the beginning of HTTP/2 on HTTP/1.1":    {text: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", codes: []int{0, 400, 403, 404, 405, 505}},
		"a path with an escape that is none":     {text: head("GET", features+"/%zz", "Connection: close"), codes: []int{400}},
		"a path with NUL":                        {text: head("GET", features+"/a\x00b", "Connection: close"), codes: []int{400}},
		"a path that climbs":                     {text: head("GET", features+"/../../../../../../etc/passwd", "Connection: close"), codes: []int{301, 307, 308, 400, 403, 404}},
		"a path of 2 MiB":                        {text: head("GET", features+"/"+strings.Repeat("a", 2<<20), "Connection: close"), codes: []int{431, 414, 0}},
		"a method of blanks":                     {text: head("  ", good), codes: []int{400}},
		"two requests with one body":             {text: head("POST", features, isJSON, "Content-Length: 4") + "null" + head("GET", good, "Connection: close"), codes: []int{422}, says: "name or generateName is required"},
		"an upgrade to nonsense":                 {text: head("GET", good, "Connection: Upgrade, close", "Upgrade: whim/9"), codes: []int{200, 400, 403, 405}},
	}
}

// runRaw writes bytes to connections of their own, and returns how many times and how
// often the answer was 5xx.
func (w *world) runRaw(t *testing.T) (sent, failures int) {
	t.Helper()
	config, err := rest.TLSConfigFor(w.Config)
	if err != nil {
		t.Fatal(err)
	}
	// What is sent is HTTP/1.1.
	config.NextProtos = []string{"http/1.1"}
	address, err := url.Parse(w.host)
	if err != nil {
		t.Fatal(err)
	}
	rows := raws()
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		t.Run(name, func(t *testing.T) {
			r := rows[name]
			before := w.stored(t)
			code, body := exchange(t, address.Host, config, r)
			t.Logf("%d: %s", code, short(body))
			if !slices.Contains(r.codes, code) {
				t.Errorf("the answer is %d, want one of %v: %s", code, r.codes, short(body))
			}
			if !strings.Contains(body, r.says) {
				t.Errorf("the answer does not say %q: %s", r.says, short(body))
			}
			if code == 0 {
				// The server may count an answer that it could not send.
				failures++
			}
			if code >= http.StatusInternalServerError {
				failures++
				// Upstream's machinery reads bodies, whatever they are to become.
				r.text = strings.Replace(r.text, features, configs, 1)
				if twin, twinBody := exchange(t, address.Host, config, r); !slices.Contains(r.codes, twin) {
					t.Errorf("a kind of upstream's is answered with %d, ours with %d: %s", twin, code, short(twinBody))
				}
			}
			if code >= 400 && body == "" && code != http.StatusExpectationFailed {
				t.Error("the answer is empty")
			}
			w.checkStillGood(t)
			if diff := cmp.Diff(before, w.stored(t)); diff != "" {
				t.Errorf("the request changed what is stored (-before +after):\n%s", diff)
			}
		})
	}
	return len(rows), failures
}

// exchange writes to a new connection and reads the first answer, if one comes.
func exchange(t *testing.T, address string, config *tls.Config, r raw) (code int, body string) {
	t.Helper()
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: framework.Patience}, "tcp", address, config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(framework.Patience)); err != nil {
		t.Fatal(err)
	}
	// The server may close the connection before all is sent.
	_, writeErr := io.WriteString(conn, r.text)
	if r.hangUp {
		if err := conn.CloseWrite(); err != nil && writeErr == nil {
			t.Fatal(err)
		}
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Logf("no answer: %v (writing: %v)", err, writeErr)
		return 0, ""
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil && len(data) == 0 {
		t.Logf("the answer breaks off: %v", err)
	}
	return response.StatusCode, string(data)
}
