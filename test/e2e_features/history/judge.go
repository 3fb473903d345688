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

package history

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sort"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/feature-lifecycle/agent"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/utils/ptr"
)

const (
	// server is the component whose reports say what servers configure.
	server = "kube-apiserver"
	// cleared is the feature whose field StatefulSets have.
	cleared = "MaxUnavailableStatefulSet"
	// heard is how long a server may take to hear of what another one reports, arrives how
	// long a write may take that was decided on what was so until then.
	heard, arrives = 10 * time.Second, 10 * time.Second
)

// Verdict is what a history shows.
type Verdict struct {
	// Violations break an invariant, each with its name first.
	Violations []string
	// Versions of Features were stored, and Transitions begun, of which Compared is those
	// that began while a server was known to have a value; Cleared objects lost a field;
	// Watched and Answered are what clients saw; Gaps is how often something was not
	// recorded since etcd had been compacted.
	Versions, Transitions, Compared, Cleared, Watched, Answered, Gaps int
}

func (v Verdict) String() string {
	return fmt.Sprintf("%d versions of Features with %d transitions, %d of them compared with servers, %d objects cleared, %d events of watches and %d answers of clients, %d gaps by compaction: %d violations",
		v.Versions, v.Transitions, v.Compared, v.Cleared, v.Watched, v.Answered, v.Gaps, len(v.Violations))
}

// Judge judges a history. An error is one that is not whole, of which nothing is said.
func Judge(records []Record) (Verdict, error) {
	j := &judge{
		features: map[string][]framework.FeatureVersion{}, gaps: map[string][]gap{}, leases: map[string][]lease{}, reports: map[string][]report{},
		sets: map[string]*appsv1.StatefulSet{}, writes: map[string]write{}, recorded: map[string]time.Time{}, streams: map[string]*stream{}, known: map[string][]sighting{},
	}
	for i, r := range records {
		if err := j.take(r); err != nil {
			return Verdict{}, fmt.Errorf("record %d of the history, %s of %s: %w", i+1, r.Kind, r.Key, err)
		}
	}
	j.judgeFeatures()
	j.judgeReports()
	j.judgeClients()
	return j.Verdict, nil
}

// JudgeFile judges the history of a file.
func JudgeFile(file string) (Verdict, error) {
	in, err := os.Open(file)
	if err != nil {
		return Verdict{}, err
	}
	defer func() { _ = in.Close() }()
	records, err := Read(in)
	if err != nil {
		return Verdict{}, err
	}
	return Judge(records)
}

type judge struct {
	Verdict
	// features has the versions of each Feature, gaps what was not recorded, by the
	// prefix of its keys, and recorded the time of the last record.
	features map[string][]framework.FeatureVersion
	gaps     map[string][]gap
	recorded map[string]time.Time
	// leases and reports are of processes, by the name of both.
	leases  map[string][]lease
	reports map[string][]report
	deleted []deletion
	sets    map[string]*appsv1.StatefulSet
	// clearings are writes of StatefulSets that took the field.
	clearings []clearing
	// writes has the last write of each key.
	writes map[string]write
	// seen is what clients saw, in order; streams is where each watch is.
	seen    []Record
	streams map[string]*stream
	// known is what was known of each Feature at a time, in order of it.
	known map[string][]sighting
}

// gap is between two revisions, and two times, of which nothing was recorded.
type gap struct {
	after, before int64
	from, until   time.Time
}

// write is one of a key.
type write struct {
	// version is how often it was written since it was created.
	version, revision int64
	// unsure is true when a gap came after it.
	unsure bool
}

// stream is a watch of a client.
type stream struct {
	// revision is that of the list that it follows.
	revision int64
	// at is the place of the version of each Feature that it brought last, -1 for one that
	// was not recorded.
	at map[string]int
	// begun is true after an event that is not of the list.
	begun bool
}

// lease is a Lease as it was stored.
type lease struct {
	revision int64
	at       time.Time
	holder   string
	uid      string
}

// report is the report of a server as it was stored.
type report struct {
	revision int64
	at       time.Time
	version  string
	enabled  map[string]bool
}

type deletion struct {
	name     string
	revision int64
	at       time.Time
}

