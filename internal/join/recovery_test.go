package join_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/swdt-dev/swdt/internal/platform"
)

// The services of a node that fail again and again at any time are restarted each time, and never at once more than
// once: with a growing delay that has an end.
func TestServicesComeBackAfterEachFailure(t *testing.T) {
	registered := map[string]platform.Recovery{}
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.mustJoin()
		for _, name := range []string{"kubelet", "containerd"} {
			config, err := l.Machine.Process("look").Services.Config(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			registered[name] = *config.Recovery
		}
	})
	for name, recovery := range registered {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { comesBack(t, name, recovery) })
		})
	}
}

func comesBack(t *rapid.T, name string, recovery platform.Recovery) {
	const longest = 2 * time.Minute // a node is NotReady after 40 s, and its pods are evicted after 5 minutes
	var failures platform.Failures
	var before time.Duration
	at := time.Now()
	for i, ran := range rapid.SliceOf(rapid.OneOf(
		rapid.Map(rapid.IntRange(0, 120), func(n int) time.Duration { return time.Duration(n) * time.Second }),
		rapid.Map(rapid.IntRange(0, 48), func(n int) time.Duration { return time.Duration(n) * time.Hour }),
	)).Draw(t, "running for") {
		at = at.Add(ran)
		delay, restarts := failures.Failed(recovery, at)
		switch {
		case !restarts:
			t.Fatalf("%s stays dead after its failure %d: %+v", name, i+1, recovery)
		case delay <= 0 || delay > longest:
			t.Fatalf("%s is restarted after %s", name, delay)
		case delay < before && ran < recovery.Reset:
			t.Fatalf("the delay of %s shrank from %s to %s although it failed again after %s", name, before, delay, ran)
		}
		before, at = delay, at.Add(delay)
	}
}

func TestKubeletComesBackAfterTheTenthCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.mustJoin()
		for range 10 {
			l.Machine.Kill("kubelet")
			time.Sleep(70 * time.Second)
			if s := l.Machine.ServiceStates()["kubelet"]; s.State != platform.Running {
				t.Fatalf("kubelet is %s", s.State)
			}
		}
	})
}

func TestResetRestoresRecoveryActions(t *testing.T) {
	for name, before := range map[string]platform.Recovery{
		"restarts": {Restarts: []time.Duration{1500 * time.Millisecond, time.Minute}, RepeatLast: true, OnErrorExit: true,
			Reset: time.Hour},
		"a command and a restart of Windows": {Restarts: []time.Duration{time.Second}, Reboots: true, Reset: time.Hour,
			Actions: []platform.RecoveryAction{{Kind: platform.RecoverByRestart, After: time.Second},
				{Kind: platform.RecoverByCommand}, {Kind: platform.RecoverByReboot, After: time.Minute}}},
	} {
		subtest(t, name, func(t *testing.T) { resetRestores(t, before) })
	}
}

func resetRestores(t *testing.T, before platform.Recovery) {
	l := newLab(t)
	if err := l.Machine.Process("before").Services.Create(t.Context(), platform.ServiceConfig{Name: "kubelet", CommandLine: `C:\mine\kubelet.exe`,
		Recovery: &before}); err != nil {
		t.Fatal(err)
	}
	l.mustJoin()
	if results, err := l.resetWith(resetAll(l)); err != nil {
		t.Fatalf("reset: %v\n%s", err, table(results))
	}
	after, err := l.Machine.Process("after").Services.Config(t.Context(), "kubelet")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&before, after.Recovery); diff != "" {
		t.Errorf("the recovery actions before the join and after the reset:\n%s", diff)
	}
}
