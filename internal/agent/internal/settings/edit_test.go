package settings_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/swdt-dev/swdt/internal/agent/internal/settings"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

func machine(t *testing.T) (*simulated.Machine, *platform.Platform) {
	t.Helper()
	m := simulated.New(simulated.Options{Preset: simulated.Minimal})
	t.Cleanup(m.Close)
	m.ForgetOperations()
	return m, m.Process("agent")
}

func hostsFile(t *testing.T, files platform.Files) string {
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
	m, p := machine(t)
	entry := []settings.HostsEntry{{Name: "cp", Address: "10.0.0.1"}}
	const sddl = "D:PAI(A;;FA;;;SY)(A;;FA;;;BA)(A;;FR;;;BU)"
	if err := p.Files.SetACL(settings.HostsPath, sddl); err != nil {
		t.Fatal(err)
	}
	before := hostsFile(t, p.Files)
	switch changed, err := settings.SetHosts(t.Context(), p.Files, entry); {
	case err != nil:
		t.Fatal(err)
	case !changed:
		t.Fatal("changed is false, want true")
	}
	if got := hostsFile(t, p.Files); got != before+"10.0.0.1\tcp\r\n" {
		t.Errorf("got is %q, want %q", got, before+"10.0.0.1\tcp\r\n")
	}
	if got, err := p.Files.ACL(settings.HostsPath); err != nil || !strings.HasSuffix(got, sddl) {
		t.Errorf("who may read it: %s, %v", got, err)
	}
	m.ForgetOperations()
	switch changed, err := settings.SetHosts(t.Context(), p.Files, entry); {
	case err != nil:
		t.Errorf("the second time: %v", err)
	case changed:
		t.Error("the second time: changed is true, want false")
	case len(m.Operations()) != 0:
		t.Errorf("the second time: m.Operations() is %v, want it empty", m.Operations())
	}
	entry[0].Address = ""
	switch changed, err := settings.SetHosts(t.Context(), p.Files, entry); {
	case err != nil:
		t.Errorf("removed: %v", err)
	case !changed:
		t.Error("removed: changed is false, want true")
	case hostsFile(t, p.Files) != before:
		t.Errorf("removed: hostsFile(t, p.Files) is %v, want %v", hostsFile(t, p.Files), before)
	}
}

func TestAMachineWithoutAHostsFile(t *testing.T) {
	m, p := machine(t)
	if err := p.Files.Remove(settings.HostsPath); err != nil {
		t.Fatal(err)
	}
	m.ForgetOperations()
	switch entries, err := settings.Hosts(p.Files); {
	case err != nil:
		t.Error(err)
	case len(entries) != 0:
		t.Errorf("entries is %v, want it empty", entries)
	}
	switch changed, err := settings.SetHosts(t.Context(), p.Files, []settings.HostsEntry{{Name: "cp"}}); {
	case err != nil:
		t.Errorf("removed from nothing: %v", err)
	case changed:
		t.Error("removed from nothing: changed is true, want false")
	case len(m.Operations()) != 0:
		t.Errorf("removed from nothing: m.Operations() is %v, want it empty", m.Operations())
	}
	switch changed, err := settings.SetHosts(t.Context(), p.Files, []settings.HostsEntry{{Name: "cp", Address: "::1"}}); {
	case err != nil:
		t.Error(err)
	case !changed:
		t.Error("changed is false, want true")
	}
	if got := hostsFile(t, p.Files); got != "::1\tcp\r\n" {
		t.Errorf("got is %q, want %q", got, "::1\tcp\r\n")
	}
}

// After any failure, the hosts file is the old one or the new one, and no other
// file is left beside it.
func TestSetHostsWithAFaultAtEachStep(t *testing.T) {
	for seq := 1; ; seq++ {
		m, p := machine(t)
		before := hostsFile(t, p.Files)
		failed := false
		m.OnOperation(func(op simulated.Operation) simulated.Verdict {
			if op.Seq == seq && op.Phase == simulated.Before {
				failed = true
				return simulated.Fail(fault.ErrDiskFull)
			}
			return simulated.Continue()
		})
		_, err := settings.SetHosts(t.Context(), p.Files, []settings.HostsEntry{{Name: "cp", Address: "10.0.0.1"}})
		m.OnOperation(nil)
		if !failed {
			if err != nil || seq < 4 {
				t.Fatalf("%d steps, %v", seq-1, err)
			}
			return
		}
		if !errors.Is(err, fault.ErrDiskFull) || hostsFile(t, p.Files) != before {
			t.Errorf("step %d: %v, %q", seq, err, hostsFile(t, p.Files))
		}
		list, err := p.Files.List(`C:\Windows\System32\drivers\etc`)
		if err != nil || len(list) != 1 {
			t.Errorf("step %d left %v, %v", seq, list, err)
		}
	}
}

