package deploy

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/host/simulated"
	"github.com/swdt-dev/swdt/internal/layout"
	"github.com/swdt-dev/swdt/internal/source"
)

func TestTwoComponentsInOneTransaction(t *testing.T) {
	b := twoPrograms(t)
	result, err := b.push(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(b.swap.plans) != 1 || len(b.swap.plans[0].GetComponents()) != 2 {
		t.Fatalf("plans: %v", b.swap.plans)
	}
	plan := b.swap.plans[0]
	c := plan.GetComponents()[1]
	newHash, oldHash := sum(program("kubelet", "v1.29.1")), sum(program("kubelet", "v1.29.0"))
	if plan.GetHolder() != "tester" || c.GetService() != "kubelet" || c.GetDestination() != kubeletPath ||
		c.GetStaged() != layout.Staged(kubeletPath, newHash) || c.GetSha256() != newHash || c.GetPreviousSha256() != oldHash ||
		strings.Join(c.GetDependsOn(), ",") != "containerd" || c.GetHealth().GetHttpGet() != "http://127.0.0.1:10248/healthz" ||
		c.GetHealth().GetTimeout().AsDuration() != time.Minute || c.GetSettle().AsDuration() != time.Second ||
		c.GetStopTimeout().AsDuration() != 30*time.Second || c.GetCommandLine() != "" {
		t.Errorf("kubelet's part of the plan: %v", c)
	}
	if pipe := plan.GetComponents()[0].GetHealth().GetCriPipe(); pipe != `\\.\pipe\containerd-containerd` {
		t.Errorf("containerd's health: %s", pipe)
	}
	r := result.Components[1]
	if result.Result != Changed || r.Action != ActionReplaced || r.SHA256 != newHash || r.PreviousSHA256 != oldHash ||
		r.Version != (Version{"v1.29.1", "v1.29.0", "v1.29.1"}) || r.Service.PID != 201 || r.Service.State != "running" ||
		r.Transfer.Method != "whole" || r.Transfer.SizeBytes != int64(len(program("kubelet", ""))) || r.Seconds.Down != 0.6 || r.Message != "" {
		t.Errorf("kubelet's result: %+v %+v %+v", r, r.Service, r.Transfer)
	}
	if strings.Join(b.swap.acknowledged, ",") != "t1" || len(b.leftovers()) != 0 || len(b.story.warnings) != 0 {
		t.Errorf("acknowledged %v, left %v, warned %v", b.swap.acknowledged, b.leftovers(), b.story.warnings)
	}
	b.unlocked()

	// And once more: one call, nothing written.
	b.node.Calls()
	b.swap.inspections = 0
	b.node.Machine.OnOperation(func(o simulated.Operation) simulated.Verdict {
		t.Errorf("an unchanged push changes the node: %v", o)
		return simulated.Continue()
	})
	result, err = b.push(t.Context(), Options{})
	b.node.Machine.OnOperation(nil)
	if err != nil || result.Result != Unchanged || result.Components[0].Action != ActionUnchanged || result.Components[0].Version.After != "1.7.12" {
		t.Errorf("%+v, %v", result, err)
	}
	if calls := b.node.Calls(); len(calls) != 0 || b.swap.inspections != 1 {
		t.Errorf("an unchanged push made %d inspections and %v", b.swap.inspections, calls)
	}
}

// whole is the state of a node that a failed push must not have changed.
func (b *bench) whole(t *testing.T, err error, wantRun bool) {
	t.Helper()
	if got := b.node.Get(kubeletPath); !bytes.Equal(got, program("kubelet", "v1.29.0")) {
		t.Errorf("kubelet.exe is another one after: %v", err)
	}
	if left := b.leftovers(); len(left) != 0 {
		t.Errorf("left %v after: %v", left, err)
	}
	if !wantRun && len(b.swap.plans) != 0 {
		t.Errorf("a transaction ran before: %v", err)
	}
	b.unlocked()
}

func TestBadSourcesLeaveTheNodeAlone(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(b *bench)
		want  string
		check func(error) bool
	}{
		"text": {func(b *bench) { b.source("kubelet.exe", []byte("not a program")) }, "looks like text", is[*source.NotExecutableError]},
		"32 bit": {func(b *bench) {
			b.source("kubelet.exe", simulated.Binary(simulated.BinarySpec{Name: "kubelet", Machine: "386"}))
		}, "built for 386, but the node is amd64", is[*source.MachineError]},
		"missing": {func(b *bench) { os.Remove(filepath.Join(b.folder, "kubelet.exe")) }, "build it first",
			func(err error) bool { return errors.Is(err, fs.ErrNotExist) }},
		"another hash": {func(b *bench) {
			b.doc.Node.Spec.Kubernetes.Provisioners[1].SHA256 = strings.Repeat("ab", 32)
		}, "the node file wants abab", is[*source.HashMismatchError]},
		"folder": {func(b *bench) {
			b.swap.answer = func(s *agentv1.ComponentState) { s.Folder = s.GetName() == "kubelet" }
		}, `is a folder on the node: destination must name the file, such as C:\k\kubelet.exe\kubelet.exe`, nil},
		"unreadable": {func(b *bench) {
			b.swap.answer = func(s *agentv1.ComponentState) { s.Error = "access denied" }
		}, "access denied", nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := twoPrograms(t)
			c.spoil(b)
			result, err := b.push(t.Context(), Options{})
			if err == nil || !strings.Contains(err.Error(), c.want) || c.check != nil && !c.check(err) {
				t.Fatalf("got %v", err)
			}
			if result.Result != Failed || result.Message != err.Error() {
				t.Errorf("result %+v", result)
			}
			if calls := b.node.Calls(); len(calls) != 0 {
				t.Errorf("the node was asked for %v", calls)
			}
			b.whole(t, err, false)
		})
	}
}

