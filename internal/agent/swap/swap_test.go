package swap_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/agent/internal/hashcache"
	"github.com/swdt-dev/swdt/internal/agent/swap"
	"github.com/swdt-dev/swdt/internal/format/access"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

func TestReplacesAllComponentsInOneCycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		oldContainerd, oldKubelet := n.read(t, containerdExe), n.read(t, kubeletExe)
		containerd, kubelet := n.stageContainerd(t, "1.6.27", ""), n.stageKubelet(t, "v1.30.0", "")
		n.ForgetOperations()

		// The kubelet first: the order of the plan differs from the order of
		// the cycle.
		outcome, events := n.push(t, kubelet, containerd)

		if outcome.Result != swap.Committed || outcome.Message != "" {
			t.Fatalf("outcome: %+v", outcome)
		}
		for i, name := range []string{"kubelet", "containerd"} {
			c := outcome.Components[i]
			switch {
			case c.Name != name:
				t.Errorf("%s: c.Name is %v, want %v", name, c.Name, name)
			case c.Action != "replaced":
				t.Errorf("%s: c.Action is %q, want %q", name, c.Action, "replaced")
			case c.Service.State != platform.Running:
				t.Errorf("%s: c.Service.State is %v, want %v", name, c.Service.State, platform.Running)
			case c.Service.PID == 0:
				t.Errorf("%s: c.Service.PID is 0", name)
			case c.Down <= 0:
				t.Errorf("%s: c.Down is %v, want more than 0", name, c.Down)
			case c.Healthy < 0:
				t.Errorf("%s: c.Healthy is %v, want at least 0", name, c.Healthy)
			}
		}
		equalBytes(t, "containerd", n.read(t, containerdExe), binary("containerd", "1.6.27", ""))
		equalBytes(t, "kubelet", n.read(t, kubeletExe), binary("kubelet", "v1.30.0", ""))
		equalBytes(t, "previous containerd", n.read(t, layout.Previous(containerdExe)), oldContainerd)
		equalBytes(t, "previous kubelet", n.read(t, layout.Previous(kubeletExe)), oldKubelet)
		if left := n.leftovers(t); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		want := []string{"stop kubelet", "stop containerd", "start containerd", "start kubelet"}
		if got := serviceCalls(n); !slices.Equal(got, want) {
			t.Errorf("service calls: %v", got)
		}
		if last := events[len(events)-1]; last.State != swap.Done {
			t.Errorf("last event: %+v", last)
		}
	})
}

func TestPlacesAFileWithoutAService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		crictl := n.stage(t, "crictl", `C:\k\crictl.exe`, binary("crictl", "v1.30.0", ""))
		crictl.Service = ""
		before := n.service(t, "kubelet")

		outcome, _ := n.push(t, crictl)

		switch {
		case outcome.Result != swap.Committed:
			t.Fatalf("outcome: outcome.Result is %v, want %v", outcome.Result, swap.Committed)
		case outcome.Components[0].Action != "created":
			t.Fatalf("outcome: outcome.Components[0].Action is %q, want %q", outcome.Components[0].Action, "created")
		case outcome.Components[0].Service != nil:
			t.Fatalf("outcome: outcome.Components[0].Service is %v, want nil", outcome.Components[0].Service)
		}
		equalBytes(t, "crictl", n.read(t, `C:\k\crictl.exe`), binary("crictl", "v1.30.0", ""))
		if after := n.service(t, "kubelet"); after.PID != before.PID {
			t.Error("the kubelet was restarted for a file that it has nothing to do with")
		}
	})
}

