package swap_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/agent/internal/hashcache"
	"github.com/swdt-dev/swdt/internal/agent/swap"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/testing/cases"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// point identifies one operation of a transaction, the same in every run of it.
type point struct {
	guardian   bool // else: the session's Begin
	kind       simulated.Kind
	target     string // without its random parts
	occurrence int
}

func (p point) String() string {
	who := "session"
	if p.guardian {
		who = "guardian"
	}
	return fmt.Sprintf("%s %s %s #%d", who, p.kind, p.target, p.occurrence)
}

func pointOf(op simulated.Operation) point {
	random := regexp.MustCompile(`\d{8}-\d{6}-[0-9a-f]{8}`)
	return point{op.Service == layout.GuardianService, op.Kind, random.ReplaceAllString(op.Target, "ID"), op.Occurrence}
}

// ours leaves out operations of starting services, such as writing their logs.
func ours(op simulated.Operation) bool {
	return op.Process == session || op.Service == layout.GuardianService
}

// An interruption is an event at a point.
type interruption struct {
	name string
	// verdict is called at the point, before and after the operation.
	verdict func(simulated.Phase) simulated.Verdict
	// lasting repeats the verdict for every later operation that it applies to, until the next contact.
	lasting bool
	// unattended means that the node heals before the next contact, if its guardian was registered.
	unattended bool
	// restarts means that the node goes down some time after the point.
	restarts bool
}

func at(phase simulated.Phase, v simulated.Verdict) func(simulated.Phase) simulated.Verdict {
	return func(now simulated.Phase) simulated.Verdict {
		if now != phase {
			return simulated.Continue()
		}
		return v
	}
}

// session names the agent's process that serves the interrupted session, to distinguish it from the guardian's
// process of the same executable.
const session = "session.exe"

func interruptions() []interruption {
	both := simulated.Verdict{Kill: []string{session, layout.GuardianService}}
	list := []interruption{
		{name: "fails", verdict: at(simulated.Before, simulated.Fail(fault.ErrPermission)), unattended: true},
		{name: "succeeds but reports a failure", verdict: at(simulated.After, simulated.Fail(fault.ErrInUse)),
			unattended: true},
		{name: "disk full", verdict: at(simulated.Before, simulated.DiskFull()), unattended: true},
		{name: "disk full from then on", verdict: at(simulated.Before, simulated.DiskFull()), lasting: true},
	}
	for _, phase := range []simulated.Phase{simulated.Before, simulated.After} {
		list = append(list,
			interruption{name: "session killed " + string(phase), verdict: at(phase, simulated.KillNamed(session)),
				unattended: true},
			interruption{name: "guardian killed " + string(phase),
				verdict: at(phase, simulated.KillNamed(layout.GuardianService))},
			interruption{name: "both killed " + string(phase), verdict: at(phase, both)},
			interruption{name: "power cut " + string(phase), verdict: at(phase, simulated.PowerCut()),
				unattended: true},
			interruption{name: "restart " + string(phase), verdict: at(phase, simulated.Restart()),
				unattended: true, restarts: true},
		)
	}
	return list
}

// TestEveryInterruption runs one transaction, then again with each interruption at each of its operations, or with
// a sample of them. It does so for a transaction that is committed and for one with a new kubelet that crashes.
func TestEveryInterruption(t *testing.T) {
	for fault, result := range map[string]swap.Result{"": swap.Committed, "crash-at-start": swap.RolledBack} {
		t.Run(string(result), func(t *testing.T) {
			for _, c := range cases.Of(t, casesAt(pointsOf(t, fault, result)), 150) {
				t.Run(c.interruption.name+"/"+c.point.String(), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) { interrupt(t, fault, c.point, c.interruption) })
				})
			}
		})
	}
}

// interruptedAt is an interruption at an operation.
type interruptedAt struct {
	interruption interruption
	point        point
}

// casesAt returns each interruption at each of the operations.
func casesAt(points []point) (all []interruptedAt) {
	for _, i := range interruptions() {
		for _, p := range points {
			all = append(all, interruptedAt{i, p})
		}
	}
	return all
}

