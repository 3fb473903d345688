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

package feature

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clienttesting "k8s.io/client-go/testing"
)

// TestAdvice checks that errors of the connection have a next step, too.
func TestAdvice(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	answer := func(code int, reason string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"because","reason":%q,"code":%d}`, reason, code)
		}))
		t.Cleanup(server.Close)
		return "--server=" + server.URL
	}
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer silent.Close()
	closed := httptest.NewServer(nil)
	closed.Close()
	unauthorized, forbidden := answer(http.StatusUnauthorized, "Unauthorized"), answer(http.StatusForbidden, "Forbidden")
	for _, tc := range []struct{ command, connection, says string }{
		{"list", "--server=" + closed.URL, "connection refused; nothing answers there; start the kube-apiserver, or name another cluster with --context, --kubeconfig or --server\n"},
		{"list", "", "; no kubeconfig names a cluster; set KUBECONFIG, --kubeconfig or --server\n"},
		{"list", "--context=missing", "; kubectl config view shows the kubeconfig\n"},
		{"list", "--user=missing", "; kubectl config view shows the kubeconfig\n"},
		{"describe A", unauthorized, "; the server does not accept the credentials; renew those of the kubeconfig's user, or name another with --user or --context\n"},
		{"uses A", forbidden, "; an administrator can permit it; kubectl auth can-i --list shows your permissions\n"},
		{"list -A", forbidden, "; leave out -A for those of kube-system, or name a namespace with -n; an administrator can permit it; kubectl auth can-i --list shows your permissions\n"},
		{"list --request-timeout=20ms", "--server=" + silent.URL, "; the server did not answer in time; try again, or give it longer with --request-timeout\n"},
		{"list --nosuch", unauthorized, "unknown flag: --nosuch; kubectl feature list --help lists the flags\n"},
		{"uses A B", unauthorized, "kubectl feature uses is for one feature, and there are 2 names; run it for each\n"},
		{"report A", unauthorized, "kubectl feature report takes no names, and there is A; kubectl feature describe A is about one feature\n"},
		{"wait A", unauthorized, "kubectl feature wait needs --for; write it like --for=state=Off or --for=condition=Clean\n"},
	} {
		t.Run(tc.command+" "+tc.says, func(t *testing.T) {
			var out bytes.Buffer
			args := strings.Fields(tc.command + " " + tc.connection)
			code := Run(args, genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &out})
			if code != ExitFailed || !strings.HasPrefix(out.String(), "error: ") || !strings.HasSuffix(out.String(), tc.says) {
				t.Errorf("exit code %d: %s", code, out.String())
			}
		})
	}
}

// TestCheckWithoutPermissionForReports: it would be a guess without what processes set.
func TestCheckWithoutPermissionForReports(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newSampleCluster(t)
		c.client.PrependReactor("list", "featurereports", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "featurereports"}, "", nil)
		})
		if out, code := c.run("upgrade-check", "--to=1.35"); code != ExitFailed || !strings.Contains(out, "needs permission to list featurereports in kube-system, which administrators have: ") {
			t.Errorf("exit code %d: %s", code, out)
		}
	})
}
