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

package base

import (
	"context"
	"errors"
	"os"
	"strings"

	"k8s.io/kubernetes-features/build/release/image"
)

// StandIn is an image that takes the place of one in a registry, in Docker's daemon and
// under the same name.
type StandIn struct {
	// Name is the image's, and File its archive.
	Name, File string
}

// urlLabel is a label that images of this repository have, with an address of its own.
const urlLabel = "org.opencontainers.image.url"

// find returns the identifier of the image that has the name in the daemon, "" without
// one, and whether it is a stand-in.
func (s StandIn) find(ctx context.Context) (id string, ours bool, err error) {
	id, err = docker(ctx, nil, "image", "ls", "--no-trunc", "--quiet", "--filter", "reference="+familiar(s.Name))
	if err != nil || id == "" {
		return "", false, err
	}
	url, err := docker(ctx, nil, "image", "inspect", "--format", "{{index .Config.Labels \""+urlLabel+"\"}}", s.Name)
	return id, url == image.Spec{}.Labels()[urlLabel], err
}

// familiar is how Docker shows a name.
func familiar(name string) string {
	return strings.TrimPrefix(strings.TrimPrefix(name, "docker.io/"), "library/")
}

// Load loads the image into the daemon, unless that has the one of the registry.
func (s StandIn) Load(ctx context.Context) error {
	id, ours, err := s.find(ctx)
	if err != nil || id != "" && !ours {
		return err
	}
	f, err := os.Open(s.File)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = docker(ctx, f, "load", "--quiet")
	return err
}

// Unload removes stand-ins from the daemon, where others would take them for the images of
// registries. One that a container uses stays.
func Unload(ctx context.Context, images []StandIn, log func(format string, args ...any)) error {
	var errs []error
	for _, s := range images {
		id, ours, err := s.find(ctx)
		if err != nil || !ours {
			errs = append(errs, err)
			continue
		}
		users, err := docker(ctx, nil, "ps", "--all", "--format", "{{.Names}}", "--filter", "ancestor="+id)
		switch {
		case err != nil:
			errs = append(errs, err)
		case users != "":
			log("The image %s stays, which is no %s of a registry: the container %s uses it", s.Name, s.Name, users)
		default:
			_, err := docker(ctx, nil, "image", "rm", s.Name)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
