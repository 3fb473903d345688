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

package task

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// storedClear is one attempt at clearing a field in storage.
type storedClear struct {
	clearField
	clients  Clients
	attempt  Attempt
	edits    FieldEdits
	progress *progressTracker
	limiter  *editLimiter
	// patches limits what goes through the API: far fewer writes keep that busy.
	patches *writeLimiter
	// inAPI is the task in the version in which the API shows the objects. It is found out
	// once one of them has to be written there.
	inAPI func() (clearField, error)
}

// inStorage returns true if run begins in storage. What its pages and objects leave to the
// API is not known before they are read.
func (c clearField) inStorage(ctx context.Context, clients Clients) (bool, error) {
	if clients.Editor == nil {
		return false, nil
	}
	_, err := c.edits(ctx, clients, Attempt{})
	if isThroughAPI(err) {
		return false, nil
	}
	return err == nil, err
}

// edits gives access to the stored objects.
func (c clearField) edits(ctx context.Context, clients Clients, attempt Attempt) (FieldEdits, error) {
	return clients.Editor.Edits(ctx, FieldEdit{
		Resource: c.resource, Path: c.path.String(), Namespace: clients.namespace, Uncontrolled: c.uncontrolled,
		Manager: clients.fieldManager(), Feature: attempt.Feature, TransitionID: attempt.TransitionID,
	})
}

// runStored is run in storage. Its error is a *ThroughAPIError if the collection has to be
// cleared through the API.
func (c clearField) runStored(ctx context.Context, clients Clients, attempt Attempt) error {
	edits, err := c.edits(ctx, clients, attempt)
	if err != nil {
		return err
	}
	s := &storedClear{
		clearField: c, clients: clients, attempt: attempt, edits: edits,
		progress: newProgressTracker(attempt, storedTokens), limiter: newEditLimiter(edits.Probe), patches: newWriteLimiter(),
	}
	s.inAPI = sync.OnceValues(func() (clearField, error) { return c.shown(ctx, clients) })
	return c.passes(s.progress, s.clears, func(from string) error { return s.pass(ctx, from) })
}

// shown returns the task in the version in which the API shows the objects. It is a
// *BlockedError if no served version has the field.
func (c clearField) shown(ctx context.Context, clients Clients) (clearField, error) {
	fields := []Path{c.path}
	resource, err := shownIn(ctx, clients, c.resource, fields)
	var elsewhere *servedElsewhereError
	if errors.As(err, &elsewhere) {
		err = blockedElsewhere(ctx, clients, c.resource, elsewhere.versions, fields)
	}
	return c.in(resource), err
}

// clears is clearField.clears for an object that the API refused to change.
func (s *storedClear) clears(ctx context.Context, namespace, name string) bool {
	inAPI, err := s.inAPI()
	return err == nil && inAPI.clears(ctx, s.clients, namespace, name)
}

// pass clears what one walk through what is stored finds. The next page is read while one
// is being written.
func (s *storedClear) pass(ctx context.Context, from string) error {
	read := func(ctx context.Context, pages chan<- EditPage) error { return s.read(ctx, from, pages) }
	return readAhead(ctx, read, func(ctx context.Context, page EditPage) error {
		if err := s.writePage(ctx, page.Edits); err != nil {
			return err
		}
		s.progress.pageDone(page.Objects, page.Remaining, page.Next)
		return nil
	})
}

// read sends the pages to a channel.
func (s *storedClear) read(ctx context.Context, from string, pages chan<- EditPage) error {
	for {
		page, err := s.edits.Page(ctx, from)
		if err != nil {
			return err
		}
		select {
		case pages <- page:
		case <-ctx.Done():
			return ctx.Err()
		}
		if from = page.Next; from == "" {
			return nil
		}
	}
}

// writePage writes the edits of one page. Each batch begins with a check that the
// transition is still wanted, and ends soon after it: a server that was frozen in between
// must not continue.
func (s *storedClear) writePage(ctx context.Context, edits []Edit) error {
	for range edits {
		s.progress.add()
	}
	for len(edits) > 0 {
		if err := s.attempt.check(ctx); err != nil {
			return err
		}
		begun := s.writeBatch(ctx, edits)
		// What the end of the context cut short is not done.
		if err := ctx.Err(); err != nil {
			return err
		}
		edits = edits[begun:]
	}
	return nil
}

// writeBatch writes edits and returns how many it began with. It begins with none in the
// second half of its time, so that those under way can end.
func (s *storedClear) writeBatch(ctx context.Context, edits []Edit) (begun int) {
	within, cancel := context.WithTimeout(ctx, batchPatience)
	defer cancel()
	begin, stop := context.WithTimeout(ctx, batchPatience/2)
	defer stop()
	return s.limiter.each(begin, len(edits), func(i int) error {
		err := s.write(within, ctx, edits[i])
		s.progress.cleared(edits[i].Namespace, edits[i].Name, err)
		return err
	})
}

// write writes one edit, and again while others write the object, too. What has begun by
// the end of within may only end after it where the API writes.
func (s *storedClear) write(within, ctx context.Context, edit Edit) error {
	for range conflictRetries {
		err := edit.Write(within)
		var through *ThroughAPIError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &through):
			if err := within.Err(); err != nil {
				return err
			}
			return s.throughAPI(ctx, edit)
		case !apierrors.IsConflict(err):
			return err
		}
		next, err := s.edits.Again(within, edit.Key)
		if err != nil || next == nil {
			return err
		}
		edit = *next
	}
	return errWrittenByOthers
}

// throughAPI clears one object through the API, which decides about it. It may have waited
// for others, and reads the object, so that the revision of the edit guards nothing: whether
// the transition is still wanted is checked again.
func (s *storedClear) throughAPI(ctx context.Context, edit Edit) (err error) {
	inAPI, err := s.inAPI()
	if err != nil {
		return err
	}
	began, took := s.patches.begin(), time.Duration(0)
	defer func() { s.patches.end(began, outcomeOf(took, err)) }()
	if err := s.attempt.check(ctx); err != nil {
		return err
	}
	current, err := s.clients.Dynamic.Resource(inAPI.resource).Namespace(edit.Namespace).Get(ctx, edit.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return s.gone(ctx, edit)
	case err != nil:
		return fmt.Errorf("reading it through the API: %w", err)
	}
	if s.spares(current) {
		return nil
	}
	took, err = inAPI.clear(ctx, s.clients, current)
	return err
}

// gone returns nil if an object that the API does not find is not stored any more. The API
// answers the same for an object in a version that it has ceased to serve.
func (s *storedClear) gone(ctx context.Context, edit Edit) error {
	next, err := s.edits.Again(ctx, edit.Key)
	if err != nil || next == nil {
		return err
	}
	return errors.New("the API does not find it, and it is stored")
}