func TestSetEnvironmentOnAMachine(t *testing.T) {
	text := func(value string) platform.RegistryValue {
		return platform.RegistryValue{Type: platform.RegistryString, String: value}
	}
	expand := func(value string) platform.RegistryValue {
		return platform.RegistryValue{Type: platform.RegistryExpandString, String: value}
	}
	for _, test := range []struct {
		name    string
		is      platform.RegistryValue // of X; no type: missing
		want    settings.Variable
		after   platform.RegistryValue
		changed bool
	}{
		{"new", platform.RegistryValue{}, settings.Variable{Value: "a"}, text("a"), true},
		{"new, with a reference", platform.RegistryValue{}, settings.Variable{Value: `%SystemRoot%\a`},
			expand(`%SystemRoot%\a`), true},
		{"new, with percent signs", platform.RegistryValue{}, settings.Variable{Value: `100%%`}, text(`100%%`), true},
		{"the same", text("a"), settings.Variable{Value: "a"}, text("a"), false},
		{"another value", text("a"), settings.Variable{Value: "b"}, text("b"), true},
		{"stays expandable", expand("a"), settings.Variable{Value: "b"}, expand("b"), true},
		{"becomes expandable", text("%A%"), settings.Variable{Value: "%A%"}, expand("%A%"), true},
		{"empty is not missing", platform.RegistryValue{}, settings.Variable{Value: ""}, text(""), true},
		{"remove", text("a"), settings.Variable{Remove: true}, platform.RegistryValue{}, true},
		{"remove what is missing", platform.RegistryValue{}, settings.Variable{Remove: true},
			platform.RegistryValue{}, false},
		{"what is no text is replaced", platform.RegistryValue{Type: platform.RegistryDWord, Integer: 7},
			settings.Variable{Value: "a"}, text("a"), true},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, p := machine(t)
			if test.is.Type != "" {
				test.is.Name = "Xy"
				if err := p.Registry.Set(settings.EnvironmentKey, test.is); err != nil {
					t.Fatal(err)
				}
			}
			m.ForgetOperations()
			test.want.Name = "XY"
			change := settings.EnvironmentChange{Variables: []settings.Variable{test.want}}
			changed, err := settings.SetEnvironment(t.Context(), p.Registry, p.Machine, change)
			switch {
			case err != nil:
				t.Fatal(err)
			case changed != test.changed:
				t.Fatalf("changed is %v, want %v", changed, test.changed)
			}
			got, err := p.Registry.Get(settings.EnvironmentKey, "xy")
			if err != nil && !errors.Is(err, fault.ErrNotExist) {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.after, got, cmpopts.IgnoreFields(got, "Name")); diff != "" {
				t.Errorf("the value (-want +got):\n%s", diff)
			}
			if broadcasts(m) != test.changed || !changed && len(m.Operations()) != 0 {
				t.Errorf("did %v", m.Operations())
			}
		})
	}
}

func broadcasts(m *simulated.Machine) bool {
	return slices.ContainsFunc(m.Operations(), func(op simulated.Operation) bool {
		return op.Kind == simulated.OpBroadcast
	})
}

