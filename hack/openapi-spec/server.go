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
	"fmt"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/kubernetes-features/hack/apispec"
)

const (
	plain = "application/json"
	// aggregated is the form of discovery that has all groups in one document.
	aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	// scriptAddress is in upstream's discovery of the core group.
	scriptAddress = "10.10.10.10:8050"
)

// server is a running kube-apiserver.
type server struct{ client rest.Interface }

// get is a document without the server's version.
func (s server) get(ctx context.Context, path, accept string) (apispec.Document, error) {
	body, err := s.client.Get().AbsPath(path).SetHeader("Accept", accept).Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", path, err)
	}
	d, err := apispec.Decode(body)
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", path, err)
	}
	d.Unversioned()
	return d, nil
}

// ownGroup asks for all files about this repository's group, by their names below
// api/.
func (s server) ownGroup(ctx context.Context) (map[string]apispec.Document, error) {
	files := map[string]apispec.Document{}
	var err error
	for name, path := range apispec.Own {
		if files[name], err = s.get(ctx, path, plain); err != nil {
			return nil, err
		}
	}
	for _, shared := range []struct {
		name, path, accept string
		cut                func(apispec.Document) error
	}{
		{apispec.Swagger, "/openapi/v2", plain, apispec.Document.CutSwagger},
		{apispec.Aggregated, "/apis", aggregated, func(d apispec.Document) error { return d.CutList("items") }},
		{apispec.Groups, "/apis", plain, func(d apispec.Document) error { return d.CutList("groups") }},
	} {
		d, err := s.get(ctx, shared.path, shared.accept)
		if err != nil {
			return nil, err
		}
		if err := shared.cut(d); err != nil {
			return nil, fmt.Errorf("GET %s: %w", shared.path, err)
		}
		files[shared.name] = d
	}
	return files, nil
}

// allGroups asks for all files that upstream's script writes, by their names below
// api/, which a fork has there.
func (s server) allGroups(ctx context.Context) (map[string]apispec.Document, error) {
	index, err := s.get(ctx, "/openapi/v3", plain)
	if err != nil {
		return nil, err
	}
	groups, ok := index["paths"].(map[string]any)
	if !ok || len(groups) == 0 {
		return nil, fmt.Errorf("GET /openapi/v3: it names no documents")
	}
	files := map[string]apispec.Document{}
	if files[apispec.Swagger], err = s.get(ctx, "/openapi/v2", plain); err != nil {
		return nil, err
	}
	if files[apispec.Aggregated], err = s.get(ctx, "/apis", aggregated); err != nil {
		return nil, err
	}
	for group := range groups {
		name := strings.ReplaceAll(group, "/", "__")
		if files[apispec.V3+"/"+name+"_openapi.json"], err = s.get(ctx, "/openapi/v3/"+group, plain); err != nil {
			return nil, err
		}
		if !strings.HasPrefix(group, "api") {
			continue
		}
		d, err := s.get(ctx, "/"+group, plain)
		if err != nil {
			return nil, err
		}
		// Upstream's files have the address of its script's server.
		addresses, _ := d["serverAddressByClientCIDRs"].([]any)
		for _, address := range addresses {
			if a, ok := address.(map[string]any); ok {
				a["serverAddress"] = scriptAddress
			}
		}
		files["discovery/"+name+".json"] = d
	}
	return files, nil
}
