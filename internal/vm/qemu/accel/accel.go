// Package accel finds out which accelerator of QEMU really works on your machine.
//
// A /dev/kvm that exists, can be opened and runs a BIOS proves nothing. In some nested and
// containerised kernels, the guest hangs once it enters long mode, as every 64-bit system does, or
// once it uses the FPU before that. So the probe runs a tiny firmware that uses the FPU, enters long
// mode, and reports that it has succeeded.
//
//   - accel.go: choose the accelerator
//   - probe.go: run the firmware
//   - image.go: the firmware
package accel

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/vm/qemu/process"
)

// Accelerators, by the names that QEMU uses.
const (
	KVM  = "kvm"
	HVF  = "hvf"
	TCG  = "tcg" // emulation: works everywhere, ten times slower or worse
	WHPX = "whpx"
)

// Choice is an accelerator that works.
type Choice struct {
	Name string `json:"name"`
	// Reason explains why no hardware acceleration works; empty if Name is not TCG.
	Reason string `json:"reason"`
	Remedy string `json:"remedy"`
}

// Prober chooses the accelerator.
type Prober struct {
	Program string // qemu-system-x86_64, a path or a name in PATH
	// Cache is the file in which the verdict is stored until the next boot. If Cache is empty, the
	// verdict is not stored.
	Cache string
}

// verdict is the content of Prober.Cache.
type verdict struct {
	Kernel  string `json:"kernel"`
	Boot    string `json:"boot"`
	Program string `json:"program"`
	Choice  Choice `json:"choice"`
}

// Best returns the fastest accelerator that works, TCG at worst. An error means that
// QEMU cannot be started, or that ctx has ended.
func (p Prober) Best(ctx context.Context) (Choice, error) {
	name, missing := candidate(runtime.GOOS, runtime.GOARCH)
	if missing.Name != "" {
		return missing, nil // not stored: rights change without a reboot
	}
	return p.verdictOn(ctx, name)
}

// verdictOn returns the accelerator if it works, otherwise TCG. It probes at most once a boot.
func (p Prober) verdictOn(ctx context.Context, name string) (Choice, error) {
	now := verdict{Kernel: process.KernelRelease(), Boot: process.BootID(), Program: p.Program}
	if known, ok := p.load(); ok && known.Boot != "" &&
		known.Kernel == now.Kernel && known.Boot == now.Boot && known.Program == now.Program {
		return known.Choice, nil
	}
	failure, err := p.Try(ctx, name, "host")
	if err != nil {
		return Choice{}, err
	}
	now.Choice = Choice{Name: name}
	if failure != "" {
		now.Choice = Choice{Name: TCG, Reason: name + " does not work: " + failure, Remedy: brokenRemedy}
	}
	p.keep(now)
	return now.Choice, nil
}

const brokenRemedy = "if your machine is itself a VM, enable nested virtualization on its host; " +
	"else enable VT-x or AMD-V in the firmware setup"

// candidate returns the accelerator to probe. If there is none, it returns the choice of TCG, with
// the reason.
func candidate(system, processor string) (string, Choice) {
	switch {
	case processor != "amd64":
		return "", Choice{Name: TCG, Reason: "the processor is no x86-64",
			Remedy: "use a machine with an Intel or AMD processor"}
	case system == "darwin":
		return HVF, Choice{}
	case system != "linux":
		return "", Choice{Name: TCG, Reason: "swdt knows no accelerator of QEMU on " + system, Remedy: "use Linux"}
	}
	device, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	switch {
	case os.IsNotExist(err):
		return "", Choice{Name: TCG, Reason: "/dev/kvm does not exist",
			Remedy: "`modprobe kvm_intel` or `modprobe kvm_amd`; " + brokenRemedy}
	case os.IsPermission(err):
		return "", Choice{Name: TCG, Reason: "you may not open /dev/kvm",
			Remedy: "`sudo usermod -aG kvm $USER`, then log in again"}
	case err != nil:
		return "", Choice{Name: TCG, Reason: err.Error(), Remedy: brokenRemedy}
	}
	_ = device.Close() // nothing was written
	return KVM, Choice{}
}

// maxCache bounds the cache file in bytes.
const maxCache = 64 << 10

func (p Prober) load() (verdict, bool) {
	if p.Cache == "" {
		return verdict{}, false
	}
	info, err := os.Stat(p.Cache)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxCache {
		return verdict{}, false
	}
	content, err := os.ReadFile(p.Cache)
	var v verdict
	if err != nil || json.Unmarshal(content, &v) != nil {
		return verdict{}, false
	}
	valid := v.Choice.Name == KVM || v.Choice.Name == HVF || v.Choice.Name == TCG
	return v, valid
}

// keep stores a verdict. If that fails, the next command probes again, which takes a few seconds.
func (p Prober) keep(v verdict) {
	content, err := json.Marshal(v)
	if p.Cache == "" || err != nil || os.MkdirAll(filepath.Dir(p.Cache), 0o700) != nil {
		return
	}
	_ = localfile.Replace(p.Cache, content)
}

// probeLimit bounds a probe. If the accelerator works, the probe needs a fifth of a second.
const probeLimit = 6 * time.Second

// hung returns the reason for a probe that does not end; line is a line of QEMU's output, or "".
func hung(line string) string {
	reason := fmt.Sprintf("a test program, which starts the CPU as UEFI does, hung for %v", probeLimit)
	if line != "" {
		reason += " (" + line + ")"
	}
	return reason
}
