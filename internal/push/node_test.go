package push

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// realBench returns a bench with an unmodified node, on which the agent runs real transactions.
func realBench(t *testing.T, kubelet simulated.BinarySpec) *bench {
	t.Helper()
	b := &bench{t: t, folder: t.TempDir(), story: &heard{}}
	b.node = nodetest.Start(t, "w1", simulated.Options{})
	b.doc = config.Document{File: b.folder + "/swdt.yaml"}
	b.doc.Node.Metadata.Name = "w1"
	short := &v1alpha1.Health{Settle: &v1alpha1.Duration{Duration: 20 * time.Millisecond}}
	b.doc.Node.Spec.Kubernetes.Provisioners = []v1alpha1.Provisioner{
		{Name: "containerd", SourceURL: "containerd.exe", Destination: simulated.ContainerdPath, Health: short},
		{Name: "kubelet", SourceURL: "kubelet.exe", Destination: simulated.KubeletPath, Health: short},
	}
	v1alpha1.SetDefaults(&b.doc.Node)
	b.source("containerd.exe", simulated.Binary(simulated.BinarySpec{Name: "containerd",
		Version: "1.6.27", Size: 1 << 20}))
	kubelet.Name = "kubelet"
	b.source("kubelet.exe", simulated.Binary(kubelet))
	b.node.Calls()
	return b
}

func (b *bench) realWork(options Options) *work {
	w := b.work(options)
	w.reconnect = b.node.Reconnect
	return w
}

func (b *bench) realPush(options Options) (NodeResult, error) {
	w := b.realWork(options)
	return w.finish(w.push(b.t.Context()))
}

// running checks that the services run.
func (b *bench) running(names ...string) {
	b.t.Helper()
	for _, name := range names {
		reply, err := b.node.Services.Get(b.t.Context(), &agentv1.GetServiceRequest{Name: name})
		if err != nil || reply.GetStatus().GetState() != agentv1.ServiceState_SERVICE_STATE_RUNNING {
			b.t.Errorf("%s: %v, %v", name, reply.GetStatus(), err)
		}
	}
}

func TestOnTheAgentPushAgainAndRollBack(t *testing.T) {
	b := realBench(t, simulated.BinarySpec{Version: "v1.30.1"})
	oldKubelet := b.node.Get(simulated.KubeletPath)
	result, err := b.realPush(Options{})
	if err != nil {
		t.Fatal(err)
	}
	kubelet := result.Components[1]
	switch {
	case result.Result != Changed:
		t.Errorf("result.Result is %v, want %v", result.Result, Changed)
	case kubelet.Action != ActionReplaced:
		t.Errorf("kubelet.Action is %v, want %v", kubelet.Action, ActionReplaced)
	case kubelet.Version.After != "1.30.1" &&
		kubelet.Version.After != "v1.30.1":
		t.Errorf("kubelet.Version.After is %q, want 1.30.1 with or without a v", kubelet.Version.After)
	case kubelet.Version.Before == "":
		t.Error("kubelet.Version.Before is empty")
	case kubelet.Service.State != "running":
		t.Errorf("kubelet.Service.State is %q, want %q", kubelet.Service.State, "running")
	case kubelet.Seconds.Down <= 0:
		t.Errorf("kubelet.Seconds.Down is %v, want more than 0", kubelet.Seconds.Down)
	}
	b.running("containerd", "kubelet", "kube-proxy")
	if left := b.leftovers(); len(left) != 0 {
		t.Errorf("left %v", left)
	}
	b.unlocked()

	b.node.Calls()
	b.node.Machine.OnOperation(func(o simulated.Operation) simulated.Verdict {
		if o.Kind != simulated.OpProcessRun { // --version
			t.Errorf("an unchanged push changes the node: %v", o)
		}
		return simulated.Continue()
	})
	result, err = b.realPush(Options{})
	b.node.Machine.OnOperation(nil)
	calls := b.node.Calls()
	switch {
	case err != nil:
		t.Error(err)
	case result.Result != Unchanged:
		t.Errorf("result.Result is %v, want %v", result.Result, Unchanged)
	case len(calls) > 5:
		t.Errorf("calls has %d elements, want at most 5: %v", len(calls), calls)
	}

	w := b.realWork(Options{})
	result, err = w.finish(w.rollback(t.Context(), []string{"kubelet"}))
	switch {
	case err != nil:
		t.Fatal(err)
	case result.Result != Changed:
		t.Fatalf("result.Result is %v, want %v", result.Result, Changed)
	case !bytes.Equal(b.node.Get(simulated.KubeletPath), oldKubelet):
		t.Fatal("b.node.Get(simulated.KubeletPath) differs from oldKubelet")
	}
	b.running("containerd", "kubelet", "kube-proxy")
	b.unlocked()
}

