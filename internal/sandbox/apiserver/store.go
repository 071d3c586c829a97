package apiserver

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"crypto/rand"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// object is an object of the API as decoded JSON. An object in the store is never changed, only
// replaced.
type object = map[string]any

// key names an object in the store.
type key struct {
	resource        string // Resource.qualified
	namespace, name string
}

// change is one event of the store's history.
type change struct {
	version int64
	kind    watch.EventType
	key     key
	object  object
	before  object // nil if the object was added
}

// maxHistory bounds how far back a watch can begin.
const maxHistory = 5000

// store holds objects and reports their changes.
type store struct {
	now func() time.Time

	mu      sync.Mutex
	version int64
	objects map[key]object
	history []change
	changed chan struct{} // closed and replaced at every change
	// hooks run after a change, while the lock is not held.
	hooks []func(change)
}

func newStore(now func() time.Time) *store {
	return &store{now: now, version: 1, objects: map[key]object{}, changed: make(chan struct{})}
}

func (s *store) get(k key) (object, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[k]
	return o, ok
}

// list returns the objects of a resource, in the order of their names, and the version of the
// store at that moment.
func (s *store) list(resource, namespace string) ([]object, int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []key
	for k := range s.objects {
		if k.resource == resource && (namespace == "" || namespace == k.namespace) {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b key) int {
		return strings.Compare(a.namespace+"/"+a.name, b.namespace+"/"+b.name)
	})
	list := make([]object, 0, len(keys))
	for _, k := range keys {
		list = append(list, s.objects[k])
	}
	return list, s.version
}

// create adds the object o. The caller must not change o afterwards, since it then belongs to the
// store.
func (s *store) create(r Resource, k key, o object) (object, error) {
	s.mu.Lock()
	if _, exists := s.objects[k]; exists {
		s.mu.Unlock()
		return nil, apierrors.NewAlreadyExists(groupResource(r), k.name)
	}
	meta := metadata(o)
	meta["name"] = k.name
	if r.Namespaced {
		meta["namespace"] = k.namespace
	}
	meta["uid"] = newUID()
	meta["creationTimestamp"] = s.now().UTC().Format(time.RFC3339)
	if !r.Virtual {
		meta["generation"] = int64(1)
	}
	o["apiVersion"], o["kind"] = r.apiVersion(), r.Kind
	event := s.put(watch.Added, k, o)
	s.mu.Unlock()
	s.notify(event)
	return o, nil
}

// update replaces the object that has the key k. f gets a copy of that object and returns the new
// object. If f returns nil, update removes the object and the objects that it owns.
func (s *store) update(r Resource, k key, f func(object) (object, error)) (object, error) {
	s.mu.Lock()
	before, exists := s.objects[k]
	if !exists {
		s.mu.Unlock()
		return nil, apierrors.NewNotFound(groupResource(r), k.name)
	}
	o, err := f(runtime.DeepCopyJSON(before))
	if err != nil {
		s.mu.Unlock()
		return nil, err
	}
	var events []change
	if o == nil {
		events = append(events, s.put(watch.Deleted, k, runtime.DeepCopyJSON(before)))
		events = append(events, s.removeOwned(text(before, "metadata", "uid"))...)
		o = before
	} else if keep(o, before); sameBut(o, before) {
		s.mu.Unlock()
		return before, nil
	} else {
		events = append(events, s.put(watch.Modified, k, o))
	}
	s.mu.Unlock()
	s.notify(events...)
	return o, nil
}

// keep restores the fields that no request can change, and counts the changes of the spec.
func keep(o, before object) {
	meta, was := metadata(o), metadata(before)
	for _, field := range []string{"name", "namespace", "uid", "creationTimestamp", "generation", "resourceVersion"} {
		if value, ok := was[field]; ok {
			meta[field] = value
		}
	}
	if generation, ok := was["generation"].(int64); ok && !equalJSON(o["spec"], before["spec"]) {
		meta["generation"] = generation + 1
	}
	o["apiVersion"], o["kind"] = before["apiVersion"], before["kind"]
}

// sameBut reports whether a and b are equal.
func sameBut(a, b object) bool { return equalJSON(a, b) }

// removeOwned removes the objects that a deleted object owned, as the garbage collector does. The
// caller holds the lock.
func (s *store) removeOwned(uid string) (events []change) {
	for k, o := range maps.Clone(s.objects) {
		owners, _ := metadata(o)["ownerReferences"].([]any)
		owned := slices.ContainsFunc(owners, func(owner any) bool {
			fields, _ := owner.(object)
			return uid != "" && fields["uid"] == uid
		})
		if owned {
			events = append(events, s.put(watch.Deleted, k, runtime.DeepCopyJSON(o)))
			events = append(events, s.removeOwned(text(o, "metadata", "uid"))...)
		}
	}
	return events
}

// put adds, replaces or deletes an object and records the change. The caller holds the lock.
func (s *store) put(kind watch.EventType, k key, o object) change {
	s.version++
	metadata(o)["resourceVersion"] = strconv.FormatInt(s.version, 10)
	event := change{version: s.version, kind: kind, key: k, object: o, before: s.objects[k]}
	if kind == watch.Deleted {
		delete(s.objects, k)
	} else {
		s.objects[k] = o
	}
	if len(s.history) >= maxHistory {
		s.history = slices.Clone(s.history[maxHistory/2:])
	}
	s.history = append(s.history, event)
	close(s.changed)
	s.changed = make(chan struct{})
	return event
}

func (s *store) notify(events ...change) {
	for _, event := range events {
		for _, hook := range s.hooks {
			hook(event)
		}
	}
}

// since returns the changes after a version, and a channel that is closed at the next change. It
// returns false if the history no longer has all of these changes.
func (s *store) since(version int64) ([]change, <-chan struct{}, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.history) > 0 && version < s.history[0].version-1 && s.history[0].version > firstVersion {
		return nil, nil, false
	}
	i, _ := slices.BinarySearchFunc(s.history, version+1, func(c change, v int64) int { return int(c.version - v) })
	return slices.Clone(s.history[i:]), s.changed, true
}

// oldest returns the version of the first change that the history has, or 0.
func (s *store) oldest() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.history) == 0 {
		return 0
	}
	return s.history[0].version
}

// firstVersion is the version of the first change of a store.
const firstVersion = 2

// metadata returns an object's metadata, and adds it if it is missing.
func metadata(o object) object {
	meta, ok := o["metadata"].(object)
	if !ok {
		meta = object{}
		o["metadata"] = meta
	}
	return meta
}

// field returns the value at a path; nil if there is none.
func field(o object, path ...string) any {
	var value any = o
	for _, name := range path {
		fields, ok := value.(object)
		if !ok {
			return nil
		}
		value = fields[name]
	}
	return value
}

// text returns the value at a path as a string; it formats a value that is not a string.
func text(o object, path ...string) string {
	switch value := field(o, path...).(type) {
	case nil:
		return ""
	case string:
		return value
	default:
		return fmt.Sprint(value)
	}
}

// texts returns the strings of the map at a path, such as labels.
func texts(o object, path ...string) map[string]string {
	fields, _ := field(o, path...).(object)
	all := make(map[string]string, len(fields))
	for name, value := range fields {
		if s, ok := value.(string); ok {
			all[name] = s
		}
	}
	return all
}

func groupResource(r Resource) schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Name}
}

func newUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func timestamp(t time.Time) string { return metav1.NewTime(t).UTC().Format(time.RFC3339) }
