package settings_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/host/simulated"
	"github.com/swdt-dev/swdt/internal/settings"
)

func machine(t *testing.T) (*simulated.Machine, *host.Host) {
	t.Helper()
	m := simulated.New(simulated.Options{Preset: simulated.Minimal})
	t.Cleanup(m.Close)
	m.ForgetOperations()
	return m, m.Process("agent")
}

func hostsFile(t *testing.T, files host.Files) string {
	t.Helper()
	f, err := files.Open(settings.HostsPath)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	content, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestSetHostsOnAMachine(t *testing.T) {
	m, h := machine(t)
	entry := []settings.HostsEntry{{Name: "cp", Address: "10.0.0.1"}}
	const sddl = "D:PAI(A;;FA;;;SY)(A;;FA;;;BA)(A;;FR;;;BU)"
	if err := h.Files.SetACL(settings.HostsPath, sddl); err != nil {
		t.Fatal(err)
	}
	before := hostsFile(t, h.Files)
	if changed, err := settings.SetHosts(h.Files, entry); err != nil || !changed {
		t.Fatalf("got %v, %v", changed, err)
	}
	if got := hostsFile(t, h.Files); got != before+"10.0.0.1\tcp\r\n" {
		t.Errorf("got %q", got)
	}
	if got, err := h.Files.ACL(settings.HostsPath); err != nil || !strings.HasSuffix(got, sddl) {
		t.Errorf("who may read it: %s, %v", got, err)
	}
	m.ForgetOperations()
	if changed, err := settings.SetHosts(h.Files, entry); err != nil || changed || len(m.Operations()) != 0 {
		t.Errorf("the second time: %v, %v, %v", changed, err, m.Operations())
	}
	entry[0].Address = ""
	if changed, err := settings.SetHosts(h.Files, entry); err != nil || !changed || hostsFile(t, h.Files) != before {
		t.Errorf("removed: %v, %v, %q", changed, err, hostsFile(t, h.Files))
	}
}

func TestAMachineWithoutAHostsFile(t *testing.T) {
	m, h := machine(t)
	if err := h.Files.Remove(settings.HostsPath); err != nil {
		t.Fatal(err)
	}
	m.ForgetOperations()
	if entries, err := settings.Hosts(h.Files); err != nil || len(entries) != 0 {
		t.Errorf("got %v, %v", entries, err)
	}
	if changed, err := settings.SetHosts(h.Files, []settings.HostsEntry{{Name: "cp"}}); err != nil || changed || len(m.Operations()) != 0 {
		t.Errorf("removed from nothing: %v, %v, %v", changed, err, m.Operations())
	}
	if changed, err := settings.SetHosts(h.Files, []settings.HostsEntry{{Name: "cp", Address: "::1"}}); err != nil || !changed {
		t.Errorf("got %v, %v", changed, err)
	}
	if got := hostsFile(t, h.Files); got != "::1\tcp\r\n" {
		t.Errorf("got %q", got)
	}
}

// Whatever fails, the hosts file is the old one or the new one, and nothing
// lies beside it.
func TestSetHostsWithAFaultAtEachStep(t *testing.T) {
	for seq := 1; ; seq++ {
		m, h := machine(t)
		before := hostsFile(t, h.Files)
		failed := false
		m.OnOperation(func(op simulated.Operation) simulated.Verdict {
			if op.Seq == seq && op.Phase == simulated.Before {
				failed = true
				return simulated.Fail(host.ErrDiskFull)
			}
			return simulated.Continue()
		})
		_, err := settings.SetHosts(h.Files, []settings.HostsEntry{{Name: "cp", Address: "10.0.0.1"}})
		m.OnOperation(nil)
		if !failed {
			if err != nil || seq < 4 {
				t.Fatalf("%d steps, %v", seq-1, err)
			}
			return
		}
		if !errors.Is(err, host.ErrDiskFull) || hostsFile(t, h.Files) != before {
			t.Errorf("step %d: %v, %q", seq, err, hostsFile(t, h.Files))
		}
		list, err := h.Files.List(`C:\Windows\System32\drivers\etc`)
		if err != nil || len(list) != 1 {
			t.Errorf("step %d left %v, %v", seq, list, err)
		}
	}
}

func TestSetEnvironmentOnAMachine(t *testing.T) {
	text := func(value string) host.RegistryValue {
		return host.RegistryValue{Type: host.RegistryString, String: value}
	}
	expand := func(value string) host.RegistryValue {
		return host.RegistryValue{Type: host.RegistryExpandString, String: value}
	}
	for _, test := range []struct {
		name    string
		is      host.RegistryValue // of X; no type: missing
		want    settings.Variable
		after   host.RegistryValue
		changed bool
	}{
		{"new", host.RegistryValue{}, settings.Variable{Value: "a"}, text("a"), true},
		{"new, with a reference", host.RegistryValue{}, settings.Variable{Value: `%SystemRoot%\a`}, expand(`%SystemRoot%\a`), true},
		{"new, with percent signs", host.RegistryValue{}, settings.Variable{Value: `100%%`}, text(`100%%`), true},
		{"the same", text("a"), settings.Variable{Value: "a"}, text("a"), false},
		{"another value", text("a"), settings.Variable{Value: "b"}, text("b"), true},
		{"stays expandable", expand("a"), settings.Variable{Value: "b"}, expand("b"), true},
		{"becomes expandable", text("%A%"), settings.Variable{Value: "%A%"}, expand("%A%"), true},
		{"empty is not missing", host.RegistryValue{}, settings.Variable{Value: ""}, text(""), true},
		{"remove", text("a"), settings.Variable{Remove: true}, host.RegistryValue{}, true},
		{"remove what is missing", host.RegistryValue{}, settings.Variable{Remove: true}, host.RegistryValue{}, false},
		{"what is no text is replaced", host.RegistryValue{Type: host.RegistryDWord, Integer: 7}, settings.Variable{Value: "a"}, text("a"), true},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, h := machine(t)
			if test.is.Type != "" {
				test.is.Name = "Xy"
				if err := h.Registry.Set(settings.EnvironmentKey, test.is); err != nil {
					t.Fatal(err)
				}
			}
			m.ForgetOperations()
			test.want.Name = "XY"
			change := settings.EnvironmentChange{Variables: []settings.Variable{test.want}}
			changed, err := settings.SetEnvironment(t.Context(), h.Registry, h.Machine, change)
			if err != nil || changed != test.changed {
				t.Fatalf("got %v, %v", changed, err)
			}
			got, err := h.Registry.Get(settings.EnvironmentKey, "xy")
			if missing := errors.Is(err, host.ErrNotExist); missing != (test.after.Type == "") || !missing && (err != nil || got.Type != test.after.Type || got.String != test.after.String) {
				t.Errorf("is now %+v, %v", got, err)
			}
			if broadcasts(m) != test.changed || !changed && len(m.Operations()) != 0 {
				t.Errorf("did %v", m.Operations())
			}
		})
	}
}

