package accel

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/vm/qemu/process"
)

func program(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("qemu-system-x86_64")
	if err != nil && os.Getenv("CI") == "" {
		t.Skip("needs qemu-system-x86_64: scripts/install-test-deps.sh installs it")
	} else if err != nil {
		t.Fatal(err)
	}
	return path
}

// The emulator is the reference: the firmware must work there.
func TestTheProbeReachesLongModeInEmulation(t *testing.T) {
	failure, err := Prober{Program: program(t)}.Try(t.Context(), TCG, "max")
	if err != nil || failure != "" {
		t.Errorf("got %q, %v", failure, err)
	}
}

// A CPU without long mode cannot produce the proof.
func TestTheProbeTellsACPUWithoutLongMode(t *testing.T) {
	failure, err := Prober{Program: program(t)}.Try(t.Context(), TCG, "qemu32")
	if err != nil || failure == "" {
		t.Errorf("got %q, %v", failure, err)
	}
}

func TestTheProbeReportsQEMUsReason(t *testing.T) {
	failure, err := Prober{Program: program(t)}.Try(t.Context(), "no-such", "max")
	if err != nil || !strings.Contains(failure, "no-such") {
		t.Errorf("got %q, %v", failure, err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (Prober{Program: program(t)}).Try(canceled, TCG, "max"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := (Prober{Program: "/no/such/qemu"}).Try(t.Context(), TCG, "max"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// The choice is an accelerator that passes the probe, and is made once a boot.
func TestBestIsProbedOnceABoot(t *testing.T) {
	p := Prober{Program: program(t), Cache: filepath.Join(t.TempDir(), "new", "accelerator.json")}
	first, err := p.Best(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", first)
	if (first.Name == TCG) != (first.Reason != "") || (first.Reason != "") != (first.Remedy != "") {
		t.Errorf("TCG needs a reason and a remedy, and only TCG: %+v", first)
	}
	name, unprobed := candidate("linux", "amd64")
	if name == "" {
		t.Logf("no probe on this machine: %+v", unprobed)
		return
	}
	again, err := Prober{Program: p.Program, Cache: p.Cache}.Best(t.Context())
	if err != nil || again != first {
		t.Errorf("got %+v, %v", again, err)
	}
	info, err := os.Stat(p.Cache)
	if err != nil || info.Mode().Perm() != localfile.Private {
		t.Errorf("the cache: %v, %v", info, err)
	}
}

// A verdict counts for the boot, kernel and program that it was made with; a damaged one
// never counts.
func TestOldAndDamagedVerdictsAreIgnored(t *testing.T) {
	good := `{"kernel":"` + process.KernelRelease() + `","boot":"` + process.BootID() +
		`","program":"/no/such/qemu","choice":{"name":"kvm"}}`
	for content, used := range map[string]bool{
		good: true,
		strings.Replace(good, process.BootID(), "another", 1):        false,
		strings.Replace(good, process.KernelRelease(), "another", 1): false,
		strings.Replace(good, "/no/such", "/other", 1):               false,
		strings.Replace(good, `"kvm"`, `"evil,thread=x"`, 1):         false,
		good[:20]: false, "": false, strings.Repeat(" ", maxCache) + good: false,
	} {
		p := Prober{Program: "/no/such/qemu", Cache: filepath.Join(t.TempDir(), "cache")}
		if err := os.WriteFile(p.Cache, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if choice, err := p.verdictOn(t.Context(), KVM); (err == nil && choice.Name == KVM) != used {
			t.Errorf("%.80s: used %t expected, got %+v, %v", content, used, choice, err)
		}
	}
}

func TestNoAcceleratorHasAReason(t *testing.T) {
	for _, machine := range [][2]string{{"linux", "arm64"}, {"windows", "amd64"}, {"freebsd", "amd64"}} {
		name, choice := candidate(machine[0], machine[1])
		if name != "" || choice.Name != TCG {
			t.Errorf("%v: accelerator %q, choice %q; want none, TCG", machine, name, choice.Name)
		}
		if choice.Reason == "" || choice.Remedy == "" {
			t.Errorf("%v: reason %q, remedy %q; want both", machine, choice.Reason, choice.Remedy)
		}
	}
	if name, _ := candidate("darwin", "amd64"); name != HVF {
		t.Errorf("got %q", name)
	}
}
