package onnode_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/testing/fleettest"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// onReport calls f before the API server stores a report of the node with this text. If f returns an error, the report
// fails with it.
func (o *ordered) onReport(text string, f func() error) {
	o.client.PrependReactor("patch", "nodestates", func(a k8stesting.Action) (bool, runtime.Object, error) {
		patch, ok := a.(k8stesting.PatchAction)
		if !ok || !strings.Contains(string(patch.GetPatch()), text) {
			return false, nil, nil
		}
		err := f()
		return err != nil, nil, err
	})
}

// transactions counts the transactions that the machine begins from now on.
func (o *ordered) transactions() *atomic.Int64 {
	var count atomic.Int64
	o.Machine.OnOperation(func(op simulated.Operation) simulated.Verdict {
		if op.Kind == simulated.OpCreate && op.Phase == simulated.Before && nodetest.Session(op) &&
			strings.HasPrefix(op.Target, layout.Journals+`\`) {
			count.Add(1)
		}
		return simulated.Continue()
	})
	return &count
}

var errOutage = errors.New("the API server does not answer")

// A bad binary is not tried again while the API server does not take the report about it.
func TestABadBinaryIsTriedOnceWhileReportsFail(t *testing.T) {
	d := fleettest.NewFileServer(t, map[string][]byte{"bad.exe": fleettest.Kubelet("v1.37.3", simulated.CrashAtStart)})
	o := newOrdered(t, d.Content("bad.exe"))
	var outages atomic.Int64
	o.onReport(`"phase":"RolledBack"`, func() error {
		if outages.Add(1) <= 3 {
			return errOutage
		}
		return nil
	})
	begun := o.transactions()
	status := o.carryOut()
	if status.Phase != fleetv1.PhaseRolledBack || status.Journal == "" || !o.Runs(o.First) {
		t.Errorf("%+v; it runs its first kubelet: %t", status, o.Runs(o.First))
	}
	if begun.Load() != 1 || outages.Load() != 4 {
		t.Errorf("%d transactions and %d reports, want 1 and 4", begun.Load(), outages.Load())
	}
}

// A program that ends between the end of the swap and the report leaves the end to the next one, with the ID of the
// transaction.
func TestThePodEndsBeforeTheReport(t *testing.T) {
	good, bad := fleettest.Kubelet("v1.37.2", ""), fleettest.Kubelet("v1.37.3", simulated.CrashAtStart)
	d := fleettest.NewFileServer(t, map[string][]byte{"good.exe": good, "bad.exe": bad})
	for file, phase := range map[string]fleetv1.Phase{"good.exe": fleetv1.PhaseDone, "bad.exe": fleetv1.PhaseRolledBack} {
		t.Run(file, func(t *testing.T) {
			o := newOrdered(t, d.Content(file))
			wanted := map[fleetv1.Phase][]byte{fleetv1.PhaseDone: good, fleetv1.PhaseRolledBack: o.First}[phase]
			var ended, reachable atomic.Bool
			o.onReport(`"phase":"`+string(phase)+`"`, func() error {
				if reachable.Load() {
					return nil
				}
				ended.Store(true) // ends the pod
				return errOutage
			})
			begun := o.transactions()
			if status := o.until(&ended); status.Phase != fleetv1.PhaseWorking {
				t.Errorf("before the report: %+v", status)
			}
			reachable.Store(true)
			status := o.carryOut()
			if status.Phase != phase || status.Journal == "" || !o.Runs(wanted) ||
				strings.Contains(status.Message, "kubelet") != (phase == fleetv1.PhaseRolledBack) {
				t.Errorf("%+v; it runs the kubelet that it should: %t", status, o.Runs(wanted))
			}
			if begun.Load() != 1 {
				t.Errorf("%d transactions, want 1", begun.Load())
			}
		})
	}
}

// A program that ends between its report and the removal of the journal leaves the removal to the next one, although
// that one has nothing to report.
func TestThePodEndsAfterTheReport(t *testing.T) {
	d := fleettest.NewFileServer(t, map[string][]byte{"good.exe": fleettest.Kubelet("v1.37.2", "")})
	o := newOrdered(t, d.Content("good.exe"))
	var ended atomic.Bool
	o.Machine.OnOperation(func(op simulated.Operation) simulated.Verdict {
		if op.Kind == simulated.OpRemove && op.Phase == simulated.Before && strings.HasPrefix(op.Target, layout.Journals+`\`) {
			ended.Store(true) // ends the pod
			return simulated.KillCaller()
		}
		return simulated.Continue()
	})
	reported := o.until(&ended)
	if reported.Phase != fleetv1.PhaseDone || reported.Journal == "" || o.forgotten() {
		t.Fatalf("when the pod ended: %+v; the journal is gone: %t", reported, o.forgotten())
	}
	o.Machine.OnOperation(nil)
	var reports atomic.Int64
	o.onReport(`"phase"`, func() error {
		reports.Add(1)
		return nil
	})
	o.carryOut() // ends when the journal is gone
	if reports.Load() != 0 {
		t.Errorf("the next pod reports %d times", reports.Load())
	}
}

// The node forgets a failed transaction when its end is reported.
func TestAReportedTransactionIsForgotten(t *testing.T) {
	d := fleettest.NewFileServer(t, map[string][]byte{"bad.exe": fleettest.Kubelet("v1.37.3", simulated.CrashAtStart)})
	o := newOrdered(t, d.Content("bad.exe"))
	var removed atomic.Bool
	var phase fleetv1.Phase // when the journal was removed
	o.Machine.OnOperation(func(op simulated.Operation) simulated.Verdict {
		if op.Kind == simulated.OpRemove && op.Phase == simulated.After && strings.HasPrefix(op.Target, layout.Journals+`\`) {
			if !removed.Load() {
				phase = o.state().Status.Phase
			}
			removed.Store(true)
		}
		return simulated.Continue()
	})
	o.carryOut()
	if phase != fleetv1.PhaseRolledBack {
		t.Errorf("forgotten when the report was %q", phase)
	}
}

// A node that another swdt has locked is set up later.
func TestASetupWaitsForAnotherSwdt(t *testing.T) {
	wanted := fleetv1.Content{Setup: &fleetv1.Setup{Environment: map[string]string{"SWDT_TRIED": "yes"}}}
	o := newOrdered(t, wanted)
	lock, err := o.Files.Lock(layout.LockFile, []byte("ann@desk"))
	if err != nil {
		t.Fatal(err)
	}
	var free sync.Once
	o.onReport("ann@desk changes the node", func() (err error) {
		free.Do(func() { err = lock.Unlock() })
		return err
	})
	if status := o.carryOut(); status.Phase != fleetv1.PhaseDone {
		t.Errorf("%+v", status)
	}
}

// An order to roll back leaves the binaries that the content has not changed, and restores arguments.
func TestARollbackRestoresWhatTheContentReplaced(t *testing.T) {
	next := fleettest.Kubelet("v1.37.2", "")
	runtimeBinary := simulated.Binary(simulated.BinarySpec{Name: "containerd", Version: "v1.7.12"})
	d := fleettest.NewFileServer(t, map[string][]byte{"kubelet.exe": next, "containerd.exe": runtimeBinary})
	o := newOrdered(t, d.Content("kubelet.exe"))
	firstContainerd := string(o.Get(simulated.ContainerdPath))
	firstLine := o.commandLine("kubelet")
	expect := func(phase fleetv1.Phase, containerd, line string) {
		t.Helper()
		if status := o.carryOut(); status.Phase != phase {
			t.Fatalf("%+v", status)
		}
		if !o.Runs(next) {
			t.Error("it does not run the kubelet of the first content")
		}
		if string(o.Get(simulated.ContainerdPath)) != containerd {
			t.Error("it has another containerd")
		}
		if got := o.commandLine("kubelet"); got != line {
			t.Errorf("the kubelet's command line is %q, want %q", got, line)
		}
	}
	expect(fleetv1.PhaseDone, firstContainerd, firstLine)

	second := d.Content("kubelet.exe")
	added := second.Provisioners[0]
	added.Name, added.Destination = "containerd", simulated.ContainerdPath
	added.SourceURL, added.SHA256 = d.URL+"/containerd.exe", d.Sum("containerd.exe")
	second.Provisioners = append(second.Provisioners, added)
	program, arguments, _ := strings.Cut(firstLine, " ")
	second.Provisioners[0].Args = append(strings.Split(arguments, " "), "--v=4")
	o.order(second)
	expect(fleetv1.PhaseDone, string(runtimeBinary), program+" "+arguments+" --v=4")

	o.orderBack()
	expect(fleetv1.PhaseDone, firstContainerd, firstLine)
}

// commandLine returns the registered command line of a service.
func (o *ordered) commandLine(service string) string {
	o.t.Helper()
	config, err := o.Machine.Process("look").Services.Config(o.t.Context(), service)
	if err != nil {
		o.t.Fatal(err)
	}
	return config.CommandLine
}