func TestBeginRefusesAndLeavesEverythingAsItIs(t *testing.T) {
	cases := map[string]struct {
		change func(c *swap.Component)
		is     error
	}{
		"a staged file of other content": {func(c *swap.Component) { c.SHA256 = strings.Repeat("0", 64) }, nil},
		"no staged file": {func(c *swap.Component) {
			c.Staged = kubeletExe + ".swdt-nothing"
		}, fault.ErrNotExist},
		"a destination that has changed": {func(c *swap.Component) {
			c.PreviousSHA256 = strings.Repeat("0", 64)
		}, swap.ErrChanged},
		"a destination that is new":  {func(c *swap.Component) { c.PreviousSHA256 = "" }, swap.ErrChanged},
		"a component without a name": {func(c *swap.Component) { c.Name = "" }, nil},
		"nothing to do":              {func(c *swap.Component) { c.Staged, c.Service = "", "" }, nil},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNode(t)
				kubelet := n.stageKubelet(t, "v1.30.0", "")
				test.change(&kubelet)
				before, pid := n.read(t, kubeletExe), n.service(t, "kubelet").PID
				m, _ := n.session()

				_, err := swap.Begin(t.Context(), m, swap.Plan{Components: []swap.Component{kubelet}})

				if err == nil || test.is != nil && !errors.Is(err, test.is) {
					t.Fatalf("got %v", err)
				}
				equalBytes(t, "kubelet", n.read(t, kubeletExe), before)
				if n.service(t, "kubelet").PID != pid {
					t.Error("the kubelet was restarted")
				}
				if transactions, err := swap.Transactions(m.Platform.Files); err != nil || len(transactions) > 0 {
					t.Errorf("transactions: %v, %v", transactions, err)
				}
			})
		})
	}
}

func TestOneTransactionAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		kubelet, containerd := n.stageKubelet(t, "v1.30.0", "slow-start=3s"), n.stageContainerd(t, "1.6.27", "")
		m, _ := n.session()
		id, err := swap.Begin(t.Context(), m, swap.Plan{Holder: "first", Components: []swap.Component{kubelet}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = swap.Begin(t.Context(), m, swap.Plan{Holder: "second", Components: []swap.Component{containerd}})
		switch {
		case !errors.Is(err, swap.ErrBusy):
			t.Errorf("the error is %v, want %v", err, swap.ErrBusy)
		case !strings.Contains(err.Error(), "first"):
			t.Errorf("err.Error() lacks %q:\n%s", "first", err.Error())
		}
		if err := swap.Acknowledge(t.Context(), m.Platform, id); !errors.Is(err, swap.ErrBusy) {
			t.Errorf("acknowledged an unfinished transaction: %v", err)
		}
		if outcome, err := swap.Follow(t.Context(), m, id, func(swap.Event) {}); err != nil ||
			outcome.Result != swap.Committed {
			t.Errorf("the first one: %+v, %v", outcome, err)
		}
	})
}

func TestATransactionOutlivesItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		m, p := n.session()
		ctx, cut := context.WithCancel(t.Context())
		id, err := swap.Begin(ctx, m, swap.Plan{Components: []swap.Component{n.stageKubelet(t, "v1.30.0", "")}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = swap.Follow(ctx, m, id, func(e swap.Event) { cut() })
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("follow a cut session: %v", err)
		}
		p.Kill()

		n.healed(t)
		next, _ := n.session()
		transactions, err := swap.Transactions(next.Platform.Files)
		switch {
		case err != nil:
			t.Fatal(err)
		case len(transactions) != 1:
			t.Fatalf("transactions has %d elements, want 1: %v", len(transactions), transactions)
		case transactions[0].Outcome == nil:
			t.Fatal("transactions[0].Outcome is nil")
		case transactions[0].Outcome.Result != swap.Committed:
			t.Fatalf("transactions[0].Outcome.Result is %v, want %v", transactions[0].Outcome.Result, swap.Committed)
		}
		if err := swap.Acknowledge(t.Context(), next.Platform, id); err != nil {
			t.Fatal(err)
		}
	})
}

