package push

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

func (b *bench) rollback(names ...string) (NodeResult, error) {
	w := b.work(Options{})
	return w.finish(w.rollback(b.t.Context(), names))
}

func TestRollbackGoesBackAndForth(t *testing.T) {
	b := twoPrograms(t)
	if _, err := b.push(t.Context(), Options{}); err != nil {
		t.Fatal(err)
	}
	result, err := b.rollback("kubelet")
	if err != nil {
		t.Fatal(err)
	}
	r := result.Components[0]
	oldHash, newHash := sum(program("kubelet", "v1.29.0")), sum(program("kubelet", "v1.29.1"))
	switch {
	case result.Result != Changed:
		t.Errorf("result.Result is %v, want %v", result.Result, Changed)
	case len(result.Components) != 1:
		t.Errorf("result.Components has %d elements, want 1: %v", len(result.Components), result.Components)
	case r.Action != ActionReplaced:
		t.Errorf("r.Action is %v, want %v", r.Action, ActionReplaced)
	case r.SHA256 != oldHash:
		t.Errorf("r.SHA256 is %v, want %v", r.SHA256, oldHash)
	case r.PreviousSHA256 != newHash:
		t.Errorf("r.PreviousSHA256 is %v, want %v", r.PreviousSHA256, newHash)
	case r.Version != (Version{"", "v1.29.1", "v1.29.0"}):
		t.Errorf("r.Version is %v, want %v", r.Version, (Version{"", "v1.29.1", "v1.29.0"}))
	case r.moved():
		t.Error("r.moved() is true, want false")
	}
	c := b.swap.plans[1].GetComponents()[0]
	switch {
	case c.GetStaged() != layout.Previous(kubeletPath):
		t.Errorf("c.GetStaged() is %v, want %v", c.GetStaged(), layout.Previous(kubeletPath))
	case c.GetSha256() != oldHash:
		t.Errorf("c.GetSha256() is %v, want %v", c.GetSha256(), oldHash)
	case c.GetPreviousSha256() != newHash:
		t.Errorf("c.GetPreviousSha256() is %v, want %v", c.GetPreviousSha256(), newHash)
	case c.GetService() != "kubelet":
		t.Errorf("c.GetService() is %q, want %q", c.GetService(), "kubelet")
	}
	if _, err := b.rollback("kubelet"); err != nil ||
		!bytes.Equal(b.node.Get(kubeletPath), program("kubelet", "v1.29.1")) {
		t.Errorf("a second rollback does not undo the first: %v", err)
	}
	b.unlocked()
}

// Restore takes back no more than the push has replaced, and no arguments that were changed since.
func TestRestoreLeavesWhatThePushDidNotReplace(t *testing.T) {
	b := twoPrograms(t)
	b.doc.Node.Spec.Kubernetes.Provisioners[1].Args = []string{"--new"}
	first := b.swap.commandLines["kubelet"]
	var replaced []Former
	record := func(_ context.Context, changing []Former) error {
		replaced = changing
		return nil
	}
	if _, err := b.push(t.Context(), Options{Record: record}); err != nil {
		t.Fatal(err)
	}
	want := []Former{{Name: "containerd", SHA256: sum(program("containerd", "1.7.11"))},
		{Name: "kubelet", SHA256: sum(program("kubelet", "v1.29.0")), CommandLine: first}}
	if !slices.Equal(replaced, want) {
		t.Fatalf("the push replaces %v, want %v", replaced, want)
	}
	restore := func() {
		t.Helper()
		_, err := Restore(t.Context(), b.node.Node, b.doc, []Former{{Name: "kubelet", CommandLine: first}}, Options{}, b.story)
		if err != nil || !bytes.Equal(b.node.Get(kubeletPath), program("kubelet", "v1.29.1")) {
			t.Errorf("the kubelet was replaced: %v", err)
		}
	}
	restore()
	if got := b.swap.commandLines["kubelet"]; got != first {
		t.Errorf("the command line is %q, want %q", got, first)
	}
	mine := first + " --mine"
	b.swap.commandLines["kubelet"] = mine
	restore()
	if got := b.swap.commandLines["kubelet"]; got != mine || len(b.swap.plans) != 2 {
		t.Errorf("%d transactions; the command line is %q, want %q", len(b.swap.plans), got, mine)
	}
}

