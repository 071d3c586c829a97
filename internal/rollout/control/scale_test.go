package control_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/cache"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/rollout"
	"github.com/swdt-dev/swdt/internal/testing/fleettest"
	"github.com/swdt-dev/swdt/internal/wait"
)

// scaleNodes is the usual size of TestFleetAtScale.
const scaleNodes = 20

// killsOf returns how often the controller is killed during a rollout that touches this number of nodes.
func killsOf(touched int) int { return max(touched/20, 5) }

// The goals of the controller at scale.
const (
	mostRequests = 40        // a node
	mostMemory   = 200 << 20 // bytes
	mostLists    = 3         // one of each kind that the controller watches
)

// killSeed chooses the moments at which the controller is killed.
const killSeed = 19

// scale is a fleet of many simulated machines on a real control plane.
type scale struct {
	*lab
	machines []*fleettest.Machine
	depot    *fleettest.FileServer
	states   *observer
	spec     fleetv1.NodeRolloutSpec
	runs     []byte // the kubelet that all machines have
}

// A rollout goes over many nodes in waves of 10 %, with drains: a good build reaches all of them; a bad one
// stops at failureLimit nodes, each of which has restored its own binaries, and touches no other. The end is
// the same if the controller is killed again and again, and if the API server is killed in the middle.
// SWDT_FLEET_NODES sets another number of nodes.
func TestFleetAtScale(t *testing.T) {
	s := newScale(t, scaleSize(t))
	controller := s.controllerProcess(0)
	s.measured(controller)
	s.bad("v2", nil)
	controller.stop()

	controller = s.controllerProcess(3 * time.Second)
	s.good("v3", s.kills(controller, len(s.machines)))
	s.expectKills(controller, len(s.machines))
	s.bad("v4", s.kills(controller, int(s.spec.FailureLimit)))
	s.expectKills(controller, int(s.spec.FailureLimit))

	s.good("v5", s.restart(2*len(s.machines)))
	s.bad("v6", s.restart(2*int(s.spec.FailureLimit)))
	controller.stop()
}

