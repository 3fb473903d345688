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

package agent

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
)

// minConnectBackoff and maxConnectBackoff bound the pause, which doubles with jitter, after
// which a process without Clients calls Connect again.
const minConnectBackoff, maxConnectBackoff = time.Second, 10 * time.Second

// ErrNoServer means that the process will never have a server: a kubelet that runs alone,
// for example. Connect functions wrap it.
var ErrNoServer = errors.New("no server is configured")

// ErrConfiguration means that an administrator has to fix a file or a flag, and that the
// process is about to exit for it: Load does not wait then. Connect functions wrap it.
var ErrConfiguration = errors.New("the configuration is not usable")

// connect gets the clients as soon as there is a way to the server. A kubelet that
// bootstraps gets its kubeconfig only when its certificate was signed, and other files may
// come late as well. It returns false if the context ends first or there will be no way.
func (r *Reporter) connect(ctx context.Context) bool {
	if r.config.Connect == nil {
		return true
	}
	logger := klog.FromContext(ctx).WithValues("component", r.config.Component)
	pause := wait.Backoff{Duration: minConnectBackoff, Factor: 2, Jitter: 0.5, Steps: 1 << 20, Cap: maxConnectBackoff}
	for level := 0; ; level = 4 {
		clients, err := r.config.Connect()
		switch {
		case err == nil:
			r.config.Clients = clients
			return true
		case errors.Is(err, ErrNoServer):
			logger.Info("Not reporting feature gates", "err", err)
			return false
		}
		// Logged once at the default level; the cause may change meanwhile.
		logger.V(level).Info("Not reporting feature gates yet, will retry", "err", err)
		timer := r.config.Clock.NewTimer(pause.Step())
		select {
		case <-ctx.Done():
			timer.Stop()
			return false
		case <-timer.C():
		}
	}
}
