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

const (
	jsonPatch  = "application/json-patch+json"
	mergePatch = "application/merge-patch+json"
	strategic  = "application/strategic-merge-patch+json"
	apply      = "application/apply-patch+yaml"
	// notApplied is all that upstream says of a JSON patch that cannot be applied
	// (apiserver's endpoints/handlers/patch.go), of kinds of its own, too.
	notApplied = "rejected our request due to an error in our request"
	// spaces is a status of upstream's with a list of objects.
	spaces = "/api/v1/namespaces/" + namespace + "/status"
)

// applied is a Feature for server-side apply.
func applied(rest string) string { return feature("Good", rest) }

// patches are changes that are none, or that are not allowed.
func patches() map[string]row {
	config := func(rest string) string {
		return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"good"}` + rest + `}`
	}
	rows := map[string]row{
		// JSON patch.
		"operations that are no list":  {contentType: jsonPatch, body: `{"op":"add"}`, code: 400, says: "cannot unmarshal object"},
		"no operations":                {contentType: jsonPatch, code: 400, says: "invalid JSON patch"},
		"an operation that is none":    {contentType: jsonPatch, body: `[{"op":"whim","path":"/spec"}]`, code: 422, says: notApplied, twin: configs + "/good"},
		"an operation without a path":  {contentType: jsonPatch, body: `[{"op":"remove"}]`, code: 422, says: notApplied, twin: configs + "/good"},
		"an operation that is null":    {contentType: jsonPatch, body: `[null]`, code: 422, says: notApplied, twin: configs + "/good"},
		"removing what is not there":   {contentType: jsonPatch, body: `[{"op":"remove","path":"/spec/rollout/percent"}]`, code: 422, says: notApplied, twin: configs + "/good"},
		"removing everything":          {contentType: jsonPatch, body: `[{"op":"remove","path":""}]`, code: 422, says: notApplied, twin: configs + "/good"},
		"replacing everything by null": {contentType: jsonPatch, body: `[{"op":"replace","path":"","value":null}]`, code: 422, says: notApplied, twin: configs + "/good"},
		"replacing everything by text": {contentType: jsonPatch, body: `[{"op":"replace","path":"","value":"x"}]`, code: 422, says: notApplied, twin: configs + "/good"},
		"a test that fails":            {contentType: jsonPatch, body: `[{"op":"test","path":"/metadata/name","value":"Other"}]`, code: 422, says: notApplied, twin: configs + "/good"},
		"a copy of what is not there":  {contentType: jsonPatch, body: `[{"op":"copy","from":"/nope","path":"/spec/nope/x"}]`, code: 422, says: notApplied, twin: configs + "/good"},
		"an index beyond all":          {contentType: jsonPatch, body: `[{"op":"add","path":"/metadata/managedFields/99999999999999999999","value":{}}]`, code: 422, says: notApplied, twin: configs + "/good"},
		"an index below 0":             {contentType: jsonPatch, body: `[{"op":"remove","path":"/metadata/managedFields/-9999999"}]`, code: 422, says: notApplied, twin: configs + "/good"},
		"10,001 operations":            {contentType: jsonPatch, body: "[" + strings.Repeat(`{"op":"test","path":"/kind","value":"Feature"},`, 10000) + `{"op":"remove","path":"/spec"}]`, code: 413, says: "10000"},
		"copies that grow":             {contentType: jsonPatch, body: `[{"op":"add","path":"/metadata/annotations","value":{"a":"` + strings.Repeat("x", 1000) + `"}}` + strings.Repeat(`,{"op":"copy","from":"/metadata/annotations","path":"/metadata/annotations/b"}`, 40) + `]`, code: 422, says: "cannot unmarshal object"},
		"another name":                 {contentType: jsonPatch, body: `[{"op":"replace","path":"/metadata/name","value":"Other"}]`, code: 400, says: "does not match the name on the URL"},
		"another namespace":            {contentType: jsonPatch, body: `[{"op":"replace","path":"/metadata/namespace","value":"kube-system"}]`, code: 400, says: "namespace"},
		"another kind":                 {contentType: jsonPatch, body: `[{"op":"replace","path":"/kind","value":"FeatureReport"}]`, code: 422, says: "FeatureReport"},
		"another version":              {contentType: jsonPatch, body: `[{"op":"replace","path":"/apiVersion","value":"features.k8s.io/v9"}]`, code: 422, says: "v9"},
		"another object's uid":         {contentType: jsonPatch, body: `[{"op":"replace","path":"/metadata/uid","value":"other"}]`, code: 422, says: "field is immutable"},
		"text for a switch":            {contentType: jsonPatch, body: `[{"op":"add","path":"/spec/paused","value":"yes"}]`, code: 422, says: "paused"},
		"an unknown field, strictly":   {path: good + "?fieldValidation=Strict", contentType: jsonPatch, body: `[{"op":"add","path":"/spec/pasued","value":true}]`, code: 422, says: "spec.pasued"},
		// Merge patch.
		"a merge of text":                         {contentType: mergePatch, body: `"x"`, code: 400, says: "cannot unmarshal string"},
		"a merge of null":                         {contentType: mergePatch, body: `null`, code: 400, says: "Invalid JSON Patch"},
		"a merge of a list":                       {contentType: mergePatch, body: `[1]`, code: 400, says: "cannot unmarshal array"},
		"a merge that breaks off":                 {contentType: mergePatch, body: `{"spec":`, code: 400, says: "JSON"},
		"a merge of 10,000 objects in each other": {contentType: mergePatch, body: strings.Repeat(`{"a":`, 10001) + "1" + strings.Repeat("}", 10001), code: 400, says: "invalid JSON patch"},
		"a merge of 1,000 objects, strictly":      {path: good + "?fieldValidation=Strict", contentType: mergePatch, body: `{"spec":` + strings.Repeat(`{"a":`, 1000) + "1" + strings.Repeat("}", 1000) + "}", code: 422, says: "spec"},
		"a merge without a name":                  {contentType: mergePatch, body: `{"metadata":{"name":null}}`, code: 400, says: "name"},
		"a merge without metadata":                {contentType: mergePatch, body: `{"metadata":null}`, code: 400, says: "name"},
		"a merge of more than all":                {contentType: mergePatch, body: `{"spec":{"rollout":{"percent":101}}}`, code: 422, says: "between 0 and 100"},
		"a merge of too large labels":             {contentType: mergePatch, body: strings.Replace(labeled(`{"kind":"Feature"`, 2<<20), `"large"`, `"Good"`, 1), code: 422, says: "may have at most 1048576 bytes"},
		"a merge of managed fields that are none": {contentType: mergePatch, body: `{"metadata":{"managedFields":[{"manager":"m","operation":"Apply","apiVersion":"x/y/z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{}}}]}}`, code: 200, says: "Good", path: good + "?dryRun=All"},
		// Strategic merge patch.
		"a directive that is none":        {path: good + "/status", contentType: strategic, body: `{"status":{"tasks":[{"$patch":"whim","name":"a"}]}}`, code: 200, says: "Good"},
		"an order that is no list":        {path: good + "/status", contentType: strategic, body: `{"status":{"$setElementOrder/tasks":"x"}}`, code: 500, says: "received a string", twin: spaces, twinBody: `{"status":{"$setElementOrder/conditions":"x"}}`},
		"an order of what is no object":   {path: good + "/status", contentType: strategic, body: `{"status":{"$setElementOrder/tasks":["x"],"tasks":[{"name":"a"}]}}`, code: 500, says: "received a string", twin: spaces, twinBody: `{"status":{"$setElementOrder/conditions":["x"],"conditions":[{"type":"a"}]}}`},
		"an order without what it orders": {path: good + "/status", contentType: strategic, body: `{"status":{"$setElementOrder/tasks":[{"name":"b"}],"tasks":[{"name":"a"}]}}`, code: 500, says: "$setElementOrder", twin: spaces, twinBody: `{"status":{"$setElementOrder/conditions":[{"type":"b"}],"conditions":[{"type":"a"}]}}`},
		"keys to keep that are none":      {contentType: strategic, body: `{"spec":{"$retainKeys":"x"}}`, code: 400, says: "retainKeys"},
		"keys to keep that are numbers":   {contentType: strategic, body: `{"spec":{"$retainKeys":[1,2]}}`, code: 200, says: "Good", path: good + "?dryRun=All"},
		"an element without its key":      {path: good + "/status", contentType: strategic, body: `{"status":{"tasks":[{"message":"m"}]}}`, code: 422, says: "name"},
		"an element that is text":         {path: good + "/status", contentType: strategic, body: `{"status":{"tasks":["x"]}}`, code: 422, says: "cannot restore struct from: string"},
		"text for a list of elements":     {path: good + "/status", contentType: strategic, body: `{"status":{"tasks":"x"}}`, code: 422, says: "cannot restore slice from string"},
		"deleting from a list of text":    {contentType: strategic, body: `{"spec":{"rollout":{"$deleteFromPrimitiveList/components":"x"}}}`, code: 200, says: "Good", path: good + "?dryRun=All"},
		"a strategic merge of a list":     {contentType: strategic, body: `[]`, code: 400, says: "cannot unmarshal array"},
		// Server-side apply.
		"applied without a manager":              {contentType: apply, body: applied(""), code: 422, says: "fieldManager"},
		"applied is nothing":                     {path: good + "?fieldManager=m", contentType: apply, code: 400, says: "invalid object type"},
		"applied is no YAML":                     {path: good + "?fieldManager=m", contentType: apply, body: "a: [", code: 400, says: "yaml"},
		"applied is a list":                      {path: good + "?fieldManager=m", contentType: apply, body: "- a", code: 400, says: "cannot unmarshal array"},
		"applied is YAML that grows":             {path: good + "?fieldManager=m", contentType: apply, body: bomb(), code: 400, says: "yaml"},
		"applied is without a kind":              {path: good + "?fieldManager=m", contentType: apply, body: "{}", code: 400, says: "Kind"},
		"applied is another kind":                {path: good + "?fieldManager=m", contentType: apply, body: config(""), code: 400, says: "ConfigMap"},
		"applied is an unknown version":          {path: good + "?fieldManager=m", contentType: apply, body: strings.Replace(applied(""), "v1alpha1", "v9", 1), code: 400, says: "v9"},
		"applied has managed fields":             {path: good + "?fieldManager=m", contentType: apply, body: strings.Replace(applied(""), `"metadata":{`, `"metadata":{"managedFields":[{"manager":"other","operation":"Apply","apiVersion":"features.k8s.io/v1alpha1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{}}}],`, 1), code: 400, says: "metadata.managedFields must be nil"},
		"applied is another name":                {path: good + "?fieldManager=m", contentType: apply, body: strings.Replace(applied(""), "Good", "Other", 1), code: 400, says: "does not match the name"},
		"applied is another namespace":           {path: good + "?fieldManager=m", contentType: apply, body: strings.Replace(applied(""), `"name"`, `"namespace":"kube-system","name"`, 1), code: 400, says: "namespace"},
		"applied is an old version":              {path: good + "?fieldManager=m", contentType: apply, body: strings.Replace(applied(""), `"name"`, `"resourceVersion":"1","name"`, 1), code: 409, says: "has been modified"},
		"applied has text for a switch":          {path: good + "?fieldManager=m", contentType: apply, body: applied(`,"spec":{"paused":"yes"}`), code: 500, says: ".spec.paused", twin: configs + "/good?fieldManager=m", twinBody: config(`,"data":{"a":{}}`)},
		"applied has an unknown field":           {path: good + "?fieldManager=m&fieldValidation=Strict", contentType: apply, body: applied(`,"spec":{"pasued":true}`), code: 500, says: ".spec.pasued", twin: configs + "/good?fieldManager=m&fieldValidation=Strict", twinBody: config(`,"dada":{}`)},
		"applied has a task twice":               {path: good + "/status?fieldManager=m", contentType: apply, body: applied(`,"status":{"tasks":[{"name":"a"},{"name":"a"}]}`), code: 500, says: "duplicate", twin: configs + "/good?fieldManager=m", twinBody: config(`,"metadata":{"ownerReferences":[{"uid":"a"},{"uid":"a"}]}`)},
		"applied has a condition without a type": {path: good + "/status?fieldManager=m", contentType: apply, body: applied(`,"status":{"conditions":[{"status":"True"}]}`), code: 422, says: "type", twin: configs + "/good?fieldManager=m", twinBody: config(`,"metadata":{"ownerReferences":[{"name":"a"}]}`)},
		"applied has a version twice":            {path: good + "/status?fieldManager=m", contentType: apply, body: applied(`,"status":{"storedVersions":["1.35","1.35"]}`), code: 500, says: "duplicate", twin: configs + "/good?fieldManager=m", twinBody: config(`,"metadata":{"finalizers":["a/b","a/b"]}`)},
		"applied has more than all":              {path: good + "?fieldManager=m", contentType: apply, body: applied(`,"spec":{"rollout":{"percent":101}}`), code: 422, says: "between 0 and 100"},
		"applied has no force that is one":       {path: good + "?fieldManager=m&force=perhaps", contentType: apply, body: applied(""), code: 200, says: "Good"},
		"forced, and it is no apply":             {path: good + "?force=true", contentType: mergePatch, body: "{}", code: 422, says: "force"},
		"applied to an unknown namespace":        {path: group + "/namespaces/nowhere/features/A?fieldManager=m", contentType: apply, body: feature("A", ""), code: 404, says: "not found"},
		"applied to a name that cannot be":       {path: features + "/a%20b?fieldManager=m", contentType: apply, body: feature("a b", ""), code: 422, says: "must begin with a letter"},
		// Others.
		"a patch of a type that is none": {contentType: "application/whim-patch", body: "{}", code: 415, says: "Unsupported Media Type"},
		"a patch of CBOR":                {contentType: "application/apply-patch+cbor", body: "\xa0", code: 415, says: "Unsupported Media Type"},
		"a patch of what is not there":   {path: features + "/Missing", contentType: mergePatch, body: "{}", code: 404, says: `"Missing" not found`},
		"a patch of more than 3 MiB":     {contentType: mergePatch, body: `{"x":"` + strings.Repeat("x", 4<<20) + `"}`, code: 413, says: "limit is 3145728"},
	}
	for name, body := range statuses() {
		rows["status: "+name] = body
	}
	for name, r := range rows {
		r.method, r.path = "PATCH", or(r.path, good)
		rows[name] = r
	}
	return rows
}

// statuses are merges of a status that is none.
func statuses() map[string]row {
	const began = `"2026-11-01T02:03:04.000005Z"`
	rows := map[string]row{
		"a stage that is none":                 {body: `"stage":"Gamma"`, code: 422, says: `"Alpha"`},
		"a state that is none":                 {body: `"state":"Perhaps"`, code: 422, says: `"TurningOff"`},
		"a control that is none":               {body: `"control":"Mine"`, code: 422, says: `"Central"`},
		"a source that is none":                {body: `"configured":{"value":true,"source":"Dream"}`, code: 422, says: `"CommandLine"`},
		"a version that is none":               {body: `"version":"latest"`, code: 422, says: "must be a minor version"},
		"a time that is none":                  {body: `"stateSince":"yesterday"`, code: 422, says: "yesterday"},
		"a year beyond all":                    {body: `"stateSince":"99999-01-01T00:00:00Z"`, code: 422, says: "99999"},
		"tasks in a state of rest":             {body: `"state":"Off","tasks":[{"name":"a"}]`, code: 422, says: "a state of rest has no task left"},
		"a task without a name":                {body: `"state":"TurningOff","tasks":[{"message":"x"}]`, code: 422, says: "status.tasks[0].name"},
		"a task twice":                         {body: `"state":"TurningOff","tasks":[{"name":"a"},{"name":"a"}]`, code: 422, says: "Duplicate"},
		"100,000 tasks":                        {body: `"state":"TurningOff","tasks":[` + many(100000, `{"name":"t%d","done":-1}`) + `]`, code: 422, says: "must have at most 100 items"},
		"negative counts of a task":            {body: `"state":"TurningOff","tasks":[{"name":"a","done":-1,"total":-2,"attempts":-3}]`, code: 422, says: "status.tasks[0].done"},
		"a task's count beyond 64 bits":        {body: `"state":"TurningOff","tasks":[{"name":"a","done":9223372036854775808}]`, code: 422, says: "done"},
		"a task's message of 40 kB":            {body: `"state":"TurningOff","tasks":[{"name":"a","message":"` + strings.Repeat("x", 40<<10) + `"}]`, code: 422, says: "may not be more than 32768"},
		"a checkpoint of 40 kB":                {body: `"state":"TurningOff","tasks":[{"name":"a","checkpoint":"` + strings.Repeat("x", 40<<10) + `"}]`, code: 422, says: "may not be more than 4096"},
		"a transition in a state of rest":      {body: `"state":"Off","transition":{"id":"t","startTime":` + began + `,"reason":"Clean"}`, code: 422, says: "status.transition"},
		"a transition without anything":        {body: `"state":"TurningOff","transition":{}`, code: 422, says: "status.transition.id"},
		"a transition for a reason of its own": {body: `"state":"TurningOff","transition":{"id":"t","startTime":` + began + `,"reason":"Whim"}`, code: 422, says: `"Configuration"`},
		"negative counts of users":             {body: `"uses":[{"component":"a","count":-1}]`, code: 422, says: "status.uses[0].count"},
		"users of what is no component":        {body: `"uses":[{"component":"A B"}]`, code: 422, says: "RFC 1123"},
		"6 examples":                           {body: `"uses":[{"component":"a","examples":["1","2","3","4","5","6"]}]`, code: 422, says: "must have at most 5 items"},
		"an example of 1 MB":                   {body: `"uses":[{"component":"a","examples":["` + strings.Repeat("x", 1<<20) + `"]}]`, code: 422, says: "may not be more than 253"},
		"1,001 rows of uses":                   {body: `"uses":[` + many(1001, `{"component":"c%d"}`) + `]`, code: 422, says: "must have at most 1000 items"},
		"uses beyond what etcd stores":         {body: `"uses":[` + many(1000, `{"component":"c%d","examples":["`+strings.Repeat(strings.Repeat("x", 253)+`","`, 4)+strings.Repeat("x", 253)+`"]}`) + `]`, code: 422, says: "may have at most 1048576 bytes"},
		"a condition's message of 40 kB":       {body: `"conditions":[{"type":"Clean","status":"True","reason":"R","message":"` + strings.Repeat("x", 40<<10) + `","lastTransitionTime":"2026-11-01T02:03:04Z"}]`, code: 422, says: "may not be more than 32768"},
		"a condition twice":                    {body: `"conditions":[` + many(2, `{"type":"Clean","status":"True","reason":"R%d","message":"","lastTransitionTime":"2026-11-01T02:03:04Z"}`) + `]`, code: 422, says: "Duplicate"},
		"a condition that is perhaps":          {body: `"conditions":[{"type":"Clean","status":"Perhaps","reason":"R","message":"","lastTransitionTime":"2026-11-01T02:03:04Z"}]`, code: 422, says: `"Unknown"`},
		"a condition without a reason":         {body: `"conditions":[{"type":"Clean","status":"True"}]`, code: 422, says: "reason"},
		"3 stored versions":                    {body: `"version":"1.30","storedVersions":["1.34","1.35","1.36"]`, code: 422, says: "must have at most 2 items"},
		"a canary without a beginning":         {body: `"rollout":{"halted":true}`, code: 422, says: "status.rollout.startTime"},
		"a canary that lost nonsense":          {body: `"rollout":{"startTime":` + began + `,"failedInstances":["x"]}`, code: 422, says: "must be <component>/<name of the instance>"},
		"a canary that lost 50,000":            {body: `"rollout":{"startTime":` + began + `,"failedInstances":[` + strings.Repeat(`"",`, 50000) + `""]}`, code: 422, says: "must have at most 20 items"},
	}
	for name, r := range rows {
		r.path, r.contentType, r.body = good+"/status", mergePatch, `{"status":{`+r.body+`}}`
		rows[name] = r
	}
	rows["of Kubernetes' own feature"] = row{path: known + "/status", contentType: mergePatch, body: `{"status":{"state":"On"}}`, code: 403, says: "written by system:feature-lifecycle alone"}
	return rows
}
