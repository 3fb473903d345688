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

package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/rawobject"
)

// Annotations of the audit event of a stored object that was edited beside the API.
const (
	annotationRemovedField = "features.k8s.io/removed-field"
	annotationFeature      = "features.k8s.io/feature"
	annotationTransition   = "features.k8s.io/transition"
)

// auditor writes an audit event for each object that is edited where it is stored, as the
// policy has it for a patch of the object by the server flow's user. A nil one, and one
// without a backend, writes none.
type auditor struct {
	backend audit.Sink
	policy  audit.PolicyRuleEvaluator
}

// editEvent is the event of one edit; a nil one writes nothing.
type editEvent struct {
	ctx context.Context
	// omitManagedFields leaves those out of the response.
	omitManagedFields bool
	path              string
	content           func(rawobject.Object) (map[string]any, error)
}

// begin begins the event of a write, nil if the policy wants none. Content shows an object
// as the API does.
func (a *auditor) begin(ctx context.Context, what task.FieldEdit, object task.StoredObject, content func(rawobject.Object) (map[string]any, error)) *editEvent {
	if a == nil || a.backend == nil || a.policy == nil {
		return nil
	}
	info := requestInfo(what.Resource, what.Path, object.Namespace, object.Name)
	attributes := authorizer.AttributesRecord{
		User: flowUser(), Verb: info.Verb, Namespace: info.Namespace, APIGroup: info.APIGroup, APIVersion: info.APIVersion,
		Resource: info.Resource, Subresource: info.Subresource, Name: info.Name, ResourceRequest: true, Path: info.Path,
	}
	config := a.policy.EvaluatePolicyRule(attributes)
	audit.ObservePolicyLevel(ctx, config.Level)
	if config.Level == auditinternal.LevelNone {
		return nil
	}
	// An event is written also for what is cut short.
	ctx = audit.WithAuditContext(context.WithoutCancel(ctx))
	audit.WithAuditID(ctx, uuid.NewUUID())
	if err := audit.AuditContextFrom(ctx).Init(config, a.backend); err != nil {
		klog.FromContext(ctx).Error(err, "Failed to audit an edit in storage", "key", object.Key)
		return nil
	}
	request := &http.Request{Method: http.MethodPatch, URL: &url.URL{Path: info.Path}, Header: http.Header{"User-Agent": {userAgent}}}
	audit.LogRequestMetadata(ctx, request, time.Now(), attributes)
	audit.AddAuditAnnotations(ctx, annotationRemovedField, what.Path, annotationFeature, what.Feature, annotationTransition, what.TransitionID)
	return &editEvent{ctx: ctx, omitManagedFields: config.OmitManagedFields, path: what.Path, content: content}
}

// end writes the event, with what was removed, and what became of it, as far as its level
// has that.
func (e *editEvent) end(before, after rawobject.Object, err error) {
	if e == nil {
		return
	}
	event := audit.AuditContextFrom(e.ctx)
	if level := event.GetEventLevel(); !level.Less(auditinternal.LevelRequest) {
		e.addBodies(event, level, before, after, err)
	}
	// The levels below have the code of the response alone, too.
	event.SetEventResponseStatus(auditStatus(err))
	event.ProcessEventStage(e.ctx, auditinternal.StageResponseComplete)
}

// addBodies adds the patch that would have removed the field, and the object without it.
func (e *editEvent) addBodies(event *audit.AuditContext, level auditinternal.Level, before, after rawobject.Object, result error) {
	patch, err := e.patch(before)
	if err == nil {
		event.LogRequestPatch(patch)
	}
	if err == nil && result == nil && !level.Less(auditinternal.LevelRequestResponse) {
		var response []byte
		if response, err = e.response(after); err == nil {
			event.LogResponseObject(nil, &runtime.Unknown{Raw: response, ContentType: runtime.ContentTypeJSON})
		}
	}
	if err != nil {
		klog.FromContext(e.ctx).Error(err, "Failed to add what was removed to an audit event", "field", e.path)
	}
}

// patch returns the JSON patch that removes the field from an object.
func (e *editEvent) patch(before rawobject.Object) ([]byte, error) {
	path, err := task.ParsePath(e.path)
	if err != nil {
		return nil, err
	}
	content, err := e.content(before)
	if err != nil {
		return nil, err
	}
	type operation struct {
		Op   string `json:"op"`
		Path string `json:"path"`
	}
	var operations []operation
	for _, pointer := range slices.Backward(path.Pointers(content)) {
		operations = append(operations, operation{"remove", pointer})
	}
	return json.Marshal(operations)
}

// response returns an object as JSON.
func (e *editEvent) response(after rawobject.Object) ([]byte, error) {
	content, err := e.content(after)
	if err != nil {
		return nil, err
	}
	if e.omitManagedFields {
		unstructured.RemoveNestedField(content, "metadata", "managedFields")
	}
	return json.Marshal(content)
}

// auditStatus is the response that a request would have had.
func auditStatus(err error) *metav1.Status {
	if err == nil {
		return &metav1.Status{Status: metav1.StatusSuccess, Code: http.StatusOK}
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		status = apierrors.NewInternalError(err)
	}
	answered := status.Status()
	return &metav1.Status{Status: answered.Status, Message: answered.Message, Reason: answered.Reason, Code: answered.Code}
}