type clearing struct {
	name     string
	revision int64
	at       time.Time
}

// sighting is a version that was known at a time.
type sighting struct {
	at       time.Time
	revision int64
}

func (j *judge) violate(format string, args ...any) {
	j.Violations = append(j.Violations, fmt.Sprintf(format, args...))
}

func (j *judge) take(r Record) error {
	if r.Kind == Stored || r.Kind == Deleted {
		defer func() { j.recorded[prefixOf(r.Key)] = r.At }()
	}
	switch r.Kind {
	case Stored:
		return j.takeStored(r)
	case Deleted:
		delete(j.writes, r.Key)
		delete(j.sets, r.Key)
		if name, ok := strings.CutPrefix(r.Key, ReportsKey); ok {
			j.deleted = append(j.deleted, deletion{name, r.Revision, r.At})
		}
		if name, ok := strings.CutPrefix(r.Key, FeaturesKey); ok {
			j.violate("S3: %s was deleted at %s", name, r.At.Format(time.TimeOnly))
		}
	case Compacted:
		if len(j.gaps[r.Key]) > 0 {
			j.Gaps++
		}
		j.gaps[r.Key] = append(j.gaps[r.Key], gap{j.last(r.Key), r.Revision, j.recorded[r.Key], r.At})
		for key, w := range j.writes {
			if prefixOf(key) == r.Key {
				w.unsure = true
				j.writes[key] = w
			}
		}
	case Watching, Watched, Answered:
		j.seen = append(j.seen, r)
	default:
		return fmt.Errorf("it is of no kind that is known")
	}
	return nil
}

// prefixOf is the one of what is followed that a key has.
func prefixOf(key string) string {
	for _, prefix := range prefixes {
		if strings.HasPrefix(key, prefix) {
			return prefix
		}
	}
	return ""
}

// last is the highest revision of what was stored with a prefix.
func (j *judge) last(prefix string) int64 {
	highest := int64(0)
	for key, w := range j.writes {
		if prefixOf(key) == prefix {
			highest = max(highest, w.revision)
		}
	}
	return highest
}

// missed is how many writes of a key are not in the history, at least. Only a compaction may
// be why.
func (j *judge) missed(r Record) (missed int64, again bool, err error) {
	before, known := j.writes[r.Key]
	j.writes[r.Key] = write{version: r.Version, revision: r.Revision}
	gaps := j.gaps[prefixOf(r.Key)]
	switch {
	case known && r.Revision == before.revision:
		return 0, true, nil
	case known && before.unsure:
		// It may have been deleted and created in the gap, too.
		return max(1, r.Version-before.version-1), false, nil
	case !known && len(gaps) > 0 && r.Revision <= gaps[len(gaps)-1].before:
		// What is read after a compaction is as it was at that revision.
		return r.Version - 1, false, nil
	case r.Version <= before.version:
		return 0, false, fmt.Errorf("write %d comes after write %d", r.Version, before.version)
	case r.Version != before.version+1:
		return 0, false, fmt.Errorf("write %d comes after write %d, and those between are missing", r.Version, before.version)
	}
	return 0, false, nil
}

// sure returns true when all that was stored with a prefix in a time was recorded.
func (j *judge) sure(prefix string, from, until time.Time) bool {
	return !slices.ContainsFunc(j.gaps[prefix], func(g gap) bool { return g.from.Before(until) && g.until.After(from) })
}

