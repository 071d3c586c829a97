package evidence

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/swdt-dev/swdt/internal/cluster"
)

// namespace is the record of one namespace. The mutex of the recorder guards it.
type namespace struct {
	name     string
	uid      types.UID
	appeared time.Time // of this machine's clock
	ended    bool      // its spec seems to have ended
	passed   bool      // its spec seems to have passed, so its record can make room for others
	pods     []*pod
	byPod    map[types.UID]*pod
	events   map[types.UID]*event
	left     int    // pods and events that did not fit
	dropped  string // why there is no record; "" if there is one
	size     int    // bytes, roughly
	stop     context.CancelFunc
}

// pod is the record of one pod.
type pod struct {
	// last is the last state before the pod was deleted.
	last    *corev1.Pod
	changes changes
	outputs []*output
}

// event is one event of the API server.
type event struct {
	Time    time.Time `json:"time"` // the last one
	Type    string    `json:"type"`
	Reason  string    `json:"reason"`
	About   string    `json:"about"` // such as pod web-0
	From    string    `json:"from"`  // such as kubelet on win-1
	Count   int       `json:"count"`
	Message string    `json:"message"`
}

// takePod takes a state of a pod, and returns the record of the pod; nil if there is none.
func (n *namespace) takePod(p *corev1.Pod, gone bool) *pod {
	known := n.byPod[p.UID]
	if known == nil {
		if len(n.pods) >= maxPods || n.dropped != "" {
			n.left++
			return nil
		}
		known = &pod{}
		n.byPod[p.UID] = known
		n.pods = append(n.pods, known)
	}
	state := podState(p)
	if gone {
		state = "deleted"
	}
	before := len(known.changes)
	known.changes = known.changes.add(state)
	n.size += (len(known.changes) - before) * (len(state) + 40)
	if known.last == nil || !gone && p.DeletionTimestamp == nil {
		if known.last != nil {
			n.size -= known.last.Size()
		}
		known.last = bare(p)
		n.size += known.last.Size()
	}
	return known
}

// bare returns the pod without metadata that does not describe it.
func bare(p *corev1.Pod) *corev1.Pod {
	p = p.DeepCopy()
	p.ManagedFields = nil
	delete(p.Annotations, corev1.LastAppliedConfigAnnotation)
	return p
}

func (n *namespace) takeEvent(e *corev1.Event) {
	known := n.events[e.UID]
	if known == nil {
		if len(n.events) >= maxEvents || n.dropped != "" {
			n.left++
			return
		}
		known = &event{}
		n.events[e.UID] = known
		n.size += 100 + len(e.Message)
	}
	*known = eventOf(e)
}

func eventOf(e *corev1.Event) event {
	from := cmp.Or(e.Source.Component, e.ReportingController)
	if e.Source.Host != "" {
		from += " on " + e.Source.Host
	}
	count := max(int(e.Count), 1)
	if e.Series != nil {
		count = max(count, int(e.Series.Count))
	}
	return event{Time: cluster.LastSeen(*e).UTC(), Type: e.Type, Reason: short(e.Reason),
		About: strings.ToLower(e.InvolvedObject.Kind) + " " + e.InvolvedObject.Name, From: from, Count: count,
		Message: short(e.Message)}
}

// sortedEvents returns the events, the oldest first.
func (n *namespace) sortedEvents() []event {
	all := []event{}
	for _, e := range n.events {
		all = append(all, *e)
	}
	slices.SortFunc(all, func(a, b event) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.About, b.About), cmp.Compare(a.Message, b.Message))
	})
	return all
}

// bytes returns the size of the record, roughly, with the output of containers.
func (n *namespace) bytes() int {
	size := n.size
	for _, p := range n.pods {
		for _, o := range p.outputs {
			size += o.bytes()
		}
	}
	return size
}

// drop drops the record, for the reason given.
func (n *namespace) drop(why string) {
	for _, p := range n.pods {
		for _, o := range p.outputs {
			o.stop()
		}
	}
	n.pods, n.byPod, n.events, n.size, n.dropped = nil, map[types.UID]*pod{}, map[types.UID]*event{}, 0, why
}

// nodes returns the names of the nodes on which pods of the namespace were.
func (n *namespace) nodes() (all []string) {
	for _, p := range n.pods {
		if name := p.last.Spec.NodeName; name != "" && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}
