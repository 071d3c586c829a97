package push

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
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
	switch {
	case plan.GetHolder() != "tester":
		t.Errorf("kubelet's part of the plan: plan.GetHolder() is %q, want %q", plan.GetHolder(), "tester")
	case c.GetService() != "kubelet":
		t.Errorf("kubelet's part of the plan: c.GetService() is %q, want %q", c.GetService(), "kubelet")
	case c.GetDestination() != kubeletPath:
		t.Errorf("kubelet's part of the plan: c.GetDestination() is %v, want %v", c.GetDestination(), kubeletPath)
	case c.GetStaged() != layout.Staged(kubeletPath, newHash):
		t.Errorf("kubelet's part of the plan: c.GetStaged() is %v, want %v", c.GetStaged(),
			layout.Staged(kubeletPath, newHash))
	case c.GetSha256() != newHash:
		t.Errorf("kubelet's part of the plan: c.GetSha256() is %v, want %v", c.GetSha256(), newHash)
	case c.GetPreviousSha256() != oldHash:
		t.Errorf("kubelet's part of the plan: c.GetPreviousSha256() is %v, want %v", c.GetPreviousSha256(), oldHash)
	case strings.Join(c.GetDependsOn(), ",") != "containerd":
		t.Errorf(`kubelet's part of the plan: strings.Join(c.GetDependsOn(), ",") is %q, want %q`,
			strings.Join(c.GetDependsOn(), ","), "containerd")
	case c.GetHealth().GetHttpGet() != "http://127.0.0.1:10248/healthz":
		t.Errorf("kubelet's part of the plan: c.GetHealth().GetHttpGet() is %q, want %q", c.GetHealth().GetHttpGet(),
			"http://127.0.0.1:10248/healthz")
	case c.GetHealth().GetTimeout().AsDuration() != time.Minute:
		t.Errorf("kubelet's part of the plan: c.GetHealth().GetTimeout().AsDuration() is %v, want %v",
			c.GetHealth().GetTimeout().AsDuration(), time.Minute)
	case c.GetSettle().AsDuration() != time.Second:
		t.Errorf("kubelet's part of the plan: c.GetSettle().AsDuration() is %v, want %v",
			c.GetSettle().AsDuration(), time.Second)
	case c.GetStopTimeout().AsDuration() != 30*time.Second:
		t.Errorf("kubelet's part of the plan: c.GetStopTimeout().AsDuration() is %v, want %v",
			c.GetStopTimeout().AsDuration(), 30*time.Second)
	case c.GetCommandLine() != "":
		t.Errorf(`kubelet's part of the plan: c.GetCommandLine() is %q, want ""`, c.GetCommandLine())
	}
	if pipe := plan.GetComponents()[0].GetHealth().GetCriPipe(); pipe != `\\.\pipe\containerd-containerd` {
		t.Errorf("containerd's health: %s", pipe)
	}
	r := result.Components[1]
	switch {
	case result.Result != Changed:
		t.Errorf("kubelet's result: result.Result is %v, want %v", result.Result, Changed)
	case r.Action != ActionReplaced:
		t.Errorf("kubelet's result: r.Action is %v, want %v", r.Action, ActionReplaced)
	case r.SHA256 != newHash:
		t.Errorf("kubelet's result: r.SHA256 is %v, want %v", r.SHA256, newHash)
	case r.PreviousSHA256 != oldHash:
		t.Errorf("kubelet's result: r.PreviousSHA256 is %v, want %v", r.PreviousSHA256, oldHash)
	case r.Version != (Version{"v1.29.1", "v1.29.0", "v1.29.1"}):
		t.Errorf("kubelet's result: r.Version is %v, want %v", r.Version, (Version{"v1.29.1", "v1.29.0", "v1.29.1"}))
	case r.Service.PID != 201:
		t.Errorf("kubelet's result: r.Service.PID is %v, want 201", r.Service.PID)
	case r.Service.State != "running":
		t.Errorf("kubelet's result: r.Service.State is %q, want %q", r.Service.State, "running")
	case r.Transfer.Method != "whole":
		t.Errorf("kubelet's result: r.Transfer.Method is %q, want %q", r.Transfer.Method, "whole")
	case r.Transfer.SizeBytes != int64(len(program("kubelet", ""))):
		t.Errorf("kubelet's result: r.Transfer.SizeBytes is %v, want %v", r.Transfer.SizeBytes,
			int64(len(program("kubelet", ""))))
	case r.Seconds.Down != 0.6:
		t.Errorf("kubelet's result: r.Seconds.Down is %v, want 0.6", r.Seconds.Down)
	case r.Message != "":
		t.Errorf(`kubelet's result: r.Message is %q, want ""`, r.Message)
	}
	switch {
	case strings.Join(b.swap.acknowledged, ",") != "t1":
		t.Errorf(`strings.Join(b.swap.acknowledged, ",") is %q, want %q`, strings.Join(b.swap.acknowledged, ","), "t1")
	case len(b.leftovers()) != 0:
		t.Errorf("b.leftovers() is %v, want it empty", b.leftovers())
	case len(b.story.warnings) != 0:
		t.Errorf("b.story.warnings is %v, want it empty", b.story.warnings)
	}
	b.unlocked()

	// A second push makes one call and writes nothing.
	b.node.Calls()
	b.swap.inspections = 0
	b.node.Machine.OnOperation(func(o simulated.Operation) simulated.Verdict {
		t.Errorf("an unchanged push changes the node: %v", o)
		return simulated.Continue()
	})
	result, err = b.push(t.Context(), Options{})
	b.node.Machine.OnOperation(nil)
	switch {
	case err != nil:
		t.Error(err)
	case result.Result != Unchanged:
		t.Errorf("result.Result is %v, want %v", result.Result, Unchanged)
	case result.Components[0].Action != ActionUnchanged:
		t.Errorf("result.Components[0].Action is %v, want %v", result.Components[0].Action, ActionUnchanged)
	case result.Components[0].Version.After != "1.7.12":
		t.Errorf("result.Components[0].Version.After is %q, want %q", result.Components[0].Version.After, "1.7.12")
	}
	if calls := b.node.Calls(); len(calls) != 0 || b.swap.inspections != 1 {
		t.Errorf("an unchanged push made %d inspections and %v", b.swap.inspections, calls)
	}
}

