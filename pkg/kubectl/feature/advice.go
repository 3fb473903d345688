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
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/tools/clientcmd"
)

// missingInKubeconfig matches client-go's error, which has no type, for a name in
// --context, --cluster or --user that the kubeconfig does not have.
var missingInKubeconfig = regexp.MustCompile(`(context|cluster|auth info) "[^"]*" does not exist`)

// advice returns the next step after an error from outside this package, "" where
// there is none.
func advice(err error) string {
	switch {
	case clientcmd.IsEmptyConfig(err), utilnet.IsConnectionRefused(err) && strings.Contains(err.Error(), "localhost:8080"):
		return "no kubeconfig names a cluster; set KUBECONFIG, --kubeconfig or --server"
	case missingInKubeconfig.MatchString(err.Error()):
		return "kubectl config view shows the kubeconfig"
	case utilnet.IsConnectionRefused(err):
		return "nothing answers there; start the kube-apiserver, or name another cluster with --context, --kubeconfig or --server"
	case errors.Is(err, context.DeadlineExceeded), os.IsTimeout(err), utilnet.IsTimeout(err):
		return "the server did not answer in time; try again, or give it longer with --request-timeout"
	case apierrors.IsUnauthorized(err):
		return "the server does not accept the credentials; renew those of the kubeconfig's user, or name another with --user or --context"
	case apierrors.IsForbidden(err):
		return "an administrator can permit it; kubectl auth can-i --list shows your permissions"
	default:
		return ""
	}
}

// advised is an error's message, with the next step.
func advised(err error) string {
	if next := advice(err); next != "" {
		return err.Error() + "; " + next
	}
	return err.Error()
}

// adviseFlags returns the next step for flags that a command does not have, or
// cannot parse.
func adviseFlags(cmd *cobra.Command, err error) error {
	return fmt.Errorf("%w; %s --help lists the flags", err, cmd.CommandPath())
}

// required fails when a flag is not set, with the next step, which cobra's
// message does not have.
func required(cmd *cobra.Command, flag, example string) error {
	if cmd.Flags().Changed(flag) {
		return nil
	}
	return fmt.Errorf("%s needs --%s; write it like %s", cmd.CommandPath(), flag, example)
}

// someNames are the arguments of commands for one or more features.
func someNames(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return nil
	}
	return fmt.Errorf("%s needs the NAME of a feature; kubectl feature list shows all", cmd.CommandPath())
}

// oneName is the argument of commands for one feature.
func oneName(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return fmt.Errorf("%s is for one feature, and there are %d names; run it for each", cmd.CommandPath(), len(args))
	}
	return someNames(cmd, args)
}

// noNames refuses names, for commands about all features.
func noNames(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%s takes no names, and there is %s; kubectl feature describe %s is about one feature", cmd.CommandPath(), args[0], args[0])
}