// A caller that has still to report the end of its transaction finds the transaction again.
func TestATransactionIsKept(t *testing.T) {
	for _, result := range []agentv1.SwapResult{
		agentv1.SwapResult_SWAP_RESULT_COMMITTED, agentv1.SwapResult_SWAP_RESULT_ROLLED_BACK,
	} {
		t.Run(result.String(), func(t *testing.T) {
			b := twoPrograms(t)
			b.swap.outcome = &agentv1.SwapOutcome{Result: result, Message: "it ended"}
			_, err := b.push(t.Context(), Options{KeepJournal: true})
			if is[*RolledBackError](err) != (result == agentv1.SwapResult_SWAP_RESULT_ROLLED_BACK) {
				t.Fatal(err)
			}
			options := Options{Holder: b.swap.plans[0].GetHolder(), KeepJournal: true}
			if err := Settle(t.Context(), b.node.Node, options, b.story); err != nil || len(b.swap.acknowledged) > 0 {
				t.Fatalf("acknowledged %v, %v", b.swap.acknowledged, err)
			}
			if len(b.swap.transactions) != 1 {
				t.Fatalf("the node has %v", b.swap.transactions)
			}
			if err := Acknowledge(t.Context(), b.node.Node, "t1"); err != nil || len(b.swap.transactions) > 0 {
				t.Errorf("left: %v, %v", b.swap.transactions, err)
			}
		})
	}
}