func is[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

func TestWhereThereIsNoService(t *testing.T) {
	b := newBench(t, v1alpha1.Provisioner{Name: "tool", SourceURL: "tool.exe", Destination: `C:\new\folder\tool.exe`, Args: []string{"x"}})
	b.source("tool.exe", program("tool", "1"))
	result, err := b.push(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := result.Components[0]
	if r.Action != ActionCreated || r.Service != nil || !strings.Contains(r.Message, "there is no service tool") {
		t.Errorf("%+v", r)
	}
	if c := b.swap.plans[0].GetComponents()[0]; c.GetService() != "" || c.GetCommandLine() != "" || c.GetPreviousSha256() != "" {
		t.Errorf("plan %v", c)
	}
	if got := b.node.Get(`C:\new\folder\tool.exe`); !bytes.Equal(got, program("tool", "1")) {
		t.Error("the file was not placed")
	}
	// Whatever it is, it is not run to learn its version.
	if args := newComponent(v1alpha1.Provisioner{Name: "tool"}).versionArgs(); args != nil {
		t.Errorf("asks a stranger for %v", args)
	}
}

func TestOverwriteFalse(t *testing.T) {
	b := twoPrograms(t)
	no := false
	b.doc.Node.Spec.Kubernetes.Provisioners[1].Overwrite = &no
	result, err := b.push(t.Context(), Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	r := result.Components[1]
	if r.Action != ActionSkipped || !strings.Contains(r.Message, "overwrite is false") || r.SHA256 != r.PreviousSHA256 {
		t.Errorf("%+v", r)
	}
	b.whole(t, nil, true)
}

func TestOnly(t *testing.T) {
	b := twoPrograms(t)
	result, err := b.push(t.Context(), Options{Only: []string{"Containerd"}})
	if err != nil || len(result.Components) != 1 || result.Components[0].Name != "containerd" {
		t.Fatalf("%+v, %v", result, err)
	}
	b.whole(t, nil, true)
	_, err = b.push(t.Context(), Options{Only: []string{"kublet"}})
	if !is[*UnknownComponentError](err) || !strings.Contains(err.Error(), "it has containerd, kubelet") {
		t.Fatalf("got %v", err)
	}
}

func TestForceRestartsWithoutSending(t *testing.T) {
	b := twoPrograms(t)
	if _, err := b.push(t.Context(), Options{}); err != nil {
		t.Fatal(err)
	}
	result, err := b.push(t.Context(), Options{Force: true, Only: []string{"kubelet"}})
	if err != nil || result.Result != Changed || result.Components[0].Action != ActionRestarted || result.Components[0].Transfer != nil {
		t.Fatalf("%+v, %v", result, err)
	}
	if c := b.swap.plans[1].GetComponents()[0]; c.GetStaged() != "" || c.GetSha256() != "" || c.GetService() != "kubelet" {
		t.Errorf("plan %v", c)
	}
}

func TestAServiceThatRunsAnotherFileIsToldOf(t *testing.T) {
	b := twoPrograms(t)
	b.swap.commandLines["kubelet"] = `C:\elsewhere\kubelet.exe --run`
	result, err := b.push(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	const want = `the service kubelet runs C:\elsewhere\kubelet.exe, not this file`
	if got := result.Components[1].Message; !strings.Contains(got, want) || result.Components[0].Message != "" {
		t.Errorf("kubelet: %q, containerd: %q", got, result.Components[0].Message)
	}
	status, err := Status(t.Context(), b.node.Node, b.doc, StatusOptions{}, b.story)
	if err != nil || !strings.Contains(status.Components[1].Message, want) {
		t.Errorf("status: %+v, %v", status.Components, err)
	}
}

func TestArgsChangeTheServicesCommandLine(t *testing.T) {
	b := twoPrograms(t)
	if _, err := b.push(t.Context(), Options{}); err != nil {
		t.Fatal(err)
	}
	b.doc.Node.Spec.Kubernetes.Provisioners[1].Args = []string{"--v=4", "--name", "a b"}
	result, err := b.push(t.Context(), Options{})
	if err != nil || result.Components[1].Action != ActionRestarted || result.Components[0].Action != ActionUnchanged {
		t.Fatalf("%+v, %v", result, err)
	}
	if got := b.swap.plans[1].GetComponents()[0].GetCommandLine(); got != `"`+kubeletPath+`" --v=4 --name "a b"` {
		t.Errorf("command line %s", got)
	}
	if result, err := b.push(t.Context(), Options{}); err != nil || result.Result != Unchanged {
		t.Errorf("once more: %+v, %v", result, err)
	}
}

func TestDryRun(t *testing.T) {
	b := twoPrograms(t)
	result, err := b.push(t.Context(), Options{DryRun: true})
	if err != nil || result.Result != Changed || !result.DryRun || result.Components[0].Action != ActionReplaced {
		t.Fatalf("%+v, %v", result, err)
	}
	if calls := b.node.Calls(); len(calls) != 0 {
		t.Errorf("a dry run made %v", calls)
	}
	b.whole(t, nil, false)
}

func TestAnUnexpectedVersionIsAWarning(t *testing.T) {
	b := twoPrograms(t)
	b.doc.Node.Spec.Kubernetes.Provisioners[1].Version = "1.30.0"
	result, err := b.push(t.Context(), Options{})
	want := "the binary reports v1.29.1, but the node file wants version 1.30.0"
	if err != nil || !strings.Contains(result.Components[1].Message, want) || len(b.story.warnings) != 1 {
		t.Fatalf("%+v, %v, %v", result.Components[1], b.story.warnings, err)
	}
}

func TestStrictRefusesAnUnexpectedVersionBeforeTheStop(t *testing.T) {
	b := twoPrograms(t)
	b.doc.Node.Spec.Kubernetes.Provisioners[1].Version = "1.30.0"
	result, err := b.push(t.Context(), Options{Strict: true})
	if !is[*VersionError](err) || result.Components[1].Action != ActionFailed || result.Components[0].Action != ActionUnchanged {
		t.Fatalf("%+v, %v", result, err)
	}
	b.whole(t, err, false)
	// The same for a binary that is in place already.
	b.doc.Node.Spec.Kubernetes.Provisioners[1].Version = "1.29.1"
	if _, err := b.push(t.Context(), Options{Strict: true}); err != nil {
		t.Fatal(err)
	}
	b.doc.Node.Spec.Kubernetes.Provisioners[1].Version = "1.30.0"
	if _, err := b.push(t.Context(), Options{Strict: true}); !is[*VersionError](err) {
		t.Fatalf("got %v", err)
	}
}

func TestSameVersion(t *testing.T) {
	for _, c := range []struct {
		wanted, got string
		want        bool
	}{
		{"1.29.0", "v1.29.0", true}, {"v1.29.0", "1.29.0", true}, {"1.29.0", "v1.29.0+k3s1", true},
		{"1.29.0+a", "v1.29.0+b", false}, {"1.29.0", "v1.29.01", false}, {"1.29", "v1.29.0", false}, {"1.29.0", "", false},
	} {
		if got := sameVersion(c.wanted, c.got); got != c.want {
			t.Errorf("%s, %s: %v", c.wanted, c.got, got)
		}
	}
}

func TestTheHolderOfTheLockIsNamed(t *testing.T) {
	b := twoPrograms(t)
	if err := b.node.Files.MakeFolder(layout.Root); err != nil {
		t.Fatal(err)
	}
	lock, err := b.node.Files.Lock(layout.LockFile, []byte("ann on laptop"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.push(t.Context(), Options{})
	var locked *host.LockedError
	if !errors.As(err, &locked) || !strings.Contains(err.Error(), "ann on laptop") {
		t.Fatalf("got %v", err)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	b.whole(t, err, false)
}

func TestAFullDiskWhileStaging(t *testing.T) {
	b := twoPrograms(t)
	b.node.Machine.OnOperation(func(o simulated.Operation) simulated.Verdict {
		if o.Kind == simulated.OpWrite && strings.HasSuffix(o.Target, ".part") && strings.Contains(o.Target, "kubelet") {
			return simulated.DiskFull()
		}
		return simulated.Continue()
	})
	result, err := b.push(t.Context(), Options{})
	b.node.Machine.OnOperation(nil)
	if !errors.Is(err, host.ErrDiskFull) || !strings.Contains(err.Error(), "free some space") {
		t.Fatalf("got %v", err)
	}
	if result.Components[1].Action != ActionFailed || result.Components[0].Action != ActionUnchanged {
		t.Errorf("%+v %+v", result.Components[0], result.Components[1])
	}
	b.whole(t, err, false)
}

func TestLeftoversOfOthersAreCleared(t *testing.T) {
	b := twoPrograms(t)
	b.node.Put(kubeletPath+".swdt-0123456789ab", []byte("older build"))
	b.node.Put(kubeletPath+".swdt-0123456789ab.part", []byte("half"))
	b.node.Put(kubeletPath+".swdt-old", []byte("previous"))
	if _, err := b.push(t.Context(), Options{}); err != nil {
		t.Fatal(err)
	}
	if left := b.leftovers(); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

func TestACutConnectionWhileSendingIsMended(t *testing.T) {
	b := twoPrograms(t)
	cut := false
	b.story.sent = func(int64) {
		if !cut {
			cut = true
			b.node.Cut()
		}
	}
	result, err := b.push(t.Context(), Options{})
	if err != nil || result.Result != Changed || b.node.Sessions() != 2 {
		t.Fatalf("%+v, %v, %d sessions", result, err, b.node.Sessions())
	}
	b.unlocked()
}

func TestRolledBack(t *testing.T) {
	b := twoPrograms(t)
	b.swap.outcome = &agentv1.SwapOutcome{
		Result: outcomeRolledBack, FailedComponent: "kubelet", Message: "it was not healthy after 60s",
		Components: []*agentv1.ComponentOutcome{
			{Name: "containerd", Action: "rolledBack"},
			{Name: "kubelet", Action: "failed", Message: "exit code 1", LogLines: []string{"panic: bad flag"}},
		},
	}
	result, err := b.push(t.Context(), Options{})
	var back *RolledBackError
	if !errors.As(err, &back) || !back.Complete() || result.Result != RolledBack {
		t.Fatalf("%+v, %v", result, err)
	}
	if text := err.Error(); !strings.Contains(text, "kubelet: it was not healthy after 60s; the node is back") || !strings.Contains(text, "panic: bad flag") {
		t.Errorf("got %s", text)
	}
	if result.Components[0].Action != ActionRolledBack || result.Components[1].Action != ActionFailed ||
		result.Components[1].LogLines[0] != "panic: bad flag" {
		t.Errorf("%+v %+v", result.Components[0], result.Components[1])
	}
	if strings.Join(b.swap.acknowledged, ",") != "t1" {
		t.Error("the outcome was not acknowledged")
	}
}

func TestARollbackThatDidNotBringAllBackIsNoRolledBack(t *testing.T) {
	b := twoPrograms(t)
	b.swap.outcome = &agentv1.SwapOutcome{Result: "failed", Message: "kubelet does not start any more"}
	result, err := b.push(t.Context(), Options{})
	var back *RolledBackError
	if !errors.As(err, &back) || back.Complete() || result.Result != Failed || !strings.Contains(err.Error(), "not everything runs") {
		t.Fatalf("%+v, %v", result, err)
	}
}

func TestARefusedPlanLeavesNothing(t *testing.T) {
	b := twoPrograms(t)
	b.swap.refuse = errors.New("the file at the destination has changed")
	_, err := b.push(t.Context(), Options{})
	if err == nil || is[*InterruptedError](err) {
		t.Fatalf("got %v", err)
	}
	b.whole(t, err, false)
}

func TestACutConnectionDuringTheTransaction(t *testing.T) {
	unfinished := func(plan *agentv1.SwapPlan) *agentv1.Transaction {
		return &agentv1.Transaction{Id: "t1", Holder: plan.GetHolder(), State: "starting", Begun: timestamppb.Now()}
	}
	for name, c := range map[string]struct {
		cutAfter int
		then     func(*agentv1.SwapPlan) *agentv1.Transaction
		resumed  int
	}{
		"finished, id known":             {2, nil, 0},
		"finished before the first word": {1, nil, 0},
		"in flight, id known":            {3, unfinished, 1},
		"in flight, id unknown":          {1, unfinished, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := twoPrograms(t)
			b.swap.cutAfter, b.swap.then = c.cutAfter, c.then
			result, err := b.push(t.Context(), Options{})
			if err != nil || result.Result != Changed || result.Components[1].Version.After != "v1.29.1" {
				t.Fatalf("%+v, %v", result, err)
			}
			if b.swap.resumed != c.resumed || b.node.Sessions() != 2 || strings.Join(b.swap.acknowledged, ",") != "t1" {
				t.Errorf("resumed %d times, %d sessions, acknowledged %v", b.swap.resumed, b.node.Sessions(), b.swap.acknowledged)
			}
			b.unlocked()
		})
	}
}

func TestACutConnectionBeforeTheTransactionBegan(t *testing.T) {
	b := twoPrograms(t)
	old := b.node.Get(containerdPath)
	b.swap.outcome = &agentv1.SwapOutcome{} // nothing is carried out
	b.swap.cutAfter = 1
	b.swap.then = func(*agentv1.SwapPlan) *agentv1.Transaction { return nil }
	_, err := b.push(t.Context(), Options{})
	if err == nil || !strings.Contains(err.Error(), "before the node began") || !bytes.Equal(b.node.Get(containerdPath), old) {
		t.Fatalf("got %v", err)
	}
	b.whole(t, err, true)
}

func TestInterruptedDuringTheTransaction(t *testing.T) {
	b := twoPrograms(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("interrupted by a signal")
	b.swap.onRun = func() { cancel(stop) }
	result, err := b.push(ctx, Options{})
	if !is[*InterruptedError](err) || !errors.Is(err, stop) || !strings.Contains(err.Error(), "finishes the transaction by itself") {
		t.Fatalf("got %v", err)
	}
	if result.Result != Failed || !strings.Contains(result.Components[0].Message, "still at work") {
		t.Errorf("%+v", result.Components[0])
	}
	if len(b.swap.acknowledged) != 0 {
		t.Error("an outcome nobody was told was acknowledged")
	}
	b.unlocked()
}

func TestInterruptedWhileSending(t *testing.T) {
	b := twoPrograms(t)
	ctx, cancel := context.WithCancel(t.Context())
	b.story.sent = func(int64) { cancel() }
	_, err := b.push(ctx, Options{})
	if !errors.Is(err, context.Canceled) || is[*InterruptedError](err) {
		t.Fatalf("got %v", err)
	}
	b.whole(t, err, false)
}

func TestAnEarlierOutcomeIsTold(t *testing.T) {
	b := twoPrograms(t)
	b.swap.transactions = []*agentv1.Transaction{{
		Id: "t0", Holder: "bob", Begun: timestamppb.Now(),
		Outcome: &agentv1.SwapOutcome{Result: outcomeRolledBack, Message: "kubelet crashed"},
	}}
	result, err := b.push(t.Context(), Options{})
	if err != nil || len(result.Recovered) != 1 || result.Recovered[0].Result != outcomeRolledBack {
		t.Fatalf("%+v, %v", result, err)
	}
	if len(b.story.warnings) != 1 || !strings.Contains(b.story.warnings[0], "by bob") || !strings.Contains(b.story.warnings[0], "kubelet crashed") {
		t.Errorf("warned %v", b.story.warnings)
	}
	if strings.Join(b.swap.acknowledged, ",") != "t0,t1" || b.swap.resumed != 0 {
		t.Errorf("acknowledged %v", b.swap.acknowledged)
	}
}

func TestAnUnfinishedTransactionIsFinishedFirst(t *testing.T) {
	b := twoPrograms(t)
	b.swap.transactions = []*agentv1.Transaction{{Id: "t0", Holder: "bob", State: "swapping", Begun: timestamppb.Now()}}
	result, err := b.push(t.Context(), Options{DryRun: true})
	if err != nil || b.swap.resumed != 0 || len(result.Recovered) != 1 || result.Recovered[0].State != "swapping" {
		t.Fatalf("dry run: %+v, %v", result, err)
	}
	result, err = b.push(t.Context(), Options{})
	if err != nil || result.Result != Changed || b.swap.resumed != 1 || result.Recovered[0].Result != outcomeCommitted {
		t.Fatalf("%+v, %v", result, err)
	}
	if strings.Join(b.swap.acknowledged, ",") != "t0,t1" {
		t.Errorf("acknowledged %v", b.swap.acknowledged)
	}
	b.unlocked()
}
