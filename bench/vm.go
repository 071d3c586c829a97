//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	// vmRounds is how many pairs of starts are measured. The first start of a VM is not counted.
	vmRounds = 7
	// vmBoot bounds a start. It suffices without hardware acceleration, too.
	vmBoot = 3 * time.Minute
	// vmProbe is the interval of attempts to reach the SSH server of the VM that swdt does not start,
	// and vmGreeting bounds each attempt. More attempts would slow the guest down.
	vmProbe, vmGreeting = 250 * time.Millisecond, time.Second
	// vmGolden is the size of the image below the overlays, in bytes.
	vmGolden = 10 << 30
)

// VM has the results of the part vm.
type VM struct {
	Machine     Machine   `json:"machine"`
	Accelerator string    `json:"accelerator"`
	Starts      []VMStart `json:"starts"`
	// Create and Image are the seconds that `swdt vm create` and `qemu-img create` need for a VM
	// or a disk over an image of GoldenBytes.
	GoldenBytes int64     `json:"goldenBytes"`
	Create      []float64 `json:"swdtVMCreateSeconds"`
	Image       []float64 `json:"qemuImgCreateSeconds"`
}

// VMStart is a pair of starts of one guest on equal hardware, from the start of the program to the
// greeting of the guest's SSH server, in seconds.
type VMStart struct {
	Swdt float64 `json:"swdtVMStartWaitSeconds"`
	QEMU float64 `json:"qemuSeconds"`
	// SwdtCPU and QEMUCPU are the processor seconds that QEMU had used when the SSH server greeted.
	// Other load on the machine changes them less than it changes Swdt and QEMU.
	SwdtCPU float64 `json:"swdtVMStartWaitProcessorSeconds"`
	QEMUCPU float64 `json:"qemuProcessorSeconds"`
}

// vmHome is the folder of a user with two VMs of the lab's guest.
type vmHome struct {
	b      *bench
	folder string
}

// vm measures the times to make and to start VMs. swdt and QEMU take turns, and their order changes
// from pair to pair, so that other load on the machine affects both.
func (b *bench) vm(ctx context.Context) (VM, error) {
	result := VM{GoldenBytes: vmGolden}
	home := vmHome{b, filepath.Join(b.work, "vm")}
	for _, name := range []string{"data", "run", "cache", "state"} {
		if err := os.MkdirAll(filepath.Join(home.folder, name), 0o700); err != nil {
			return result, err
		}
	}
	if err := home.create(ctx, &result); err != nil {
		return result, err
	}
	guest := filepath.Join(b.lab, "guest", "guest.qcow2")
	if _, err := os.Stat(guest); err != nil {
		return result, fmt.Errorf("%w: run lab/build.sh guest", err)
	}
	own, other := vmNode{home: home, name: "started-by-swdt"}, vmNode{home: home, name: "started-directly"}
	for _, n := range []*vmNode{&own, &other} {
		if err := n.make(ctx, guest); err != nil {
			return result, err
		}
		defer n.remove(context.WithoutCancel(ctx))
		if _, _, err := n.start(ctx); err != nil { // the guest's first start formats its disk
			return result, err
		}
	}
	result.Accelerator = own.accelerator
	for i := range vmRounds {
		var pair VMStart
		turns := []func() error{
			func() (err error) { pair.Swdt, pair.SwdtCPU, err = own.start(ctx); return err },
			func() (err error) { pair.QEMU, pair.QEMUCPU, err = other.startDirectly(ctx); return err },
		}
		if i%2 == 1 {
			slices.Reverse(turns)
		}
		for _, turn := range turns {
			if err := turn(); err != nil {
				return result, err
			}
		}
		logf("start to SSH: swdt %.2fs (%.2fs of processors), QEMU %.2fs (%.2fs)",
			pair.Swdt, pair.SwdtCPU, pair.QEMU, pair.QEMUCPU)
		result.Starts = append(result.Starts, pair)
	}
	return result, nil
}

