package join_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/join"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/sandbox/apiserver"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

func tokenFor(node string) cluster.TokenOptions { return cluster.TokenOptions{Node: node} }

func secretOf(env string) *v1alpha1.SecretSource { return &v1alpha1.SecretSource{Env: env} }

func TestAPodNetworkThatIsNotThereIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newNodeOf(t, newControl(t, apiserver.Options{NoPodNetwork: true}), "win1")
		l.ready = time.Second
		results, err := l.join()
		var failed *join.FailedError
		if !errors.As(err, &failed) {
			t.Fatalf("got %v\n%s", err, table(results))
		}
		switch {
		case failed.Phase != "node":
			t.Errorf("failed.Phase = %q, want %q", failed.Phase, "node")
		case !strings.Contains(failed.Cause, "network"):
			t.Errorf("failed.Cause lacks %q:\n%s", "network", failed.Cause)
		case !strings.Contains(failed.Cause, `C:\etc\cni\net.d`):
			t.Errorf("failed.Cause lacks %q:\n%s; phase %s, cause %s", `C:\etc\cni\net.d`, failed.Cause, failed.Phase,
				failed.Cause)
		}
		switch {
		case len(failed.Conditions) == 0:
			t.Errorf("len(failed.Conditions) = 0: %+v", failed.Conditions)
		case failed.Conditions[0].Type != "Ready":
			t.Errorf("failed.Conditions[0].Type = %q, want %q", failed.Conditions[0].Type, "Ready")
		case len(failed.Log) == 0:
			t.Errorf("len(failed.Log) = 0: %+v", failed.Log)
		case !strings.Contains(err.Error(), failed.Log[0]):
			t.Errorf("err.Error() lacks %q:\n%s; conditions %v, log %v, error %v", failed.Log[0], err.Error(),
				failed.Conditions, failed.Log, err)
		}
		var waited *cluster.NodeWaitError
		if !errors.As(err, &waited) {
			t.Errorf("not a wait: %v", err)
		}
	})
}

func TestAContainerdThatDoesNotStartIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.programs.fault["containerd"] = simulated.CrashAtStart
		results, err := l.join()
		var failed *join.FailedError
		switch {
		case !errors.As(err, &failed):
			t.Fatalf("error = %v (%T), want a %T", err, err, failed)
		case failed.Phase != "containerd service":
			t.Fatalf("failed.Phase = %q, want %q", failed.Phase, "containerd service")
		case len(failed.Log) == 0:
			t.Fatalf("len(failed.Log) = 0: %+v", failed.Log)
		case failed.Cause == "":
			t.Fatalf("failed.Cause is empty; got %v\n%s", err, table(results))
		}
		delete(l.programs.fault, "containerd") // the next run continues from there
		l.mustJoin()
		l.isReady()
	})
}

// A new kubelet that does not become healthy is rolled back, and the node goes on.
func TestBrokenNewKubeletIsRolledBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.mustJoin()
		l.spec().Version = "1.36.4"
		l.programs.fault["kubelet"] = simulated.CrashAtStart
		if results, err := l.join(); err == nil {
			t.Fatalf("no error\n%s", table(results))
		}
		l.spec().Version = "1.36.3"
		delete(l.programs.fault, "kubelet")
		l.mustJoin()
		if n := l.isReady(); n.KubeletVersion != "v1.36.3" {
			t.Errorf("kubelet %s", n.KubeletVersion)
		}
	})
}

func TestForeignJoinIsNotTouched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.put(`C:\etc\kubernetes\kubelet.conf`, "theirs")
		results, err := l.join()
		if err == nil || !strings.Contains(err.Error(), "kubeadm reset") {
			t.Fatalf("got %v\n%s", err, table(results))
		}
		if l.get(`C:\etc\kubernetes\kubelet.conf`) != "theirs" || l.get(layout.JoinRecord) != "" {
			t.Error("something was changed")
		}
	})
}

