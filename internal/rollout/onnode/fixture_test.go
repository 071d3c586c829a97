package onnode_test

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/rollout"
	"github.com/swdt-dev/swdt/internal/rollout/onnode"
	"github.com/swdt-dev/swdt/internal/testing/fleettest"
	"github.com/swdt-dev/swdt/internal/wait"
	"github.com/swdt-dev/swdt/internal/wire/distribution"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

type machine = fleettest.Machine

// ordered is a machine with an order for it. The client has its NodeState, as the API server.
type ordered struct {
	*machine
	t      *testing.T
	client *fake.FakeDynamicClient
	cache  string
	secret string // the path of the pull secret, which does not exist yet
}

// newOrdered returns a machine with a released order of the content.
func newOrdered(t *testing.T, content fleetv1.Content) *ordered {
	o := unordered(t)
	o.order(content)
	return o
}

// newClaimed returns a machine with an order of the content that is not released.
func newClaimed(t *testing.T, content fleetv1.Content) *ordered {
	o := unordered(t)
	o.claim(content)
	return o
}

func unordered(t *testing.T) *ordered {
	scheme := runtime.NewScheme()
	if err := errors.Join(fleetv1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	own := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w0", Labels: map[string]string{"pool": "a"}}}
	return &ordered{machine: fleettest.NewMachine(t, "w0"), t: t, client: fake.NewSimpleDynamicClient(scheme, own),
		cache: t.TempDir(), secret: filepath.Join(t.TempDir(), ".dockerconfigjson")}
}

// claim makes the content that of the rollout r, and orders it, not released yet; order also releases it.
func (o *ordered) claim(content fleetv1.Content) {
	o.t.Helper()
	o.roll(rolling(content))
	o.write(specOf(content))
}

func (o *ordered) order(content fleetv1.Content) {
	o.t.Helper()
	o.roll(rolling(content))
	o.write(released(content))
}

func released(content fleetv1.Content) fleetv1.NodeStateSpec {
	spec := specOf(content)
	spec.Released = true
	return spec
}

// rolling returns the rollout r of the content. It chooses w0.
func rolling(content fleetv1.Content) *fleetv1.NodeRollout {
	r := &fleetv1.NodeRollout{TypeMeta: metav1.TypeMeta{APIVersion: fleetv1.GroupVersion().String(), Kind: "NodeRollout"},
		ObjectMeta: metav1.ObjectMeta{Name: "r"}}
	r.Spec.Content, r.Spec.Selector.MatchLabels = content, map[string]string{"pool": "a"}
	return r
}

// roll writes a rollout.
func (o *ordered) roll(r *fleetv1.NodeRollout) {
	o.t.Helper()
	put(o, fleetv1.RolloutResource(), r.Name, r)
}

// put creates or updates an object.
func put(o *ordered, kind schema.GroupVersionResource, name string, object any) {
	o.t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		o.t.Fatal(err)
	}
	resource, u := o.client.Resource(kind), &unstructured.Unstructured{Object: fields}
	if _, err = resource.Get(o.t.Context(), name, metav1.GetOptions{}); err != nil {
		_, err = resource.Create(o.t.Context(), u, metav1.CreateOptions{})
	} else {
		_, err = resource.Update(o.t.Context(), u, metav1.UpdateOptions{})
	}
	if err != nil {
		o.t.Fatal(err)
	}
}

func specOf(content fleetv1.Content) fleetv1.NodeStateSpec {
	return fleetv1.NodeStateSpec{Rollout: "r", Hash: rollout.HashOf(content), Action: fleetv1.ActionApply, Content: content}
}

// release releases the order.
func (o *ordered) release() {
	spec := o.state().Spec
	spec.Released = true
	o.write(spec)
}

// orderBack orders the binaries before the content back.
func (o *ordered) orderBack() {
	spec := o.state().Spec
	spec.Action = fleetv1.ActionRollBack
	o.write(spec)
}

// state returns the NodeState; without an order, the zero value.
func (o *ordered) state() (s fleetv1.NodeState) {
	u, err := o.client.Resource(fleetv1.StateResource()).Get(o.t.Context(), o.Name, metav1.GetOptions{})
	if err != nil {
		return s
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &s); err != nil {
		o.t.Fatal(err)
	}
	return s
}

