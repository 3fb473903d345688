//go:build linux

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

package hostile

import "strings"

// rights are requests of users who may not make them.
func rights() map[string]row {
	change := func(body string) row {
		return row{method: "PATCH", path: report, contentType: mergePatch, body: body, as: "mallory", code: 403, says: `only "`}
	}
	rows := map[string]row{
		"a stranger reads reports":                    {path: reports, as: "jane", code: 403, says: `User "jane" cannot list resource "featurereports"`},
		"a stranger creates a feature":                {method: "POST", path: features, body: feature("A", ""), as: "jane", code: 403, says: `User "jane" cannot create resource "features"`},
		"a stranger asks for a plan":                  {method: "POST", path: known + "/plan", body: plan(`"enabled":true`), as: "jane", code: 403, says: "features/plan"},
		"a stranger asks for a clean":                 {method: "POST", path: known + "/cleanup", body: "{", as: "jane", code: 403, says: "features/cleanup"},
		"a stranger patches what is not there":        {method: "PATCH", path: features + "/Missing", contentType: mergePatch, body: "{", as: "jane", code: 403, says: "cannot patch"},
		"a stranger deletes all features":             {method: "DELETE", path: features, as: "jane", code: 403, says: "cannot deletecollection"},
		"an anonymous user":                           {path: features, as: "system:anonymous", header: map[string]string{"Impersonate-Group": "system:unauthenticated"}, code: 403, says: "cannot list"},
		"a stranger takes on an identity":             {path: features, as: "jane", header: map[string]string{"Impersonate-Uid": "x"}, code: 200, says: `"items":[{"metadata":{"name":"Good"`},
		"an extra without a user":                     {path: features, header: map[string]string{"Impersonate-Extra-scopes": "x"}, code: 400, says: "impersonat", twin: configs},
		"mallory reports as another's component":      {method: "POST", path: reports, body: reportOf(""), as: "mallory", code: 403, says: "grant the verb report on components.features.k8s.io"},
		"mallory reports with another's name in it":   {method: "POST", path: reports, body: reportOf(`,"username":"system:admin"`), as: "mallory", code: 403, says: `user "mallory" may not report`},
		"mallory applies a report":                    {method: "PATCH", path: reports + "/app.new?fieldManager=m", contentType: apply, body: reportOf(""), as: "mallory", code: 403, says: `user "mallory" may not report`},
		"mallory changes a report's gates":            change(`{"spec":{"features":[{"name":"Evil"}]}}`),
		"mallory changes a report's version":          change(`{"spec":{"binaryVersion":"v9.9.9"}}`),
		"mallory takes a report over":                 {method: "PATCH", path: report, contentType: mergePatch, body: `{"spec":{"username":"mallory"}}`, as: "mallory", code: 403, says: `user "mallory" may not update the report of`},
		"mallory labels a report":                     {method: "PATCH", path: report, contentType: mergePatch, body: `{"metadata":{"labels":{"a":"b"}}}`, as: "mallory", code: 403, says: "featurereports/any"},
		"mallory deletes a report":                    {method: "DELETE", path: report, as: "mallory", code: 403, says: "featurereports/any"},
		"mallory deletes all reports":                 {method: "DELETE", path: reports, as: "mallory", code: 403, says: "featurereports/any"},
		"mallory deletes a report, for a try":         {method: "DELETE", path: report + "?dryRun=All", as: "mallory", code: 403, says: "featurereports/any"},
		"mallory writes a status":                     {method: "PATCH", path: good + "/status", contentType: mergePatch, body: `{"status":{"state":"On"}}`, as: "mallory", code: 403, says: "features/status"},
		"a stranger publishes a value":                {method: "POST", path: system + "/featurevalues", body: `{"apiVersion":"features.k8s.io/v1alpha1","kind":"FeatureValue","metadata":{"name":"A"},"control":"Dynamic","value":true,"featureVersion":"1"}`, as: "jane", code: 403, says: `User "jane" cannot create resource "featurevalues"`},
		"an administrator publishes a value":          {method: "POST", path: system + "/featurevalues", body: `{"apiVersion":"features.k8s.io/v1alpha1","kind":"FeatureValue","metadata":{"name":"A"},"control":"Dynamic","value":true,"featureVersion":"1"}`, code: 403, says: "written by system:feature-lifecycle alone"},
		"the creator gives a report away":             {method: "PATCH", path: report + "?dryRun=All", contentType: mergePatch, body: `{"spec":{"username":"mallory"}}`, code: 200, says: `"username":"kubernetes-admin"`},
		"the creator changes a report's component":    {method: "PATCH", path: report, contentType: mergePatch, body: `{"spec":{"component":"kubelet"}}`, code: 422, says: "spec.component"},
		"the creator changes a report's instance":     {method: "PATCH", path: report, contentType: mergePatch, body: `{"spec":{"instance":"other"}}`, code: 422, says: "spec.instance"},
		"the creator moves a report to a node":        {method: "PATCH", path: report, contentType: mergePatch, body: `{"spec":{"nodeName":"node-1"}}`, code: 422, says: "spec.nodeName"},
		"a node reports for another":                  {method: "POST", path: system + "/featurereports", body: strings.NewReplacer("app", "kubelet", `"liveness":{"lease":{"namespace":"hostile","name":"app.new"}}`, `"nodeName":"new"`, "hostile", "kube-system").Replace(reportOf("")), as: "system:node:evil", groups: []string{"system:nodes"}, code: 403, says: `node "evil" may only write reports`},
		"a node reports as the scheduler":             {method: "POST", path: system + "/featurereports", body: strings.NewReplacer("app", "kube-scheduler", "new", "evil", `"namespace":"hostile"`, `"namespace":"kube-feature-lease"`).Replace(reportOf(`,"nodeName":"evil"`)), as: "system:node:evil", groups: []string{"system:nodes"}, code: 422, says: "kube-scheduler"},
		"a user whose name is no UTF-8":               {method: "POST", path: reports, body: reportOf(""), as: "evil\xff\xfe", groups: []string{"system:masters"}, code: 422, says: "UTF-8"},
		"a user whose name is no UTF-8, of a feature": {method: "POST", path: features + "?dryRun=All", body: feature("A", `,"spec":{"paused":true}`), as: "evil\xff\xfe", groups: []string{"system:masters"}, code: 201, says: `"features.k8s.io/requested-by":"evil"`},
		"a user with a name of 300 kB and a pause":    {method: "POST", path: features, body: feature("A", `,"spec":{"paused":true}`), as: strings.Repeat("e", 300<<10), groups: []string{"system:masters"}, code: 422, says: "annotations"},
		"a user whose name is a terminal's":           {method: "POST", path: reports + "?dryRun=All", body: reportOf(""), as: "evil\t31m", groups: []string{"system:masters"}, code: 201, says: `"username":"evil\t31m"`},
		"an identity of nothing":                      {path: features, header: map[string]string{"Impersonate-Group": "system:masters"}, code: 400, says: "impersonat", twin: configs},
		"credentials that are none":                   {path: features, header: map[string]string{"Authorization": "Bearer x"}, code: 200, says: `"items":[{"metadata":{"name":"Good"`},
	}
	return rows
}
