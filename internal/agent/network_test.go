package agent_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

func TestReach(t *testing.T) {
	m := newMachine(t, simulated.Options{})
	m.SetName("cp.example", "10.0.0.1")
	m.SetReach("10.0.0.1:6443", platform.Reached)
	m.SetReach("10.0.0.1", platform.TimedOut)
	c := connect(t, m.Process("agent"))
	reach := func(address string, timeout time.Duration) *agentv1.ReachReply {
		t.Helper()
		reply, err := c.network.Reach(t.Context(),
			&agentv1.ReachRequest{Address: address, Timeout: durationpb.New(timeout)})
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	switch got := reach("cp.example:6443", 0); {
	case got.GetOutcome() != agentv1.ReachOutcome_REACH_OUTCOME_REACHED:
		t.Errorf("got.GetOutcome() is %v, want %v", got.GetOutcome(), agentv1.ReachOutcome_REACH_OUTCOME_REACHED)
	case got.GetConnected() != "10.0.0.1:6443":
		t.Errorf("got.GetConnected() is %q, want %q", got.GetConnected(), "10.0.0.1:6443")
	}
	switch got := reach("cp.example:443", time.Minute); {
	case got.GetOutcome() != agentv1.ReachOutcome_REACH_OUTCOME_TIMED_OUT:
		t.Errorf("got.GetOutcome() is %v, want %v", got.GetOutcome(), agentv1.ReachOutcome_REACH_OUTCOME_TIMED_OUT)
	case got.GetTook().AsDuration() != time.Minute:
		t.Errorf("got.GetTook().AsDuration() is %v, want %v", got.GetTook().AsDuration(), time.Minute)
	}
	if got := reach("cp.example:443", 0); got.GetTook().AsDuration() != 5*time.Second {
		t.Errorf("without a timeout: got %v", got)
	}
	switch got := reach("other.example:443", 0); {
	case got.GetOutcome() != agentv1.ReachOutcome_REACH_OUTCOME_NAME_NOT_FOUND:
		t.Errorf("got.GetOutcome() is %v, want %v", got.GetOutcome(), agentv1.ReachOutcome_REACH_OUTCOME_NAME_NOT_FOUND)
	case got.GetDetail() == "":
		t.Error("got.GetDetail() is empty")
	}
	if reply, err := c.network.Reach(t.Context(), &agentv1.ReachRequest{Address: "cp.example"}); err == nil {
		t.Errorf("no port: got %v", reply)
	}
}

func TestResolve(t *testing.T) {
	m := newMachine(t, simulated.Options{})
	m.SetName("cp.example", "10.0.0.1", "10.0.0.2")
	c := connect(t, m.Process("agent"))
	got, err := c.network.Resolve(t.Context(), &agentv1.ResolveRequest{Name: "CP.example"})
	switch {
	case err != nil:
		t.Error(err)
	case !slices.Equal(got.GetAddresses(), []string{"10.0.0.1", "10.0.0.2"}):
		t.Errorf("got.GetAddresses() is %v, want %v", got.GetAddresses(), []string{"10.0.0.1", "10.0.0.2"})
	}
	entries := []*agentv1.HostsEntry{{Name: "cp.example", Address: "10.0.0.9"}}
	if _, err := c.settings.SetHosts(t.Context(), &agentv1.SetHostsRequest{Entries: entries}); err != nil {
		t.Fatal(err)
	}
	got, err = c.network.Resolve(t.Context(), &agentv1.ResolveRequest{Name: "cp.example"})
	if err != nil || !slices.Equal(got.GetAddresses(), []string{"10.0.0.9"}) {
		t.Errorf("the hosts file comes first: got %v, %v", got, err)
	}
	if _, err := c.network.Resolve(t.Context(), &agentv1.ResolveRequest{Name: "other.example"}); !is(err,
		fault.ErrNotExist) {
		t.Errorf("the error is %v, want %v", err, fault.ErrNotExist)
	}
}

// TestTheTenthNameOfALine has the line of Microsoft's KB 2717022: the machine resolves a host name and eight aliases.
// The settings must list the same names, and must give a name that the machine does not read a line of its own.
func TestTheTenthNameOfALine(t *testing.T) {
	m := newMachine(t, simulated.Options{})
	names := "testserver hostserver1 hostserver2 hostserver3 hostserver4 hostserver5 hostserver6 hostserver7 hostserver8 " +
		"hostserver9 hostserver10 hostserver11"
	m.WriteFile(simulated.HostsFile, []byte("127.0.0.1 "+names+"\r\n"))
	c := connect(t, m.Process("agent"))
	resolved := func() (all []string) {
		for name := range strings.FieldsSeq(names) {
			if _, err := c.network.Resolve(t.Context(), &agentv1.ResolveRequest{Name: name}); err == nil {
				all = append(all, name)
			}
		}
		return all
	}
	reply, err := c.settings.GetHosts(t.Context(), &agentv1.GetHostsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, entry := range reply.GetEntries() {
		listed = append(listed, entry.GetName())
	}
	if got := resolved(); len(got) != 9 || !slices.Equal(got, listed) {
		t.Errorf("the machine resolves %v, the settings list %v", got, listed)
	}
	entries := []*agentv1.HostsEntry{{Name: "hostserver9", Address: "127.0.0.1"}}
	if _, err := c.settings.SetHosts(t.Context(), &agentv1.SetHostsRequest{Entries: entries}); err != nil {
		t.Fatal(err)
	}
	if got := resolved(); len(got) != 10 || got[9] != "hostserver9" {
		t.Errorf("after the change, the machine resolves %v", got)
	}
}

func TestListenersAreNamed(t *testing.T) {
	m := newMachine(t, simulated.Options{Preset: simulated.Minimal})
	nginx := m.Spawn("nginx.exe")
	if err := nginx.HandleHTTP("0.0.0.0:10250", http.NotFoundHandler()); err != nil {
		t.Fatal(err)
	}
	c := connect(t, m.Process("agent"))
	got, err := c.network.Listeners(t.Context(), &agentv1.ListenersRequest{})
	switch {
	case err != nil:
		t.Fatal(err)
	case len(got.GetListeners()) != 1:
		t.Fatalf("got.GetListeners() has %d elements, want 1: %v", len(got.GetListeners()), got.GetListeners())
	}
	switch l := got.GetListeners()[0]; {
	case l.GetAddress() != "0.0.0.0:10250":
		t.Errorf("l.GetAddress() is %q, want %q", l.GetAddress(), "0.0.0.0:10250")
	case l.GetPort() != 10250:
		t.Errorf("l.GetPort() is %v, want 10250", l.GetPort())
	case l.GetPid() != nginx.PID():
		t.Errorf("l.GetPid() is %v, want %v", l.GetPid(), nginx.PID())
	case l.GetProcess() != "nginx.exe":
		t.Errorf("l.GetProcess() is %q, want %q", l.GetProcess(), "nginx.exe")
	}
	m.OnOperation(func(o simulated.Operation) simulated.Verdict {
		if o.Kind == simulated.OpListeners {
			return simulated.Fail(fault.ErrNotSupported)
		}
		return simulated.Continue()
	})
	if got, err := c.network.Listeners(t.Context(), &agentv1.ListenersRequest{}); !is(err, fault.ErrNotSupported) {
		t.Errorf("a machine that cannot tell: got %v, %v", got, err)
	}
}

func TestHealthOfTheNode(t *testing.T) {
	m := newMachine(t, simulated.Options{})
	c := connect(t, m.Process("agent"))
	got, err := c.network.HTTPGet(t.Context(),
		&agentv1.HTTPGetRequest{Url: "http://" + simulated.HealthAddress + "/healthz"})
	switch {
	case err != nil:
		t.Error(err)
	case got.GetStatus() != http.StatusOK:
		t.Errorf("got.GetStatus() is %v, want %v", got.GetStatus(), http.StatusOK)
	case string(got.GetBody()) != "ok":
		t.Errorf("got.GetBody() is %q, want %q", string(got.GetBody()), "ok")
	}
	version, err := c.network.CRIVersion(t.Context(), &agentv1.CRIVersionRequest{Pipe: simulated.ContainerdPipe})
	switch {
	case err != nil:
		t.Error(err)
	case version.GetRuntimeName() != "containerd":
		t.Errorf("version.GetRuntimeName() is %q, want %q", version.GetRuntimeName(), "containerd")
	case version.GetRuntimeVersion() != simulated.ContainerdVersion:
		t.Errorf("version.GetRuntimeVersion() is %v, want %v", version.GetRuntimeVersion(), simulated.ContainerdVersion)
	}
	if got, err := c.network.CRIStatus(t.Context(), &agentv1.CRIStatusRequest{Pipe: `\\.\pipe\nobody`}); !is(err,
		fault.ErrNotExist) {
		t.Errorf("a port without a listener: got %v, %v", got, err)
	}
}