// healed waits until the guardian has finished and has been removed.
func (n *node) healed(t *testing.T) {
	t.Helper()
	p := n.Process("look")
	eventually(t, "the guardian has gone", func() bool {
		if _, up := n.Up(); !up {
			return false
		}
		_, err := p.Services.Status(context.Background(), layout.GuardianService)
		if errors.Is(err, simulated.ErrKilled) { // the machine was rebooted meanwhile
			p = n.Process("look")
		}
		return errors.Is(err, fault.ErrNoService)
	})
}

func TestInspect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.push(t, n.stageKubelet(t, "v1.30.0", ""))
		m, _ := n.session()
		n.ForgetOperations()

		a, err := swap.Inspect(t.Context(), m.Platform, hashcache.Load(m.Platform.Files), &agentv1.InspectComponent{
			Name: "kubelet", Destination: `c:/K/Kubelet.exe`, Service: "Kubelet", AskVersion: true,
		}, nil)

		switch {
		case err != nil:
			t.Fatal(err)
		case !a.GetExists():
			t.Fatal("a.GetExists() is false, want true")
		case a.GetSha256() != hash(binary("kubelet", "v1.30.0", "")):
			t.Fatalf("a.GetSha256() is %v, want %v", a.GetSha256(), hash(binary("kubelet", "v1.30.0", "")))
		case a.GetVersion() != "v1.30.0":
			t.Fatalf("a.GetVersion() is %q, want %q", a.GetVersion(), "v1.30.0")
		case a.GetService() == nil:
			t.Fatal("a.GetService() is nil")
		case a.GetService().GetState() != agentv1.ServiceState_SERVICE_STATE_RUNNING:
			t.Fatalf("a.GetService().GetState() is %v, want running", a.GetService().GetState())
		case a.GetPreviousSha256() == "":
			t.Fatal("a.GetPreviousSha256() is empty")
		}
		for _, op := range n.Operations() {
			if op.Kind != simulated.OpProcessRun && op.Process == "swdt-agent.exe" {
				t.Errorf("looking changed the node: %v", op)
			}
		}
		a, err = swap.Inspect(t.Context(), m.Platform, hashcache.Load(m.Platform.Files),
			&agentv1.InspectComponent{Name: "x", Destination: `C:\k`, Service: "nobody"}, nil)
		switch {
		case err != nil:
			t.Errorf("a folder: %v", err)
		case !a.GetFolder():
			t.Error("a folder: a.GetFolder() is false, want true")
		case a.GetService() != nil:
			t.Errorf("a folder: a.GetService() is %v, want nil", a.GetService())
		}
	})
}

// inspectRunning inspects the file at a path, and the process that its service
// runs.
func (n *node) inspectRunning(t *testing.T, path, service string) *agentv1.ComponentState {
	t.Helper()
	m, p := n.session()
	defer p.Exit()
	processes, err := m.Platform.Processes.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a, err := swap.Inspect(t.Context(), m.Platform, hashcache.Load(m.Platform.Files), &agentv1.InspectComponent{
		Name: service, Destination: path, Service: service,
	}, processes)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestInspectSeesAProcessOlderThanItsFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		inspect := func(service string) *agentv1.ComponentState {
			t.Helper()
			return n.inspectRunning(t, `c:/k/Kubelet.exe`, service)
		}
		if inspect("kubelet").GetOutdated() {
			t.Error("outdated on a fresh machine")
		}

		time.Sleep(time.Minute) // of the bubble's clock
		misspelt := n.stageKubelet(t, "v1.30.0", "")
		misspelt.Name, misspelt.Service = "kublet", ""
		n.push(t, misspelt)
		if a := inspect("kubelet"); !a.GetOutdated() || len(a.GetRunBy()) != 0 {
			t.Errorf("the file was replaced and the process was not: %+v", a)
		}
		switch a := inspect("kublet"); {
		case a.GetOutdated():
			t.Error("a service of another name runs the file: a.GetOutdated() is true, want false")
		case len(a.GetRunBy()) != 1:
			t.Errorf("a service of another name runs the file: a.GetRunBy() has %d elements, want 1: %v",
				len(a.GetRunBy()), a.GetRunBy())
		case a.GetRunBy()[0] != "kubelet":
			t.Errorf("a service of another name runs the file: a.GetRunBy()[0] is %q, want %q", a.GetRunBy()[0], "kubelet")
		case len(a.GetServices()) != 0:
			t.Errorf("a service of another name runs the file: want no list of all services, and got %q", a.GetServices())
		}
		if a := n.inspectRunning(t, `C:\k\tool.exe`, "tool"); !slices.Contains(a.GetServices(), "kubelet") {
			t.Errorf("no service runs the file: the services are %q, which lack kubelet", a.GetServices())
		}

		n.push(t, swap.Component{Name: "kubelet", Destination: kubeletExe, Service: "kubelet"})
		if inspect("kubelet").GetOutdated() {
			t.Error("outdated after a restart")
		}
	})
}

