package selftest_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/gob"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/proof/selftest"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// kept is the part of a machine's saved state that a run must leave unchanged.
type kept struct {
	Disk     keptFile
	Registry keptKey
	Services []keptService
	Features map[string]platform.FeatureState
	Firewall []platform.FirewallRule
	Packages map[string]string
}

type keptFile struct {
	Name     string
	Folder   bool
	Size     int64
	Chunks   [][]byte
	Hash     [sha256.Size]byte // of the chunks, which are then removed, since they are slow to compare
	Children []keptFile
}

type keptKey struct {
	Name   string
	Values []platform.RegistryValue
	Keys   []keptKey
}

type keptService struct{ Config platform.ServiceConfig }

// state returns the machine's state without the files that every command of swdt keeps.
func (b *bench) state(t *testing.T) (s kept) {
	t.Helper()
	var saved bytes.Buffer
	if err := b.Machine.Save(&saved); err != nil {
		t.Fatal(err)
	}
	if err := gob.NewDecoder(&saved).Decode(&s); err != nil {
		t.Fatal(err)
	}
	s.Disk.drop(`C:`, layout.HashCache, layout.LockFile, layout.Journals, layout.History, layout.HistoryLock,
		`C:\Windows\Temp`) // the imitation of pktmon keeps its own state there
	s.Services = slices.DeleteFunc(s.Services, func(s keptService) bool {
		return strings.EqualFold(s.Config.Name, layout.GuardianService)
	})
	return s
}