func (j *judge) takeStored(r Record) error {
	missed, again, err := j.missed(r)
	if err != nil || again {
		return err
	}
	switch {
	case strings.HasPrefix(r.Key, FeaturesKey):
		feature := &v1alpha1.Feature{}
		if err := json.Unmarshal(r.Object, feature); err != nil {
			return err
		}
		v := framework.FeatureVersion{StoredFeature: framework.StoredFeature{Feature: feature, Revision: r.Revision, Missed: missed}, At: r.At}
		j.features[feature.Name] = append(j.features[feature.Name], v)
		j.known[r.Key] = append(j.known[r.Key], sighting{r.At, r.Revision})
		j.Versions++
	case strings.HasPrefix(r.Key, ReportsKey):
		stored := &v1alpha1.FeatureReport{}
		if err := json.Unmarshal(r.Object, stored); err != nil {
			return err
		}
		if stored.Spec.Component == server {
			of := report{revision: r.Revision, at: r.At, version: stored.Spec.EmulationVersion, enabled: map[string]bool{}}
			for _, f := range stored.Spec.Features {
				of.enabled[f.Name] = f.Enabled
			}
			j.reports[stored.Name] = append(j.reports[stored.Name], of)
		}
	case strings.HasPrefix(r.Key, LeasesKey), strings.HasPrefix(r.Key, ServerLeasesKey):
		stored := &coordinationv1.Lease{}
		if err := json.Unmarshal(r.Object, stored); err != nil {
			return err
		}
		j.leases[stored.Name] = append(j.leases[stored.Name], lease{r.Revision, r.At, ptr.Deref(stored.Spec.HolderIdentity, ""), string(stored.UID)})
	default:
		return j.takeSet(r, missed)
	}
	return nil
}

// takeSet judges S7 of a StatefulSet that was written. No client takes the field away.
func (j *judge) takeSet(r Record, missed int64) error {
	is, was := &appsv1.StatefulSet{}, j.sets[r.Key]
	if err := json.Unmarshal(r.Object, is); err != nil {
		return err
	}
	j.sets[r.Key] = is
	if was == nil || missed > 0 || was.UID != is.UID || !framework.HasMaxUnavailable(was) || framework.HasMaxUnavailable(is) {
		return nil
	}
	j.Cleared++
	if !equality.Semantic.DeepEqual(framework.WithoutMaxUnavailable(was), framework.WithoutMaxUnavailable(is)) {
		j.violate("S7: StatefulSet %s changed elsewhere than in the field that was cleared, at revision %d", is.Name, r.Revision)
	}
	j.clearings = append(j.clearings, clearing{is.Name, r.Revision, r.At})
	return nil
}

// judgeFeatures judges S1 to S5 in what was stored of Features.
func (j *judge) judgeFeatures() {
	for name, versions := range j.features {
		for invariant, check := range map[string]func([]framework.FeatureVersion) string{"S1": framework.FalseState, "S2": framework.EarlyTask, "S3": framework.LostTask} {
			if what := check(versions); what != "" {
				j.violate("%s: %s: %s", invariant, name, what)
			}
		}
		for i, v := range versions {
			j.judgeWriter(v)
			if i > 0 && v.Missed == 0 && begins(versions[i-1], v) {
				j.Transitions++
				j.judgeAgreement(v)
			}
		}
	}
	for _, c := range j.clearings {
		j.judgeClearing(c)
	}
	slices.Sort(j.Violations)
}

func begins(before, after framework.FeatureVersion) bool {
	was, is := before.Status.Transition, after.Status.Transition
	return is != nil && (was == nil || was.ID != is.ID)
}

// judgeWriter judges S5: servers alone write status.
func (j *judge) judgeWriter(v framework.FeatureVersion) {
	for _, fields := range v.ManagedFields {
		writes := fields.Subresource == "status" || fields.FieldsV1 != nil && strings.Contains(fields.FieldsV1.GetRawString(), `"f:status"`)
		if writes && fields.Manager != server {
			j.violate("S5: %s wrote the status of %s, by revision %d", fields.Manager, v.Name, v.Revision)
		}
	}
}

// judgeAgreement judges S4: a transition begins when all servers have its value and its
// version. Those count that lived and had been heard of.
func (j *judge) judgeAgreement(v framework.FeatureVersion) {
	if v.Status.Control == v1alpha1.ControlDynamic {
		// Servers follow such a value.
		return
	}
	transition, compared := v.Status.Transition, false
	defer func() {
		if compared {
			j.Compared++
		}
	}()
	version, of := transition.ToVersion, "the transition"
	for name, reports := range j.reports {
		r := j.inForce(name, reports, v)
		if r == nil {
			continue
		}
		enabled, knows := r.enabled[v.Name]
		if !knows {
			continue
		}
		compared = true
		if goal := v.Status.State == v1alpha1.StateTurningOn; transition.Reason != v1alpha1.TransitionVersion && enabled != goal {
			j.violate("S4: transition %s of %s, to %t, began at revision %d while %s had %t", transition.ID, v.Name, goal, v.Revision, name, enabled)
			return
		}
		if version == "" {
			version, of = r.version, name
		}
		if r.version != version {
			j.violate("S4: transition %s of %s began at revision %d while %s had %s and %s %s", transition.ID, v.Name, v.Revision, of, version, name, r.version)
			return
		}
	}
}

