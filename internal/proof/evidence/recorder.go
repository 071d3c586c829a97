package evidence

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/wait"
)

// runLabel is on each namespace that e2e.test makes, with the ID of the run.
const runLabel = "e2e-run"

// Recorder records one run of e2e.test.
type Recorder struct {
	c        *cluster.Cluster
	client   kubernetes.Interface // for watches
	cancel   context.CancelFunc
	running  sync.WaitGroup
	followed chan struct{} // one element for each container whose output is followed

	mutex      sync.Mutex
	namespaces []*namespace // in the order in which they appeared
	byUID      map[types.UID]*namespace
	watched    int
	unknown    int // namespaces without a record, since there are too many
	nodes      map[string]changes
	gaps       []change // times at which something could not be watched
}

// Record records a run until ctx ends or Stop is called. The function id returns the ID of the run, or "" if
// it is not known yet.
func Record(ctx context.Context, c *cluster.Cluster, id func() (string, error)) (*Recorder, error) {
	client, err := c.Following()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &Recorder{c: c, client: client, cancel: cancel, byUID: map[types.UID]*namespace{}, nodes: map[string]changes{},
		followed: make(chan struct{}, maxFollowed)}
	r.running.Go(func() { r.watchNodes(ctx) })
	r.running.Go(func() {
		if id := r.identify(ctx, id); id != "" {
			r.watchNamespaces(ctx, id)
		}
	})
	return r, nil
}

// Stop ends the recording.
func (r *Recorder) Stop() {
	r.cancel()
	r.running.Wait()
}

// Ended reports that a spec has ended, as far as the output of e2e.test shows. The records of a spec that
// passed are the first that make room for others.
func (r *Recorder) Ended(passed bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, n := range r.namespaces {
		if !n.ended {
			n.ended, n.passed = true, passed
		}
	}
	r.makeRoom()
}

// makeRoom drops records until the rest is within the bound. The mutex is held.
func (r *Recorder) makeRoom() {
	size := 0
	for _, n := range r.namespaces {
		size += n.bytes()
	}
	if size <= maxRecords {
		return
	}
	for _, passed := range []bool{true, false} {
		for _, n := range r.namespaces {
			if size > maxRecords && n.passed == passed {
				size -= n.bytes()
				n.drop("the records of this run had no room for it")
			}
		}
	}
}

// identify waits for the ID of the run.
func (r *Recorder) identify(ctx context.Context, id func() (string, error)) (found string) {
	err := wait.Condition{Name: "the ID of the run in the output of e2e.test", Interval: identifyInterval,
		Limit: identifyLimit, Look: func(context.Context) (err error) {
			if found, err = id(); err == nil && found == "" {
				err = errors.New("it is not there yet")
			}
			return err
		}}.Wait(ctx)
	if err != nil && ctx.Err() == nil {
		r.gap("the namespaces of the run", err)
	}
	return found
}

// gap records that something could not be watched.
func (r *Recorder) gap(what string, err error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if len(r.gaps) < maxGaps {
		r.gaps = append(r.gaps, change{Time: time.Now(), State: short(what + " could not be watched: " + err.Error())})
	}
}

func (r *Recorder) watchNamespaces(ctx context.Context, id string) {
	client := r.client.CoreV1().Namespaces()
	stream[*corev1.Namespace, *corev1.NamespaceList]{
		options: metav1.ListOptions{LabelSelector: labels.SelectorFromSet(labels.Set{runLabel: id}).String()},
		list:    client.List, watch: client.Watch,
		items: func(l *corev1.NamespaceList) []*corev1.Namespace { return pointers(l.Items) },
		take:  func(n *corev1.Namespace, gone bool) { r.takeNamespace(ctx, n, gone) },
	}.run(ctx, func(err error) { r.gap("the namespaces of the run", err) })
}