func broadcasts(m *simulated.Machine) bool {
	return slices.ContainsFunc(m.Operations(), func(op simulated.Operation) bool { return op.Kind == simulated.OpBroadcast })
}

func TestPathOnAMachine(t *testing.T) {
	_, h := machine(t)
	before, err := h.Registry.Get(settings.EnvironmentKey, "PATH")
	if err != nil {
		t.Fatal(err)
	}
	set := func(change settings.EnvironmentChange, want bool) {
		t.Helper()
		if changed, err := settings.SetEnvironment(t.Context(), h.Registry, h.Machine, change); err != nil || changed != want {
			t.Errorf("got %v, %v", changed, err)
		}
	}
	set(settings.EnvironmentChange{AddPath: []string{`C:\k`}}, true)
	set(settings.EnvironmentChange{AddPath: []string{`c:\K\`}}, false)
	after, err := h.Registry.Get(settings.EnvironmentKey, "PATH")
	if err != nil || after.String != before.String+`;C:\k` || after.Type != before.Type || after.Name != before.Name {
		t.Errorf("got %+v after %+v, %v", after, before, err)
	}
	set(settings.EnvironmentChange{RemovePath: []string{`C:\k`}}, true)
	if after, err = h.Registry.Get(settings.EnvironmentKey, "PATH"); err != nil || after.String != before.String {
		t.Errorf("got %+v, %v", after, err)
	}
	if err := h.Registry.Delete(settings.EnvironmentKey, "PATH"); err != nil {
		t.Fatal(err)
	}
	set(settings.EnvironmentChange{RemovePath: []string{`C:\k`}}, false)
	set(settings.EnvironmentChange{AddPath: []string{`C:\k`}}, true)
	if after, err = h.Registry.Get(settings.EnvironmentKey, "PATH"); err != nil || after.String != `C:\k` || after.Type != host.RegistryExpandString {
		t.Errorf("got %+v, %v", after, err)
	}
}

func TestSetEnvironmentRefusesBeforeItChangesAnything(t *testing.T) {
	m, h := machine(t)
	good := settings.Variable{Name: "GOOD", Value: "x"}
	for _, bad := range []settings.EnvironmentChange{
		{Variables: []settings.Variable{good, {Name: ""}}},
		{Variables: []settings.Variable{good, {Name: "A=B"}}},
		{Variables: []settings.Variable{good, {Name: "A", Value: "x\x00y"}}},
		{Variables: []settings.Variable{good, {Name: "A", Value: strings.Repeat("x", 40_000)}}},
		{Variables: []settings.Variable{good, {Name: "pAtH", Remove: true}}},
		{Variables: []settings.Variable{good}, AddPath: []string{" "}},
		{Variables: []settings.Variable{good}, AddPath: []string{`C:\a;C:\b`}},
		{Variables: []settings.Variable{good}, RemovePath: []string{`"C:\a"`}},
	} {
		var invalid *settings.InvalidError
		if _, err := settings.SetEnvironment(t.Context(), h.Registry, h.Machine, bad); !errors.As(err, &invalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if ops := m.Operations(); len(ops) != 0 {
		t.Errorf("did %v", ops)
	}
}

// A change that ends half-way is still told to running programs, and said to be
// one.
func TestSetEnvironmentThatFailsHalfWay(t *testing.T) {
	m, h := machine(t)
	m.OnOperation(func(op simulated.Operation) simulated.Verdict {
		if op.Kind == simulated.OpRegistrySet && op.Phase == simulated.Before && op.Seq == 2 {
			return simulated.Fail(host.ErrPermission)
		}
		return simulated.Continue()
	})
	change := settings.EnvironmentChange{Variables: []settings.Variable{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}}}
	changed, err := settings.SetEnvironment(t.Context(), h.Registry, h.Machine, change)
	if !changed || !errors.Is(err, host.ErrPermission) || !broadcasts(m) {
		t.Errorf("got %v, %v, %v", changed, err, m.Operations())
	}
}