func TestPathOnAMachine(t *testing.T) {
	_, p := machine(t)
	before, err := p.Registry.Get(settings.EnvironmentKey, "PATH")
	if err != nil {
		t.Fatal(err)
	}
	set := func(change settings.EnvironmentChange, want bool) {
		t.Helper()
		switch changed, err := settings.SetEnvironment(t.Context(), p.Registry, p.Machine, change); {
		case err != nil:
			t.Error(err)
		case changed != want:
			t.Errorf("changed is %v, want %v", changed, want)
		}
	}
	set(settings.EnvironmentChange{AddPath: []string{`C:\k`}}, true)
	set(settings.EnvironmentChange{AddPath: []string{`c:\K\`}}, false)
	after, err := p.Registry.Get(settings.EnvironmentKey, "PATH")
	switch {
	case err != nil:
		t.Error(err)
	case after.String != before.String+`;C:\k`:
		t.Errorf("after.String is %v, want %v", after.String, before.String+`;C:\k`)
	case after.Type != before.Type:
		t.Errorf("after.Type is %v, want %v", after.Type, before.Type)
	case after.Name != before.Name:
		t.Errorf("after.Name is %v, want %v", after.Name, before.Name)
	}
	set(settings.EnvironmentChange{RemovePath: []string{`C:\k`}}, true)
	switch after, err = p.Registry.Get(settings.EnvironmentKey, "PATH"); {
	case err != nil:
		t.Error(err)
	case after.String != before.String:
		t.Errorf("after.String is %v, want %v", after.String, before.String)
	}
	if err := p.Registry.Delete(settings.EnvironmentKey, "PATH"); err != nil {
		t.Fatal(err)
	}
	set(settings.EnvironmentChange{RemovePath: []string{`C:\k`}}, false)
	set(settings.EnvironmentChange{AddPath: []string{`C:\k`}}, true)
	switch after, err = p.Registry.Get(settings.EnvironmentKey, "PATH"); {
	case err != nil:
		t.Error(err)
	case after.String != `C:\k`:
		t.Errorf("after.String is %q, want %q", after.String, `C:\k`)
	case after.Type != platform.RegistryExpandString:
		t.Errorf("after.Type is %v, want %v", after.Type, platform.RegistryExpandString)
	}
}

func TestSetEnvironmentRefusesBeforeItChangesAnything(t *testing.T) {
	m, p := machine(t)
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
		if _, err := settings.SetEnvironment(t.Context(), p.Registry, p.Machine, bad); !errors.As(err, &invalid) {
			t.Errorf("the error is %v, a %T, want a %T", err, err, invalid)
		}
	}
	if ops := m.Operations(); len(ops) != 0 {
		t.Errorf("did %v", ops)
	}
}

// After a change that fails half-way, running programs are still notified, and
// the result reports a change.
func TestSetEnvironmentThatFailsHalfWay(t *testing.T) {
	m, p := machine(t)
	m.OnOperation(func(op simulated.Operation) simulated.Verdict {
		if op.Kind == simulated.OpRegistrySet && op.Phase == simulated.Before && op.Seq == 2 {
			return simulated.Fail(fault.ErrPermission)
		}
		return simulated.Continue()
	})
	change := settings.EnvironmentChange{Variables: []settings.Variable{{Name: "A", Value: "1"},
		{Name: "B", Value: "2"}}}
	changed, err := settings.SetEnvironment(t.Context(), p.Registry, p.Machine, change)
	switch {
	case !changed:
		t.Error("changed is false, want true")
	case !errors.Is(err, fault.ErrPermission):
		t.Errorf("the error is %v, want %v", err, fault.ErrPermission)
	case !broadcasts(m):
		t.Error("broadcasts(m) is false, want true")
	}
}

// An indexer or a backup holds the hosts file for some seconds.
func TestAHeldHostsFileIsAwaited(t *testing.T) {
	for _, d := range []time.Duration{20 * time.Second, 90 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			m, p := machine(t)
			before := hostsFile(t, p.Files)
			h, err := m.Spawn("backup.exe").Scan(settings.HostsPath)
			if err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(d, func() { _ = h.Close() })

			_, err = settings.SetHosts(t.Context(), p.Files, []settings.HostsEntry{{Name: "api", Address: "10.0.0.1"}})

			if after := hostsFile(t, p.Files); (err == nil) != (after != before) || (err == nil) != (d < 30*time.Second) {
				t.Errorf("after %v: %v, and the file is\n%s", d, err, after)
			}
			if err != nil && !strings.Contains(err.Error(), "backup.exe (PID ") {
				t.Errorf("the error is %q, want the holder", err)
			}
		})
	}
}
