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

	"k8s.io/client-go/rest"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
)

// raw is what is written to a connection, and what may come back.
type raw struct {
	// text is sent as it is.
	text string
	// hangUp closes the connection then, in the middle of a request.
	hangUp bool
	// says has for each code that is allowed what is in the answer, which need not be
	// a Status: net/http refuses what is no HTTP before upstream's handlers see it. Its
	// first line counts, too: an expectation is refused with nothing else.
	says map[int]string
	// then is in the answer to a second request in the text, which is a good one.
	then string
	// counts is the code of 5xx that the server counts for the request.
	counts int
}

// hungUp are the answers to a client that hangs up in the middle of its body. All of
// it is upstream's: the handler that reads the body fails with a 500, which the server
// counts, and the request is canceled at once, which its timeout filter sees beside.
// The answer is the filter's 504 if that is first, the handler's if it has ended before
// the filter looks, and none if it has only begun: 0.
var hungUp = map[int]string{0: "", http.StatusInternalServerError: "unexpected EOF", http.StatusGatewayTimeout: "request did not complete within the allotted timeout"}

// tries bound how often a request with several possible answers is sent until upstream's
// kind is answered with the same code.
const tries = 50

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
		"chunks of nonsense":                     {text: post("zz\r\nhello\r\n0\r\n\r\n", "Transfer-Encoding: chunked"), says: map[int]string{500: "invalid byte in chunk length"}, counts: 500},
		"a chunk that is longer than it says":    {text: post("3\r\nhello\r\n0\r\n\r\n", "Transfer-Encoding: chunked"), says: map[int]string{500: "malformed chunked encoding"}, counts: 500},
		"a chunk of a negative length":           {text: post("-5\r\nhello\r\n0\r\n\r\n", "Transfer-Encoding: chunked"), says: map[int]string{500: "invalid byte in chunk length"}, counts: 500},
		"a chunk beyond 64 bits":                 {text: post("fffffffffffffffff\r\nhello\r\n0\r\n\r\n", "Transfer-Encoding: chunked"), says: map[int]string{500: "chunk length too large"}, counts: 500},
		"chunks that end early":                  {text: post("5\r\nhello\r\n", "Transfer-Encoding: chunked"), hangUp: true, says: hungUp, counts: 500},
		"a body that ends before its length":     {text: post(body[:20], fmt.Sprintf("Content-Length: %d", len(body))), hangUp: true, says: hungUp, counts: 500},
		"a body that never ends":                 {text: post("19000\r\n"+strings.Repeat("x", 0x18000), "Transfer-Encoding: chunked", "Expect: 100-continue"), hangUp: true, says: hungUp, counts: 500},
		"a chunk whose length never ends":        {text: post(strings.Repeat("0", 100<<10), "Transfer-Encoding: chunked", "Expect: 100-continue"), says: map[int]string{500: "header line too long"}, counts: 500},
		"a length that is shorter than the body": {text: post(body, "Content-Length: 20"), says: map[int]string{400: "unexpected end of JSON input"}},
		"a length below 0":                       {text: post(body, "Content-Length: -1"), says: map[int]string{400: "400 Bad Request"}},
		"a length that is text":                  {text: post(body, "Content-Length: many"), says: map[int]string{400: "400 Bad Request"}},
		"two lengths":                            {text: post(body, "Content-Length: 5", "Content-Length: 6"), says: map[int]string{400: "400 Bad Request"}},
		"a length and chunks":                    {text: post("0\r\n\r\n", "Content-Length: 500", "Transfer-Encoding: chunked"), says: map[int]string{400: "unexpected end of JSON input"}},
		"a coding that is none":                  {text: post(body, "Transfer-Encoding: whim"), says: map[int]string{501: "Unsupported transfer encoding"}},
		"a length beyond 3 MiB":                  {text: post(body, "Content-Length: 99999999999"), hangUp: true, says: hungUp, counts: 500},
		"an expectation that is none":            {text: post(body, "Expect: whim", fmt.Sprintf("Content-Length: %d", len(body))), says: map[int]string{417: "417 Expectation Failed"}},
		"5,000 headers":                          {text: head("GET", good, append(headers, "Connection: close")...), says: map[int]string{200: `"name":"Good"`}},
		"headers of 2 MiB":                       {text: head("GET", good, "X: "+strings.Repeat("x", 2<<20), "Connection: close"), says: map[int]string{431: "431 Request Header Fields Too Large"}},
		"a header without a name":                {text: head("GET", good, ": x"), says: map[int]string{400: "400 Bad Request"}},
		"a header with NUL":                      {text: head("GET", good, "X: a\x00b"), says: map[int]string{400: "400 Bad Request"}},
		"no host":                                {text: "GET " + good + " HTTP/1.1\r\n\r\n", says: map[int]string{400: "missing required Host header"}},
		"two hosts":                              {text: head("GET", good, "Host: y"), says: map[int]string{400: "400 Bad Request"}},
		"a version of HTTP that is none":         {text: "GET " + good + " HTTP/9.9\r\nHost: x\r\n\r\n", says: map[int]string{505: "unsupported protocol version"}},
		"no HTTP":                                {text: "hello\r\n\r\n", says: map[int]string{400: "400 Bad Request"}},
		"binary":                                 {text: "\x16\x03\x01\x00\x00\x00\r\n\r\n", says: map[int]string{400: "400 Bad Request"}},
		"the beginning of HTTP/2 on HTTP/1.1":    {text: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", says: map[int]string{404: "404 page not found"}},
		"a path with an escape that is none":     {text: head("GET", features+"/%zz", "Connection: close"), says: map[int]string{400: "400 Bad Request"}},
		"a path with NUL":                        {text: head("GET", features+"/a\x00b", "Connection: close"), says: map[int]string{400: "400 Bad Request"}},
		"a path that climbs":                     {text: head("GET", features+"/../../../../../../etc/passwd", "Connection: close"), says: map[int]string{404: "could not find the requested resource"}},
		"a path of 2 MiB":                        {text: head("GET", features+"/"+strings.Repeat("a", 2<<20), "Connection: close"), says: map[int]string{431: "431 Request Header Fields Too Large"}},
		"a method of blanks":                     {text: head("  ", good), says: map[int]string{400: "400 Bad Request"}},
		"two requests with one body":             {text: head("POST", features, isJSON, "Content-Length: 4") + "null" + head("GET", good, "Connection: close"), says: map[int]string{422: "name or generateName is required"}, then: `"name":"Good"`},
		"an upgrade to nonsense":                 {text: head("GET", good, "Connection: Upgrade, close", "Upgrade: whim/9"), says: map[int]string{200: `"name":"Good"`}},
	}
}