// pointsOf runs the transaction undisturbed and returns its operations.
func pointsOf(t *testing.T, fault string, want swap.Result) (points []point) {
	synctest.Test(t, func(t *testing.T) {
		r := newRun(t, fault)
		r.ForgetOperations()
		r.transact()
		if r.outcome.Result != want {
			t.Fatalf("undisturbed: %+v, %v", r.outcome, r.err)
		}
		for _, op := range r.Operations() {
			if p := pointOf(op); ours(op) && !slices.Contains(points, p) {
				points = append(points, p)
			}
		}
		r.check(t, "undisturbed")
		r.checkHistory(t, false)
	})
	if len(points) < 40 {
		t.Fatalf("only %d points: %v", len(points), points)
	}
	return points
}

func interrupt(t *testing.T, fault string, p point, i interruption) {
	r := newRun(t, fault)
	r.ForgetOperations()
	var struck atomic.Bool
	r.OnOperation(func(op simulated.Operation) simulated.Verdict {
		if !ours(op) {
			return simulated.Continue()
		}
		if struck.Load() && i.lasting && (op.Kind == simulated.OpWrite || op.Kind == simulated.OpCreate) {
			return i.verdict(op.Phase)
		}
		if pointOf(op) != p {
			return simulated.Continue()
		}
		struck.Store(true)
		return i.verdict(op.Phase)
	})
	boot, _ := r.Up()
	r.transact()
	if !struck.Load() {
		t.Fatal("the transaction never came to this point")
	}
	if i.restarts {
		<-boot.Done()
	}
	if i.unattended && r.begun() {
		r.healed(t)
		r.checkNode(t, "without any contact")
	}
	r.OnOperation(nil)
	if err := r.AwaitUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.contact(t)
	r.check(t, "after the next contact")
	r.checkHistory(t, strings.Contains(p.target, `\history.`) || i.lasting)
}

// Guardians that are interrupted again and again give up, undo, and count every interruption.
func TestTheNumberOfInterruptionsIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRun(t, "")
		const interruptions = 4
		killed := 0
		r.OnOperation(func(op simulated.Operation) simulated.Verdict {
			starts := op.Service == layout.GuardianService && op.Kind == simulated.OpServiceStart &&
				op.Phase == simulated.Before
			if !starts || killed == interruptions {
				return simulated.Continue()
			}
			killed++
			return simulated.KillNamed(layout.GuardianService)
		})
		r.transact()
		r.contact(t)
		last := r.told[len(r.told)-1]
		if killed != interruptions {
			t.Errorf("the guardian was interrupted %d times, want %d", killed, interruptions)
		}
		if last.Result != swap.RolledBack {
			t.Errorf("the result is %s %q, want %s", last.Result, last.Message, swap.RolledBack)
		}
		if !strings.Contains(last.Message, "interrupted 4 times") {
			t.Errorf("the message is %q, want the number of interruptions, 4", last.Message)
		}
		r.check(t, "after the last guardian")
	})
}

// run is one transaction over a containerd, with its configuration, and a kubelet. The old containerd does not start
// with the new configuration.
type run struct {
	*node
	plan     swap.Plan
	old, new map[string]string // hashes by destination
	id       string
	outcome  swap.Outcome
	err      error
	told     []swap.Outcome
	mayStay  string // a file that check allows to be left
}

func newRun(t *testing.T, fault string) *run {
	n := newNode(t)
	r := &run{node: n, old: map[string]string{}, new: map[string]string{}}
	r.plan = swap.Plan{Holder: "tester", Components: []swap.Component{
		n.stageContainerd(t, "2.4.2", ""), n.stageKubelet(t, "v1.30.0", fault),
		n.stageConfiguration(t, "version = 4\n"),
	}}
	r.plan.Components[1].CommandLine = `"C:\k\kubelet.exe" --v=6`
	for _, c := range r.plan.Components {
		r.old[c.Destination], r.new[c.Destination] = c.PreviousSHA256, c.SHA256
	}
	return r
}

// transact is a whole session: begin, follow, acknowledge.
func (r *run) transact() {
	p := r.Spawn(session)
	defer p.Exit()
	m := swap.Machine{Platform: p.Platform, Executable: r.agent}
	if r.id, r.err = swap.Begin(p.Context(), m, r.plan); r.err != nil {
		return
	}
	r.outcome, r.err = swap.Follow(p.Context(), m, r.id, func(swap.Event) {})
	if r.err == nil {
		r.told = append(r.told, r.outcome)
		r.err = swap.Acknowledge(p.Context(), m.Platform, r.id)
	}
}

// begun reports whether a guardian was registered, so that the node can heal alone.
func (r *run) begun() bool {
	for _, op := range r.Operations() {
		if op.Service == layout.GuardianService {
			return true
		}
	}
	return false
}