// whole checks that a failed push has not changed the state of the node.
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

// One missing binary does not hide the next: each is named with its field and path.
func TestEveryMissingBinaryIsNamed(t *testing.T) {
	b := twoPrograms(t)
	for _, name := range []string{"containerd.exe", "kubelet.exe"} {
		if err := os.Remove(filepath.Join(b.folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	b.doc.Node.Spec.Kubernetes.Provisioners[1].Build = &v1alpha1.Build{}
	result, err := b.push(t.Context(), Options{})
	var missing *SourcesError
	switch {
	case !errors.As(err, &missing):
		t.Fatalf("the error is %v, a %T, want a %T", err, err, missing)
	case len(missing.Problems) != 2:
		t.Fatalf("missing.Problems has %d elements, want 2: %v", len(missing.Problems), missing.Problems)
	case !errors.Is(err, fs.ErrNotExist):
		t.Fatalf("the error is %v, want %v", err, fs.ErrNotExist)
	}
	for i, want := range []string{
		"spec.kubernetes.provisioners[0].sourceURL: " + filepath.Join(b.folder, "containerd.exe") +
			" does not exist; build it first, or correct sourceURL",
		"spec.kubernetes.provisioners[1].sourceURL: " + filepath.Join(b.folder, "kubelet.exe") +
			" does not exist; run its build with --build, or correct sourceURL",
	} {
		c := result.Components[i]
		switch {
		case !strings.Contains(err.Error(), "\n  "+c.Name+": "+b.doc.File+": "+want):
			t.Errorf("err.Error() lacks %q:\n%s", "\n  "+c.Name+": "+b.doc.File+": "+want, err.Error())
		case c.Action != ActionFailed:
			t.Errorf("c.Action is %v, want %v", c.Action, ActionFailed)
		case !strings.HasSuffix(c.Message, want):
			t.Errorf("c.Message does not end with %q:\n%s", want, c.Message)
		}
	}
	if _, err := b.push(t.Context(), Options{Only: []string{"KUBELET"}}); !errors.As(err, &missing) ||
		len(missing.Problems) != 1 {
		t.Errorf("of kubelet alone: %v", err)
	}
}

func TestBadSourcesLeaveTheNodeAlone(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(b *bench)
		want  string
		check func(error) bool
	}{
		"text": {func(b *bench) {
			b.source("kubelet.exe", []byte("not a program"))
		}, "looks like text", is[*source.NotExecutableError]},
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
			switch {
			case err == nil:
				t.Fatal("no error, want one")
			case !strings.Contains(err.Error(), c.want):
				t.Fatalf("err.Error() lacks %q:\n%s", c.want, err.Error())
			case c.check != nil && !c.check(err):
				t.Fatalf("the error is %v, which the case does not accept", err)
			}
			switch {
			case result.Result != Failed:
				t.Errorf("result.Result is %v, want %v", result.Result, Failed)
			case result.Error != err.Error():
				t.Errorf("result.Error is %v, want %v", result.Error, err.Error())
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

// A push names the variables that a URL sends to its server, and not their values.
func TestAVariableInAURLIsNamed(t *testing.T) {
	t.Setenv("SWDT_TEST_TOKEN", "invented")
	b := twoPrograms(t)
	b.doc.Node.Spec.Kubernetes.Provisioners[1].SourceURL = "http://127.0.0.1:1/x?t=$SWDT_TEST_TOKEN"
	if _, err := b.push(t.Context(), Options{}); err == nil {
		t.Error("a server that is not there has no binary")
	}
	want := []string{"the sourceURL of kubelet sends $SWDT_TEST_TOKEN of your environment to its server"}
	if diff := cmp.Diff(want, b.story.infos); diff != "" {
		t.Errorf("infos (-want +got):\n%s", diff)
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
	var locked *fault.LockedError
	switch {
	case !errors.As(err, &locked):
		t.Fatalf("the error is %v, a %T, want a %T", err, err, locked)
	case !strings.Contains(err.Error(), "ann on laptop"):
		t.Fatalf("err.Error() lacks %q:\n%s", "ann on laptop", err.Error())
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	b.whole(t, err, false)
}

func TestAFullDiskWhileStaging(t *testing.T) {
	b := twoPrograms(t)
	b.node.Machine.OnOperation(func(o simulated.Operation) simulated.Verdict {
		if o.Kind == simulated.OpWrite && strings.HasSuffix(o.Target, ".part") &&
			strings.Contains(o.Target, "kubelet") {
			return simulated.DiskFull()
		}
		return simulated.Continue()
	})
	result, err := b.push(t.Context(), Options{})
	b.node.Machine.OnOperation(nil)
	switch {
	case !errors.Is(err, fault.ErrDiskFull):
		t.Fatalf("the error is %v, want %v", err, fault.ErrDiskFull)
	case !strings.Contains(err.Error(), "free some space"):
		t.Fatalf("err.Error() lacks %q:\n%s", "free some space", err.Error())
	}
	switch {
	case result.Components[1].Action != ActionFailed:
		t.Errorf("result.Components[1].Action is %v, want %v", result.Components[1].Action, ActionFailed)
	case result.Components[0].Action != ActionUnchanged:
		t.Errorf("result.Components[0].Action is %v, want %v", result.Components[0].Action, ActionUnchanged)
	}
	b.whole(t, err, false)
}

// TestAnAntivirusWhileStaging lets an antivirus refuse to open the file that an interrupted push has staged.
func TestAnAntivirusWhileStaging(t *testing.T) {
	b := twoPrograms(t)
	kubelet := b.swap.program("kubelet", "v1.29.1")
	b.node.Put(layout.Staged(kubeletPath, sum(kubelet)), kubelet)
	b.node.Machine.Block(func(i *simulated.Image) bool { return i.Version == "v1.29.1" }, simulated.VirusInfected)
	_, err := b.push(t.Context(), Options{})
	switch {
	case !errors.Is(err, fault.ErrBlocked):
		t.Fatalf("the error is %v, want %v", err, fault.ErrBlocked)
	case !strings.Contains(err.Error(), fault.BlockedRemedy(kubeletPath)):
		t.Fatalf("the error lacks the remedy: %v", err)
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

func TestRolledBack(t *testing.T) {
	b := twoPrograms(t)
	b.swap.outcome = &agentv1.SwapOutcome{
		Result: agentv1.SwapResult_SWAP_RESULT_ROLLED_BACK, FailedComponent: "kubelet",
		Message: "it was not healthy after 60s",
		Components: []*agentv1.ComponentOutcome{
			{Name: "containerd", Action: agentv1.SwapAction_SWAP_ACTION_ROLLED_BACK},
			{Name: "kubelet", Action: agentv1.SwapAction_SWAP_ACTION_FAILED, Message: "exit code 1",
				LogLines: []string{"panic: bad flag"}},
		},
	}
	result, err := b.push(t.Context(), Options{})
	var back *RolledBackError
	switch {
	case !errors.As(err, &back):
		t.Fatalf("the error is %v, a %T, want a %T", err, err, back)
	case !back.Complete():
		t.Fatal("back.Complete() is false, want true")
	case result.Result != RolledBack:
		t.Fatalf("result.Result is %v, want %v", result.Result, RolledBack)
	}
	switch text := err.Error(); {
	case !strings.Contains(text, "kubelet: it was not healthy after 60s; the node is back"):
		t.Errorf("text lacks %q:\n%s", "kubelet: it was not healthy after 60s; the node is back", text)
	case !strings.Contains(text, "panic: bad flag"):
		t.Errorf("text lacks %q:\n%s", "panic: bad flag", text)
	}
	switch {
	case result.Components[0].Action != ActionRolledBack:
		t.Errorf("result.Components[0].Action is %v, want %v", result.Components[0].Action, ActionRolledBack)
	case result.Components[1].Action != ActionFailed:
		t.Errorf("result.Components[1].Action is %v, want %v", result.Components[1].Action, ActionFailed)
	case result.Components[1].LogLines[0] != "panic: bad flag":
		t.Errorf("result.Components[1].LogLines[0] is %q, want %q", result.Components[1].LogLines[0], "panic: bad flag")
	}
	if strings.Join(b.swap.acknowledged, ",") != "t1" {
		t.Error("the outcome was not acknowledged")
	}
}

func TestARollbackThatDidNotBringAllBackIsNoRolledBack(t *testing.T) {
	b := twoPrograms(t)
	b.swap.outcome = &agentv1.SwapOutcome{Result: agentv1.SwapResult_SWAP_RESULT_FAILED,
		Message: "kubelet does not start any more"}
	result, err := b.push(t.Context(), Options{})
	var back *RolledBackError
	switch {
	case !errors.As(err, &back):
		t.Fatalf("the error is %v, a %T, want a %T", err, err, back)
	case back.Complete():
		t.Fatal("back.Complete() is true, want false")
	case result.Result != Failed:
		t.Fatalf("result.Result is %v, want %v", result.Result, Failed)
	case !strings.Contains(err.Error(), "not everything runs"):
		t.Fatalf("err.Error() lacks %q:\n%s", "not everything runs", err.Error())
	}
}

func TestARefusedPlanLeavesNothing(t *testing.T) {
	b := twoPrograms(t)
	b.swap.refuse = errors.New("the file at the destination has changed")
	_, err := b.push(t.Context(), Options{})
	switch {
	case err == nil:
		t.Fatal("no error, want one")
	case is[*InterruptedError](err):
		t.Fatal("is[*InterruptedError](err) is true, want false")
	}
	b.whole(t, err, false)
}
