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

package storage

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/feature-lifecycle/intern"

	"k8s.io/kubernetes-features/pkg/apis/features"
)

// sharing makes reports that are read from etcd, and then held by the watch cache,
// share equal lists of features. Most data of 10,000 processes is the same few
// lists. Objects in the cache are never changed; writers change a copy (apiserver's
// endpoints/handlers and storage/cacher).
type sharing struct {
	generic.RESTOptionsGetter
}

// GetRESTOptions returns the options with a codec that shares.
func (s sharing) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := s.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err != nil || options.StorageConfig == nil || options.StorageConfig.Codec == nil {
		return options, err
	}
	config := *options.StorageConfig
	config.Codec = &sharingCodec{config.Codec, intern.NewLists[features.ReportedFeature]()}
	options.StorageConfig = &config
	return options, nil
}

// sharingCodec shares what it decodes. It is safe for concurrent use.
type sharingCodec struct {
	runtime.Codec
	lists *intern.Lists[features.ReportedFeature]
}

// Decode decodes an object, and lets a report share its list of features.
func (c *sharingCodec) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	object, kind, err := c.Codec.Decode(data, defaults, into)
	if report, ok := object.(*features.FeatureReport); ok && err == nil {
		report.Spec.Features = c.lists.Of(report.Spec.Features)
	}
	return object, kind, err
}