// contact does what every command that changes a node does first: finish unfinished work, read outcomes, remove
// leftovers.
func (r *run) contact(t *testing.T) {
	t.Helper()
	m, p := r.session()
	defer p.Exit()
	transactions, err := swap.Transactions(m.Platform.Files)
	if err != nil {
		t.Fatal(err)
	}
	for _, transaction := range transactions {
		outcome := transaction.Outcome
		if outcome == nil {
			followed, err := swap.Follow(t.Context(), m, transaction.ID, func(swap.Event) {})
			if err != nil && !errors.Is(err, swap.ErrNoTransaction) {
				t.Fatalf("finish %s: %v", transaction.ID, err)
			}
			outcome = &followed
		}
		r.told = append(r.told, *outcome)
		if err := swap.Acknowledge(t.Context(), m.Platform, transaction.ID); err != nil &&
			!errors.Is(err, swap.ErrNoTransaction) {
			t.Fatal(err)
		}
	}
	for _, c := range r.plan.Components {
		a, err := swap.Inspect(t.Context(), m.Platform, hashcache.Load(m.Platform.Files),
			&agentv1.InspectComponent{Destination: c.Destination, Service: c.Service}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range a.GetLeftovers() {
			if err := m.Platform.Files.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// checkNode checks the conditions that hold with or without a contact: all binaries are old or all new, and every
// service that ran runs.
func (r *run) checkNode(t *testing.T, when string) {
	t.Helper()
	now := map[string]string{}
	for destination := range r.old {
		now[destination] = r.hashAt(t, destination)
	}
	isOld, isNew := equal(now, r.old), equal(now, r.new)
	if !isOld && !isNew {
		t.Errorf("%s: neither old nor new: %v", when, now)
	}
	config, err := r.Process("look").Services.Config(context.Background(), "kubelet")
	if err != nil {
		t.Fatal(err)
	}
	if changed := config.CommandLine == r.plan.Components[1].CommandLine; changed != isNew {
		t.Errorf("%s: the command line is %s, the binaries new: %v", when, config.CommandLine, isNew)
	}
	for _, name := range []string{"containerd", "kubelet", "kube-proxy"} {
		if s := r.service(t, name); s.State != platform.Running {
			t.Errorf("%s: %s is %s", when, name, s.State)
		}
	}
	for _, outcome := range r.told {
		if isNew != (outcome.Result == swap.Committed) {
			t.Errorf("%s: new binaries: %v, but told %s %s", when, isNew, outcome.Result, outcome.Message)
		}
	}
}

func (r *run) check(t *testing.T, when string) {
	t.Helper()
	r.checkNode(t, when)
	var left []string
	eventually(t, "the guardian has gone", func() bool {
		left = r.leftovers(t)
		return !slices.ContainsFunc(left, func(s string) bool { return strings.HasPrefix(s, "service ") })
	})
	left = slices.DeleteFunc(left, func(s string) bool { return s == r.mayStay })
	if len(left) > 0 {
		t.Errorf("%s: left behind: %v", when, left)
	}
	transactions, err := swap.Transactions(r.Process("look").Files)
	if err != nil || len(transactions) > 0 {
		t.Errorf("%s: transactions left: %+v, %v", when, transactions, err)
	}
}

// checkHistory checks that the history has the transaction exactly once. mayLack allows a history without it: an error
// while it is written, unlike the end of a process, loses the row.
func (r *run) checkHistory(t *testing.T, mayLack bool) {
	t.Helper()
	past, err := swap.History(t.Context(), r.Process("look").Files)
	if err != nil {
		t.Fatal(err)
	}
	ended := slices.ContainsFunc(r.told, func(o swap.Outcome) bool { return o.Result != "" })
	switch {
	case len(past) == 0 && (mayLack || !ended):
	case len(past) != 1:
		t.Errorf("the history has %d rows, want 1: %+v", len(past), past)
	case past[0].Number != 1 || past[0].Journal || past[0].Holder != r.plan.Holder || past[0].Ended.IsZero() ||
		!slices.ContainsFunc(r.told, func(o swap.Outcome) bool { return o.Result == past[0].Result }):
		t.Errorf("the row is %+v, and the outcomes %+v", past[0], r.told)
	}
}

func equal(a, b map[string]string) bool {
	for key, value := range a {
		if b[key] != value {
			return false
		}
	}
	return true
}
