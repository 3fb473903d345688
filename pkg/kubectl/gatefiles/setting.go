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

package gatefiles

import (
	"fmt"

	"k8s.io/kubernetes-features/pkg/featurelifecycle/history"
)

// Components are those whose gates can be set.
var Components = []string{
	history.KubeAPIServer, history.KubeControllerManager, history.KubeScheduler, history.Kubelet, history.KubeProxy,
	history.CloudControllerManager, history.Kubeadm,
}

// Stdin is the name of the file that stands for the standard input.
const Stdin = "-"

// Source is a place in a file.
type Source struct {
	// File is the path as it was given, or found below a given directory.
	File string
	// Line and Column count from 1. Line is 0 where the whole file is meant.
	Line, Column int
	// Path is the way through the document, such as apiServer.extraArgs.feature-gates.
	Path string
	// Format is the name of the reader, such as kubeadm.
	Format string
}

func (s Source) String() string {
	if s.Line == 0 {
		return s.File
	}
	return fmt.Sprintf("%s:%d", s.File, s.Line)
}

// Process is what a file describes of a process, or of all processes of a kind.
type Process struct {
	Source
	// Component is one of Components.
	Component string
	// ConfigFlag is true where the arguments have --config.
	ConfigFlag bool
	// Emulated is the version of --emulated-version, "" without the flag.
	Emulated string
	// APIs are those of --runtime-config.
	APIs []API
}

// API is one pair of --runtime-config.
type API struct {
	Source
	// Name is a version, such as scheduling.k8s.io/v1beta1, a resource of it, or one of those that begin with api/.
	Name    string
	Enabled bool
}

// Setting is one value of one gate.
type Setting struct {
	Source
	// Process has the setting. Settings of one process are in the order in which they take effect.
	Process *Process
	Gate    string
	// Prefix is the component before a colon, such as kube, "" without one.
	Prefix  string
	Enabled bool
	// Flag is true for a command line, and false for a configuration file.
	Flag bool
}

// Problem is what could not be read of a file.
type Problem struct {
	Source
	Message string
	// Next is what to do.
	Next string
}

func (p Problem) Error() string {
	text := p.Source.String() + ": " + p.Message
	if p.Next != "" {
		text += "; " + p.Next
	}
	return text
}

// Unread is a document without a known format.
type Unread struct {
	Source
	Why, Next string
	// Matters is true where the document has gates, or its file was named. The settings are unknown then.
	Matters bool
}

// Result is what was read of all files.
type Result struct {
	Settings []Setting
	// Processes are all that were recognized, also those without settings.
	Processes []*Process
	Problems  []Problem
	Unread    []Unread
	// Files is the number of files that were read.
	Files int
}
