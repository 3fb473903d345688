/*
Copyright 2026 The Kubernetes Authors.

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
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/lifecycle/transition"
)

const (
	reportLong = `Write a page about all features, to look at in a browser.

The page is one file that needs no network and no server. It says what moves and why, what dangles, and where users differ, and has a
matrix of features against components, with search and filters.

Exit codes: 0 written; 3 the command failed.`

	reportExample = `  kubectl feature report -o html > features.html`
)

//go:embed report.html
var reportPage string

// reportTemplate escapes what comes from the cluster, as the place in the page
// demands.
var reportTemplate = template.Must(template.New("report").Parse(reportPage))

// reportOptions is what report runs with.
type reportOptions struct {
	output        string
	allNamespaces bool

	namespace string
	cluster   string
	client    versioned.Interface
	genericiooptions.IOStreams
}

func newReport(b *base) *cobra.Command {
	o := &reportOptions{IOStreams: b.IOStreams}
	cmd := &cobra.Command{
		Use:     "report",
		Short:   "Write a page about all features, to look at in a browser",
		Long:    reportLong,
		Example: reportExample,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := checkOutput(o.output, "html"); err != nil {
				return err
			}
			if o.namespace = b.namespace(); o.allNamespaces {
				o.namespace = metav1.NamespaceAll
			}
			o.cluster = b.contextName()
			if o.client, err = b.client(); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().StringVarP(&o.output, "output", "o", "html", "Output format: html.")
	cmd.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "The features of all namespaces, those of operators among them.")
	return cmd
}

// contextName is what people call the cluster, "" when nobody gave it a name.
func (b *base) contextName() string {
	if b.flags.Context != nil && *b.flags.Context != "" {
		return *b.flags.Context
	}
	raw, err := b.flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return ""
	}
	return raw.CurrentContext
}

// run reads the features and writes the page.
func (o *reportOptions) run(ctx context.Context) error {
	features, err := listFeatures(ctx, o.client, o.namespace)
	if err != nil {
		return err
	}
	return writePage(o.Out, pageOf(o.cluster, features))
}

func writePage(w io.Writer, p page) error {
	if err := reportTemplate.Execute(w, p); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

// page is what the template shows.
type page struct {
	Cluster    string
	Written    string
	Namespaces bool
	// States counts features, in the order of allStates.
	States     []stateCount
	Components []string
	Features   []pageFeature
	// Moving, Dangling and Differing are those that somebody should look at.
	Moving, Dangling, Differing []pageFeature
}

type stateCount struct {
	State string
	Count int
}

// pageFeature is a line of the matrix.
type pageFeature struct {
	Namespace, Name, Stage, State, Since string
	Configured, Source, Default, Control string
	Doing                                string
	Tasks                                []string
	// Messages say what to do, one for each condition in trouble.
	Messages []string
	// Cells are the users by component, in the order of the page's components.
	Cells []pageCell

	Moving, Dangling, Differing, NotDefault bool
}

// pageCell says which values the instances of one component have.
type pageCell struct {
	Text string
	// Class is on, off, unknown or none, and differs where some have another value
	// than that of the state.
	Class, Title string
}

// pageOf prepares what the template shows.
func pageOf(cluster string, features []v1alpha1.Feature) page {
	p := page{Cluster: cluster, Written: time.Now().UTC().Format(time.RFC3339)}
	counts := map[v1alpha1.FeatureState]int{}
	for i := range features {
		counts[features[i].Status.State]++
		p.Namespaces = p.Namespaces || features[i].Namespace != features[0].Namespace
		for _, use := range features[i].Status.Uses {
			p.Components = append(p.Components, use.Component)
		}
	}
	slices.Sort(p.Components)
	p.Components = slices.Compact(p.Components)
	for _, state := range allStates {
		if counts[state] > 0 {
			p.States = append(p.States, stateCount{string(state), counts[state]})
		}
	}
	for i := range features {
		f := pageFeatureOf(&features[i], p.Components)
		p.Features = append(p.Features, f)
		if f.Moving {
			p.Moving = append(p.Moving, f)
		}
		if f.Dangling {
			p.Dangling = append(p.Dangling, f)
		}
		if f.Differing {
			p.Differing = append(p.Differing, f)
		}
	}
	return p
}

func pageFeatureOf(f *v1alpha1.Feature, components []string) pageFeature {
	status := &f.Status
	row := pageFeature{
		Namespace: f.Namespace, Name: f.Name, Stage: string(status.Stage), State: orNone(string(status.State)), Since: ago(since(f).Time),
		Configured: configuredOf(f), Default: valueOf(status.Default), Control: string(status.Control), Doing: doing(status),
		Moving: status.Transition != nil, Dangling: dangling(status), Differing: mismatched(status), NotDefault: notDefault(status),
	}
	if status.Configured != nil {
		row.Source = string(status.Configured.Source)
	}
	for i := range status.Tasks {
		row.Tasks = append(row.Tasks, strings.TrimSpace(status.Tasks[i].Name+progressOfTask(&status.Tasks[i])+" "+status.Tasks[i].Message))
	}
	for _, t := range troubling {
		if c := meta.FindStatusCondition(status.Conditions, t.kind); c != nil && (slices.Contains(t.reasons, c.Reason) || c.Reason == v1alpha1.ReasonBlocked) {
			row.Messages = append(row.Messages, fmt.Sprintf("%s: %s", c.Reason, c.Message))
		}
	}
	for _, component := range components {
		row.Cells = append(row.Cells, cellOf(status, component))
	}
	return row
}

// cellOf says which values the instances of a component have.
func cellOf(status *v1alpha1.FeatureStatus, component string) pageCell {
	value, known := transition.Value(status)
	var texts, titles []string
	cell := pageCell{Class: "none"}
	for _, use := range status.Uses {
		if use.Component != component {
			continue
		}
		class, text := "unknown", fmt.Sprintf("%d ?", use.Expected)
		if use.Enabled != nil {
			class, text = transition.OnOff(*use.Enabled), fmt.Sprintf("%d %s", use.Count, transition.OnOff(*use.Enabled))
			if known && *use.Enabled != value && use.Count > 0 {
				class += " differs"
				text = "≠ " + text
			}
		}
		texts, titles = append(texts, text), append(titles, planned(use))
		if cell.Class == "none" || strings.Contains(class, "differs") {
			cell.Class = class
		}
	}
	cell.Text, cell.Title = strings.Join(texts, ", "), strings.Join(titles, "\n")
	return cell
}
