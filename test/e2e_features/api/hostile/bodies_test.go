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

import (
	"fmt"
	"strings"
)

// nested is so many arrays in each other.
func nested(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }

// bodies are requests whose body is no object of the kind that it should be.
func bodies() map[string]row {
	config := func(data string) string {
		return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}` + data + `}`
	}
	rows := map[string]row{
		"an empty body":                           {code: 400, says: "unexpected end of JSON input"},
		"only blanks":                             {body: " \n\t", code: 400, says: "unexpected end of JSON input"},
		"null":                                    {body: "null", code: 422, says: "name or generateName is required"},
		"a number":                                {body: "1", code: 400, says: "json: cannot unmarshal number"},
		"a list":                                  {body: "[" + feature("A", "") + "]", code: 400, says: "json: cannot unmarshal array"},
		"text":                                    {body: "hello", code: 400, says: "couldn't get version/kind"},
		"a page":                                  {body: "<html>", code: 400, says: "invalid character"},
		"an object that breaks off":               {body: feature("A", "")[:60], code: 400, says: "unexpected end of JSON input"},
		"an object and something behind it":       {body: feature("A", "") + "x", code: 400, says: "after top-level value"},
		"NUL before the object":                   {body: "\x00" + feature("A", ""), code: 400, says: "invalid character"},
		"NUL in a name":                           {body: feature("A\x00B", ""), code: 400, says: "character"},
		"an escaped NUL in a name":                {body: strings.Replace(feature("AB", ""), "AB", `A\u0000B`, 1), code: 422, says: "must begin with a letter"},
		"bytes that are no UTF-8 in a name":       {body: strings.Replace(feature("AB", ""), "AB", "A\xff\xfeB", 1), code: 422, says: "must begin with a letter"},
		"half of a surrogate in a name":           {body: strings.Replace(feature("AB", ""), "AB", `A\ud800B`, 1), code: 422, says: "must begin with a letter"},
		"another kind of the group":               {body: strings.Replace(feature("A", ""), `"Feature"`, `"FeatureReport"`, 1), code: 400, says: "FeatureReport"},
		"a kind of another group":                 {body: config(""), code: 400, says: "ConfigMap"},
		"an unknown kind":                         {body: strings.Replace(feature("A", ""), `"Feature"`, `"Flag"`, 1), code: 400, says: "Flag"},
		"the kind of the list":                    {body: strings.Replace(feature("A", ""), `"Feature"`, `"FeatureList"`, 1), code: 400, says: "FeatureList"},
		"an unknown version":                      {body: strings.Replace(feature("A", ""), "v1alpha1", "v9", 1), code: 400, says: "v9"},
		"the version inside of the server":        {body: strings.Replace(feature("A", ""), "v1alpha1", "__internal", 1), code: 400, says: "__internal"},
		"a version that is no version":            {body: strings.Replace(feature("A", ""), "features.k8s.io/v1alpha1", "a/b/c", 1), code: 400, says: "a/b/c"},
		"a number for a kind":                     {body: strings.Replace(feature("A", ""), `"Feature"`, "7", 1), code: 400, says: "kind"},
		"text for metadata":                       {body: featureHead + `,"metadata":"x"}`, code: 400, says: "metadata"},
		"10,000 arrays in each other":             {body: feature("A", `,"spec":`+nested(10000)), code: 400, says: "exceeded max depth"},
		"10,000 arrays in an unknown field":       {body: feature("A", `,"unknown":`+nested(10000)), code: 400, says: "exceeded max depth"},
		"1,000,000 brackets":                      {body: strings.Repeat("[", 1000000), code: 400, says: "exceeded max depth"},
		"more than 3 MiB":                         {body: feature("A", `,"unknown":"`+strings.Repeat("x", 4<<20)+`"`), code: 413, says: "limit is 3145728"},
		"more than 3 MiB of blanks":               {body: strings.Repeat(" ", 4<<20), code: 413, says: "limit is 3145728"},
		"an unknown field, strictly":              {path: features + "?dryRun=All&fieldValidation=Strict", body: feature("A", `,"spec":{"pasued":true}`), code: 400, says: `unknown field "spec.pasued"`},
		"an unknown field, with a warning":        {path: features + "?dryRun=All&fieldValidation=Warn", body: feature("A", `,"spec":{"pasued":true}`), code: 201, says: `"name":"A"`},
		"an unknown field, ignored":               {path: features + "?dryRun=All&fieldValidation=Ignore", body: feature("A", `,"spec":{"pasued":true}`), code: 201, says: `"name":"A"`},
		"a field twice, strictly":                 {path: features + "?dryRun=All&fieldValidation=Strict", body: feature("A", `,"spec":{"paused":true,"paused":false}`), code: 400, says: `duplicate field "spec.paused"`},
		"a field twice, ignored":                  {path: features + "?dryRun=All&fieldValidation=Ignore", body: feature("A", `,"spec":{"paused":true,"paused":false}`), code: 201, says: `"spec":{},`},
		"a field in other letters, strictly":      {path: features + "?dryRun=All&fieldValidation=Strict", body: feature("A", `,"spec":{"Paused":true}`), code: 400, says: `unknown field "spec.Paused"`},
		"100,000 unknown fields, strictly":        {path: features + "?dryRun=All&fieldValidation=Strict", body: feature("A", `,"spec":{`+many(100000, `"u%d":1`)+`}`), code: 400, says: "unknown field"},
		"labels beyond what etcd stores":          {body: labeled(featureHead, 2<<20), code: 422, says: "may have at most 1048576 bytes"},
		"an owner beyond what etcd stores":        {body: featureHead + `,"metadata":{"name":"A","ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"` + strings.Repeat("n", 2<<20) + `","uid":"u"}]}}`, code: 422, says: "may have at most 1048576 bytes"},
		"annotations beyond the limit":            {body: featureHead + `,"metadata":{"name":"A","annotations":{"a":"` + strings.Repeat("x", 300<<10) + `"}}}`, code: 422, says: "annotations"},
		"managed fields beyond what etcd stores":  {body: featureHead + `,"metadata":{"name":"A","managedFields":[{"manager":"m","operation":"Update","apiVersion":"features.k8s.io/v1alpha1","fieldsType":"FieldsV1","fieldsV1":{` + many(60000, `"f:some-field-of-the-object-%d":{}`) + `}}]}}`, code: 422, says: "may have at most 1048576 bytes"},
		"managed fields that are no fields":       {body: featureHead + `,"metadata":{"name":"A","managedFields":[{"manager":"m","operation":"Whim","fieldsType":"FieldsV7","fieldsV1":{"q":1}}]}}`, code: 201, says: "A", path: features + "?dryRun=All"},
		"an owner in a report beyond the limit":   {path: reports, body: strings.Replace(reportOf(""), `"name":"app.new"`, `"name":"app.new","ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"`+strings.Repeat("n", 2<<20)+`","uid":"u"}]`, 1), code: 422, says: "may have at most 1048576 bytes"},
		"labels in a report beyond the limit":     {path: reports, body: strings.Replace(labeled(`{"apiVersion":"features.k8s.io/v1alpha1","kind":"FeatureReport"`, 8<<10), `"large"`, `"app.new"`, 1), code: 422, says: "labels and annotations together may have at most 4096 bytes"},
		"a plan without a body":                   {path: known + "/plan", code: 400, says: "unexpected end of JSON input"},
		"a plan that is a Feature":                {path: known + "/plan", body: feature("A", ""), code: 400, says: "Feature"},
		"a clean that is a plan":                  {path: known + "/cleanup", body: `{"apiVersion":"features.k8s.io/v1alpha1","kind":"FeaturePlan"}`, code: 400, says: "FeaturePlan"},
		"a plan with text for a switch, strictly": {path: known + "/plan", body: plan(`"enabled":"yes"`), code: 400, says: "enabled"},
	}
	for name, r := range rows {
		r.method = "POST"
		r.path = or(r.path, features)
		rows[name] = r
	}
	rows["text of an unknown encoding"] = row{method: "POST", path: features, contentType: "application/json; charset=utf-16", body: "\xff\xfe{\x00}\x00", code: 400, says: "invalid character"}
	return rows
}