// inForce is the report of a server that lived when a version was stored, nil if there was
// none that all had heard of: it was written by that process, long enough before, and is
// still true long enough after.
func (j *judge) inForce(name string, reports []report, v framework.FeatureVersion) *report {
	var of *report
	for i := range reports {
		switch r := &reports[i]; {
		case r.at.Before(v.At.Add(-heard)):
			of = r
		case r.at.After(v.At.Add(arrives)):
		case of == nil || r.version != of.version || !has(r, v.Name, of.enabled[v.Name]):
			// It changed its mind at that time.
			return nil
		}
	}
	if of == nil || !j.sure(ReportsKey, of.at, v.At.Add(arrives)) || !j.sure(ServerLeasesKey, of.at, v.At.Add(arrives)) {
		return nil
	}
	var began, last, renewed lease
	lived := false
	for _, l := range j.leases[name] {
		if l.at.Before(v.At) {
			renewed = l
		}
		if l.holder != last.holder {
			if lived {
				break
			}
			began = l
		}
		last = l
		lived = lived || l.at.After(v.At.Add(arrives))
	}
	// A server that was frozen for longer does not count, although it renews its Lease afterwards.
	expired := renewed.at.Before(v.At.Add(arrives - agent.LeaseDuration))
	if !lived || expired || began.revision > of.revision || began.at.After(v.At.Add(-heard)) {
		return nil
	}
	return of
}

// has returns true when a report says that a server has a value.
func has(r *report, feature string, value bool) bool {
	enabled, knows := r.enabled[feature]
	return knows && enabled == value
}

// judgeClearing judges S2 of an object: the field goes while the task runs that clears it, or
// a moment later, where the write was under way.
func (j *judge) judgeClearing(c clearing) {
	if j.unrecorded(c.revision) {
		return
	}
	clears, until := false, time.Time{}
	for _, v := range j.features[cleared] {
		if v.Revision >= c.revision {
			break
		}
		is := v.Status.State == v1alpha1.StateTurningOff && len(v.Status.Tasks) > 0 && v.Status.Tasks[0].Name != v1alpha1.TaskWaitForUses
		if clears && !is {
			until = v.At
		}
		clears = is
	}
	if !clears && (until.IsZero() || c.at.After(until.Add(arrives))) {
		j.violate("S2: StatefulSet %s lost the field at revision %d, and no task cleared it then", c.name, c.revision)
	}
}

// judgeReports judges S5: no report is deleted whose process renews its Lease afterwards.
func (j *judge) judgeReports() {
	for _, d := range j.deleted {
		var before, after lease
		for _, l := range j.leases[d.name] {
			if l.revision < d.revision {
				before = l
			} else if after.revision == 0 {
				after = l
			}
		}
		if before.revision > 0 && after.revision > 0 && before.uid == after.uid && before.holder == after.holder && before.holder != "" {
			j.violate("S5: the report %s was deleted at revision %d, and its process renewed its Lease at %d", d.name, d.revision, after.revision)
		}
	}
}

// judgeClients judges what clients saw.
func (j *judge) judgeClients() {
	for _, r := range j.seen {
		if r.Kind != Watching {
			j.known[r.Key] = append(j.known[r.Key], sighting{r.At, r.Revision})
		}
	}
	for _, sightings := range j.known {
		slices.SortStableFunc(sightings, func(a, b sighting) int { return a.at.Compare(b.at) })
		for i := 1; i < len(sightings); i++ {
			sightings[i].revision = max(sightings[i].revision, sightings[i-1].revision)
		}
	}
	for _, r := range j.seen {
		switch r.Kind {
		case Watching:
			j.streams[r.Client] = &stream{revision: r.Revision, at: map[string]int{}}
		case Watched:
			j.Watched++
			j.judgeWatched(r)
		case Answered:
			j.Answered++
			j.judgeStored(r)
			if known := j.knownAt(r.Key, r.Began); r.Revision < known {
				j.violate("client: %s was answered revision %d of %s to a %s that began when %d was known", r.Client, r.Revision, r.Key, r.Verb, known)
			}
		}
	}
}

