package simulated_test

import (
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/host/simulated"
)

// replaceFile is a small transaction to break: write beside, sync, rename over.
func replaceFile(h *host.Host, path, text string) error {
	w, err := h.Files.Create(path+".new", host.CreateTruncate)
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
	return h.Files.Rename(path+".new", path, true)
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
		if op.Seq != i+1 || op.Process != "p" || op.Occurrence != 1 {
			t.Errorf("operation %d: %+v", i, op)
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
		"disk full":  {simulated.DiskFull(), host.ErrDiskFull},
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
						want = "new text" // it had happened
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
	h := m.Process("p")
	w, err := h.Files.Create(`C:\file`, host.CreateNew)
	if err != nil {
		t.Fatal(err)
	}
	m.SetFreeBytes(3)
	if n, err := io.WriteString(w, "12345"); n != 3 || !errors.Is(err, host.ErrDiskFull) {
		t.Errorf("%d, %v", n, err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := h.Files.Remove(`C:\file`); err != nil {
		t.Fatal(err)
	}
	if free, err := h.Files.FreeBytes(`C:\`); free != 3 || err != nil {
		t.Errorf("after the removal %d bytes are free, %v", free, err)
	}
}

func TestAWriteProtectedDisk(t *testing.T) {
	m := newMachine(t, simulated.Options{})
	h := m.Process("p")
	m.SetDiskReadOnly(true)
	_, create := h.Files.Create(`C:\file`, host.CreateNew)
	for what, err := range map[string]error{
		"create": create, "remove": h.Files.Remove(simulated.HostsFile), "folder": h.Files.MakeFolder(`C:\new`),
		"rename": h.Files.Rename(simulated.HostsFile, simulated.HostsFile+"2", false),
		"acl":    h.Files.SetACL(simulated.HostsFile, "O:BA"),
	} {
		if !errors.Is(err, host.ErrReadOnly) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestAPowerCutLosesWhatWasNotSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := simulated.New(simulated.Options{Preset: simulated.Minimal})
		defer m.Close()
		h := m.Process("p")
		w, err := h.Files.Create(`C:\file`, host.CreateNew)
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
		if got, err := m.ReadFile(`C:\file`); string(got) != "synced," || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
}

func TestKilledIsDead(t *testing.T) {
	m := newMachine(t, simulated.Options{})
	p := m.Spawn("victim.exe")
	h := p.Host
	lock, err := h.Files.Lock(`C:\lock`, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := m.Kill("VICTIM.exe"); n != 1 {
		t.Fatalf("%d killed", n)
	}
	<-p.Context().Done()
	ctx := t.Context()
	_, stat := h.Files.Stat(`C:\`)
	_, facts := h.Machine.Facts(ctx)
	_, services := h.Services.List(ctx)
	_, registry := h.Registry.Get(`HKLM\SOFTWARE`, "x")
	_, processes := h.Processes.List(ctx)
	_, run := h.Processes.Run(ctx, host.Command{Path: "hostname"})
	_, rules := h.Firewall.Rules(ctx)
	_, state := h.Features.State(ctx, "Containers")
	_, _, get := h.Network.HTTPGet(ctx, "http://127.0.0.1:10248/healthz")
	_, dial := h.Network.DialPipe(ctx, simulated.ContainerdPipe)
	for what, err := range map[string]error{
		"stat": stat, "facts": facts, "services": services, "registry": registry, "processes": processes, "run": run,
		"rules": rules, "state": state, "get": get, "dial": dial, "unlock": lock.Unlock(),
		"start": h.Services.Start(ctx, "W32Time"), "remove": h.Files.Remove(`C:\lock`),
	} {
		if !errors.Is(err, simulated.ErrKilled) {
			t.Errorf("%s: %v", what, err)
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
		h := m.Process("p")
		before, err := h.Machine.Facts(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if reboot, err := h.Features.Enable(ctx, "Microsoft-Hyper-V"); !reboot || err != nil {
			t.Fatalf("%v, %v", reboot, err)
		}
		if facts, err := h.Machine.Facts(ctx); len(facts.PendingReboot) == 0 || err != nil {
			t.Errorf("%+v, %v", facts, err)
		}
		up, _ := m.Up()
		if err := h.Machine.Reboot(ctx, "features"); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Machine.Facts(ctx); err != nil {
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
		h = m.Process("p")
		after, err := h.Machine.Facts(ctx)
		if err != nil || after.BootID == before.BootID || len(after.PendingReboot) != 0 || after.Uptime > time.Minute {
			t.Errorf("%+v, %v", after, err)
		}
		if state, err := h.Features.State(ctx, "Microsoft-Hyper-V"); state != host.FeatureEnabled || err != nil {
			t.Errorf("%v, %v", state, err)
		}
		if got := m.RunningServices(); !slices.Equal(got, []string{"containerd", "EventLog", "kube-proxy", "kubelet", "RpcSs", "sshd", "W32Time"}) {
			t.Errorf("running: %v", got)
		}
	})
}

func TestAReadOnlyFile(t *testing.T) {
	m := newMachine(t, simulated.Options{Preset: simulated.Minimal})
	h := m.Process("p")
	m.WriteFile(`C:\file`, []byte("x"))
	m.WriteFile(`C:\other`, []byte("y"))
	if err := m.SetReadOnly(`C:\file`, true); err != nil {
		t.Fatal(err)
	}
	if info, err := h.Files.Stat(`C:\file`); !info.ReadOnly || err != nil {
		t.Errorf("%+v, %v", info, err)
	}
	if _, err := h.Files.Create(`C:\file`, host.CreateTruncate); !errors.Is(err, host.ErrPermission) {
		t.Errorf("create: %v", err)
	}
	if err := h.Files.Rename(`C:\other`, `C:\file`, true); !errors.Is(err, host.ErrPermission) {
		t.Errorf("replace: %v", err)
	}
	if err := h.Files.Remove(`C:\file`); err != nil {
		t.Errorf("remove: %v", err)
	}
}

func TestLinksAreSeenAndNotRemovedThrough(t *testing.T) {
	m := newMachine(t, simulated.Options{Preset: simulated.Minimal})
	h := m.Process("p")
	m.WriteFile(`C:\real\file`, []byte("x"))
	if err := m.Link(`C:\link`, `C:\real`); err != nil {
		t.Fatal(err)
	}
	if info, err := h.Files.Stat(`C:\link`); !info.Link || !info.Folder || err != nil {
		t.Errorf("%+v, %v", info, err)
	}
	if _, err := h.Files.Stat(`C:\link\file`); err != nil {
		t.Errorf("through the link: %v", err)
	}
	if err := h.Files.Remove(`C:\link`); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Files.Stat(`C:\real\file`); err != nil {
		t.Errorf("what it pointed to: %v", err)
	}
}
