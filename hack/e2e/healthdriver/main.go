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

// Command healthdriver runs upstream's test driver of devices (dynamic resource allocation)
// on a node, with two devices that are healthy and have a message. The command of upstream,
// test/e2e/dra/test-driver, reports the health of no device: only Go code that starts the
// driver can give it one.
package main

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"path"
	"syscall"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/test/e2e/dra/test-driver/app"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how the driver reaches the server")
	node := flag.String("node-name", "", "the node, which is the name of its pool of devices, too")
	driver := flag.String("driver-name", "health.example.com", "the driver's name")
	message := flag.String("message", "", "what is said of the device's health")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *node, *driver, *message); err != nil {
		klog.ErrorS(err, "Failed to run the driver")
		os.Exit(1)
	}
}

// cdi is where a runtime looks for descriptions of devices.
const cdi = "/var/run/cdi"

// devices are those of the node: one for a Pod's claim, and one for that of a group of Pods.
var devices = []string{"device-0", "device-1"}

// run serves the devices until ctx ends.
func run(ctx context.Context, kubeconfig, node, driver, message string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	sockets := path.Join(kubeletplugin.KubeletPluginsDir, driver)
	for _, dir := range []string{cdi, sockets} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return err
		}
	}
	var slice resourceslice.Slice
	for _, device := range devices {
		slice.Devices = append(slice.Devices, resourceapi.Device{Name: device})
	}
	slices := resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{node: {Slices: []resourceslice.Slice{slice}}}}
	plugin, err := app.StartPlugin(ctx, cdi, driver, client, node, app.FileOperations{DriverResources: &slices},
		app.Options{EnableHealthService: true}, kubeletplugin.PluginDataDirectoryPath(sockets))
	if err != nil {
		return err
	}
	defer plugin.Stop()
	for _, device := range devices {
		plugin.HealthControlChan <- app.DeviceHealthUpdate{PoolName: node, DeviceName: device, Health: "Healthy", Message: message}
	}
	<-ctx.Done()
	return nil
}
