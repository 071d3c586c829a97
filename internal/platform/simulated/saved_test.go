package simulated_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
)

func TestASavedMachineIsTheSameMachine(t *testing.T) {
	first := simulated.New(simulated.Options{Hostname: "first", Preset: simulated.Member})
	defer first.Close()
	p := first.Process("test")
	big := bytes.Repeat([]byte("0123456789abcdef"), 60_000) // several chunks
	first.WriteFile(`C:\data\big.bin`, big)
	if err := p.Files.MakeFolder(`C:\data\empty`); err != nil {
		t.Fatal(err)
	}
	if err := p.Files.SetACL(`C:\data\big.bin`, "O:BAD:P(A;;FA;;;SY)"); err != nil {
		t.Fatal(err)
	}
	value := platform.RegistryValue{Name: "Kept", Type: platform.RegistryMultiString, Strings: []string{"a", "b"}}
	if err := p.Registry.Set(`HKLM\SOFTWARE\swdt`, value); err != nil {
		t.Fatal(err)
	}
	config := platform.ServiceConfig{Name: "extra", CommandLine: simulated.KubeletPath, StartType: platform.StartManual}
	if err := p.Services.Create(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Features.Enable(t.Context(), "Containers"); err != nil {
		t.Fatal(err)
	}
	before, err := p.Machine.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	second := copyOf(t, first, simulated.Options{Hostname: "ignored"})
	q := second.Process("test")
	notLogs := cmpopts.IgnoreMapEntries(func(path, _ string) bool { return strings.HasPrefix(path, `C:\var\log\`) })
	if diff := cmp.Diff(first.Snapshot(`C:\`), second.Snapshot(`C:\`), notLogs); diff != "" {
		t.Errorf("files (-saved +restored):\n%s", diff)
	}
	for _, path := range []string{`C:\data\empty`, `C:\data\big.bin`} {
		want, err := p.Files.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := q.Files.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-saved +restored):\n%s", path, diff)
		}
	}
	want, err := p.Files.ACL(`C:\data\big.bin`)
	if err != nil {
		t.Fatal(err)
	}
	if acl, err := q.Files.ACL(`C:\data\big.bin`); err != nil || acl != want {
		t.Errorf("access list %s (%v), want %s", acl, err, want)
	}
	got, err := q.Registry.Get(`HKLM\SOFTWARE\swdt`, "Kept")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(value, got); diff != "" {
		t.Errorf("registry (-saved +restored):\n%s", diff)
	}
	if diff := cmp.Diff(first.RunningServices(), second.RunningServices()); diff != "" {
		t.Errorf("running services (-saved +restored):\n%s", diff)
	}
	if _, err := q.Services.Config(t.Context(), "extra"); err != nil {
		t.Error(err)
	}
	// A restart completes what waited for it.
	if state, err := q.Features.State(t.Context(), "Containers"); err != nil || state != platform.FeatureEnabled {
		t.Errorf("feature Containers: %s, %v", state, err)
	}
	after, err := q.Machine.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if after.Hostname != "first" || after.BootID == before.BootID {
		t.Errorf("facts before %+v\nand after %+v", before, after)
	}
}

// A saved state is independent of the machine that goes on.
func TestASavedMachineIsACopy(t *testing.T) {
	first := simulated.New(simulated.Options{Preset: simulated.Minimal})
	defer first.Close()
	first.WriteFile(`C:\a.txt`, []byte("old"))
	var state bytes.Buffer
	if err := first.Save(&state); err != nil {
		t.Fatal(err)
	}
	first.WriteFile(`C:\a.txt`, []byte("new"))
	second := restored(t, &state, simulated.Options{})
	data, err := second.ReadFile(`C:\a.txt`)
	if err != nil || string(data) != "old" {
		t.Errorf("C:\\a.txt is %q (%v), want the content at the time of Save", data, err)
	}
}

func TestReadSavedRefusesDamage(t *testing.T) {
	m := simulated.New(simulated.Options{Preset: simulated.Minimal})
	defer m.Close()
	var state bytes.Buffer
	if err := m.Save(&state); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"nothing": "", "a half": state.String()[:state.Len()/2], "something else": strings.Repeat("x", 100),
	} {
		if _, err := simulated.ReadSaved(strings.NewReader(text)); err == nil {
			t.Errorf("%s was read", name)
		}
	}
}

func TestOnRestartTakesOver(t *testing.T) {
	called := make(chan struct{})
	m := simulated.New(simulated.Options{Preset: simulated.Minimal, OnRestart: func() { close(called) }})
	defer m.Close()
	if err := m.Process("test").Machine.Reboot(t.Context(), "a test"); err != nil {
		t.Fatal(err)
	}
	<-called
	if _, up := m.Up(); up {
		t.Error("the machine is up, though the caller takes over")
	}
}

func copyOf(t *testing.T, m *simulated.Machine, o simulated.Options) *simulated.Machine {
	t.Helper()
	var state bytes.Buffer
	if err := m.Save(&state); err != nil {
		t.Fatal(err)
	}
	return restored(t, &state, o)
}

func restored(t *testing.T, state *bytes.Buffer, o simulated.Options) *simulated.Machine {
	t.Helper()
	var err error
	if o.Saved, err = simulated.ReadSaved(state); err != nil {
		t.Fatal(err)
	}
	m := simulated.New(o)
	t.Cleanup(m.Close)
	return m
}
