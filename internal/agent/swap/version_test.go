package swap_test

import (
	"testing"
	"testing/synctest"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/agent/internal/hashcache"
	"github.com/swdt-dev/swdt/internal/agent/swap"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
)

// versionRuns counts how often a program was run by the agent, since the last call of ForgetOperations. The service's own
// process is run by the SCM.
func (n *node) versionRuns() (count int) {
	for _, op := range n.Operations() {
		if op.Kind == simulated.OpProcessRun && op.Process == "swdt-agent.exe" {
			count++
		}
	}
	return count
}

func (n *node) inspectKubelet(t *testing.T) *agentv1.ComponentState {
	t.Helper()
	m, p := n.session()
	defer p.Exit()
	hashes := hashcache.Load(m.Platform.Files)
	state, err := swap.Inspect(t.Context(), m.Platform, hashes, &agentv1.InspectComponent{
		Name: "kubelet", Destination: kubeletExe, Service: "kubelet", AskVersion: true,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// kubelet.exe needs a fifth of a second to print its version. A push runs the new binary once for it, while the service
// settles, and no later look runs it, or the previous one, again.
func TestANewBinaryIsAskedOnceForItsVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		for _, version := range []string{"v1.30.0", "v1.31.0"} {
			time.Sleep(time.Minute) // of the bubble's clock: new files are not trusted
			c := n.stageKubelet(t, version, "")
			time.Sleep(time.Minute)
			n.ForgetOperations()
			begun := time.Now()
			outcome, _ := n.push(t, c)
			if got := outcome.Components[0].Version; got != version {
				t.Errorf("the outcome has the version %q, want %q", got, version)
			}
			if got := n.versionRuns(); got != 1 {
				t.Errorf("programs were run %d times for their version, want 1", got)
			}
			if took := time.Since(begun); took > 3*swap.DefaultSettle {
				t.Errorf("the push took %s", took)
			}
		}
		past, err := swap.History(t.Context(), n.Process("look").Files)
		if err != nil || len(past) != 2 || past[1].Components[0].Version != "v1.31.0" {
			t.Errorf("the history is %+v, %v", past, err)
		}
		n.ForgetOperations()
		state := n.inspectKubelet(t)
		if state.GetVersion() != "v1.31.0" || state.GetPreviousVersion() != "v1.30.0" {
			t.Errorf("the versions are %q and before %q", state.GetVersion(), state.GetPreviousVersion())
		}
		if got := n.versionRuns(); got != 0 {
			t.Errorf("programs were run %d times, want 0", got)
		}
	})
}

// A session that pushes again and again, as with --watch, has the versions that the guardians learned.
func TestASessionLearnsTheVersionsOfItsPushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		c := n.stageKubelet(t, "v1.30.0", "")
		time.Sleep(time.Minute)
		m, p := n.session()
		defer p.Exit()
		m.Hashes = hashcache.Load(m.Platform.Files)
		id, err := swap.Begin(t.Context(), m, swap.Plan{Holder: "tester", Components: []swap.Component{c}})
		if err == nil {
			_, err = swap.Follow(t.Context(), m, id, func(swap.Event) {})
		}
		if err != nil {
			t.Fatal(err)
		}
		n.ForgetOperations()
		state, err := swap.Inspect(t.Context(), m.Platform, m.Hashes, &agentv1.InspectComponent{
			Name: "kubelet", Destination: kubeletExe, Service: "kubelet", AskVersion: true}, nil)
		if err != nil || state.GetVersion() != "v1.30.0" {
			t.Errorf("the version is %q, %v", state.GetVersion(), err)
		}
		// The previous binary, which no push asked, is run once.
		if got := n.versionRuns(); got != 1 {
			t.Errorf("programs were run %d times for their version, want 1", got)
		}
	})
}

// A version belongs to the bytes of a file, not to its path.
func TestAChangedBinaryIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		c := n.stageKubelet(t, "v1.30.0", "")
		time.Sleep(time.Minute)
		n.push(t, c)
		time.Sleep(time.Minute)
		n.place(t, `C:\k\another.exe`, binary("kubelet", "v1.32.0", ""))
		files := n.Process("admin").Files
		if err := files.Rename(kubeletExe, `C:\k\old.exe`, false); err != nil {
			t.Fatal(err)
		}
		if err := files.Rename(`C:\k\another.exe`, kubeletExe, false); err != nil {
			t.Fatal(err)
		}
		if got := n.inspectKubelet(t).GetVersion(); got != "v1.32.0" {
			t.Errorf("the version is %q, want v1.32.0", got)
		}
	})
}

// A binary that is put back is not asked, and its version is not in the outcome.
func TestARolledBackBinaryHasNoVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		c := n.stageKubelet(t, "v1.30.0", string(simulated.CrashAtStart))
		outcome, _ := n.push(t, c)
		if outcome.Result != swap.RolledBack || outcome.Components[0].Version != "" {
			t.Errorf("%s, version %q", outcome.Result, outcome.Components[0].Version)
		}
	})
}