func (f *keptFile) drop(path string, dropped ...string) {
	f.Children = slices.DeleteFunc(f.Children, func(child keptFile) bool {
		return slices.ContainsFunc(dropped, func(d string) bool { return strings.EqualFold(d, path+`\`+child.Name) })
	})
	f.Hash, f.Chunks = sha256.Sum256(bytes.Join(f.Chunks, nil)), nil
	for i := range f.Children {
		f.Children[i].drop(path+`\`+f.Children[i].Name, dropped...)
	}
}

func TestSimulatedNode(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	before := b.state(t)
	report, err := b.run(t)
	if err != nil {
		t.Error(err)
	}
	for id, reason := range failures(report, selftest.Failed, selftest.Impossible) {
		t.Errorf("%s: %s", id, reason)
	}
	if got := failures(report, selftest.NotRun); len(got) != 1 || got["guardian"] != "needs --allow-reboot" {
		t.Errorf("not run: %v", got)
	}
	if diff := cmp.Diff(before, b.state(t)); diff != "" {
		t.Errorf("the run changed the machine (-before +after):\n%s", diff)
	}
	text, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"WIN-SECRET", "win-1", os.TempDir()} {
		if strings.Contains(strings.ToLower(string(text)), strings.ToLower(secret)) {
			t.Errorf("the report contains %s", secret)
		}
	}
}

// TestInterruptedRunCleansUp ends a run as Ctrl-C does.
func TestInterruptedRunCleansUp(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	before := b.state(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b.defect(func(op simulated.Operation) simulated.Verdict {
		if op.Kind == simulated.OpServiceStart && op.Phase == simulated.After {
			cancel()
		}
		return simulated.Verdict{}
	})
	report, err := selftest.Run(ctx, b.Node.Node, document(), b.options, ui.Discard{})
	if err == nil || report.Summary.NotRun < 2 || report.CleanUp != "" {
		t.Errorf("%v: %s, %s", err, report.Summary, report.CleanUp)
	}
	if diff := cmp.Diff(before, b.state(t)); diff != "" {
		t.Errorf("the interrupted run changed the machine (-before +after):\n%s", diff)
	}
}

// warnings keeps the warnings of a run.
type warnings struct {
	ui.Discard
	all *[]string
}

func (w warnings) Warn(format string, args ...any) {
	for _, arg := range args {
		if text, ok := arg.(string); ok {
			*w.all = append(*w.all, text)
		}
	}
}

// TestNextRunRemovesWhatAKilledOneLeft breaks the connection for good, so that a run cannot clean up.
func TestNextRunRemovesWhatAKilledOneLeft(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	before := b.state(t)
	b.OnReconnect(func(context.Context) error { return context.Canceled })
	b.options.Only = []string{"registry", "desktop"}
	b.defect(func(op simulated.Operation) simulated.Verdict {
		if op.Kind == simulated.OpRegistrySet && strings.Contains(op.Target, "Terminal Server") &&
			op.Phase == simulated.After {
			return simulated.Verdict{KillCaller: true}
		}
		return simulated.Verdict{}
	})
	report, err := b.run(t)
	if err == nil || report.CleanUp == "" {
		t.Fatalf("%v: the run cleaned up although its connection was lost: %s", err, report.Summary)
	}
	if diff := cmp.Diff(before, b.state(t)); diff == "" {
		t.Fatal("the killed run left nothing")
	}
	b.defect(func(simulated.Operation) simulated.Verdict { return simulated.Verdict{} })
	b.OnReconnect(b.Reconnect)
	if err := b.Reconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.options.Only = []string{"facts"}
	var warned []string
	if _, err := selftest.Run(t.Context(), b.Node.Node, document(), b.options, warnings{all: &warned}); err != nil {
		t.Error(err)
	}
	if text := strings.Join(warned, " "); !strings.Contains(text, "Remote Desktop") || !strings.Contains(text, "folder") {
		t.Errorf("the next run warned %q", text)
	}
	if diff := cmp.Diff(before, b.state(t)); diff != "" {
		t.Errorf("the next run left something (-before +after):\n%s", diff)
	}
}

// TestNextRunWaitsForTheTransactionOfAKilledOne kills a run in the middle of a push. The node's guardian is
// still at work on the push when the next run begins.
func TestNextRunWaitsForTheTransactionOfAKilledOne(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	before := b.state(t)
	b.options.Only = []string{"push"}
	b.OnReconnect(func(context.Context) error { return context.Canceled })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	held, resume := make(chan struct{}), make(chan struct{})
	var stops atomic.Int32
	b.defect(func(op simulated.Operation) simulated.Verdict {
		if op.Kind == simulated.OpServiceStop && op.Phase == simulated.After {
			if stops.Add(1) == 1 {
				cancel()
				b.Cut()
				close(held)
				<-resume
			}
		}
		return simulated.Verdict{}
	})
	first, err := selftest.Run(ctx, b.Node.Node, document(), b.options, ui.Discard{})
	if err == nil || first.CleanUp == "" {
		t.Fatalf("%v: the run cleaned up although its connection was lost: %s", err, first.Summary)
	}
	<-held
	b.OnReconnect(b.Reconnect)
	if err := b.Reconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
	waits := &firstWarning{first: func() { close(resume) }}
	report, err := selftest.Run(t.Context(), b.Node.Node, document(), b.options, waits)
	if err != nil || report.Summary.Passed != 1 || report.CleanUp != "" {
		t.Errorf("%v: %s, %v, %s", err, report.Summary, failures(report, selftest.Failed), report.CleanUp)
	}
	if want := "transaction %s of %s is unfinished (%s); finishing it first"; waits.format != want {
		t.Errorf("the first warning is %q, want %q", waits.format, want)
	}
	if diff := cmp.Diff(before, b.state(t)); diff != "" {
		t.Errorf("the next run left something (-before +after):\n%s", diff)
	}
}

// firstWarning calls first at the first warning of a run.
type firstWarning struct {
	ui.Discard
	first  func()
	format string
}

func (w *firstWarning) Warn(format string, _ ...any) {
	if w.format == "" {
		w.format = format
		w.first()
	}
}

// TestRunInterruptedInARestartCleansUp ends a run as soon as the node has begun to restart. The node comes back later.
func TestRunInterruptedInARestartCleansUp(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	services := b.state(t).Services
	b.options.Only, b.options.AllowReboot = []string{"guardian"}, true
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var tries atomic.Int32
	b.OnReconnect(func(ctx context.Context) error {
		if tries.Add(1) == 1 {
			return errors.New("the node does not answer yet")
		}
		if tries.Load() == 2 {
			b.Machine.Reboot()
		}
		return b.Reconnect(ctx)
	})
	b.defect(func(op simulated.Operation) simulated.Verdict {
		if op.Kind == simulated.OpReboot && op.Phase == simulated.After {
			cancel()
			go b.Cut()
		}
		return simulated.Continue()
	})
	report, err := selftest.Run(ctx, b.Node.Node, document(), b.options, ui.Discard{})
	if !errors.Is(err, context.Canceled) || report.CleanUp != "" {
		t.Errorf("%v: %s, %s", err, report.Summary, report.CleanUp)
	}
	if diff := cmp.Diff(services, b.state(t).Services); diff != "" { // programs have logged their start since
		t.Errorf("the interrupted run changed the services (-before +after):\n%s", diff)
	}
	if _, err := b.Machine.ReadFile(layout.Root + `\selftest\swdt-selftest.exe`); err == nil {
		t.Error("the interrupted run left its program")
	}
}

// TestASettingThatCannotBePutBackKeepsItsRecord refuses the run's second change of Remote Desktop. The next run
// puts the setting back.
func TestASettingThatCannotBePutBackKeepsItsRecord(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	before := b.state(t)
	b.options.Only = []string{"desktop"}
	var changes atomic.Int32
	b.defect(func(op simulated.Operation) simulated.Verdict {
		if op.Kind == simulated.OpRegistrySet && strings.Contains(op.Target, "Terminal Server") &&
			op.Phase == simulated.Before && changes.Add(1) > 1 {
			return simulated.Fail(fault.ErrPermission)
		}
		return simulated.Continue()
	})
	report, err := b.run(t)
	var failed *selftest.FailedError
	if err == nil || errors.As(err, &failed) || !strings.Contains(report.CleanUp, "Remote Desktop") {
		t.Fatalf("%v: %s", err, report.CleanUp)
	}
	b.defect(func(simulated.Operation) simulated.Verdict { return simulated.Continue() })
	b.options.Only = []string{"facts"}
	if _, err := b.run(t); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(before, b.state(t)); diff != "" {
		t.Errorf("the next run left something (-before +after):\n%s", diff)
	}
}

// TestAClaimThatWasNotTriedHasNotFailed loses the node between two claims.
func TestAClaimThatWasNotTriedHasNotFailed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.options.Only = []string{"lost", "registry"}
	gone := errors.New("the node is off")
	b.Tamper(func(method string, _ int, reply proto.Message, send func(proto.Message) error) error {
		if strings.HasSuffix(method, "/Facts") { // the look before the first claim
			b.OnReconnect(func(context.Context) error { return gone })
		}
		return send(reply)
	})
	report, err := b.run(t)
	if !errors.Is(err, gone) {
		t.Errorf("the error is %v", err)
	}
	notRun := failures(report, selftest.NotRun)
	if len(failures(report, selftest.Failed)) > 1 || notRun["registry"] != "the run ended before" {
		t.Errorf("failed: %v; not run: %v", failures(report, selftest.Failed), notRun)
	}
}

// TestAnEmptyAnswerOfARealWindowsProvesNothing makes a node that seems to be a real Windows list nothing.
func TestAnEmptyAnswerOfARealWindowsProvesNothing(t *testing.T) {
	t.Parallel()
	for claim, want := range map[string]string{
		"services":  "of 0 services, none runs",
		"events":    "the System log of a real Windows has no event",
		"listeners": "no process of a real Windows listens on a port",
		"processes": "the node lists no process",
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.options.Only = []string{claim}
			b.Machine.Script(func(c platform.Command) (simulated.Answer, bool) {
				return simulated.Answer{}, strings.Contains(c.Path, "wevtutil") && c.Args[0] == "qe"
			})
			b.Tamper(func(_ string, _ int, reply proto.Message, send func(proto.Message) error) error {
				switch r := reply.(type) {
				case *agentv1.FactsReply:
					r.Simulated = agentv1.Simulation_SIMULATION_NONE
				case *agentv1.ListServicesReply:
					r.Services = nil
				case *agentv1.ListenersReply:
					r.Listeners = nil
				case *agentv1.ListProcessesReply:
					r.Processes = nil
				}
				return send(reply)
			})
			report, _ := b.run(t)
			if got := failures(report, selftest.Failed); !strings.Contains(got[claim], want) {
				t.Errorf("the failures are %q, not %q", got, want)
			}
		})
	}
}