func (r *Recorder) takeNamespace(ctx context.Context, object *corev1.Namespace, gone bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	known := r.byUID[object.UID]
	switch {
	case known != nil && gone && known.stop != nil:
		stop := known.stop
		known.stop = nil
		r.watched--
		r.running.Go(func() {
			_ = wait.For(ctx, afterlife)
			stop()
		})
	case known == nil && !gone && len(r.namespaces) >= maxNamespaces:
		r.unknown++
	case known == nil && !gone:
		known = &namespace{name: object.Name, uid: object.UID, appeared: time.Now(), byPod: map[types.UID]*pod{},
			events: map[types.UID]*event{}}
		r.byUID[object.UID] = known
		r.namespaces = append(r.namespaces, known)
		if r.watched >= maxWatched {
			known.dropped = "too many other namespaces were watched at the same time"
			return
		}
		r.watched++
		var of context.Context
		of, known.stop = context.WithCancel(ctx)
		r.watchNamespace(of, known)
	}
}

// watchNamespace begins to watch the pods and events of a namespace.
func (r *Recorder) watchNamespace(ctx context.Context, n *namespace) {
	pods, events := r.client.CoreV1().Pods(n.name), r.client.CoreV1().Events(n.name)
	r.running.Go(func() {
		stream[*corev1.Pod, *corev1.PodList]{
			list: pods.List, watch: pods.Watch,
			items: func(l *corev1.PodList) []*corev1.Pod { return pointers(l.Items) },
			take: func(p *corev1.Pod, gone bool) {
				r.mutex.Lock()
				defer r.mutex.Unlock()
				if known := n.takePod(p, gone); known != nil && !gone {
					r.follow(ctx, known, p)
				}
				r.makeRoom()
			},
		}.run(ctx, func(err error) { r.gap("the pods of namespace "+n.name, err) })
	})
	r.running.Go(func() {
		stream[*corev1.Event, *corev1.EventList]{
			list: events.List, watch: events.Watch,
			items: func(l *corev1.EventList) []*corev1.Event { return pointers(l.Items) },
			take: func(e *corev1.Event, gone bool) {
				r.mutex.Lock()
				defer r.mutex.Unlock()
				if !gone {
					n.takeEvent(e)
				}
			},
		}.run(ctx, func(err error) { r.gap("the events of namespace "+n.name, err) })
	})
}

// watchNodes watches the states of the Windows nodes.
func (r *Recorder) watchNodes(ctx context.Context) {
	client := r.client.CoreV1().Nodes()
	stream[*corev1.Node, *corev1.NodeList]{
		options: metav1.ListOptions{LabelSelector: corev1.LabelOSStable + "=windows"},
		list:    client.List, watch: client.Watch,
		items: func(l *corev1.NodeList) []*corev1.Node { return pointers(l.Items) },
		take: func(n *corev1.Node, gone bool) {
			state := nodeState(n)
			if gone {
				state = "deleted"
			}
			r.mutex.Lock()
			defer r.mutex.Unlock()
			if _, known := r.nodes[n.Name]; known || len(r.nodes) < maxNodes {
				r.nodes[n.Name] = r.nodes[n.Name].add(state)
			}
		},
	}.run(ctx, func(err error) { r.gap("the nodes", err) })
}

// during returns the namespaces of a spec: those that appeared while it ran or, if the news of one came
// late, those that its output names.
func (r *Recorder) during(w window, output string) (all []*namespace) {
	for _, n := range r.namespaces {
		late := n.appeared.After(w.end) && n.appeared.Before(w.end.Add(maxLate)) && strings.Contains(output, n.name)
		if late || !n.appeared.Before(w.begin) && !n.appeared.After(w.end) {
			all = append(all, n)
		}
	}
	return all
}

// nodesDuring returns the states of all Windows nodes between two times, by name.
func (r *Recorder) nodesDuring(w window) map[string]changes {
	all := map[string]changes{}
	for name, states := range r.nodes {
		all[name] = states.within(w)
	}
	return all
}

// involved returns the nodes on which pods of the namespaces were, and those that were not Ready.
func involved(namespaces []*namespace, nodes map[string]changes) (all []string) {
	for _, n := range namespaces {
		all = append(all, n.nodes()...)
	}
	for name, states := range nodes {
		if slices.ContainsFunc(states, func(c change) bool { return !isReady(c.State) }) {
			all = append(all, name)
		}
	}
	slices.SortFunc(all, strings.Compare)
	return slices.Compact(all)
}