func scaleSize(t *testing.T) int {
	text := os.Getenv("SWDT_FLEET_NODES")
	if text == "" {
		return scaleNodes
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 20 {
		t.Fatalf("SWDT_FLEET_NODES=%s: use a number from 20 on", text)
	}
	return n
}

func newScale(t *testing.T, size int) *scale {
	s := &scale{lab: newLab(t), machines: fleettest.Machines(t, size)}
	s.limit = 30 * time.Minute
	s.depot = fleettest.NewFileServer(t, map[string][]byte{})
	var names []string
	for _, m := range s.machines {
		names = append(names, m.Name)
	}
	s.nodes(names...)
	cache := t.TempDir()
	for _, m := range s.machines {
		s.program(m, cache)
	}
	s.states = s.observe()
	tenth := intstr.FromString("10%")
	s.spec = fleetv1.NodeRolloutSpec{MaxUnavailable: &tenth, FailureLimit: int32(max(size/20, 5)),
		Drain: &fleetv1.Drain{}, Health: fleetv1.NodeHealth{Settle: "100ms"}}
	s.runs = s.machines[0].First
	return s
}

// measured rolls a good build out, and holds what that cost against the goals.
func (s *scale) measured(controller *process) {
	s.t.Helper()
	begin, size := time.Now(), len(s.machines)
	s.good("v1", nil)
	took := time.Since(begin)
	used := controller.usage()
	made, _ := s.requests(controllerUser, 0)
	programs, _ := s.requests(programUser, 0)
	each := float64(made.total) / float64(size)
	s.t.Logf("%d nodes in %s: the controller used %s of a processor (%s a node) and %d MB at most; "+
		"%d requests, %.1f a node; the programs made %.1f requests a node\n%s", size, took.Round(time.Second),
		used.processor, (used.processor / time.Duration(size)).Round(10*time.Microsecond), used.peak>>20, made.total, each,
		float64(programs.total)/float64(size), made)
	if each >= mostRequests {
		s.t.Errorf("%.1f requests a node, want less than %d", each, mostRequests)
	}
	if used.peak >= mostMemory {
		s.t.Errorf("%d MB of memory, want less than %d", used.peak>>20, mostMemory>>20)
	}
	if made.whole > mostLists {
		s.t.Errorf("the controller read all objects of a kind %d times, want %d: %s", made.whole, mostLists, made)
	}
}

// build brings a build into the depot, and makes it the content of the rollout.
func (s *scale) build(version string, fault simulated.Fault) []byte {
	file := version + ".exe"
	binary := fleettest.Kubelet(version, fault)
	s.depot.Add(file, binary)
	s.spec.Content = s.depot.Content(file)
	// A hundred machines start at once on two processors.
	*s.spec.Content.Provisioners[0].Health.Timeout = "2m"
	return binary
}

// good rolls out a build that works. disturb is called after each change of a NodeState.
func (s *scale) good(version string, disturb func()) {
	s.t.Helper()
	begin := time.Now()
	s.runs = s.build(version, "")
	s.states.begin(rollout.HashOf(s.spec.Content), disturb)
	s.rollout(s.spec)
	status := s.settle(rollout.StateComplete)
	if int(status.Updated) != len(s.machines) || status.Failed > 0 {
		s.t.Errorf("%s: the status is %+v", version, status)
	}
	s.ended(version, begin, max(len(s.machines)/10, 1), len(s.machines))
}

// bad rolls out a build that does not start.
func (s *scale) bad(version string, disturb func()) {
	s.t.Helper()
	begin, limit := time.Now(), int(s.spec.FailureLimit)
	s.build(version, simulated.CrashAtStart)
	s.states.begin(rollout.HashOf(s.spec.Content), disturb)
	s.rollout(s.spec)
	status := s.settle(rollout.StateStopped)
	if int(status.Failed) != limit || status.Updated > 0 {
		s.t.Errorf("%s: want %d failed nodes; the status is %+v", version, limit, status)
	}
	s.ended(version, begin, min(max(len(s.machines)/10, 1), limit), limit)
}

// ended checks how many nodes were touched, at once and in all, and what all machines run.
func (s *scale) ended(version string, begin time.Time, atOnce, touched int) {
	s.t.Helper()
	s.awaitObserver()
	most, all, changes := s.states.end()
	s.t.Logf("%s: %d nodes touched, at most %d at once, %d changes of NodeStates, %s", version, all, most, changes,
		time.Since(begin).Round(time.Second))
	if most > atOnce || all != touched {
		s.t.Errorf("%s: %d nodes were touched, at most %d at once; want %d and %d", version, all, most, touched, atOnce)
	}
	for _, m := range s.machines {
		if !m.Runs(s.runs) {
			s.t.Errorf("%s: %s does not run the last good kubelet", version, m.Name)
		}
	}
}

// awaitObserver waits until the observer has seen the NodeStates as they are: an API server that starts again may
// refuse its watch for a while.
func (s *scale) awaitObserver() {
	s.t.Helper()
	err := wait.Condition{Name: "the observer to see all NodeStates", Interval: 100 * time.Millisecond, Limit: s.limit,
		Look: func(ctx context.Context) error {
			list, err := s.admin.Dynamic().Resource(fleetv1.StateResource()).List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			for _, u := range list.Items {
				if !s.states.has(u.GetName(), u.GetResourceVersion()) {
					return errNotYet
				}
			}
			return nil
		}}.Wait(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
}

// kills returns a function that kills the controller in random intervals, which are short enough for all
// kills to come while the rollout touches this number of nodes: each touch makes six changes.
func (s *scale) kills(controller *process, touched int) func() {
	random := rand.New(rand.NewPCG(killSeed, uint64(touched)))
	left := killsOf(touched)
	longest := max(4*touched/left, 1)
	until := 1 + random.IntN(longest)
	return func() {
		until--
		if until > 0 || left == 0 || !controller.kill() {
			return
		}
		left--
		until = 1 + random.IntN(longest)
	}
}

func (s *scale) expectKills(controller *process, touched int) {
	s.t.Helper()
	controller.mutex.Lock()
	defer controller.mutex.Unlock()
	if controller.kills != killsOf(touched) {
		s.t.Errorf("the controller was killed %d times, want %d", controller.kills, killsOf(touched))
	}
	s.t.Logf("the controller was killed %d times", controller.kills)
	controller.kills = 0
}

// restart returns a function that kills and starts the API server after that many changes of NodeStates.
func (s *scale) restart(changes int) func() {
	return func() {
		changes--
		if changes != 0 {
			return
		}
		s.background(func(context.Context) {
			if err := s.plane.RestartAPIServer(context.Background()); err != nil {
				s.t.Error(err)
			}
		})
	}
}

// observer sees each change of a NodeState.
type observer struct {
	mutex   sync.Mutex
	seen    map[string]string // the last versions
	hash    string
	disturb func()
	working map[string]bool
	touched map[string]bool
	done    map[string]bool   // the node runs the content
	started func(node string) // is called when a node runs the content
	most    int               // of working at once
	changes int
}

// observe watches the NodeStates until the test ends.
func (l *lab) observe() *observer {
	o := &observer{seen: map[string]string{}, working: map[string]bool{}, started: func(node string) { l.restarted <- node }}
	informer := cluster.NewInformer(l.admin.Dynamic(), fleetv1.StateResource(), "")
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { o.see(object) },
		UpdateFunc: func(before, object any) {
			if version(before) != version(object) {
				o.see(object)
			}
		},
	}); err != nil {
		l.t.Fatal(err)
	}
	l.background(informer.RunWithContext)
	return o
}

func version(object any) string {
	u, _ := object.(*unstructured.Unstructured)
	return u.GetResourceVersion()
}

func (o *observer) begin(hash string, disturb func()) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.hash, o.disturb, o.touched, o.done, o.most, o.changes = hash, disturb, map[string]bool{}, map[string]bool{}, 0, 0
}

func (o *observer) end() (most, touched, changes int) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.disturb = nil
	return o.most, len(o.touched), o.changes
}

// has reports whether the last version of a NodeState that the observer has seen is this one.
func (o *observer) has(name, version string) bool {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.seen[name] == version
}

func (o *observer) see(object any) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return
	}
	var s fleetv1.NodeState
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &s); err != nil {
		panic(fmt.Sprintf("the API server sends a wrong NodeState: %v", err))
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.seen[s.Name] = s.ResourceVersion
	if s.Spec.Hash != o.hash {
		return
	}
	o.changes++
	o.touched[s.Name] = true
	if s.Status.Hash == s.Spec.Hash && s.Status.Phase == fleetv1.PhaseDone && !o.done[s.Name] {
		o.done[s.Name] = true
		o.started(s.Name)
	}
	delete(o.working, s.Name)
	if s.Spec.Rollout != "" && s.Spec.Verdict == "" {
		o.working[s.Name] = true
	}
	o.most = max(o.most, len(o.working))
	if o.disturb != nil {
		o.disturb()
	}
}