func TestOnTheAgentABrokenKubeletIsRolledBack(t *testing.T) {
	for _, fault := range []simulated.Fault{simulated.CrashAtStart, simulated.Unhealthy} {
		t.Run(string(fault), func(t *testing.T) {
			b := realBench(t, simulated.BinarySpec{Version: "v1.30.1", Fault: fault})
			if fault == simulated.Unhealthy { // it uses the timeout up
				b.doc.Node.Spec.Kubernetes.Provisioners[1].Health.Timeout = &v1alpha1.Duration{Duration: 5 * time.Second}
			}
			oldKubelet, oldContainerd := b.node.Get(simulated.KubeletPath), b.node.Get(simulated.ContainerdPath)
			result, err := b.realPush(Options{})
			var back *RolledBackError
			switch {
			case !errors.As(err, &back):
				t.Fatalf("the error is %v, a %T, want a %T", err, err, back)
			case !back.Complete():
				t.Fatal("back.Complete() is false, want true")
			case result.Result != RolledBack:
				t.Fatalf("result.Result is %v, want %v", result.Result, RolledBack)
			case !strings.Contains(err.Error(), "kubelet"):
				t.Fatalf("err.Error() lacks %q:\n%s", "kubelet", err.Error())
			}
			if !bytes.Equal(b.node.Get(simulated.KubeletPath), oldKubelet) ||
				!bytes.Equal(b.node.Get(simulated.ContainerdPath), oldContainerd) {
				t.Error("the old binaries are not back")
			}
			if left := b.leftovers(); len(left) != 0 {
				t.Errorf("left %v", left)
			}
			b.running("containerd", "kubelet", "kube-proxy")
			b.unlocked()
		})
	}
}

func TestOnTheAgentACutConnectionIsFollowedToTheEnd(t *testing.T) {
	b := realBench(t, simulated.BinarySpec{Version: "v1.30.1"})
	cut := make(chan struct{}, 1)
	cut <- struct{}{}
	b.node.Machine.OnOperation(func(o simulated.Operation) simulated.Verdict {
		if o.Kind == simulated.OpServiceStop {
			select {
			case <-cut:
				b.node.Cut()
			default:
			}
		}
		return simulated.Continue()
	})
	result, err := b.realPush(Options{})
	b.node.Machine.OnOperation(nil)
	switch {
	case err != nil:
		t.Fatal(err)
	case result.Result != Changed:
		t.Fatalf("result.Result is %v, want %v", result.Result, Changed)
	case b.node.Sessions() < 2:
		t.Fatalf("b.node.Sessions() is %v, want at least 2", b.node.Sessions())
	}
	b.running("containerd", "kubelet", "kube-proxy")
	b.unlocked()
}

func TestOnTheAgentStrictAsksTheStagedBinary(t *testing.T) {
	b := realBench(t, simulated.BinarySpec{Version: "v1.30.1"})
	b.doc.Node.Spec.Kubernetes.Provisioners[1].Version = "1.31.0"
	b.node.Machine.OnOperation(func(o simulated.Operation) simulated.Verdict {
		if o.Kind == simulated.OpServiceStop {
			t.Errorf("stopped %s", o.Target)
		}
		return simulated.Continue()
	})
	_, err := b.realPush(Options{Strict: true})
	b.node.Machine.OnOperation(nil)
	var version *VersionError
	switch {
	case !errors.As(err, &version):
		t.Fatalf("the error is %v, a %T, want a %T", err, err, version)
	case !strings.Contains(version.Got, "1.30.1"):
		t.Fatalf("version.Got lacks %q:\n%s", "1.30.1", version.Got)
	}
	if left := b.leftovers(); len(left) != 0 {
		t.Errorf("left %v", left)
	}
	b.doc.Node.Spec.Kubernetes.Provisioners[1].Version = "1.30.1"
	if _, err := b.realPush(Options{Strict: true}); err != nil {
		t.Fatal(err)
	}
}

func TestOnTheAgentForceRestarts(t *testing.T) {
	b := realBench(t, simulated.BinarySpec{Version: "v1.30.1"})
	if _, err := b.realPush(Options{}); err != nil {
		t.Fatal(err)
	}
	result, err := b.realPush(Options{Force: true})
	switch {
	case err != nil:
		t.Fatal(err)
	case result.Components[0].Action != ActionRestarted:
		t.Fatalf("result.Components[0].Action is %v, want %v", result.Components[0].Action, ActionRestarted)
	case result.Components[1].Action != ActionRestarted:
		t.Fatalf("result.Components[1].Action is %v, want %v", result.Components[1].Action, ActionRestarted)
	}
	b.running("containerd", "kubelet", "kube-proxy")
}

// A power cut can leave an empty journal. Later pushes must still work.
func TestOnTheAgentAnEmptyJournalIsCleared(t *testing.T) {
	b := realBench(t, simulated.BinarySpec{Version: "v1.30.1"})
	b.node.Put(layout.Journals+`\20261120-143250-d6e76e21.jsonl`, nil)
	result, err := b.realPush(Options{})
	switch {
	case err != nil:
		t.Fatal(err)
	case result.Result != Changed:
		t.Fatalf("result.Result is %v, want %v", result.Result, Changed)
	}
	switch {
	case len(result.Recovered) != 1:
		t.Errorf("result.Recovered has %d elements, want 1: %v", len(result.Recovered), result.Recovered)
	case result.Recovered[0].Result != string(RolledBack):
		t.Errorf("result.Recovered[0].Result is %v, want %v", result.Recovered[0].Result, string(RolledBack))
	case b.node.Machine.Snapshot(layout.Journals)[layout.Journals+`\20261120-143250-d6e76e21.jsonl`] != "":
		t.Errorf("the journal of the recovered transaction is still there: %v",
			b.node.Machine.Snapshot(layout.Journals))
	}
}
