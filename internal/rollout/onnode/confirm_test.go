package onnode_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/rollout"
	"github.com/swdt-dev/swdt/internal/testing/fleettest"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// theirs is a server of an attacker's kubelet.
type theirs struct {
	content fleetv1.Content
	asked   atomic.Int64
}

func newTheirs(t *testing.T) *theirs {
	kubelet := fleettest.Kubelet("v6.6.6", "")
	a := &theirs{}
	d := fleettest.NewFileServer(t, map[string][]byte{"theirs.exe": kubelet})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.asked.Add(1)
		d.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	a.content = fleettest.ContentOf(server.URL+"/theirs.exe", d.Sum("theirs.exe"))
	return a
}

// forgery is an order that the controller did not give, or no longer would.
type forgery struct {
	reason string // a part of the node's report, which names what differs
	// forge changes the rollout r, the order that the controller has given for it, and further objects.
	forge func(o *ordered, r *fleetv1.NodeRollout, s *fleetv1.NodeStateSpec)
}

// contents changes the content of the order, and its hash with it.
func contents(reason string, change func(*fleetv1.Content)) forgery {
	return forgery{reason, func(_ *ordered, _ *fleetv1.NodeRollout, s *fleetv1.NodeStateSpec) {
		s.Content = *s.Content.DeepCopy()
		change(&s.Content)
		s.Hash = rollout.HashOf(s.Content)
	}}
}

// another makes a rollout that the order names.
func another(o *ordered, content fleetv1.Content, selector metav1.LabelSelector) string {
	r := rolling(content)
	r.Name, r.Spec.Selector = "other", selector
	o.roll(r)
	return r.Name
}

func forgeries(a *theirs) map[string]forgery {
	first := func(change func(*fleetv1.Provisioner)) func(*fleetv1.Content) {
		return func(c *fleetv1.Content) { change(&c.Provisioners[0]) }
	}
	elsewhere := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "pool", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"a"}}}}
	here := metav1.LabelSelector{MatchLabels: map[string]string{"pool": "a"}}
	rolls := func(change func(*fleetv1.NodeRollout)) func(*ordered, *fleetv1.NodeRollout, *fleetv1.NodeStateSpec) {
		return func(_ *ordered, r *fleetv1.NodeRollout, _ *fleetv1.NodeStateSpec) { change(r) }
	}
	return map[string]forgery{
		"an attacker's content": contents("provisioners[0].sha256, provisioners[0].sourceURL",
			func(c *fleetv1.Content) { *c = a.content }),
		"an attacker's content with the hash of the rollout's": {"hash",
			func(_ *ordered, _ *fleetv1.NodeRollout, s *fleetv1.NodeStateSpec) { s.Content = a.content }},
		"another hash of a component": contents("differs in provisioners[0].sha256",
			first(func(p *fleetv1.Provisioner) { p.SHA256 = a.content.Provisioners[0].SHA256 })),
		"another URL": contents("differs in provisioners[0].sourceURL",
			first(func(p *fleetv1.Provisioner) { p.SourceURL = a.content.Provisioners[0].SourceURL })),
		"arguments": contents("differs in provisioners[0].args",
			first(func(p *fleetv1.Provisioner) { p.Args = []string{"--v=4"} })),
		"no probe": contents("differs in provisioners[0].health.none",
			first(func(p *fleetv1.Provisioner) { p.Health = p.Health.DeepCopy(); p.Health.None = true })),
		"a further component": contents("differs in provisioners[1]", func(c *fleetv1.Content) {
			added := a.content.Provisioners[0]
			added.Name, added.Destination = "theirs", `C:\k\theirs.exe`
			c.Provisioners = append(c.Provisioners, added)
		}),
		"a further setup": contents("differs in setup", func(c *fleetv1.Content) {
			c.Setup = &fleetv1.Setup{Environment: map[string]string{"COMSPEC": `C:\theirs.exe`}}
		}),
		"a component less": contents("differs in provisioners, setup", func(c *fleetv1.Content) {
			c.Provisioners, c.Setup = nil, &fleetv1.Setup{Path: []string{`C:\theirs`}}
		}),
		"another hash of the content": {"hash",
			func(_ *ordered, _ *fleetv1.NodeRollout, s *fleetv1.NodeStateSpec) { s.Hash = "0123456789abcdef" }},
		"the content of another rollout": {"differs in provisioners[0].sha256, provisioners[0].sourceURL",
			func(o *ordered, _ *fleetv1.NodeRollout, s *fleetv1.NodeStateSpec) {
				another(o, a.content, here)
				s.Content, s.Hash = a.content, rollout.HashOf(a.content)
			}},
		"a rollout that does not choose the node": {"does not choose this node: its selector is pool notin (a)",
			func(o *ordered, _ *fleetv1.NodeRollout, s *fleetv1.NodeStateSpec) {
				s.Rollout = another(o, a.content, elsewhere)
				s.Content, s.Hash = a.content, rollout.HashOf(a.content)
			}},
		"a rollout that does not exist": {"no NodeRollout theirs",
			func(_ *ordered, _ *fleetv1.NodeRollout, s *fleetv1.NodeStateSpec) { s.Rollout = "theirs" }},
		"a rollout that is deleted": {"is being deleted", rolls(func(r *fleetv1.NodeRollout) {
			r.Finalizers, r.DeletionTimestamp = []string{"a.example/b"}, &metav1.Time{}
			r.DeletionTimestamp.Time = r.DeletionTimestamp.AddDate(2025, 0, 0)
		})},
		"a rollout that has a newer content": {"differs in provisioners[0].version",
			rolls(func(r *fleetv1.NodeRollout) {
				r.Spec.Content = *r.Spec.Content.DeepCopy()
				r.Spec.Content.Provisioners[0].Version = "v1.37.3"
			})},
		"a rollout that is paused":  {"is paused", rolls(func(r *fleetv1.NodeRollout) { r.Spec.Paused = true })},
		"a rollout that is aborted": {"is Abort", rolls(func(r *fleetv1.NodeRollout) { r.Spec.Operation = fleetv1.OperationAbort })},
		"a rollout that goes back":  {"is RollBack", rolls(func(r *fleetv1.NodeRollout) { r.Spec.Operation = fleetv1.OperationRollBack })},
	}
}

