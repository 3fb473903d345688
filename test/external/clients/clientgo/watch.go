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

package main

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"k8s.io/kubernetes-features/test/external/clients/driver"
)

// watch runs informers with typed objects, in protobuf, and with unstructured ones, of the
// kinds of the manifest in all namespaces. It prints each event, and what reflectors log as errors, until
// standard input ends.
func (c *clients) watch(ctx context.Context) error {
	ctx = driver.UntilInputEnds(ctx)
	typed := informers.NewSharedInformerFactory(c.kube, 0)
	unstructured := dynamicinformer.NewDynamicSharedInformerFactory(c.dynamic, 0)
	var synced []cache.InformerSynced
	err := c.each(func(o one) error {
		generic, err := typed.ForResource(o.resource)
		if err != nil {
			return err
		}
		for by, informer := range map[string]cache.SharedIndexInformer{"typed": generic.Informer(), "dynamic": unstructured.ForResource(o.resource).Informer()} {
			reported, err := c.report(informer, by, o.kind)
			if err != nil {
				return err
			}
			synced = append(synced, reported)
		}
		return nil
	})
	if err != nil {
		return err
	}
	typed.Start(ctx.Done())
	unstructured.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return errors.New("the informers did not sync before the input ended")
	}
	if err := c.Print(driver.Line{Action: "synced"}); err != nil {
		return err
	}
	<-ctx.Done()
	typed.Shutdown()
	unstructured.Shutdown()
	return nil
}

// report prints the events of an informer. The returned function is true once all objects
// that there were are printed: an informer alone has synced before that.
func (c *clients) report(informer cache.SharedIndexInformer, by, kind string) (cache.InformerSynced, error) {
	print := func(action string, object any) {
		line := driver.Line{Action: action, Result: by, Content: object}
		if meta, ok := object.(metav1.Object); ok {
			line.Object = fmt.Sprintf("%s/%s", kind, meta.GetName())
		}
		// A test that does not read any more has ended.
		_ = c.Print(line)
	}
	if err := informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) {
		_ = c.Print(driver.Line{Action: "error", Result: by, Object: kind, Message: err.Error()})
	}); err != nil {
		return nil, err
	}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { print("add", object) },
		UpdateFunc: func(_, object any) { print("update", object) },
		DeleteFunc: func(object any) { print("delete", object) },
	})
	if err != nil {
		return nil, err
	}
	return registration.HasSynced, nil
}
