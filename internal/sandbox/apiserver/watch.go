package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// watcher streams the changes of a resource's objects. Its events are those of the API server's watch cache: the parts
// that it sends first, the mark at their end, and the error for a version that it does not have any more, which is an
// event too (k8s.io/apiserver v0.36.3, pkg/storage/cacher).
type watcher struct {
	c        *Cluster
	w        http.ResponseWriter
	resource Resource
	asTable  bool
	wanted   func(key, object) bool
}

func (c *Cluster) answerWatch(w http.ResponseWriter, r *http.Request, request Request, resource Resource) error {
	query := r.URL.Query()
	matches, err := selector(query)
	if err != nil {
		return err
	}
	s := &watcher{c: c, w: w, resource: resource, asTable: wantsTable(r)}
	s.wanted = func(k key, o object) bool {
		return k.resource == resource.qualified() && (request.Namespace == "" || k.namespace == request.Namespace) &&
			(request.Name == "" || k.name == request.Name) && matches(o)
	}
	from, err := strconv.ParseInt(query.Get("resourceVersion"), 10, 64)
	if err != nil && query.Get("resourceVersion") != "" {
		return apierrors.NewBadRequest("resourceVersion: " + err.Error())
	}
	initial := query.Get("sendInitialEvents") == "true"
	var timeout <-chan time.Time
	if seconds, err := strconv.Atoi(query.Get("timeoutSeconds")); err == nil && seconds > 0 {
		timer := time.NewTimer(time.Duration(seconds) * time.Second)
		defer timer.Stop()
		timeout = timer.C
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	s.flush()
	if _, _, ok := c.store.since(from); !ok && from > 0 && !initial {
		s.sendError(apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", from, c.store.oldest()-1)))
		return nil
	}
	if from == 0 || initial {
		from = s.sendAll(request.Namespace, initial)
	}
	s.stream(r, from, timeout)
	return nil
}

// sendAll sends the existing objects, and returns the version of the store at which it
// listed them.
func (s *watcher) sendAll(namespace string, mark bool) int64 {
	all, version := s.c.store.list(s.resource.qualified(), namespace)
	for _, o := range all {
		k := key{s.resource.qualified(), text(o, "metadata", "namespace"), text(o, "metadata", "name")}
		if s.wanted(k, o) {
			s.send(watch.Added, o)
		}
	}
	if mark {
		s.send(watch.Bookmark, object{
			"apiVersion": s.resource.apiVersion(), "kind": s.resource.Kind,
			"metadata": object{
				"resourceVersion": strconv.FormatInt(version, 10), "creationTimestamp": nil,
				"annotations": object{metav1.InitialEventsAnnotationKey: "true"},
			},
		})
	}
	s.flush()
	return version
}

// stream sends changes until the client disconnects, the server ends or the timeout expires.
func (s *watcher) stream(r *http.Request, from int64, timeout <-chan time.Time) {
	for {
		changes, changed, ok := s.c.store.since(from)
		if !ok {
			return // the history is too short, so the client must list the objects again
		}
		for _, event := range changes {
			from = event.version
			s.change(event)
		}
		s.flush()
		select {
		case <-changed:
		case <-timeout:
			return
		case <-r.Context().Done():
			return
		case <-s.c.ctx.Done():
			return
		}
	}
}

// change sends an event as the watch's client must see it: an object that begins to match
// the watch is sent as added, and one that no longer matches is sent as deleted.
func (s *watcher) change(event change) {
	now := event.kind != watch.Deleted && s.wanted(event.key, event.object)
	before := event.before != nil && s.wanted(event.key, event.before)
	switch {
	case now && before:
		s.send(watch.Modified, event.object)
	case now:
		s.send(watch.Added, event.object)
	case before:
		s.send(watch.Deleted, event.object)
	}
}

func (s *watcher) send(kind watch.EventType, o object) {
	var document any = o
	if s.asTable {
		document = s.c.tableOf(s.resource, o)
	}
	s.write(kind, document)
}

// sendError sends an error as an event.
func (s *watcher) sendError(err *apierrors.StatusError) {
	status := err.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	s.write(watch.Error, status)
	s.flush()
}

func (s *watcher) write(kind watch.EventType, document any) {
	data, err := json.Marshal(map[string]any{"type": kind, "object": document})
	if err == nil {
		_, _ = s.w.Write(append(data, '\n'))
	}
}

func (s *watcher) flush() {
	_ = http.NewResponseController(s.w).Flush()
}
