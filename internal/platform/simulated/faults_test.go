package simulated_test

import (
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// replaceFile is a small transaction that the tests interrupt: it writes a new file
// beside the old one, syncs it and renames it over the old one.
func replaceFile(p *platform.Platform, path, text string) error {
	w, err := p.Files.Create(path+".new", platform.CreateTruncate)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(w, text); err != nil {
		_ = w.Close()
		return err
	}
	if err := w.Sync(); err != nil {
		_ = w.Close()
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return p.Files.Rename(path+".new", path, true)
}

func TestEveryOperationCanBeBroken(t *testing.T) {
	const path = `C:\k\file`
	prepare := func(t *testing.T) *simulated.Machine {
		m := newMachine(t, simulated.Options{Preset: simulated.Minimal})
		m.WriteFile(path, []byte("old"))
		return m
	}
	first := prepare(t)
	if err := replaceFile(first.Process("p"), path, "new text"); err != nil {
		t.Fatal(err)
	}
	operations := first.Operations()
	var kinds []simulated.Kind
	for i, op := range operations {
		kinds = append(kinds, op.Kind)
		switch {
		case op.Seq != i+1:
			t.Errorf("op.Seq is %v, want %v", op.Seq, i+1)
		case op.Process != "p":
			t.Errorf("op.Process is %q, want %q", op.Process, "p")
		case op.Occurrence != 1:
			t.Errorf("op.Occurrence is %v, want 1", op.Occurrence)
		}
	}
	if want := []simulated.Kind{"create", "write", "sync", "rename"}; !slices.Equal(kinds, want) {
		t.Fatalf("recorded %v, want %v", kinds, want)
	}

	boom := errors.New("boom")
	faults := map[string]struct {
		verdict simulated.Verdict
		want    error
	}{
		"fail":       {simulated.Fail(boom), boom},
		"disk full":  {simulated.DiskFull(), fault.ErrDiskFull},
		"kill":       {simulated.KillCaller(), simulated.ErrKilled},
		"kill named": {simulated.KillNamed("P"), simulated.ErrKilled},
		"power cut":  {simulated.PowerCut(), simulated.ErrKilled},
	}
	for name, fault := range faults {
		for _, phase := range []simulated.Phase{simulated.Before, simulated.After} {
			for _, broken := range operations {
				t.Run(name+" "+string(phase)+" "+string(broken.Kind), func(t *testing.T) {
					m := prepare(t)
					m.OnOperation(func(op simulated.Operation) simulated.Verdict {
						if op.Seq == broken.Seq && op.Phase == phase {
							return fault.verdict
						}
						return simulated.Continue()
					})
					err := replaceFile(m.Process("p"), path, "new text")
					if !errors.Is(err, fault.want) {
						t.Errorf("got %v, want %v", err, fault.want)
					}
					want := "old"
					if broken.Kind == simulated.OpRename && phase == simulated.After {
						want = "new text" // it had taken effect
					}
					if got, err := m.ReadFile(path); string(got) != want || err != nil {
						t.Errorf("the file is %q, %v; want %q", got, err, want)
					}
				})
			}
		}
	}
}

func TestADiskThatFillsTakesHalfOfAWrite(t *testing.T) {
	m := newMachine(t, simulated.Options{Preset: simulated.Minimal})
	p := m.Process("p")
	w, err := p.Files.Create(`C:\file`, platform.CreateNew)
	if err != nil {
		t.Fatal(err)
	}
	m.SetFreeBytes(3)
	switch n, err := io.WriteString(w, "12345"); {
	case n != 3:
		t.Errorf("n is %v, want 3", n)
	case !errors.Is(err, fault.ErrDiskFull):
		t.Errorf("the error is %v, want %v", err, fault.ErrDiskFull)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.Files.Remove(`C:\file`); err != nil {
		t.Fatal(err)
	}
	if free, err := p.Files.FreeBytes(`C:\`); free != 3 || err != nil {
		t.Errorf("after the removal %d bytes are free, %v", free, err)
	}
}

func TestAWriteProtectedDisk(t *testing.T) {
	m := newMachine(t, simulated.Options{})
	p := m.Process("p")
	m.SetDiskReadOnly(true)
	_, create := p.Files.Create(`C:\file`, platform.CreateNew)
	for what, err := range map[string]error{
		"create": create, "remove": p.Files.Remove(simulated.HostsFile), "folder": p.Files.MakeFolder(`C:\new`),
		"rename": p.Files.Rename(simulated.HostsFile, simulated.HostsFile+"2", false),
		"acl":    p.Files.SetACL(simulated.HostsFile, "O:BA"),
	} {
		if !errors.Is(err, fault.ErrReadOnly) {
			t.Errorf("%s: the error is %v, want %v", what, err, fault.ErrReadOnly)
		}
	}
}

func TestAPowerCutLosesWhatWasNotSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := simulated.New(simulated.Options{Preset: simulated.Minimal})
		defer m.Close()
		p := m.Process("p")
		w, err := p.Files.Create(`C:\file`, platform.CreateNew)
		if err != nil {
			t.Fatal(err)
		}
		write := func(text string) {
			if _, err := io.WriteString(w, text); err != nil {
				t.Fatal(err)
			}
		}
		write("synced,")
		if err := w.Sync(); err != nil {
			t.Fatal(err)
		}
		write("lost")
		m.PowerCut()
		if _, err := w.Write([]byte("x")); !errors.Is(err, simulated.ErrKilled) {
			t.Errorf("a write after the end: %v", err)
		}
		if err := m.AwaitUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		switch got, err := m.ReadFile(`C:\file`); {
		case string(got) != "synced,":
			t.Errorf("got is %q, want %q", string(got), "synced,")
		case err != nil:
			t.Error(err)
		}
	})
}

func TestKilledIsDead(t *testing.T) {
	m := newMachine(t, simulated.Options{})
	p := m.Spawn("victim.exe")
	windows := p.Platform
	lock, err := windows.Files.Lock(`C:\lock`, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := m.Kill("VICTIM.exe"); n != 1 {
		t.Fatalf("%d killed", n)
	}
	<-p.Context().Done()
	ctx := t.Context()
	_, stat := windows.Files.Stat(`C:\`)
	_, facts := windows.Machine.Facts(ctx)
	_, services := windows.Services.List(ctx)
	_, registry := windows.Registry.Get(`HKLM\SOFTWARE`, "x")
	_, processes := windows.Processes.List(ctx)
	_, run := windows.Processes.Run(ctx, platform.Command{Path: "hostname"})
	_, rules := windows.Firewall.Rules(ctx)
	_, state := windows.Features.State(ctx, "Containers")
	_, _, get := windows.Network.HTTPGet(ctx, "http://127.0.0.1:10248/healthz")
	_, dial := windows.Network.DialPipe(ctx, simulated.ContainerdPipe)
	for what, err := range map[string]error{
		"stat": stat, "facts": facts, "services": services, "registry": registry, "processes": processes, "run": run,
		"rules": rules, "state": state, "get": get, "dial": dial, "unlock": lock.Unlock(),
		"start": windows.Services.Start(ctx, "W32Time"), "remove": windows.Files.Remove(`C:\lock`),
	} {
		if !errors.Is(err, simulated.ErrKilled) {
			t.Errorf("%s: the error is %v, want %v", what, err, simulated.ErrKilled)
		}
	}
	if _, err := m.Process("next").Files.Lock(`C:\lock`, nil); err != nil {
		t.Errorf("its lock: %v", err)
	}
}

func TestReboot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := simulated.New(simulated.Options{BootDelay: time.Minute})
		defer m.Close()
		ctx := t.Context()
		p := m.Process("p")
		before, err := p.Machine.Facts(ctx)
		if err != nil {
			t.Fatal(err)
		}
		switch reboot, err := p.Features.Enable(ctx, "Microsoft-Hyper-V"); {
		case !reboot:
			t.Fatal("reboot is false, want true")
		case err != nil:
			t.Fatal(err)
		}
		switch facts, err := p.Machine.Facts(ctx); {
		case len(facts.PendingReboot) == 0:
			t.Error("facts.PendingReboot is empty")
		case err != nil:
			t.Error(err)
		}
		up, _ := m.Up()
		if err := p.Machine.Reboot(ctx, "features"); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Machine.Facts(ctx); err != nil {
			t.Errorf("the call returns before the reboot: %v", err)
		}
		<-up.Done()
		if _, ok := m.Up(); ok {
			t.Error("it is up at once")
		}
		if _, err := m.Process("early").Machine.Facts(ctx); !errors.Is(err, simulated.ErrKilled) {
			t.Errorf("a process of a machine that is down: %v", err)
		}
		if err := m.AwaitUp(ctx); err != nil {
			t.Fatal(err)
		}
		p = m.Process("p")
		after, err := p.Machine.Facts(ctx)
		switch {
		case err != nil:
			t.Error(err)
		case after.BootID == before.BootID:
			t.Errorf("after.BootID is %v, want anything but %v", after.BootID, before.BootID)
		case len(after.PendingReboot) != 0:
			t.Errorf("after.PendingReboot is %v, want it empty", after.PendingReboot)
		case after.Uptime > time.Minute:
			t.Errorf("after.Uptime is %v, want at most %v", after.Uptime, time.Minute)
		}
		switch state, err := p.Features.State(ctx, "Microsoft-Hyper-V"); {
		case state != platform.FeatureEnabled:
			t.Errorf("state is %v, want %v", state, platform.FeatureEnabled)
		case err != nil:
			t.Error(err)
		}
		if got := m.RunningServices(); !slices.Equal(got, []string{"containerd", "EventLog", "kube-proxy", "kubelet",
			"RpcSs", "sshd", "W32Time"}) {
			t.Errorf("running: %v", got)
		}
	})
}

func TestAReadOnlyFile(t *testing.T) {
	m := newMachine(t, simulated.Options{Preset: simulated.Minimal})
	p := m.Process("p")
	m.WriteFile(`C:\file`, []byte("x"))
	m.WriteFile(`C:\other`, []byte("y"))
	if err := m.SetReadOnly(`C:\file`, true); err != nil {
		t.Fatal(err)
	}
	switch info, err := p.Files.Stat(`C:\file`); {
	case !info.ReadOnly:
		t.Error("info.ReadOnly is false, want true")
	case err != nil:
		t.Error(err)
	}
	if _, err := p.Files.Create(`C:\file`, platform.CreateTruncate); !errors.Is(err, fault.ErrPermission) {
		t.Errorf("create: %v", err)
	}
	if err := p.Files.Rename(`C:\other`, `C:\file`, true); !errors.Is(err, fault.ErrPermission) {
		t.Errorf("replace: %v", err)
	}
	if err := p.Files.Remove(`C:\file`); err != nil {
		t.Errorf("remove: %v", err)
	}
}

func TestLinksAreSeenAndNotRemovedThrough(t *testing.T) {
	m := newMachine(t, simulated.Options{Preset: simulated.Minimal})
	p := m.Process("p")
	m.WriteFile(`C:\real\file`, []byte("x"))
	if err := m.Link(`C:\link`, `C:\real`); err != nil {
		t.Fatal(err)
	}
	switch info, err := p.Files.Stat(`C:\link`); {
	case !info.Link:
		t.Error("info.Link is false, want true")
	case !info.Folder:
		t.Error("info.Folder is false, want true")
	case err != nil:
		t.Error(err)
	}
	if _, err := p.Files.Stat(`C:\link\file`); err != nil {
		t.Errorf("through the link: %v", err)
	}
	if err := p.Files.Remove(`C:\link`); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Files.Stat(`C:\real\file`); err != nil {
		t.Errorf("what it pointed to: %v", err)
	}
}