// Whoever can write NodeStates, and no NodeRollout, gains nothing on a node: an order that is not one of its NodeRollout
// is refused, before and after its release, with a report that names what differs. The node fetches nothing, begins no
// transaction, and carries out the next order that is right.
func TestAForgedOrderIsRefused(t *testing.T) {
	a := newTheirs(t)
	wanted := fleettest.Kubelet("v1.37.2", "")
	d := fleettest.NewFileServer(t, map[string][]byte{"good.exe": wanted})
	for what, f := range forgeries(a) {
		t.Run(what, func(t *testing.T) {
			o := unordered(t)
			begun := o.transactions()
			for _, release := range []bool{false, true} {
				r, s := rolling(d.Content("good.exe")), specOf(d.Content("good.exe"))
				s.Released = release
				f.forge(o, r, &s)
				o.roll(r)
				o.writeAnew(s)
				o.refused(f.reason)
			}
			if begun.Load() != 0 || a.asked.Load() != 0 {
				t.Errorf("%d transactions, and %d requests to the attacker", begun.Load(), a.asked.Load())
			}
			o.order(d.Content("good.exe")) // the last report may be the refusal of an order with this hash
			defer o.run()()
			o.await("the rollout's own order", func(s fleetv1.NodeState) bool { return s.Status.Phase == fleetv1.PhaseDone })
			if !o.Runs(wanted) {
				t.Error("it does not run the content")
			}
		})
	}
}

// refused checks that the node refuses its order for this reason, and is unchanged.
func (o *ordered) refused(reason string) {
	o.t.Helper()
	status := o.carryOut()
	if status.Phase != fleetv1.PhaseRefused || !strings.Contains(status.Message, reason) {
		o.t.Errorf("%s %q; want it to be refused with %q", status.Phase, status.Message, reason)
	}
	if !o.Runs(o.First) {
		o.t.Error("it does not run its first kubelet")
	}
}