// Another machine that has the name keeps it.
func TestANameThatAnotherMachineHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		control := newControl(t, apiserver.Options{})
		first, second := newNodeOf(t, control, "win1"), newNodeOf(t, control, "win2")
		first.mustJoin()
		second.spec().Join.NodeName = "win1"
		results, err := second.join()
		if err == nil || !strings.Contains(err.Error(), "node win1 of the cluster is another machine") {
			t.Fatalf("got %v\n%s", err, table(results))
		}
		first.isReady()
	})
}

func TestANodeKeepsItsName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.mustJoin()
		l.spec().Join.NodeName = "other"
		if results, err := l.join(); err == nil || !strings.Contains(err.Error(), "swdt reset") {
			t.Fatalf("got %v\n%s", err, table(results))
		}
	})
}

func TestTwoNodesJoinAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		control := newControl(t, apiserver.Options{})
		labs := []*lab{newNodeOf(t, control, "win1"), newNodeOf(t, control, "win2")}
		var both sync.WaitGroup
		errs := make([]error, len(labs))
		for i, l := range labs {
			both.Go(func() { _, errs[i] = l.join() })
		}
		both.Wait()
		for i, l := range labs {
			if errs[i] != nil {
				t.Fatal(errs[i])
			}
			l.isReady()
			l.noToken()
		}
	})
}

func TestADryRunChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.Machine.ForgetOperations()
		steps, err := join.Steps(l.Node.Node, l.doc, l.options())
		results, err := l.run(t.Context(), steps, err, true)
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range l.Machine.Operations() {
			// comparing runs programs, and every session protects its folder
			if op.Kind != simulated.OpProcessRun && op.Target != layout.Root {
				t.Errorf("a dry run: %v", op)
			}
		}
		if got := len(changed(results)); got < 10 {
			t.Errorf("only %d steps\n%s", got, table(results))
		}
	})
}

func TestMissingFieldsOfTheNodeFileAreNamed(t *testing.T) {
	doc := config.Document{File: "node.yaml", Line: 3}
	_, err := join.Steps(nil, doc, join.Options{})
	var problems *config.Error
	if !errors.As(err, &problems) || len(problems.Problems) != 5 {
		t.Fatalf("got %v", err)
	}
	for _, field := range []string{"version", "containerd.version", "join.token", "join.discoveryTokenCACertHash",
		"join.controlPlaneEndpoint"} {
		if !strings.Contains(err.Error(), "node.yaml:3: spec.kubernetes."+field+":") {
			t.Errorf("%s is not named in\n%v", field, err)
		}
	}
	if _, err := join.Reset(nil, doc, join.ResetOptions{DeleteNode: true}); err == nil {
		t.Error("Reset accepts DeleteNode without a cluster, want an error")
	}
}

// If a reboot is needed and not allowed, the join stops and asks for it; the next run
// continues after the reboot.
func TestAFeatureThatNeedsAReboot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		steps, err := join.Steps(l.Node.Node, l.doc, l.options())
		if err != nil {
			t.Fatal(err)
		}
		results, err := plan.Run(t.Context(), steps, plan.Options{Machine: l.Node.Node, Ordered: true}, ui.Discard{})
		var reboot *plan.RebootRequiredError
		if !errors.As(err, &reboot) {
			t.Fatalf("got %v\n%s", err, table(results))
		}
		l.Machine.PowerCut()
		if err := l.Reconnect(context.Background()); err != nil {
			t.Fatal(err)
		}
		l.mustJoin()
		l.isReady()
	})
}

func TestANodeOfAnotherClusterIsNotTouched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.mustJoin()
		other := newNodeOf(t, newControlOn(t, l.control.network, apiserver.Options{}), "win9")
		l.cluster = other.cluster
		if results, err := l.join(); err == nil || !strings.Contains(err.Error(), "swdt reset --no-drain") {
			t.Fatalf("got %v\n%s", err, table(results))
		}
		if results, err := l.resetWith(join.ResetOptions{}); err != nil {
			t.Fatalf("%v\n%s", err, table(results))
		}
		l.mustJoin()
		l.isReady()
	})
}
