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

package clear

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"k8s.io/kubernetes-features/test/benchmark/measure"
)

const (
	namespace = "clear"
	// prefix is where etcd has the objects.
	prefix = "/registry/statefulsets/" + namespace + "/"
	// oldVersion is the version as which objects are stored. It has the fields of
	// apps/v1 and is decoded like it; that it is not the storage version is what
	// gives the migrator something to do.
	oldVersion = "apps/v1beta2"
	// magic begins every object that is stored as protobuf (apimachinery's
	// pkg/runtime/serializer/protobuf).
	magic = "k8s\x00"
	// batch is how many objects one transaction writes or reads; etcd allows 128
	// operations.
	batch = 100
	// loaders is how many transactions are under way.
	loaders = 4
)

// kind is one size of objects.
type kind struct {
	name string
	// variables is the number of environment variables a container has, by which objects
	// become large.
	variables int
	// bytes is how large an object is as it is stored, give or take largeError; 0 when
	// not set.
	bytes int
	// wanted is how many times as fast as the plain client clearing is to be.
	wanted float64
	// held describes what it takes to hold the most of them.
	held string
}

// largeError is by which share of their size large objects may be smaller or larger.
const largeError = 0.05

var (
	small = kind{name: "small StatefulSets", variables: 2, wanted: 8, held: "100,000 small objects that are decoded and held once are some 450 MiB"}
	large = kind{name: "StatefulSets of 20 KiB", variables: 98, bytes: 20 * measure.KiB, wanted: 5, held: "30,000 objects of 20 KiB that are held once as they are stored are some 600 MiB"}
)

// fits is an error when an object is stored with another size than its kind says.
func (k kind) fits(stored int) error {
	if k.bytes > 0 && math.Abs(float64(stored-k.bytes)) > largeError*float64(k.bytes) {
		return fmt.Errorf("%s are stored with %d bytes", k.name, stored)
	}
	return nil
}

// template is an object as people write it, of which all are copies. It wants no
// replicas: no pods belong to them.
func (k kind) template() *appsv1.StatefulSet {
	labels := map[string]string{"app": "clear"}
	container := corev1.Container{Name: "main", Image: "registry.k8s.io/pause:3.10"}
	for i := range k.variables {
		container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", i), Value: strings.Repeat("v", 120)})
	}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "template", Namespace: namespace, Labels: labels},
		Spec: appsv1.StatefulSetSpec{
			Replicas:    ptr.To[int32](0),
			ServiceName: "clear",
			Selector:    &metav1.LabelSelector{MatchLabels: labels},
			Template:    corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{container}}},
			UpdateStrategy: appsv1.StatefulSetUpdateStrategy{
				Type:          appsv1.RollingUpdateStatefulSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: ptr.To(intstr.FromInt32(2))},
			},
		},
	}
}

// take creates the template through the API, while the gate is on, and returns it as
// the server stored it.
func (k kind) take(ctx context.Context, kube kubernetes.Interface, etcd *clientv3.Client) (*appsv1.StatefulSet, error) {
	client := kube.AppsV1().StatefulSets(namespace)
	template := k.template()
	if _, err := client.Create(ctx, template, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	found, err := etcd.Get(ctx, prefix+template.Name)
	if err != nil {
		return nil, err
	}
	if len(found.Kvs) != 1 {
		return nil, fmt.Errorf("etcd has no %s; the server stores StatefulSets elsewhere", prefix+template.Name)
	}
	_, object, err := decode(found.Kvs[0].Value)
	if err != nil {
		return nil, err
	}
	if !hasField(object) {
		return nil, fmt.Errorf("the server dropped the field; its gate is not on")
	}
	if err := k.fits(len(found.Kvs[0].Value)); err != nil {
		return nil, err
	}
	return object, client.Delete(ctx, template.Name, metav1.DeleteOptions{})
}

func hasField(object *appsv1.StatefulSet) bool {
	update := object.Spec.UpdateStrategy.RollingUpdate
	return update != nil && update.MaxUnavailable != nil
}

// decode reads what etcd has.
func decode(data []byte) (version string, object *appsv1.StatefulSet, err error) {
	unknown, err := unwrap(data)
	if err != nil {
		return "", nil, err
	}
	object = &appsv1.StatefulSet{}
	return unknown.APIVersion, object, object.Unmarshal(unknown.Raw)
}

// unwrap reads of what kind a stored object is.
func unwrap(data []byte) (*runtime.Unknown, error) {
	raw, ok := bytes.CutPrefix(data, []byte(magic))
	if !ok {
		return nil, fmt.Errorf("an object is not stored as protobuf")
	}
	unknown := &runtime.Unknown{}
	return unknown, unknown.Unmarshal(raw)
}

// wrap is unwrap's inverse.
func wrap(version, kind string, object interface{ Marshal() ([]byte, error) }) ([]byte, error) {
	raw, err := object.Marshal()
	if err != nil {
		return nil, err
	}
	unknown := &runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: version, Kind: kind}, Raw: raw}
	data, err := unknown.Marshal()
	return append([]byte(magic), data...), err
}

// encode is decode's inverse.
func encode(version string, object *appsv1.StatefulSet) ([]byte, error) {
	return wrap(version, "StatefulSet", object)
}

// copies are objects that are alike, each with a name and a uid of its own.
type copies struct {
	// prefix is where etcd has them.
	prefix string
	// next returns a function that makes the copy of a number: its name, and what is stored.
	next func() func(i int) (name string, data []byte, err error)
}

