package agent_test

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/format/access"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

func TestServiceLife(t *testing.T) {
	m := newMachine(t, simulated.Options{})
	c := connect(t, m.Process("agent"))
	ctx := t.Context()
	put(t, m, `C:\k\spare.exe`, simulated.Binary(simulated.BinarySpec{Name: "kube-proxy", Version: "v1"}))
	config := &agentv1.ServiceConfig{
		Name: "spare", DisplayName: "Spare", Description: "for tests", CommandLine: `C:\k\spare.exe`,
		StartType: agentv1.StartType_START_TYPE_MANUAL, Dependencies: []string{"kubelet"},
		Recovery: &agentv1.Recovery{Restarts: []*durationpb.Duration{durationpb.New(time.Second)},
			Reset_: durationpb.New(time.Hour)},
	}
	created, err := c.services.Create(ctx, config)
	switch {
	case err != nil:
		t.Fatal(err)
	case created.GetStatus().GetState() != agentv1.ServiceState_SERVICE_STATE_STOPPED:
		t.Fatalf("created.GetStatus().GetState() is %v, want %v", created.GetStatus().GetState(),
			agentv1.ServiceState_SERVICE_STATE_STOPPED)
	}
	if _, err := c.services.Create(ctx, config); !is(err, fault.ErrServiceExists) {
		t.Errorf("created twice: %v", err)
	}
	switch got := created.GetConfig().GetRecovery(); {
	case !proto.Equal(got, config.GetRecovery()):
		t.Errorf("got is %v, want %v", got, config.GetRecovery())
	case created.GetConfig().GetDisplayName() != "Spare":
		t.Errorf("created.GetConfig().GetDisplayName() is %q, want %q", created.GetConfig().GetDisplayName(), "Spare")
	}
	changed, err := c.services.Configure(ctx, &agentv1.ServiceConfig{Name: "spare", DisplayName: "Other"})
	switch {
	case err != nil:
		t.Error(err)
	case changed.GetConfig().GetDisplayName() != "Other":
		t.Errorf("changed.GetConfig().GetDisplayName() is %q, want %q", changed.GetConfig().GetDisplayName(), "Other")
	case changed.GetConfig().GetCommandLine() != `C:\k\spare.exe`:
		t.Errorf("changed.GetConfig().GetCommandLine() is %q, want %q", changed.GetConfig().GetCommandLine(),
			`C:\k\spare.exe`)
	}
	started, err := c.services.Start(ctx, &agentv1.StartServiceRequest{Name: "spare"})
	switch {
	case err != nil:
		t.Fatal(err)
	case started.GetStatus().GetState() != agentv1.ServiceState_SERVICE_STATE_RUNNING:
		t.Fatalf("started.GetStatus().GetState() is %v, want %v", started.GetStatus().GetState(),
			agentv1.ServiceState_SERVICE_STATE_RUNNING)
	case started.GetStatus().GetPid() == 0:
		t.Fatal("started.GetStatus().GetPid() is 0")
	case started.GetStatus().GetStarted() == nil:
		t.Fatal("started.GetStatus().GetStarted() is nil")
	}
	switch kubelet, err := c.services.Get(ctx, &agentv1.GetServiceRequest{Name: "kubelet"}); {
	case err != nil:
		t.Error(err)
	case !slices.Contains(kubelet.GetDependents(), "spare"):
		t.Errorf("kubelet.GetDependents() lacks %v: %v", "spare", kubelet.GetDependents())
	}
	stopped, err := c.services.Stop(ctx, &agentv1.StopServiceRequest{Name: "kubelet"})
	switch names := stopped.GetStopped(); {
	case err != nil:
		t.Error(err)
	case len(names) < 2:
		t.Errorf("names has %d elements, want at least 2: %v", len(names), names)
	case names[len(names)-1] != "kubelet":
		t.Errorf("names[len(names)-1] is %q, want %q", names[len(names)-1], "kubelet")
	case !slices.Contains(names, "spare"):
		t.Errorf("names lacks %v: %v", "spare", names)
	}
	if _, err := c.services.Delete(ctx, &agentv1.DeleteServiceRequest{Name: "spare"}); err != nil {
		t.Error(err)
	}
	if _, err := c.services.Get(ctx, &agentv1.GetServiceRequest{Name: "spare"}); !is(err, fault.ErrNoService) {
		t.Errorf("the error is %v, want %v", err, fault.ErrNoService)
	}
	list, err := c.services.List(ctx, &agentv1.ListServicesRequest{})
	if err != nil || !slices.ContainsFunc(list.GetServices(), func(s *agentv1.ServiceStatus) bool {
		return s.GetName() == "containerd" && s.GetState() == agentv1.ServiceState_SERVICE_STATE_RUNNING && s.GetPid() != 0
	}) {
		t.Errorf("got %v, %v", list, err)
	}
}