// A backup that clears the archive bit, and a join that tightens an access
// list, change a file's record but not the file.
func TestAnAccessListIsNoNewProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		time.Sleep(time.Minute)
		files := n.Process("admin").Files
		if err := files.SetACL(kubeletExe, access.SafeFile); err != nil {
			t.Fatal(err)
		}
		if n.inspectRunning(t, kubeletExe, "kubelet").GetOutdated() {
			t.Error("outdated after a change of the access list")
		}
	})
}

// A user who replaces a program by hand may give the old one any name, and the
// new one may have any age.
func TestInspectSeesAProgramReplacedByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		long := time.Now().Add(-24 * time.Hour)
		files := n.Process("admin").Files
		content := n.read(t, kubeletExe)
		if err := files.Rename(kubeletExe, `C:\k\old kubelet.exe`, false); err != nil {
			t.Fatal(err)
		}
		n.place(t, kubeletExe, content)
		if err := files.SetModified(kubeletExe, long); err != nil {
			t.Fatal(err)
		}
		if !n.inspectRunning(t, kubeletExe, "kubelet").GetOutdated() {
			t.Error("not outdated, though it runs another file")
		}
	})
}

func TestTimesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		kubelet := n.stageKubelet(t, "v1.30.0", "unhealthy")
		kubelet.Health.Timeout = 7 * time.Second
		begun := time.Now()
		outcome, _ := n.push(t, kubelet)
		switch took := time.Since(begun); {
		case outcome.Result != swap.RolledBack:
			t.Errorf("outcome.Result is %v, want %v", outcome.Result, swap.RolledBack)
		case took < 7*time.Second:
			t.Errorf("took is %v, want at least %v", took, 7*time.Second)
		case took > 15*time.Second:
			t.Errorf("took is %v, want at most %v", took, 15*time.Second)
		}
	})
}

// A virus scanner opens a new executable as soon as it exists, and Windows may
// take a moment to release one after its process has ended.
func TestAFileThatIsBusyForAMomentIsWaitedFor(t *testing.T) {
	for _, busy := range []error{fault.ErrInUse, fault.ErrPermission} {
		for _, target := range []string{kubeletExe, layout.Undo(kubeletExe)} {
			t.Run(busy.Error()+" "+target, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := newNode(t)
					kubelet := n.stageKubelet(t, "v1.30.0", "")
					n.OnOperation(func(op simulated.Operation) simulated.Verdict {
						if op.Kind == simulated.OpRename && op.Target == target && op.Phase == simulated.Before &&
							op.Occurrence <= 3 {
							return simulated.Fail(busy)
						}
						return simulated.Continue()
					})

					outcome, _ := n.push(t, kubelet)

					if outcome.Result != swap.Committed {
						t.Fatalf("outcome: %+v", outcome)
					}
					equalBytes(t, "kubelet", n.read(t, kubeletExe), binary("kubelet", "v1.30.0", ""))
				})
			})
		}
	}
}