// create measures the time to make a VM over a large image. All clusters of the image are allocated, so
// that its tables are those of a full image, but no data is written.
func (h vmHome) create(ctx context.Context, result *VM) error {
	golden, overlay := filepath.Join(h.folder, "golden.qcow2"), filepath.Join(h.folder, "overlay.qcow2")
	if _, err := output(ctx, "qemu-img", "create", "-q", "-f", "qcow2", "-o", "preallocation=metadata", golden,
		fmt.Sprint(vmGolden)); err != nil {
		return err
	}
	defer os.Remove(golden)
	for round := range 1 + vmRounds { // round 0 is not counted, since it includes detecting the accelerator
		n := vmNode{home: h, name: "overlay"}
		begun := time.Now()
		if err := n.make(ctx, golden); err != nil {
			return err
		}
		own := time.Since(begun).Seconds()
		if err := n.remove(ctx); err != nil {
			return err
		}
		other, err := words("qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", golden, overlay).run(ctx)
		if err != nil {
			return err
		}
		if err := os.Remove(overlay); err != nil {
			return err
		}
		if round == 0 {
			continue
		}
		logf("over 10 GB: swdt vm create %.3fs, qemu-img create %.3fs", own, other.seconds)
		result.Create, result.Image = append(result.Create, own), append(result.Image, other.seconds)
	}
	return nil
}

// vmNode is one VM.
type vmNode struct {
	home        vmHome
	name        string
	file        string // the path of the VM's node file
	accelerator string
}

// swdt runs swdt with the VM's node file, and decodes the JSON output into result.
func (n *vmNode) swdt(ctx context.Context, result any, args ...string) (taken, error) {
	c := words(n.home.b.swdt, append(args, "-c", n.file, "-o", "json")...)
	for variable, name := range map[string]string{
		"XDG_DATA_HOME": "data", "XDG_RUNTIME_DIR": "run", "XDG_CACHE_HOME": "cache", "XDG_STATE_HOME": "state",
	} {
		c.env = append(c.env, variable+"="+filepath.Join(n.home.folder, name))
	}
	t, err := c.run(ctx)
	if err != nil {
		return t, err
	}
	return t, json.Unmarshal(t.stdout, result)
}

// make makes the VM over an image.
func (n *vmNode) make(ctx context.Context, image string) error {
	n.file = filepath.Join(n.home.folder, n.name+".yaml")
	text := fmt.Sprintf(`apiVersion: windows.k8s.io/v1alpha1
kind: Node
metadata: {name: %s}
spec:
  machine:
    driver: qemu
    image: {disk: %q}
    cpus: 1
    memory: 512Mi
    disk: 16Gi
    diskBus: virtio
    network: {adapter: virtio}
`, n.name, image)
	if err := os.WriteFile(n.file, []byte(text), 0o600); err != nil {
		return err
	}
	var made struct{}
	_, err := n.swdt(ctx, &made, "vm", "create")
	return err
}

func (n *vmNode) remove(ctx context.Context) error {
	var removed struct{}
	_, err := n.swdt(ctx, &removed, "vm", "delete", "--yes")
	return err
}

// start starts the VM with swdt, and ends the VM. It returns the seconds until the SSH server's
// greeting, and the processor seconds that QEMU has used until then.
func (n *vmNode) start(ctx context.Context) (seconds, cpu float64, err error) {
	var started struct {
		VMs []struct {
			Accelerator string
			PID         int
		}
	}
	t, err := n.swdt(ctx, &started, "vm", "start", "--wait", "--timeout", vmBoot.String())
	if err != nil {
		return 0, 0, err
	}
	for _, vm := range started.VMs {
		n.accelerator = vm.Accelerator
		cpu, _ = processorSeconds(vm.PID)
	}
	var stopped struct{}
	_, err = n.swdt(ctx, &stopped, "vm", "stop", "--force")
	return t.seconds, cpu, err
}

