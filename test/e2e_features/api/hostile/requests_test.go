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

// paths are requests for missing objects, and with unknown methods.
func paths() map[string]row {
	cleanup := `{"apiVersion":"features.k8s.io/v1alpha1","kind":"FeatureCleanup"}`
	return map[string]row{
		"a feature that is none":                {path: features + "/Missing", code: 404, says: `"Missing" not found`},
		"a name of 254 characters":              {path: features + "/" + strings.Repeat("a", 254), code: 404, says: "not found"},
		"a name of 100 kB":                      {path: features + "/" + strings.Repeat("a", 100<<10), code: 404, says: "not found"},
		"an escaped slash in a name":            {path: features + "/a%2Fb", code: 404, says: "could not find"},
		"an escaped way up":                     {path: features + "/%2e%2e%2f%2e%2e%2fsecrets", code: 404, says: "could not find"},
		"a way up twice escaped":                {path: features + "/%252e%252e", code: 400, says: "may not contain '%'"},
		"NUL in a name":                         {path: features + "/a%00b", code: 404, says: "not found"},
		"bytes that are no UTF-8 in a name":     {path: features + "/%ff%fe", code: 404, says: "not found"},
		"a line end in a name":                  {path: features + "/a%0d%0aX-Evil:%20b", code: 404, says: "not found"},
		"a name that is a percentage":           {path: features + "/%25", code: 400, says: "may not contain '%'"},
		"a name that is a flag":                 {path: features + "/--all", code: 404, says: `"--all" not found`},
		"a name like an eviction":               {method: "POST", path: features + "/Good/eviction", body: `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"Good"}}`, code: 404, says: "could not find"},
		"a binding":                             {method: "POST", path: features + "/Good/binding", body: "{}", code: 404, says: "could not find"},
		"a scale":                               {path: features + "/Good/scale", code: 404, says: "could not find"},
		"a log":                                 {path: report + "/log", code: 404, says: "could not find"},
		"a proxy":                               {path: features + "/Good/proxy/metrics", code: 404, says: "could not find"},
		"a status of a report":                  {path: report + "/status", code: 404, says: "could not find"},
		"a plan of a report":                    {method: "POST", path: report + "/plan", body: plan(`"enabled":true`), code: 404, says: "could not find"},
		"any of a report":                       {path: report + "/any", code: 404, says: "could not find"},
		"a resource that is none":               {path: own + "/components", code: 404, says: "could not find"},
		"a component":                           {path: own + "/components/kubelet", code: 404, says: "could not find"},
		"a version that is none":                {path: "/apis/features.k8s.io/v1/features", code: 404, says: "could not find"},
		"a feature without a namespace":         {path: group + "/features/Good", code: 404, says: "could not find"},
		"a feature in all namespaces' place":    {method: "POST", path: group + "/features", body: feature("A", ""), code: 405, says: "does not allow this method"},
		"reading what can only be asked":        {path: known + "/plan", code: 405, says: "does not allow this method"},
		"changing a plan":                       {method: "PUT", path: known + "/plan", body: plan(`"enabled":true`), code: 405, says: "does not allow this method"},
		"patching a plan":                       {method: "PATCH", path: known + "/plan", contentType: "application/merge-patch+json", body: "{}", code: 405, says: "does not allow this method"},
		"deleting a plan":                       {method: "DELETE", path: known + "/plan", code: 405, says: "does not allow this method"},
		"reading a clean":                       {path: known + "/cleanup", code: 405, says: "does not allow this method"},
		"changing a clean":                      {method: "PUT", path: known + "/cleanup", body: cleanup, code: 405, says: "does not allow this method"},
		"creating a status":                     {method: "POST", path: good + "/status", body: feature("Good", ""), code: 405, says: "does not allow this method"},
		"deleting a status":                     {method: "DELETE", path: good + "/status", code: 405, says: "does not allow this method"},
		"a method that is none":                 {method: "FEATURE", path: good, code: 405, says: "does not allow this method"},
		"TRACE":                                 {method: "TRACE", path: good, code: 405, says: "does not allow this method"},
		"creating a feature in its own place":   {method: "POST", path: good, body: feature("Good", ""), code: 405, says: "does not allow this method"},
		"changing all features":                 {method: "PUT", path: features, body: feature("Good", ""), code: 405, says: "does not allow this method"},
		"patching all features":                 {method: "PATCH", path: features, contentType: "application/merge-patch+json", body: "{}", code: 405, says: "does not allow this method"},
		"watching in an old way":                {path: group + "/watch/namespaces/" + namespace + "/features?resourceVersion=x", code: 500, says: "resourceVersion: Invalid value", twin: "/api/v1/watch/namespaces/" + namespace + "/configmaps?resourceVersion=x"},
		"a feature that is not there, by PUT":   {method: "PUT", path: features + "/Missing", body: feature("Missing", ""), code: 404, says: `"Missing" not found`},
		"another name than the path's, by PUT":  {method: "PUT", path: good, body: feature("Other", ""), code: 400, says: "does not match the name on the URL"},
		"without having read, by PUT":           {method: "PUT", path: good, body: feature("Good", ""), code: 422, says: "metadata.resourceVersion"},
		"a version of nonsense, by PUT":         {method: "PUT", path: good, body: strings.Replace(feature("Good", ""), `"name"`, `"resourceVersion":"x","name"`, 1), code: 500, says: "invalid syntax", twin: configs + "/good", twinBody: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"good","resourceVersion":"x"}}`},
		"an old version, by PUT":                {method: "PUT", path: good, body: strings.Replace(feature("Good", ""), `"name"`, `"resourceVersion":"1","name"`, 1), code: 409, says: "has been modified"},
		"another object's uid, by PUT":          {method: "PUT", path: good, body: strings.Replace(feature("Good", ""), `"name"`, `"uid":"other","name"`, 1), code: 409, says: "UID"},
		"an empty body, by PUT":                 {method: "PUT", path: good, code: 400, says: "unexpected end of JSON input"},
		"a uid that is another's, by DELETE":    {method: "DELETE", path: good, body: `{"preconditions":{"uid":"other"}}`, code: 409, says: "UID"},
		"an old version, by DELETE":             {method: "DELETE", path: good, body: `{"preconditions":{"resourceVersion":"1"}}`, code: 409, says: "ResourceVersion"},
		"preconditions of nonsense, by DELETE":  {method: "DELETE", path: good, body: `{"preconditions":"x"}`, code: 400, says: "preconditions"},
		"a body of nonsense, by DELETE":         {method: "DELETE", path: good, body: `{`, code: 400, says: "unexpected end of JSON input"},
		"another kind, by DELETE":               {method: "DELETE", path: good, body: feature("Good", ""), code: 400, says: "Feature"},
		"patience of text, by DELETE":           {method: "DELETE", path: report + "?dryRun=All", body: `{"gracePeriodSeconds":"x"}`, code: 400, says: "gracePeriodSeconds"},
		"a policy that is none, by DELETE":      {method: "DELETE", path: good, body: `{"propagationPolicy":"Whim"}`, code: 422, says: "propagationPolicy"},
		"orphans and a policy, by DELETE":       {method: "DELETE", path: good, body: `{"propagationPolicy":"Orphan","orphanDependents":true}`, code: 422, says: "orphanDependents"},
		"a dry run that is none, by DELETE":     {method: "DELETE", path: good, body: `{"dryRun":["Some"]}`, code: 422, says: "dryRun"},
		"a feature that is not there, deleted":  {method: "DELETE", path: features + "/Missing", code: 404, says: `"Missing" not found`},
		"all features, with a body of nonsense": {method: "DELETE", path: features, body: `[`, code: 400, says: "unexpected end of JSON input"},
		"all features, a selector of nonsense":  {method: "DELETE", path: features + "?labelSelector=(((", code: 400, says: "found '('"},
		"all features, a field that is none":    {method: "DELETE", path: features + "?fieldSelector=spec.nope=1", code: 400, says: `"spec.nope" is not supported`},
		"all features, a dry run that is none":  {method: "DELETE", path: features + "?dryRun=Some", code: 422, says: "dryRun"},
		"all features, a limit of nonsense":     {method: "DELETE", path: features + "?limit=x", code: 400, says: "invalid syntax"},
		"all features, a version of nonsense":   {method: "DELETE", path: features + "?resourceVersion=x", code: 400, says: "resource version"},
	}
}

// queries are parameters of nonsense.
func queries() map[string]row {
	rows := map[string]row{
		"a label selector that does not end":          {path: features + "?labelSelector=a+in+(b", code: 400, says: "unable to parse requirement"},
		"a label selector with a value that is none":  {path: features + "?labelSelector=a%3D" + strings.Repeat("x", 64), code: 400, says: "must be no more than 63"},
		"a label selector with NUL":                   {path: features + "?labelSelector=a%00", code: 200, says: `"items":[]`},
		"a label selector of 60 kB":                   {path: features + "?labelSelector=" + strings.Repeat("(", 60<<10), code: 400, says: "found '('"},
		"a field selector without a value":            {path: features + "?fieldSelector=metadata.name", code: 400, says: "invalid selector"},
		"a field that is not selectable":              {path: features + "?fieldSelector=spec.enabled%3Dtrue", code: 400, says: `"spec.enabled" is not supported`},
		"a field of the other kind":                   {path: reports + "?fieldSelector=status.state%3DOn", code: 400, says: `"status.state" is not supported`},
		"a field selector with escapes of nonsense":   {path: features + "?fieldSelector=metadata.name%3D%5C", code: 400, says: "invalid field selector"},
		"a limit that is text":                        {path: features + "?limit=x", code: 400, says: "invalid syntax"},
		"a limit beyond 64 bits":                      {path: features + "?limit=99999999999999999999", code: 400, says: "value out of range"},
		"a limit below 0":                             {path: features + "?limit=-1", code: 200, says: `"items":[{"metadata":{"name":"Good"`},
		"a token that is none":                        {path: features + "?limit=1&continue=x", code: 400, says: "continue"},
		"a token of nonsense":                         {path: features + "?limit=1&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTUsInN0YXJ0IjoiLi4vLi4vIn0", code: 400, says: "continue"},
		"a token that climbs":                         {path: features + "?limit=1&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NSwic3RhcnQiOiIuLi8uLi9zZWNyZXRzIn0", code: 400, says: "continue"},
		"a token and a version":                       {path: features + "?limit=1&continue=x&resourceVersion=5", code: 400, says: "continue"},
		"a version that is text":                      {path: features + "?resourceVersion=x", code: 400, says: "resource version"},
		"a version below 0":                           {path: features + "?resourceVersion=-1", code: 400, says: "resource version"},
		"a version beyond 64 bits":                    {path: features + "?resourceVersion=99999999999999999999", code: 400, says: "resource version"},
		"a way to match versions that is none":        {path: features + "?resourceVersion=1&resourceVersionMatch=Whim", code: 422, says: "resourceVersionMatch"},
		"a way to match versions without one":         {path: features + "?resourceVersionMatch=Exact", code: 422, says: "resourceVersionMatch"},
		"a version that was compacted":                {path: features + "?resourceVersion=1&resourceVersionMatch=Exact&limit=1", code: 410, says: "too old"},
		"a version of the future":                     {path: good + "?resourceVersion=9000000000000", code: 504, says: "Too large resource version", twin: configs + "/good?resourceVersion=9000000000000"},
		"a list of the future":                        {path: features + "?resourceVersion=9000000000000", code: 504, says: "Too large resource version", twin: configs + "?resourceVersion=9000000000000"},
		"a time limit that is text":                   {path: features + "?timeoutSeconds=x", code: 400, says: "invalid syntax"},
		"a time limit for the request that is text":   {path: features + "?timeout=x", code: 400, says: "invalid timeout"},
		"a watch that is text":                        {path: features + "?watch=x&timeoutSeconds=1", code: 200, says: `"type":"ADDED"`},
		"a watch of a version that is text":           {path: features + "?watch=1&resourceVersion=x", code: 500, says: "resourceVersion: Invalid value", twin: configs + "?watch=1&resourceVersion=x"},
		"a watch of a version below 0":                {path: features + "?watch=1&resourceVersion=-1", code: 500, says: "resourceVersion: Invalid value", twin: configs + "?watch=1&resourceVersion=-1"},
		"a watch with first events, without a match":  {path: features + "?watch=1&sendInitialEvents=true&timeoutSeconds=1", code: 422, says: "resourceVersionMatch"},
		"a watch of a token":                          {path: features + "?watch=1&continue=x&timeoutSeconds=1", code: 422, says: "resourceVersionMatch"},
		"a watch of a name and of a selector for one": {path: group + "/watch/namespaces/" + namespace + "/features/Good?fieldSelector=metadata.name%3DOther&timeoutSeconds=1", code: 400, says: "doesn't match requested name"},
		"a list of shards of nonsense":                {path: features + "?shardSelector=%28", code: 200, says: `"items":[{"metadata":{"name":"Good"`},
		"a name to print that is nonsense":            {path: good + "?pretty=perhaps", code: 200, says: "Good"},
		"a dry run that is none":                      {method: "POST", path: features + "?dryRun=Some", body: feature("A", ""), code: 422, says: "dryRun"},
		"an empty dry run":                            {method: "POST", path: features + "?dryRun=", body: feature("A", ""), code: 422, says: "dryRun"},
		"two dry runs":                                {method: "POST", path: features + "?dryRun=All&dryRun=Some", body: feature("A", ""), code: 422, says: "dryRun"},
		"field validation that is none":               {method: "POST", path: features + "?dryRun=All&fieldValidation=Whim", body: feature("A", ""), code: 422, says: "fieldValidation"},
		"a field manager of 129 characters":           {method: "POST", path: features + "?dryRun=All&fieldManager=" + strings.Repeat("m", 129), body: feature("A", ""), code: 422, says: "fieldManager"},
		"a field manager that paints":                 {method: "POST", path: features + "?dryRun=All&fieldManager=%1b%5b31m", body: feature("A", ""), code: 422, says: "fieldManager"},
		"a plan with a dry run that is none":          {method: "POST", path: known + "/plan?dryRun=Some", body: plan(`"enabled":true`), code: 422, says: "dryRun"},
		"a clean with a dry run that is none":         {method: "POST", path: known + "/cleanup?dryRun=Some", body: `{"apiVersion":"features.k8s.io/v1alpha1","kind":"FeatureCleanup"}`, code: 422, says: "dryRun"},
		"a parameter with an escape that is none":     {path: features + "?limit=1&x=%zz", code: 200, says: `"items":[{"metadata":{"name":"Good"`},
		"a parameter separated by a semicolon":        {path: features + "?limit=1;continue=x", code: 200, says: `"items":[{"metadata":{"name":"Good"`},
		"10,000 parameters":                           {path: features + "?" + strings.Repeat("labelSelector=a&", 10000), code: 200, says: `"items":[{"metadata":{"name":"Good"`},
	}
	return rows
}

// negotiation has unknown types of content, and bodies of another type than
// declared.
func negotiation() map[string]row {
	return map[string]row{
		"an image":                               {method: "POST", path: features, contentType: "image/png", body: "\x89PNG", code: 415, says: "application/json"},
		"a form":                                 {method: "POST", path: features, contentType: "application/x-www-form-urlencoded", body: "kind=Feature", code: 415, says: "application/json"},
		"a type of nonsense":                     {method: "POST", path: features, contentType: ";;;/", body: feature("A", ""), code: 415, says: "media type"},
		"a patch's type for a creation":          {method: "POST", path: features, contentType: "application/merge-patch+json", body: feature("A", ""), code: 415, says: "application/json"},
		"protobuf that is none":                  {method: "POST", path: features, contentType: "application/vnd.kubernetes.protobuf", body: "hello", code: 400, says: "protobuf"},
		"protobuf of nothing":                    {method: "POST", path: features, contentType: "application/vnd.kubernetes.protobuf", body: "k8s\x00", code: 400, says: "empty body"},
		"protobuf of garbage":                    {method: "POST", path: features, contentType: "application/vnd.kubernetes.protobuf", body: "k8s\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", code: 400, says: "proto"},
		"protobuf of a Feature of garbage":       {method: "POST", path: features, contentType: "application/vnd.kubernetes.protobuf", body: "k8s\x00\n\x23\n\x18features.k8s.io/v1alpha1\x12\x07Feature\x12\x04\x0a\xff\xff\xff", code: 400, says: "unexpected EOF"},
		"CBOR":                                   {method: "POST", path: features, contentType: "application/cbor", body: "\xd9\xd9\xf7\xa0", code: 415, says: "application/json"},
		"CBOR that is none":                      {method: "POST", path: features, contentType: "application/cbor", body: "\xff", code: 415, says: "application/json"},
		"YAML that is none":                      {method: "POST", path: features, contentType: "application/yaml", body: "a: [", code: 400, says: "yaml"},
		"YAML that refers to itself":             {method: "POST", path: features, contentType: "application/yaml", body: "apiVersion: features.k8s.io/v1alpha1\nkind: Feature\nspec: &a [*a]\n", code: 400, says: "yaml"},
		"YAML that grows":                        {method: "POST", path: features, contentType: "application/yaml", body: bomb(), code: 400, says: "yaml"},
		"YAML of tags":                           {method: "POST", path: features, contentType: "application/yaml", body: "apiVersion: features.k8s.io/v1alpha1\nkind: Feature\nmetadata: {name: A}\nspec: {paused: !!binary aaa}\n", code: 400, says: "base64"},
		"YAML of several documents":              {method: "POST", path: features + "?dryRun=All", contentType: "application/yaml", body: "apiVersion: features.k8s.io/v1alpha1\nkind: Feature\nmetadata: {name: A}\n---\nkind: Secret\n", code: 201, says: `"name":"A"`},
		"compressed, and it is not said of what": {method: "POST", path: features, header: map[string]string{"Content-Encoding": "gzip"}, body: "\x1f\x8b\x08\x00\x00", code: 400, says: "invalid character"},
		"an answer as an image":                  {path: good, accept: "image/png", code: 406, says: "application/json"},
		"an answer of nonsense":                  {path: good, accept: ";;;q=x", code: 406, says: "application/json"},
		"an answer as a table of another group":  {path: features, accept: "application/json;as=Table;v=v1;g=evil.io", code: 406, says: "application/json"},
		"an answer as a kind that is none":       {path: features, accept: "application/json;as=Whim;v=v1;g=meta.k8s.io", code: 406, says: "application/json"},
		"a feature as a list of metadata":        {path: good, accept: "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", code: 406, says: "not a list"},
		"features as metadata of one":            {path: features, accept: "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", code: 406, says: "is a list"},
		"a table with objects of nonsense":       {path: features + "?includeObject=Whim", accept: "application/json;as=Table;v=v1;g=meta.k8s.io", code: 400, says: "includeObject"},
		"a plan as a table":                      {method: "POST", path: known + "/plan", accept: "application/json;as=Table;v=v1;g=meta.k8s.io", body: plan(`"enabled":true`), code: 406, says: "media types are accepted"},
		"a clean as a table, refused":            {method: "POST", path: system + "/features/FeatureLifecycle/cleanup", accept: "application/json;as=Table;v=v1;g=meta.k8s.io", body: `{"apiVersion":"features.k8s.io/v1alpha1","kind":"FeatureCleanup"}`, code: 406, says: "media types are accepted"},
		"a watch of metadata of nonsense":        {path: features + "?watch=1&timeoutSeconds=1", accept: "application/json;as=PartialObjectMetadata;v=v9;g=meta.k8s.io", code: 406, says: "application/json"},
		"a websocket that is none":               {path: features + "?watch=1&timeoutSeconds=1", header: map[string]string{"Sec-WebSocket-Key": "x", "Sec-WebSocket-Version": "99"}, code: 200, says: `"type":"ADDED"`},
		"1,000 wishes for the answer":            {path: good, accept: strings.Repeat("image/png,", 1000) + "text/css", code: 406, says: "application/json"},
	}
}

// bomb is YAML whose aliases make nine lists of nine lists of …
func bomb() string {
	var text strings.Builder
	text.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x]\n")
	for i := range 9 {
		from, to := string(rune('0'+i)), string(rune('1'+i))
		text.WriteString("a" + to + ": &a" + to + " [" + strings.TrimSuffix(strings.Repeat("*a"+from+",", 9), ",") + "]\n")
	}
	return text.String()
}