// write writes the spec; the machine may write the status meanwhile.
func (o *ordered) write(spec fleetv1.NodeStateSpec) {
	o.t.Helper()
	o.writeState(spec, o.state().Status)
}

// writeAnew writes the spec of a NodeState without a report, so that the next report answers it.
func (o *ordered) writeAnew(spec fleetv1.NodeStateSpec) {
	o.t.Helper()
	o.writeState(spec, fleetv1.NodeStateStatus{})
}

func (o *ordered) writeState(spec fleetv1.NodeStateSpec, status fleetv1.NodeStateStatus) {
	o.t.Helper()
	state := o.state()
	state.TypeMeta = metav1.TypeMeta{APIVersion: fleetv1.GroupVersion().String(), Kind: "NodeState"}
	state.Name, state.Spec, state.Status = o.Name, spec, status
	put(o, fleetv1.StateResource(), o.Name, &state)
}

// run runs the program in a pod until the returned function is called.
func (o *ordered) run() (end func()) {
	ctx, cancel := context.WithCancel(o.t.Context())
	sources := source.NewSet(source.Options{Cache: o.cache, Credential: distribution.MountedPullSecret(o.secret)})
	var pod sync.WaitGroup
	pod.Go(func() { // it returns the end of ctx
		_ = onnode.Run(ctx, onnode.Options{Node: o.Name, Client: o.client, Retry: 100 * time.Millisecond,
			Sources: sources, Local: o.Local, Open: o.Open})
	})
	end = func() { cancel(); pod.Wait() }
	o.t.Cleanup(end)
	return end
}

// until runs the program in a pod, which ends when the order has and its journal is gone, or when it is struck.
func (o *ordered) until(struck *atomic.Bool) fleetv1.NodeStateStatus {
	o.t.Helper()
	end := o.run()
	o.await("the end of the order", func(s fleetv1.NodeState) bool { return struck.Load() || ended(s) && o.forgotten() })
	end()
	return o.state().Status
}

// carryOut runs the program in a pod until the order has ended.
func (o *ordered) carryOut() fleetv1.NodeStateStatus {
	o.t.Helper()
	return o.until(&atomic.Bool{})
}

func ended(s fleetv1.NodeState) bool {
	return s.Status.Phase != "" && s.Status.Phase != fleetv1.PhaseWorking && s.Status.Hash == s.Spec.Hash &&
		s.Status.Action == s.Spec.Action && (s.Status.Phase != fleetv1.PhaseFetched || !s.Spec.Released)
}

func (o *ordered) await(what string, wanted func(fleetv1.NodeState) bool) {
	o.t.Helper()
	err := wait.Condition{Name: what, Interval: time.Millisecond, Limit: 2 * time.Minute,
		Look: func(context.Context) error {
			if !wanted(o.state()) {
				return errNotYet
			}
			return nil
		}}.Wait(o.t.Context())
	if err != nil {
		o.t.Fatalf("%v: %+v", err, o.state())
	}
}

var errNotYet = errors.New("not yet")

// forgotten reports whether the machine has no journal of a transaction, and no record of an order that has begun.
func (o *ordered) forgotten() bool {
	look := o.Machine.Spawn("look")
	defer look.Exit()
	if records, err := o.Machine.ReadFile(layout.RolloutRecord); err == nil && strings.Contains(string(records), `"begun"`) {
		return false
	}
	left, err := look.Platform.Files.List(layout.Journals)
	return err == nil && len(left) == 0 || errors.Is(err, fault.ErrNotExist)
}

// probedURL is the URL that probed serves.
const probedURL = "http://127.0.0.1:8099/ready"

// probed makes the machine answer probedURL: with success if ready returns true.
func (o *ordered) probed(ready func() bool) {
	o.t.Helper()
	err := o.Machine.Spawn("probed").HandleHTTP("127.0.0.1:8099", http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) {
			if !ready() {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}))
	if err != nil {
		o.t.Fatal(err)
	}
}