// An order to roll back must be the operation of its NodeRollout, or follow a change of the node that no verdict has
// ended. Nothing but what the node has recorded is put back.
func TestAForgedRollbackIsRefused(t *testing.T) {
	a := newTheirs(t)
	wanted := fleettest.Kubelet("v1.37.2", "")
	d := fleettest.NewFileServer(t, map[string][]byte{"good.exe": wanted})
	content := d.Content("good.exe")
	updated := func(t *testing.T) *ordered {
		o := newOrdered(t, content)
		if status := o.carryOut(); status.Phase != fleetv1.PhaseDone {
			t.Fatalf("the content: %+v", status)
		}
		return o
	}
	back := func(o *ordered, content fleetv1.Content, generation int64) fleetv1.NodeStateStatus {
		s := released(content)
		s.Action, s.RollbackGeneration = fleetv1.ActionRollBack, generation
		o.writeAnew(s)
		return o.carryOut()
	}
	judge := func(o *ordered) {
		s := o.state().Spec
		s.Verdict = fleetv1.VerdictUpdated
		o.write(s)
		defer o.run()()
		o.await("the verdict to be recorded", func(fleetv1.NodeState) bool {
			text, err := o.Machine.ReadFile(layout.RolloutRecord)
			return err == nil && strings.Contains(string(text), `"judged":true`)
		})
	}
	expect := func(t *testing.T, o *ordered, status fleetv1.NodeStateStatus, reason string) {
		t.Helper()
		if status.Phase != fleetv1.PhaseRefused || !strings.Contains(status.Message, reason) || !o.Runs(wanted) {
			t.Errorf("%s %q; want it to be refused with %q; it runs the content: %t", status.Phase, status.Message, reason,
				o.Runs(wanted))
		}
	}
	t.Run("to what the node never had", func(t *testing.T) {
		o := updated(t)
		expect(t, o, back(o, a.content, 0), "no record")
		expect(t, o, back(o, a.content, 1), "differs in provisioners[0].sha256")
	})
	t.Run("on a node that never had the content", func(t *testing.T) {
		o := unordered(t)
		o.roll(rolling(content))
		if status := back(o, content, 0); status.Phase != fleetv1.PhaseRefused || !o.Runs(o.First) {
			t.Errorf("%+v", status)
		}
	})
	t.Run("an operation that the rollout does not have", func(t *testing.T) {
		o := updated(t)
		expect(t, o, back(o, content, 1), "is Roll")
	})
	t.Run("of a node that has a verdict", func(t *testing.T) {
		o := updated(t)
		judge(o)
		expect(t, o, back(o, content, 0), "only its operation RollBack")
		o.writeAnew(released(content)) // changes nothing, so the verdict holds
		if status := o.carryOut(); status.Phase != fleetv1.PhaseDone {
			t.Errorf("the same content again: %+v", status)
		}
		expect(t, o, back(o, content, 0), "only its operation RollBack")
		r := rolling(content)
		r.Spec.Operation = fleetv1.OperationRollBack
		o.roll(r)
		if status := back(o, content, 1); status.Phase != fleetv1.PhaseDone || !o.Runs(o.First) {
			t.Errorf("the operation of the rollout: %+v", status)
		}
	})
	t.Run("right ones", func(t *testing.T) {
		for what, change := range map[string]func(*ordered){
			"with the rollout": func(*ordered) {},
			"without it": func(o *ordered) {
				if err := o.client.Resource(fleetv1.RolloutResource()).Delete(t.Context(), "r", metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			},
			"with the record of an earlier program": func(o *ordered) { o.forgetConfirmations() },
		} {
			o := updated(t)
			change(o)
			if status := back(o, content, 0); status.Phase != fleetv1.PhaseDone || !o.Runs(o.First) {
				t.Errorf("%s: %+v; it runs its first kubelet: %t", what, status, o.Runs(o.First))
			}
		}
	})
}

// forgetConfirmations makes the record one of a program that did not confirm orders.
func (o *ordered) forgetConfirmations() {
	o.t.Helper()
	var records []map[string]any
	text, err := o.Machine.ReadFile(layout.RolloutRecord)
	if err == nil {
		err = json.Unmarshal(text, &records)
	}
	if err != nil || len(records) != 1 || records[0]["content"] == "" {
		o.t.Fatalf("the record %s: %v", text, err)
	}
	text, err = json.Marshal([]any{map[string]any{"hash": records[0]["hash"], "replaced": records[0]["replaced"]}})
	if err != nil {
		o.t.Fatal(err)
	}
	o.Put(layout.RolloutRecord, text)
}

// While the API server cannot be asked, nothing is done for an order, and the report shows why.
func TestANodeWaitsForTheConfirmation(t *testing.T) {
	wanted := fleettest.Kubelet("v1.37.2", "")
	d := fleettest.NewFileServer(t, map[string][]byte{"good.exe": wanted})
	forbidden := apierrors.NewForbidden(fleetv1.RolloutResource().GroupResource(), "r", nil)
	for what, outage := range map[string]error{"outage": errOutage, "no right": forbidden} {
		for _, resource := range []string{"noderollouts", "nodes"} {
			t.Run(what+" for "+resource, func(t *testing.T) {
				o := newOrdered(t, d.Content("good.exe"))
				var reachable atomic.Bool
				o.onGet(resource, func() error {
					if reachable.Load() {
						return nil
					}
					return outage
				})
				begun := o.transactions()
				defer o.run()()
				if lack := o.awaitLack(); !strings.Contains(lack, "confirm the order: ") || begun.Load() != 0 {
					t.Errorf("%d transactions; the report is %q", begun.Load(), lack)
				}
				reachable.Store(true)
				o.await("the order", func(s fleetv1.NodeState) bool { return s.Status.Phase == fleetv1.PhaseDone })
			})
		}
	}
}

// onGet calls f before the API server answers a request for an object. If f returns an error, that is the answer.
func (o *ordered) onGet(resource string, f func() error) {
	o.client.PrependReactor("get", resource, func(k8stesting.Action) (bool, runtime.Object, error) {
		err := f()
		return err != nil, nil, err
	})
}

// A node asks the API server once for a claim and once for its release, also if the server of the binaries makes it try
// again and again.
func TestAnOrderIsConfirmedOnce(t *testing.T) {
	d := fleettest.NewFileServer(t, map[string][]byte{"good.exe": fleettest.Kubelet("v1.37.2", "")})
	var refusals, rollouts, nodes atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refusals.Add(1) <= 3 {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		d.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	o := newClaimed(t, fleettest.ContentOf(server.URL+"/good.exe", d.Sum("good.exe")))
	count := func(n *atomic.Int64) func() error {
		return func() error { n.Add(1); return nil }
	}
	o.onGet("noderollouts", count(&rollouts))
	o.onGet("nodes", count(&nodes))
	defer o.run()()
	o.awaitFetched()
	if rollouts.Load() != 1 || nodes.Load() != 1 || refusals.Load() < 4 {
		t.Errorf("the claim: %d requests for the rollout, %d for the node, %d for the binary", rollouts.Load(), nodes.Load(),
			refusals.Load())
	}
	o.release()
	o.await("the order", func(s fleetv1.NodeState) bool { return s.Status.Phase == fleetv1.PhaseDone })
	if rollouts.Load() != 2 || nodes.Load() != 2 {
		t.Errorf("the claim and its release: %d requests for the rollout, %d for the node", rollouts.Load(), nodes.Load())
	}
}

// A pause lets a node go on that has the binaries.
func TestAPauseAfterTheFetch(t *testing.T) {
	wanted := fleettest.Kubelet("v1.37.2", "")
	d := fleettest.NewFileServer(t, map[string][]byte{"good.exe": wanted})
	o := newClaimed(t, d.Content("good.exe"))
	o.carryOut()
	r := rolling(d.Content("good.exe"))
	r.Spec.Paused = true
	o.roll(r)
	o.release()
	if status := o.carryOut(); status.Phase != fleetv1.PhaseDone || !o.Runs(wanted) {
		t.Errorf("%+v", status)
	}
}

// A node brings an order to its end that it has begun, although the pod ends in it and the rollout is another one, or
// gone, when the next pod begins. The same order, given again afterwards, is refused.
func TestAnOrderThatHasBegunNeedsNoRollout(t *testing.T) {
	wanted := fleettest.Kubelet("v1.37.2", "")
	d := fleettest.NewFileServer(t, map[string][]byte{"good.exe": wanted})
	content := d.Content("good.exe")
	content.Setup = &fleetv1.Setup{Environment: map[string]string{"SWDT_TRIED": "yes"}}
	for what, change := range map[string]func(*fleetv1.NodeRollout){
		"aborted":     func(r *fleetv1.NodeRollout) { r.Spec.Operation = fleetv1.OperationAbort },
		"paused":      func(r *fleetv1.NodeRollout) { r.Spec.Paused = true },
		"of others":   func(r *fleetv1.NodeRollout) { r.Spec.Selector.MatchLabels["pool"] = "b" },
		"another one": func(r *fleetv1.NodeRollout) { r.Spec.Content = fleettest.ContentOf(d.URL+"/other", d.Sum("good.exe")) },
	} {
		t.Run(what, func(t *testing.T) {
			o := newOrdered(t, content)
			var begun, reachable atomic.Bool
			o.onReport(`"phase":"Done"`, func() error {
				if reachable.Load() {
					return nil
				}
				begun.Store(true) // ends the pod
				return errOutage
			})
			if status := o.until(&begun); status.Phase != fleetv1.PhaseWorking {
				t.Errorf("before the report: %+v", status)
			}
			reachable.Store(true)
			r := rolling(content)
			change(r)
			o.roll(r)
			if status := o.carryOut(); status.Phase != fleetv1.PhaseDone || !o.Runs(wanted) {
				t.Errorf("%+v; it runs the content: %t", status, o.Runs(wanted))
			}
			s := o.state().Spec
			s.Reason = "again"
			o.writeAnew(s)
			if status := o.carryOut(); status.Phase != fleetv1.PhaseRefused {
				t.Errorf("the same order again: %+v", status)
			}
		})
	}
}