// many are n members of an object or a list, whose pattern has their number.
func many(n int, pattern string) string {
	var all strings.Builder
	for i := range n {
		if i > 0 {
			all.WriteByte(',')
		}
		fmt.Fprintf(&all, pattern, i)
	}
	return all.String()
}

// plan is a FeaturePlan's JSON.
func plan(spec string) string {
	return `{"apiVersion":"features.k8s.io/v1alpha1","kind":"FeaturePlan","spec":{` + spec + `}}`
}

// fields are objects with a field that is not as it should be.
func fields() map[string]row {
	lease := `"liveness":{"lease":{"namespace":"hostile","name":"app.new"}}`
	ofReport := func(old, new string) string { return strings.Replace(reportOf(""), old, new, 1) }
	rows := map[string]row{
		// A Feature's.
		"a name of 254 characters":          {body: feature(strings.Repeat("a", 254), ""), code: 422, says: "no more than 253"},
		"a name of 1 MB":                    {body: feature(strings.Repeat("a", 1<<20), ""), code: 422, says: "no more than 253"},
		"no name":                           {body: featureHead + `,"metadata":{}}`, code: 422, says: "name or generateName is required"},
		"a name that climbs":                {body: feature("..", ""), code: 422, says: "metadata.name"},
		"a name with a slash":               {body: feature("a/b", ""), code: 422, says: "metadata.name"},
		"a name with an escaped slash":      {body: feature("a%2fb", ""), code: 422, says: "metadata.name"},
		"a name with blanks":                {body: feature("a b", ""), code: 422, says: "must begin with a letter"},
		"a name of a terminal's making":     {body: strings.Replace(feature("AB", ""), "AB", `A\u001b[2JB`, 1), code: 422, says: "must begin with a letter"},
		"a generated name that climbs":      {body: featureHead + `,"metadata":{"generateName":"../"}}`, code: 422, says: "metadata.generateName"},
		"another namespace than the path's": {body: featureHead + `,"metadata":{"name":"A","namespace":"kube-system"}}`, code: 400, says: "namespace of the provided object does not match"},
		"a resource version at creation":    {body: featureHead + `,"metadata":{"name":"A","resourceVersion":"5"}}`, code: 500, says: "resourceVersion should not be set", twin: configs, twinBody: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","resourceVersion":"5"}}`},
		"a label that is none":              {body: featureHead + `,"metadata":{"name":"A","labels":{"a b":"c d"}}}`, code: 422, says: "metadata.labels"},
		"a finalizer that is none":          {body: featureHead + `,"metadata":{"name":"A","finalizers":["a b"]}}`, code: 422, says: "metadata.finalizers"},
		"a time that is none":               {body: featureHead + `,"metadata":{"name":"A","creationTimestamp":"yesterday"}}`, code: 400, says: "yesterday"},
		"text for a switch":                 {body: feature("A", `,"spec":{"paused":"true"}`), code: 400, says: "spec.paused"},
		"a number for a switch":             {body: feature("A", `,"spec":{"enabled":1}`), code: 400, says: "spec.enabled"},
		"text for spec":                     {body: feature("A", `,"spec":"x"`), code: 400, says: "spec"},
		"a list for a rollout":              {body: feature("A", `,"spec":{"rollout":[]}`), code: 400, says: "rollout"},
		"text for a percentage":             {body: feature("A", `,"spec":{"rollout":{"percent":"5%"}}`), code: 400, says: "percent"},
		"half a percent":                    {body: feature("A", `,"spec":{"rollout":{"percent":0.5}}`), code: 400, says: "percent"},
		"less than no percent":              {body: feature("A", `,"spec":{"rollout":{"percent":-1}}`), code: 422, says: "between 0 and 100"},
		"more than all":                     {body: feature("A", `,"spec":{"rollout":{"percent":101}}`), code: 422, says: "between 0 and 100"},
		"more than 32 bits":                 {body: feature("A", `,"spec":{"rollout":{"percent":4294967301}}`), code: 400, says: "percent"},
		"a huge number":                     {body: feature("A", `,"spec":{"rollout":{"attempt":`+strings.Repeat("9", 400)+`}}`), code: 400, says: "attempt"},
		"a huge exponent":                   {body: feature("A", `,"spec":{"rollout":{"attempt":1e999999999}}`), code: 400, says: "attempt"},
		"a negative count of attempts":      {body: feature("A", `,"spec":{"rollout":{"attempt":-5}}`), code: 422, says: "must not be negative"},
		"a component that is none":          {body: feature("A", `,"spec":{"rollout":{"components":["Kube Let"]}}`), code: 422, says: "RFC 1123"},
		"a component of 1 MB":               {body: feature("A", `,"spec":{"rollout":{"components":["`+strings.Repeat("a", 1<<20)+`"]}}`), code: 422, says: "may not be more than 63 bytes"},
		"a component twice":                 {body: feature("A", `,"spec":{"rollout":{"components":["a","a"]}}`), code: 422, says: "Duplicate"},
		"101 components":                    {body: feature("A", `,"spec":{"rollout":{"components":[`+many(101, `"c%d"`)+`]}}`), code: 422, says: "must have at most 100 items"},
		"500,000 components that are none":  {body: feature("A", `,"spec":{"rollout":{"components":[`+strings.Repeat(`"",`, 500000)+`""]}}`), code: 422, says: "must have at most 100 items"},
		"a feature that cannot be set":      {path: system + "/features", body: feature("NotAGate", `,"spec":{"enabled":true}`), code: 422, says: "--dynamic-features"},
		"an unknown namespace":              {path: group + "/namespaces/nowhere/features", body: feature("A", ""), code: 404, says: `namespaces "nowhere" not found`},
		"a namespace that cannot be":        {path: group + "/namespaces/No%20Body/features", body: feature("A", ""), code: 404, says: "namespace"},
		"a feature that is there":           {body: feature("Good", ""), code: 409, says: "already exists"},
		// A report's.
		"a report of another name":            {body: ofReport("app.new", "app.old"), code: 422, says: "must be <spec.component>.<spec.instance>"},
		"a report without a component":        {body: ofReport(`"component":"app",`, ""), code: 422, says: "spec.component"},
		"a report without an instance":        {body: ofReport(`"instance":"new",`, ""), code: 422, says: "spec.instance"},
		"an instance that climbs":             {body: strings.ReplaceAll(reportOf(""), "new", "../new"), code: 422, says: "spec.instance"},
		"an instance of 254 characters":       {body: strings.ReplaceAll(reportOf(""), "new", strings.Repeat("n", 254)), code: 422, says: "spec.instance"},
		"a component with a dot":              {body: strings.ReplaceAll(reportOf(""), "app", "a.b"), code: 422, says: "spec.component"},
		"a report without a sign of life":     {body: ofReport(","+lease, ""), code: 422, says: "spec.liveness.lease"},
		"two signs of life":                   {body: reportOf(`,"nodeName":"n"`), code: 422, says: "may not be set together with spec.nodeName"},
		"another process's Lease":             {body: ofReport(`"namespace":"hostile"`, `"namespace":"kube-system"`), code: 422, says: `must be "hostile"`},
		"a Lease that is none":                {body: ofReport(`{"namespace":"hostile","name":"app.new"}`, `{"namespace":"../..","name":"\u0000"}`), code: 422, says: "spec.liveness.lease"},
		"a node that cannot be":               {body: ofReport(lease, `"nodeName":"No Node"`), code: 422, says: "spec.nodeName"},
		"a gate twice":                        {body: reportOf(`,"features":[{"name":"A"},{"name":"A"}]`), code: 422, says: "Duplicate"},
		"a gate without a name":               {body: reportOf(`,"features":[{}]`), code: 422, says: "spec.features[0].name"},
		"a gate that is null":                 {body: reportOf(`,"features":[null]`), code: 422, says: "spec.features[0].name"},
		"a gate that is text":                 {body: reportOf(`,"features":["A"]`), code: 400, says: "features"},
		"text for gates":                      {body: reportOf(`,"features":"A"`), code: 400, says: "features"},
		"1,001 gates":                         {body: reportOf(`,"features":[` + many(1001, `{"name":"G%d"}`) + `]`), code: 422, says: "must have at most 1000 items"},
		"100,000 gates":                       {body: reportOf(`,"features":[` + many(100000, `{"name":"G%d"}`) + `]`), code: 422, says: "must have at most 1000 items"},
		"names of gates of 1 MB":              {body: reportOf(`,"features":[{"name":"` + strings.Repeat("G", 1<<20) + `"}]`), code: 422, says: "at most 65536 characters together"},
		"a stage that is none":                {body: reportOf(`,"features":[{"name":"A","stage":"Gamma"}]`), code: 422, says: `"Alpha"`},
		"a control that is none":              {body: reportOf(`,"features":[{"name":"A","control":"Mine"}]`), code: 422, says: `"Central"`},
		"a version that is none":              {body: reportOf(`,"binaryVersion":"latest"`), code: 422, says: "must be a version such as v1.37.2"},
		"a version that paints":               {body: reportOf(`,"binaryVersion":"v1.36.3\u001b[31m"`), code: 422, says: "must be a version such as v1.37.2"},
		"a version that is no UTF-8":          {body: reportOf(",\"binaryVersion\":\"v1.36.3-\xff\""), code: 422, says: "must be a version such as v1.37.2"},
		"a version of 1 MB":                   {body: reportOf(`,"binaryVersion":"v1.36.3-` + strings.Repeat("a", 1<<20) + `"`), code: 422, says: "may not be more than 128 bytes"},
		"a process that is a path":            {body: reportOf(`,"process":"../../a"`), code: 422, says: "spec.process"},
		"a process of 1 MB":                   {body: reportOf(`,"process":"` + strings.Repeat("a", 1<<20) + `"`), code: 422, says: "may not be more than 63 bytes"},
		"a process that is a number":          {body: reportOf(`,"process":7`), code: 400, says: "process"},
		"a patch version for a minor one":     {body: reportOf(`,"emulationVersion":"1.36.3"`), code: 422, says: "must be a minor version"},
		"a minor version of 1 MB":             {body: reportOf(`,"emulationVersion":"1.` + strings.Repeat("9", 1<<20) + `"`), code: 422, says: "may not be more than 128 bytes"},
		"a minor version beyond all":          {body: reportOf(`,"emulationVersion":"1.99999999999999999999"`), code: 422, says: "must be a minor version"},
		"11 owners":                           {body: strings.Replace(reportOf(""), `"name":"app.new"`, `"name":"app.new","ownerReferences":[`+many(11, `{"apiVersion":"v1","kind":"Node","name":"n%d","uid":"u"}`)+`]`, 1), code: 422, says: "metadata.ownerReferences"},
		"a kubelet that says it is elsewhere": {path: system + "/featurereports", body: strings.NewReplacer("app", "kubelet", lease, `"nodeName":"other"`).Replace(reportOf("")), code: 422, says: "must be the same as spec.instance"},
		"a scheduler with the server's Lease": {path: system + "/featurereports", body: strings.NewReplacer("app", "kube-scheduler", `"namespace":"hostile"`, `"namespace":"kube-system"`).Replace(reportOf("")), code: 422, says: `must be "kube-feature-lease"`},
		// A plan's.
		"a plan of nothing":                 {path: known + "/plan", body: plan(""), code: 422, says: "set either enabled or targetVersion"},
		"a plan of two things":              {path: known + "/plan", body: plan(`"enabled":true,"targetVersion":"1.37"`), code: 422, says: "not both"},
		"a plan for a patch version":        {path: known + "/plan", body: plan(`"targetVersion":"1.37.1"`), code: 422, says: "minor version"},
		"a plan for a far major version":    {path: known + "/plan", body: plan(`"targetVersion":"9.0"`), code: 400, says: "a plan is for a version of 1.x"},
		"a plan for a version beyond all":   {path: known + "/plan", body: plan(`"targetVersion":"1.99999999999999999999"`), code: 422, says: "minor version"},
		"a plan for a version below none":   {path: known + "/plan", body: plan(`"targetVersion":"-1.-1"`), code: 422, says: "minor version"},
		"a plan for another feature":        {path: known + "/plan", body: strings.Replace(plan(`"enabled":true`), `"spec"`, `"metadata":{"name":"Other"},"spec"`, 1), code: 400, says: "leave it out or make"},
		"a plan for a feature that is none": {path: system + "/features/NotAGate/plan", body: plan(`"enabled":true`), code: 404, says: `"NotAGate" not found`},
		"a plan for an operator's feature":  {path: good + "/plan", body: plan(`"enabled":true`), code: 400, says: "ask the operator"},
		"a clean of an operator's feature":  {path: good + "/cleanup", body: `{"apiVersion":"features.k8s.io/v1alpha1","kind":"FeatureCleanup"}`, code: 400, says: "ask the operator"},
		"a clean of a feature that is none": {path: system + "/features/NotAGate/cleanup", body: `{"apiVersion":"features.k8s.io/v1alpha1","kind":"FeatureCleanup"}`, code: 404, says: `"NotAGate" not found`},
		"a clean of another feature":        {path: known + "/cleanup", body: `{"apiVersion":"features.k8s.io/v1alpha1","kind":"FeatureCleanup","metadata":{"name":"Other"}}`, code: 400, says: "leave it out or make"},
		"a clean of a feature that is on":   {path: system + "/features/FeatureLifecycle/cleanup", body: `{"apiVersion":"features.k8s.io/v1alpha1","kind":"FeatureCleanup"}`, code: 409, says: "only a feature that is Off can be cleaned"},
	}
	for name, r := range rows {
		r.method = "POST"
		if r.path = or(r.path, features); strings.Contains(r.body, `"kind":"FeatureReport"`) && r.path == features {
			r.path = reports
		}
		rows[name] = r
	}
	return rows
}
