// Command guest makes the disk of the Linux guest that acts as a Windows virtual
// machine in tests of swdt vm. It needs no root's rights: the programs of mtools, dosfstools,
// fdisk, binutils and qemu-utils write the parts, and nothing is mounted.
//
//   - main.go: the steps
//   - modules.go: the kernel modules that the guest loads
//   - cpio.go: the initramfs
//   - reset.go: a system partition that only resets the machine
//   - disk.go: the EFI program, the disk, and the parts of the CD that imitates Windows Setup
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// commandLine is the kernel's command line. After a panic, the kernel restarts the machine at once. The
// kernel writes its messages to the first serial port.
const commandLine = "console=tty0 console=ttyS0 loglevel=4 panic=-1 random.trust_cpu=on no_timer_check"

// setupWord on the command line makes init imitate Windows Setup. e2e/vmguest has the same constant.
const setupWord = " swdt.setup"

// outputs are the names of the files to write. A file whose name is "" is not written.
type outputs struct {
	disk   string // qcow2: an installed guest
	boot   string // FAT: the boot image of the CD that imitates Windows Setup
	system string // FAT: the system partition that this CD installs
	reset  string // FAT: a system partition that resets the machine
}

func main() {
	kernel := flag.String("kernel", "", "folder of the unpacked Debian package linux-image")
	program := flag.String("init", "", "the program that runs as PID 1, for Linux")
	stub := flag.String("stub", "/usr/lib/systemd/boot/efi/linuxx64.efi.stub", "systemd's EFI stub")
	var o outputs
	flag.StringVar(&o.disk, "disk", "", "write the disk of an installed guest to this qcow2 file")
	flag.StringVar(&o.boot, "cd-boot", "", "write the boot image of the CD that imitates Windows Setup to this file")
	flag.StringVar(&o.system, "cd-system", "", "write the system partition that this CD installs to this file")
	flag.StringVar(&o.reset, "cd-reset", "", "write a system partition that resets the machine to this file")
	flag.Parse()
	if err := run(*kernel, *program, *stub, o); err != nil {
		fmt.Fprintln(os.Stderr, "guest:", err)
		os.Exit(1)
	}
}

func run(kernelFolder, program, stub string, o outputs) error {
	work, err := os.MkdirTemp(filepath.Dir(program), "guest-*")
	if err != nil {
		return fmt.Errorf("make a folder for the guest's parts: %w", err)
	}
	defer os.RemoveAll(work)
	k, err := findKernel(kernelFolder)
	if err != nil {
		return err
	}
	initramfs := filepath.Join(work, "initramfs")
	if err := writeInitramfs(initramfs, k, program); err != nil {
		return err
	}
	b := builder{work: work, stub: stub, kernel: k.image, initramfs: initramfs}
	if o.disk != "" {
		if err := b.writeDisk(o.disk); err != nil {
			return err
		}
	}
	if o.boot != "" {
		if err := b.writeESP(o.boot, "boot", commandLine+setupWord); err != nil {
			return err
		}
	}
	if o.system != "" {
		if err := b.writeESP(o.system, "system", commandLine); err != nil {
			return err
		}
	}
	if o.reset != "" {
		return b.writeResetESP(o.reset)
	}
	return nil
}