// statefulSetsLike are copies of one.
func statefulSetsLike(template *appsv1.StatefulSet) copies {
	return copies{prefix, func() func(int) (string, []byte, error) {
		object := template.DeepCopy()
		return func(i int) (string, []byte, error) {
			object.Name, object.UID = fmt.Sprintf("set-%06d", i), uuid.NewUUID()
			data, err := encode(oldVersion, object)
			return object.Name, data, err
		}
	}}
}

// load replaces all objects by n copies, and gives etcd's space back. It returns the size
// of one.
func load(ctx context.Context, etcd *clientv3.Client, of copies, n int) (size int, err error) {
	if _, err := etcd.Delete(ctx, of.prefix, clientv3.WithPrefix()); err != nil {
		return 0, err
	}
	if err := compact(ctx, etcd); err != nil {
		return 0, err
	}
	write := func(ctx context.Context, begin int) error { return put(ctx, etcd, of, begin, min(begin+batch, n)) }
	err = spread(ctx, loaders, 0, write, func(_ context.Context, give func(int) error) error {
		for begin := 0; begin < n; begin += batch {
			if err := give(begin); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	_, data, err := of.next()(0)
	return len(data), err
}

// put writes the copies with the numbers from begin to end.
func put(ctx context.Context, etcd *clientv3.Client, of copies, begin, end int) error {
	var puts []clientv3.Op
	next := of.next()
	for i := begin; i < end; i++ {
		name, data, err := next(i)
		if err != nil {
			return err
		}
		puts = append(puts, clientv3.OpPut(of.prefix+name, string(data)))
		// A request must not be larger than 1.5 MiB.
		if len(puts)*len(data) > 1<<20 || i == end-1 {
			if _, err := etcd.Txn(ctx).Then(puts...).Commit(); err != nil {
				return err
			}
			puts = nil
		}
	}
	return nil
}

const (
	// kept is how many times as large as all objects etcd's database becomes: each is
	// kept as it was and as it is written, and pages are not full.
	kept = 2.5
	// held is how many times as large they are in memory, in kube-apiserver and the
	// controller manager together: 4,000 of 20 KiB took 0.22 and 0.09 MiB each.
	held = 16
	// usual is the quota that etcd has unless it is told otherwise.
	usual = 2 << 30
)

// quota is how large etcd's database has to be allowed to become for so many bytes of
// objects.
func quota(bytes int) int { return max(usual, int(kept*float64(bytes))) }

// room is an error when so many objects of a size do not fit into the memory of the
// machine, in bytes.
func room(objects, size int, memory int64) error {
	if need := int64((held + kept) * float64(objects) * float64(size)); need > memory {
		return fmt.Errorf("%d objects of %d bytes take kube-apiserver, the controller manager and etcd some %.1f GiB, and the machine has %.1f GiB; say a smaller --large", objects, size, float64(need)/(1<<30), float64(memory)/(1<<30))
	}
	return nil
}

// compactPatience is the time that etcd may take to give space back.
const compactPatience = 2 * time.Minute

// compact forgets the past, so that every method begins with the same database.
func compact(ctx context.Context, etcd *clientv3.Client) error {
	ctx, cancel := context.WithTimeout(ctx, compactPatience)
	defer cancel()
	status, err := etcd.Status(ctx, etcd.Endpoints()[0])
	if err != nil {
		return err
	}
	// The server compacts, too, and may be ahead.
	if _, err := etcd.Compact(ctx, status.Header.Revision, clientv3.WithCompactPhysical()); err != nil && !compacted(err) {
		return err
	}
	_, err = etcd.Defragment(ctx, etcd.Endpoints()[0])
	return err
}

// stored is what etcd has after a method.
type stored struct{ objects, withField, old int }

func (s stored) cleared() error {
	if s.withField > 0 {
		return fmt.Errorf("%d of %d objects still have the field", s.withField, s.objects)
	}
	return nil
}

func (s stored) unchanged() error {
	if s.old != s.objects || s.withField != s.objects {
		return fmt.Errorf("of %d objects %d are stored as %s and %d have the field, as all were", s.objects, s.old, oldVersion, s.withField)
	}
	return nil
}

func (s stored) migrated() error {
	if s.old > 0 || s.withField != s.objects {
		return fmt.Errorf("of %d objects %d are still stored as %s, and %d have lost the field", s.objects, s.old, oldVersion, s.objects-s.withField)
	}
	return nil
}

// look counts what is stored.
func look(ctx context.Context, etcd *clientv3.Client) (stored, error) {
	var s stored
	err := eachPage(ctx, etcd, batch, func(page []*mvccpb.KeyValue) error {
		for _, kv := range page {
			version, object, err := decode(kv.Value)
			if err != nil {
				return fmt.Errorf("reading %s: %w", kv.Key, err)
			}
			s.objects++
			if hasField(object) {
				s.withField++
			}
			if version == oldVersion {
				s.old++
			}
		}
		return nil
	})
	return s, err
}

// eachPage reads the objects that are stored, so many at once.
func eachPage(ctx context.Context, etcd *clientv3.Client, size int64, visit func([]*mvccpb.KeyValue) error) error {
	for from := prefix; ; {
		page, err := etcd.Get(ctx, from, clientv3.WithRange(clientv3.GetPrefixRangeEnd(prefix)), clientv3.WithLimit(size))
		if err != nil {
			return err
		}
		if err := visit(page.Kvs); err != nil {
			return err
		}
		if !page.More {
			return nil
		}
		from = string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
	}
}