// A swdt that finds the node locked, or an interrupted transaction, reports which command caused
// that.
func TestARollbackNamesItself(t *testing.T) {
	b := twoPrograms(t)
	if _, err := b.push(t.Context(), Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := Rollback(t.Context(), b.node.Node, b.doc, []string{"kubelet"}, Options{}, b.story); err != nil {
		t.Fatal(err)
	}
	if holder := b.swap.plans[1].GetHolder(); !strings.Contains(holder, "swdt rollback") {
		t.Errorf("holder %q", holder)
	}
}

func TestARefusedRollbackKeepsThePreviousBinary(t *testing.T) {
	b := twoPrograms(t)
	if _, err := b.push(t.Context(), Options{}); err != nil {
		t.Fatal(err)
	}
	b.swap.refuse = context.DeadlineExceeded
	if _, err := b.rollback("kubelet"); err == nil {
		t.Fatal("no error")
	}
	if !bytes.Equal(b.node.Get(layout.Previous(kubeletPath)), program("kubelet", "v1.29.0")) {
		t.Fatal("the previous binary is gone")
	}
}

func TestRollbackNeedsAPreviousBinary(t *testing.T) {
	b := twoPrograms(t)
	result, err := b.rollback("kubelet")
	switch {
	case err == nil:
		t.Fatal("no error, want one")
	case !strings.Contains(err.Error(), "kubelet: the node keeps no previous binary"):
		t.Fatalf("err.Error() lacks %q:\n%s", "kubelet: the node keeps no previous binary", err.Error())
	case result.Components[0].Action != ActionFailed:
		t.Fatalf("result.Components[0].Action is %v, want %v", result.Components[0].Action, ActionFailed)
	}
	if _, err := b.rollback(); err == nil {
		t.Fatal("rolled nothing back without an error")
	}
	if _, err := b.rollback("none"); !is[*UnknownComponentError](err) {
		t.Fatal("is[*UnknownComponentError](err) is false, want true")
	}
	b.whole(t, nil, false)
}

func TestRollbackToTheSame(t *testing.T) {
	b := twoPrograms(t)
	b.node.Put(layout.Previous(kubeletPath), program("kubelet", "v1.29.0"))
	result, err := b.rollback("kubelet")
	switch {
	case err != nil:
		t.Fatal(err)
	case result.Result != Unchanged:
		t.Fatalf("result.Result is %v, want %v", result.Result, Unchanged)
	case !strings.Contains(result.Components[0].Message, "same"):
		t.Fatalf("result.Components[0].Message lacks %q:\n%s", "same", result.Components[0].Message)
	}
	if len(b.swap.plans) != 0 {
		t.Fatal("a transaction for nothing")
	}
}

func (b *bench) status() (NodeStatus, error) {
	return Status(b.t.Context(), b.node.Node, b.doc, StatusOptions{
		Sources: source.NewSet(source.Options{Cache: filepath.Join(b.folder, "cache")}), AgentHash: "agent",
	}, b.story)
}

func TestStatus(t *testing.T) {
	b := twoPrograms(t)
	b.swap.now = time.Unix(1000, 0) // the node's clock, which also dates the start
	b.swap.answer = func(s *agentv1.ComponentState) {
		if s.Service != nil {
			s.Service.Started = timestamppb.New(time.Unix(400, 0))
		}
	}
	b.source("containerd.exe", program("containerd", "1.7.11")) // as on the node
	b.doc.Node.Spec.Kubernetes.Provisioners[0].Version = "v1.7.11"
	s, err := b.status()
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case s.Name != "w1":
		t.Errorf("s.Name is %q, want %q", s.Name, "w1")
	case s.OS.Build != "20348.2849":
		t.Errorf("s.OS.Build is %q, want %q", s.OS.Build, "20348.2849")
	case s.Agent.Hash != "agent":
		t.Errorf("s.Agent.Hash is %q, want %q", s.Agent.Hash, "agent")
	case s.PendingJournal:
		t.Error("s.PendingJournal is true, want false")
	case s.UptimeSeconds != 10800:
		t.Errorf("s.UptimeSeconds is %v, want 10800", s.UptimeSeconds)
	}
	containerd, kubelet := s.Components[0], s.Components[1]
	switch {
	case containerd.Drift != DriftNone:
		t.Errorf("containerd.Drift is %v, want %v", containerd.Drift, DriftNone)
	case containerd.UptimeSeconds != 600:
		t.Errorf("containerd.UptimeSeconds is %v, want 600", containerd.UptimeSeconds)
	case containerd.Service.PID != 100:
		t.Errorf("containerd.Service.PID is %v, want 100", containerd.Service.PID)
	case kubelet.Drift != DriftBinary:
		t.Errorf("kubelet.Drift is %v, want %v", kubelet.Drift, DriftBinary)
	case kubelet.Version != "v1.29.0":
		t.Errorf("kubelet.Version is %q, want %q", kubelet.Version, "v1.29.0")
	case kubelet.SHA256 != sum(program("kubelet", "v1.29.0")):
		t.Errorf("kubelet.SHA256 is %v, want %v", kubelet.SHA256, sum(program("kubelet", "v1.29.0")))
	}
	if len(b.node.Calls()) != 0 || b.swap.inspections != 1 {
		t.Error("status needs more than one call")
	}
}