func TestStartTellsWhyAServiceFailed(t *testing.T) {
	m := newMachine(t, simulated.Options{})
	c := connect(t, m.Process("agent"))
	put(t, m, `C:\k\broken.exe`, simulated.Binary(simulated.BinarySpec{Name: "kubelet", Fault: simulated.CrashStarted}))
	_, err := c.services.Create(t.Context(), &agentv1.ServiceConfig{Name: "broken", CommandLine: `C:\k\broken.exe`,
		StartType: agentv1.StartType_START_TYPE_MANUAL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.services.Start(t.Context(), &agentv1.StartServiceRequest{Name: "broken"}); !is(err,
		fault.ErrStartFailed) {
		t.Fatalf("the error is %v, want %v", err, fault.ErrStartFailed)
	}
}

func TestRegistry(t *testing.T) {
	c := connect(t, newMachine(t, simulated.Options{Preset: simulated.Minimal}).Process("agent"))
	ctx := t.Context()
	const key = `HKLM\SOFTWARE\swdt-test\sub`
	for _, value := range []*agentv1.RegistryValue{
		{Name: "s", Type: "REG_SZ", String_: "text"},
		{Name: "e", Type: "REG_EXPAND_SZ", String_: `%SystemRoot%\x`},
		{Name: "m", Type: "REG_MULTI_SZ", Strings: []string{"a", "b"}},
		{Name: "d", Type: "REG_DWORD", Integer: 1<<32 - 1},
		{Name: "q", Type: "REG_QWORD", Integer: 1<<64 - 1},
		{Name: "b", Type: "REG_BINARY", Binary: []byte{0, 1, 255}},
		{Name: "", Type: "REG_SZ", String_: "default"},
	} {
		if _, err := c.registry.Set(ctx, &agentv1.RegistrySetRequest{Key: key, Value: value}); err != nil {
			t.Fatal(err)
		}
		got, err := c.registry.Get(ctx, &agentv1.RegistryGetRequest{Key: key, Name: value.GetName()})
		if err != nil || !proto.Equal(got, value) {
			t.Errorf("got %v, wanted %v, %v", got, value, err)
		}
	}
	list, err := c.registry.List(ctx, &agentv1.RegistryListRequest{Key: key})
	switch {
	case err != nil:
		t.Error(err)
	case len(list.GetValues()) != 7:
		t.Errorf("list.GetValues() has %d elements, want 7: %v", len(list.GetValues()), list.GetValues())
	}
	if _, err := c.registry.Delete(ctx, &agentv1.RegistryDeleteRequest{Key: key, Name: "S"}); err != nil {
		t.Error(err)
	}
	if _, err := c.registry.Get(ctx, &agentv1.RegistryGetRequest{Key: key, Name: "s"}); !is(err, fault.ErrNotExist) {
		t.Errorf("the error is %v, want %v", err, fault.ErrNotExist)
	}
	if _, err := c.registry.Delete(ctx, &agentv1.RegistryDeleteRequest{Key: `HKLM\SOFTWARE\swdt-test`,
		WholeKey: true}); err != nil {
		t.Error(err)
	}
	if _, err := c.registry.List(ctx, &agentv1.RegistryListRequest{Key: key}); !is(err, fault.ErrNotExist) {
		t.Errorf("the error is %v, want %v", err, fault.ErrNotExist)
	}
}

func TestSettings(t *testing.T) {
	m := newMachine(t, simulated.Options{Preset: simulated.Minimal})
	c := connect(t, m.Process("agent"))
	ctx := t.Context()
	before, _ := get(t, m, simulated.HostsFile)
	hosts := &agentv1.SetHostsRequest{Entries: []*agentv1.HostsEntry{{Name: "cp", Address: "10.0.0.1"}}}
	environment := &agentv1.SetEnvironmentRequest{
		Variables: []*agentv1.EnvironmentVariable{{Name: "KUBE_NODE", Value: "n1"}},
		AddPath:   []string{`C:\k`},
	}
	for _, want := range []bool{true, false} { // the second call changes nothing
		reply, err := c.settings.SetHosts(ctx, hosts)
		if err != nil || reply.GetChanged() != want {
			t.Errorf("hosts: got %v, %v", reply, err)
		}
		env, err := c.settings.SetEnvironment(ctx, environment)
		if err != nil || env.GetChanged() != want {
			t.Errorf("environment: got %v, %v", env, err)
		}
	}
	entries, err := c.settings.GetHosts(ctx, &agentv1.GetHostsRequest{})
	switch {
	case err != nil:
		t.Error(err)
	case len(entries.GetEntries()) != 1:
		t.Errorf("entries.GetEntries() has %d elements, want 1: %v", len(entries.GetEntries()), entries.GetEntries())
	case !proto.Equal(entries.GetEntries()[0], hosts.GetEntries()[0]):
		t.Errorf("entries.GetEntries()[0] is %v, want %v", entries.GetEntries()[0], hosts.GetEntries()[0])
	}
	if after, _ := get(t, m, simulated.HostsFile); string(after) != string(before)+"10.0.0.1\tcp\r\n" {
		t.Errorf("the hosts file is %q", after)
	}
	variables, err := c.settings.GetEnvironment(ctx, &agentv1.GetEnvironmentRequest{})
	if err != nil || !slices.ContainsFunc(variables.GetVariables(), func(v *agentv1.EnvironmentVariable) bool {
		return v.GetName() == "KUBE_NODE" && v.GetValue() == "n1"
	}) {
		t.Errorf("got %v, %v", variables, err)
	}
	if _, err := c.settings.SetHosts(ctx,
		&agentv1.SetHostsRequest{Entries: []*agentv1.HostsEntry{{Name: "a b"}}}); !isInvalid(err) {
		t.Error("isInvalid(err) is false, want true")
	}
	if _, err := c.settings.SetEnvironment(ctx, &agentv1.SetEnvironmentRequest{AddPath: []string{"a;b"}}); !isInvalid(
		err) {
		t.Error("isInvalid(err) is false, want true")
	}
}

func TestFeatures(t *testing.T) {
	c := connect(t, newMachine(t, simulated.Options{Preset: simulated.Minimal}).Process("agent"))
	ctx := t.Context()
	set, err := c.features.Set(ctx, &agentv1.SetFeatureRequest{Name: "Containers", Enabled: true})
	switch {
	case err != nil:
		t.Error(err)
	case !set.GetRebootRequired():
		t.Error("set.GetRebootRequired() is false, want true")
	}
	set, err = c.features.Set(ctx, &agentv1.SetFeatureRequest{Name: "TelnetClient", Enabled: true})
	switch {
	case err != nil:
		t.Error(err)
	case set.GetRebootRequired():
		t.Error("set.GetRebootRequired() is true, want false")
	}
	if _, err := c.features.Set(ctx, &agentv1.SetFeatureRequest{Name: "TelnetClient"}); err != nil {
		t.Error(err)
	}
	got, err := c.features.Get(ctx, &agentv1.GetFeaturesRequest{Names: []string{"containers", "TelnetClient"}})
	want := &agentv1.FeaturesReply{Features: []*agentv1.Feature{
		{Name: "containers", State: agentv1.FeatureState_FEATURE_STATE_ENABLE_PENDING},
		{Name: "TelnetClient", State: agentv1.FeatureState_FEATURE_STATE_DISABLED},
	}}
	switch {
	case err != nil:
		t.Error(err)
	case !proto.Equal(got, want):
		t.Errorf("got is %v, want %v", got, want)
	}
}

func TestFirewall(t *testing.T) {
	c := connect(t, newMachine(t, simulated.Options{Preset: simulated.Minimal}).Process("agent"))
	ctx := t.Context()
	rule := &agentv1.FirewallRule{
		Name: "kubelet", Enabled: true, Inbound: true, Allow: true, Protocol: "tcp", Ports: "10250",
		Profiles: "any", Program: `C:\k\kubelet.exe`, Addresses: "10.0.0.0/8",
	}
	if _, err := c.firewall.Add(ctx, rule); err != nil {
		t.Fatal(err)
	}
	if _, err := c.firewall.EnableGroup(ctx, &agentv1.EnableFirewallGroupRequest{Group: simulated.RemoteDesktopGroup,
		Enabled: true}); err != nil {
		t.Fatal(err)
	}
	list, err := c.firewall.List(ctx, &agentv1.ListFirewallRulesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	rule.Addresses = "10.0.0.0/255.0.0.0" // as the registry has it
	if !slices.ContainsFunc(list.GetRules(), func(r *agentv1.FirewallRule) bool { return proto.Equal(r, rule) }) {
		t.Errorf("the rule is not in %v", list)
	}
	for _, r := range list.GetRules() {
		if r.GetGroup() == simulated.RemoteDesktopGroup && !r.GetEnabled() {
			t.Errorf("%v is off", r)
		}
	}
	if _, err := c.firewall.Remove(ctx, &agentv1.RemoveFirewallRuleRequest{Name: "kubelet"}); err != nil {
		t.Error(err)
	}
	if _, err := c.firewall.Remove(ctx, &agentv1.RemoveFirewallRuleRequest{Name: "kubelet"}); !is(err,
		fault.ErrNotExist) {
		t.Errorf("the error is %v, want %v", err, fault.ErrNotExist)
	}
}

// swdt does not write into a folder that has its name and could be another
// user's: it moves it aside and makes a new one. A folder in the right state is
// only read.
func TestARootThatIsNotOursIsMovedAside(t *testing.T) {
	m := newMachine(t, simulated.Options{Preset: simulated.Minimal})
	user := m.SpawnAs("user.exe", simulated.User)
	if err := user.Platform.Files.MakeFolder(layout.Journals); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		c := connect(t, m.Process("agent"))
		if _, err := c.Lock(t.Context(), &agentv1.LockRequest{Holder: "one"}); err != nil {
			t.Fatal(err)
		}
		c.close(t)
	}
	sddl, err := m.Process("look").Files.ACL(layout.Root)
	if err != nil {
		t.Fatal(err)
	}
	switch list, err := access.Parse(sddl); {
	case err != nil:
		t.Errorf("the root: %v", err)
	case list.Owner != access.System:
		t.Errorf("the root: list.Owner is %v, want %v", list.Owner, access.System)
	case !list.Exclusive():
		t.Error("the root: list.Exclusive() is false, want true")
	}
	moved, made := 0, 0
	for _, op := range m.Operations() {
		switch {
		case op.Kind == simulated.OpRename && op.From == layout.Root:
			moved++
		case op.Kind == simulated.OpFolder && op.Target == layout.Root && op.Process == "agent":
			made++
		case op.Kind == simulated.OpACL:
			t.Errorf("an access list was changed: %v", op)
		}
	}
	if moved != 1 || made != 1 {
		t.Errorf("moved aside %d times, made %d times", moved, made)
	}
}

// A user without the right to make the folder can still make read-only calls.
func TestASessionWithoutTheRightToMakeTheRoot(t *testing.T) {
	m := newMachine(t, simulated.Options{Preset: simulated.Minimal})
	m.OnOperation(func(op simulated.Operation) simulated.Verdict {
		if op.Kind == simulated.OpFolder {
			return simulated.Fail(fault.ErrPermission)
		}
		return simulated.Continue()
	})
	c := connect(t, m.Process("agent"))
	if _, err := c.Facts(t.Context(), &agentv1.FactsRequest{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Lock(t.Context(), &agentv1.LockRequest{}); !is(err, fault.ErrPermission) {
		t.Fatalf("the error is %v, want %v", err, fault.ErrPermission)
	}
	c.close(t)
}

func isInvalid(err error) bool { return status.Code(err) == codes.InvalidArgument }