// knownAt is the newest version of a key that anyone had seen at a time.
func (j *judge) knownAt(key string, at time.Time) int64 {
	sightings := j.known[key]
	n := sort.Search(len(sightings), func(i int) bool { return !sightings[i].at.Before(at) })
	if n == 0 {
		return 0
	}
	return sightings[n-1].revision
}

// judgeStored compares what a client saw with what was stored, and returns its place, -1 for
// what was not recorded or is false.
func (j *judge) judgeStored(r Record) int {
	saw := &v1alpha1.Feature{}
	if err := json.Unmarshal(r.Object, saw); err != nil {
		j.violate("client: %s saw no Feature: %v", r.Client, err)
		return -1
	}
	versions := j.features[saw.Name]
	i, found := slices.BinarySearchFunc(versions, r.Revision, func(v framework.FeatureVersion, revision int64) int { return int(v.Revision - revision) })
	switch {
	case !found && (j.unrecorded(r.Revision) || i == len(versions) || i == 0):
		// The recorder may end, or begin, in between.
		return -1
	case !found:
		j.violate("client: %s saw revision %d of %s, which was never stored", r.Client, r.Revision, saw.Name)
		return -1
	}
	was := versions[i]
	if saw.UID != was.UID || saw.Generation != was.Generation || !equality.Semantic.DeepEqual(saw.Spec, was.Spec) || !equality.Semantic.DeepEqual(saw.Status, was.Status) {
		j.violate("client: %s saw of revision %d of %s what was not stored", r.Client, r.Revision, saw.Name)
	}
	return i
}

func (j *judge) unrecorded(revision int64) bool {
	return slices.ContainsFunc(j.gaps[FeaturesKey], func(g gap) bool { return revision > g.after && revision <= g.before })
}

// judgeWatched judges an event of a watch. The list that it follows has all that was stored
// by then, and each event comes after the one before it, with none left out.
func (j *judge) judgeWatched(r Record) {
	at := j.judgeStored(r)
	w := j.streams[r.Client]
	if w == nil {
		j.violate("client: %s saw %s without a watch", r.Client, r.Key)
		return
	}
	name := strings.TrimPrefix(r.Key, FeaturesKey)
	if r.Verb == "list" {
		w.at[name] = at
		if newest := j.newest(name, w.revision); at >= 0 && newest >= 0 && at != newest {
			j.violate("client: %s listed revision %d of %s at revision %d, when %d was the newest", r.Client, r.Revision, name, w.revision, j.features[name][newest].Revision)
		}
		return
	}
	if !w.begun {
		w.begun = true
		for of := range j.features {
			if _, listed := w.at[of]; !listed && j.newest(of, w.revision) >= 0 {
				j.violate("client: %s did not list %s, which was there at revision %d", r.Client, of, w.revision)
			}
		}
	}
	before, follows := w.at[name]
	w.at[name] = at
	if !follows {
		// It was created after the list.
		before = j.newest(name, w.revision)
	}
	if at < 0 || follows && before < 0 {
		return
	}
	versions := j.features[name]
	for next := before + 1; next <= at; next++ {
		if versions[next].Missed > 0 {
			return
		}
	}
	if at != before+1 {
		j.violate("client: %s saw revision %d of %s after place %d of %d, and not what came between, or both the other way round", r.Client, r.Revision, name, before+1, len(versions))
	}
}

// newest is the place of the newest version of a Feature at a revision, -1 where there is
// none, or it may not have been recorded.
func (j *judge) newest(name string, revision int64) int {
	versions := j.features[name]
	i := sort.Search(len(versions), func(i int) bool { return versions[i].Revision > revision }) - 1
	if j.unrecorded(revision) || i+1 < len(versions) && versions[i+1].Missed > 0 {
		return -1
	}
	return i
}