// runRaw writes bytes to connections of their own.
func (w *world) runRaw(t *testing.T) {
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
			// Upstream's machinery reads requests, whatever they are to become.
			twin := r
			twin.text = strings.Replace(r.text, features, configs, 1)
			for try := 1; ; try++ {
				code, body := exchange(t, address.Host, config, r)
				r.check(t, code, body)
				w.expect(ours, r.counts)
				if code < http.StatusInternalServerError && !r.hangUp {
					break
				}
				as, asBody := exchange(t, address.Host, config, twin)
				twin.check(t, as, asBody)
				w.expect(upstreams, r.counts)
				if as == code {
					t.Logf("a kind of upstream's is answered with the same at try %d", try)
					break
				}
				if !r.hangUp || try == tries {
					t.Errorf("a kind of upstream's is answered with %d, ours with %d, at try %d: %s", as, code, try, short(asBody))
					break
				}
			}
			w.checkStillGood(t)
			w.checkStored(t)
			if r.counts > 0 {
				w.checkFailures(t)
			}
		})
	}
	// What was counted besides is that of one of these rows.
	w.checkFailures(t)
}

// check holds an answer against its row.
func (r raw) check(t *testing.T, code int, answer string) {
	t.Helper()
	t.Logf("%d: %s", code, short(answer))
	says, ok := r.says[code]
	switch {
	case !ok:
		t.Errorf("the answer is %d, want one of %v: %s", code, slices.Sorted(maps.Keys(r.says)), short(answer))
	case says == "" && code != 0:
		t.Error("the row does not say what is in the answer")
	case !strings.Contains(answer, says):
		t.Errorf("the answer does not say %q: %s", says, short(answer))
	}
}

// exchange writes to a new connection and reads the first answer that is final, if one
// comes. The answer is the first line's status and the body.
func exchange(t *testing.T, address string, config *tls.Config, r raw) (code int, answer string) {
	t.Helper()
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: framework.Patience}, "tcp", address, config)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(framework.Patience)); err != nil {
		t.Fatal(err)
	}
	// The answer is read while the request is written: of one that is too large the
	// server does not read all.
	wrote := make(chan error, 1)
	go func() {
		_, err := io.WriteString(conn, r.text)
		if r.hangUp && err == nil {
			err = conn.CloseWrite()
		}
		wrote <- err
	}()
	reader := bufio.NewReader(conn)
	code, answer, err = read(reader)
	if r.then != "" {
		// It is waited for: who is gone gets a 500.
		next, then, err := read(reader)
		if err != nil || next != http.StatusOK || !strings.Contains(then, r.then) {
			t.Errorf("the second answer is %d, %v, and does not have %q: %s", next, err, r.then, short(then))
		}
	}
	_ = conn.Close()
	if writeErr := <-wrote; err != nil || writeErr != nil {
		t.Logf("reading the answer: %v; writing: %v", err, writeErr)
	}
	return code, answer
}

// read reads an answer that is final.
func read(from *bufio.Reader) (code int, answer string, err error) {
	response, err := http.ReadResponse(from, nil)
	for err == nil && response.StatusCode < http.StatusOK {
		response, err = http.ReadResponse(from, nil)
	}
	if err != nil {
		return 0, "", err
	}
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, response.Status + "\n" + string(body), err
}