// startDirectly starts QEMU with the command line that swdt would use, and ends QEMU. It returns the same
// two values as start.
func (n *vmNode) startDirectly(ctx context.Context) (seconds, cpu float64, err error) {
	var planned struct {
		VMs []struct {
			Command []string
			Machine struct {
				Network struct{ Forwards []struct{ HostPort int } }
			}
		}
	}
	if _, err := n.swdt(ctx, &planned, "vm", "create", "--dry-run"); err != nil {
		return 0, 0, err
	}
	if len(planned.VMs) != 1 || len(planned.VMs[0].Command) == 0 || len(planned.VMs[0].Machine.Network.Forwards) == 0 {
		return 0, 0, fmt.Errorf("swdt vm create --dry-run printed %+v", planned)
	}
	line := planned.VMs[0].Command
	run := filepath.Dir(line[slices.Index(line, "-pidfile")+1])
	if err := os.MkdirAll(run, 0o700); err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(run)) }()
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	var messages bytes.Buffer
	cmd.Stderr = &messages // stdout is the serial port
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	err = greeted(ctx, fmt.Sprintf("127.0.0.1:%d", planned.VMs[0].Machine.Network.Forwards[0].HostPort))
	seconds = time.Since(begun).Seconds()
	cpu, _ = processorSeconds(cmd.Process.Pid)
	if end := errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait()); err == nil && end != nil {
		err = fmt.Errorf("QEMU: %w: %s", end, messages.Bytes())
	}
	return seconds, cpu, err
}

// greeted waits until an SSH server at an address sends its greeting. The attempts overlap, since an
// attempt that connects before the guest has a network hangs.
func greeted(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, vmBoot, &tooLongError{vmBoot})
	defer cancel()
	seen := make(chan struct{}, 1)
	look := func() {
		conn, err := net.DialTimeout("tcp", address, vmGreeting)
		if err != nil {
			return
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(vmGreeting))
		greeting := make([]byte, 4)
		if n, _ := conn.Read(greeting); strings.HasPrefix(string(greeting[:n]), "SSH-") {
			select {
			case seen <- struct{}{}:
			default:
			}
		}
	}
	ticker := time.NewTicker(vmProbe)
	defer ticker.Stop()
	for {
		go look()
		select {
		case <-seen:
			return nil
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func vmTable(v VM) string {
	var own, other, ownCPU, otherCPU, ratios, ratiosCPU []float64
	var rows [][]string
	for _, pair := range v.Starts {
		own, other = append(own, pair.Swdt), append(other, pair.QEMU)
		ownCPU, otherCPU = append(ownCPU, pair.SwdtCPU), append(otherCPU, pair.QEMUCPU)
		ratios = append(ratios, pair.Swdt/pair.QEMU)
		ratiosCPU = append(ratiosCPU, pair.SwdtCPU/pair.QEMUCPU)
	}
	row := func(what string, all []float64) []string {
		return []string{what, seconds(median(all)), seconds(slices.Min(all)), seconds(slices.Max(all))}
	}
	rows = append(rows,
		row("`swdt vm start --wait`", own), row("the same command line of QEMU, and looks for SSH", other),
		row("QEMU's processor seconds, started by swdt", ownCPU),
		row("QEMU's processor seconds, started directly", otherCPU),
		row(fmt.Sprintf("`swdt vm create` over an image of %s bytes", grouped(v.GoldenBytes)), v.Create),
		row("`qemu-img create` over the same image", v.Image))
	return machineLine(v.Machine, 0) + fmt.Sprintf(" Accelerator %s; %d pairs of starts, %d of images.\n\n",
		v.Accelerator, len(v.Starts), len(v.Create)) +
		table([]string{"", "median s", "least s", "most s"}, rows) +
		fmt.Sprintf("\nOf each pair of starts, swdt needed %s the time of QEMU (median; %s to %s), and "+
			"QEMU %s the processor seconds (%s to %s).\n",
			ratio(median(ratios), 1), ratio(slices.Min(ratios), 1), ratio(slices.Max(ratios), 1),
			ratio(median(ratiosCPU), 1), ratio(slices.Min(ratiosCPU), 1), ratio(slices.Max(ratiosCPU), 1))
}