func TestDrift(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(b *bench)
		want    Drift
	}{
		"an older process": {func(b *bench) {
			b.source("kubelet.exe", program("kubelet", "v1.29.0"))
			b.doc.Node.Spec.Kubernetes.Provisioners[1].Version = ""
			b.swap.answer = func(s *agentv1.ComponentState) { s.Outdated = true }
		}, DriftRestart},
		"source not built": {func(b *bench) {
			b.doc.Node.Spec.Kubernetes.Provisioners[1].SourceURL = "none.exe"
		}, DriftUnknown},
		"remote source": {func(b *bench) {
			b.doc.Node.Spec.Kubernetes.Provisioners[1].SourceURL = "http://127.0.0.1:1/x"
		}, DriftVersion},
		"remote, version fits": {func(b *bench) {
			b.doc.Node.Spec.Kubernetes.Provisioners[1].SourceURL = "http://127.0.0.1:1/x"
			b.doc.Node.Spec.Kubernetes.Provisioners[1].Version = "1.29.0"
		}, DriftUnknown},
		"hash in the file": {func(b *bench) {
			b.doc.Node.Spec.Kubernetes.Provisioners[1].SourceURL = "http://127.0.0.1:1/x"
			b.doc.Node.Spec.Kubernetes.Provisioners[1].SHA256 = strings.Repeat("ab", 32)
		}, DriftBinary},
		"missing": {func(b *bench) {
			if err := b.node.Files.Remove(kubeletPath); err != nil {
				b.t.Fatal(err)
			}
		}, DriftMissing},
		"unreadable": {func(b *bench) {
			b.swap.answer = func(s *agentv1.ComponentState) { s.Error = "access denied" }
		}, DriftUnknown},
	} {
		b := twoPrograms(t)
		c.prepare(b)
		s, err := b.status()
		switch {
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case s.Components[1].Drift != c.want:
			t.Errorf("%s: s.Components[1].Drift is %v, want %v", name, s.Components[1].Drift, c.want)
		}
	}
}

func TestStatusShowsTransactions(t *testing.T) {
	b := twoPrograms(t)
	b.swap.transactions = []*agentv1.Transaction{
		{Id: "t0", Holder: "bob", Outcome: &agentv1.SwapOutcome{Result: agentv1.SwapResult_SWAP_RESULT_COMMITTED}},
		{Id: "t1", Holder: "ann", State: agentv1.SwapState_SWAP_STATE_STARTING},
	}
	s, err := b.status()
	switch {
	case err != nil:
		t.Fatal(err)
	case !s.PendingJournal:
		t.Fatal("s.PendingJournal is false, want true")
	case len(s.Transactions) != 2:
		t.Fatalf("s.Transactions has %d elements, want 2: %v", len(s.Transactions), s.Transactions)
	case s.Transactions[1].State != "starting":
		t.Fatalf("s.Transactions[1].State is %q, want %q", s.Transactions[1].State, "starting")
	case s.Transactions[0].Result != "committed":
		t.Fatalf("s.Transactions[0].Result is %q, want %q", s.Transactions[0].Result, "committed")
	}
	if len(b.swap.acknowledged) != 0 || b.swap.resumed != 0 {
		t.Error("status changed the node")
	}
}

func TestStatusOfANodeWithoutComponents(t *testing.T) {
	b := newBench(t)
	switch s, err := b.status(); {
	case err != nil:
		t.Fatal(err)
	case len(s.Components) != 0:
		t.Fatalf("s.Components is %v, want it empty", s.Components)
	case s.OS.Product == "":
		t.Fatal("s.OS.Product is empty")
	}
}

func (b *bench) restart(names ...string) (NodeResult, error) {
	w := b.work(Options{})
	return w.finish(w.restart(b.t.Context(), names))
}

// A restart has a part for each named component, without a file, and compares nothing with the sources.
func TestRestartExchangesNoFile(t *testing.T) {
	b := twoPrograms(t)
	result, err := b.restart("kubelet")
	if err != nil {
		t.Fatal(err)
	}
	parts := b.swap.plans[0].GetComponents()
	switch r := result.Components[0]; {
	case len(parts) != 1 || parts[0].GetService() != "kubelet" || parts[0].GetStaged() != "":
		t.Errorf("the transaction has %v, want kubelet without a file", parts)
	case r.Action != ActionRestarted || result.Result != Changed:
		t.Errorf("the result is %v, %v", r.Action, result.Result)
	case r.Version.Wanted != "" || r.Version.After != "v1.29.0":
		t.Errorf("the version is %+v", r.Version)
	}
	if _, err := b.restart("frob"); err == nil {
		t.Error("a component that the node file lacks is no error")
	}
}
