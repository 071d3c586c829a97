// Command guest makes the disk of the Linux guest that stands for a Windows virtual
// machine in tests of swdt vm. It needs no root: the programs of mtools, dosfstools,
// fdisk, binutils and qemu-utils write the parts, and nothing is mounted.
//
//   - main.go: the steps
//   - modules.go: the kernel's modules with those that they need
//   - cpio.go: the initramfs
//   - disk.go: the EFI program and the disk
//   - setup.go: the CD that imitates Windows Setup
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// commandLine is the kernel's: a dead guest ends at once, and the first serial port has its output.
const commandLine = "console=tty0 console=ttyS0 loglevel=4 panic=-1 random.trust_cpu=on no_timer_check"

func main() {
	kernel := flag.String("kernel", "", "folder of the unpacked Debian package linux-image")
	program := flag.String("init", "", "the program that runs as PID 1, for Linux")
	stub := flag.String("stub", "/usr/lib/systemd/boot/efi/linuxx64.efi.stub", "systemd's EFI stub")
	disk := flag.String("disk", "", "write the disk of an installed guest to this qcow2 file")
	cd := flag.String("cd", "", "write the CD that installs a guest to this ISO file")
	flag.Parse()
	if err := run(*kernel, *program, *stub, *disk, *cd); err != nil {
		fmt.Fprintln(os.Stderr, "guest:", err)
		os.Exit(1)
	}
}

func run(kernelFolder, program, stub, diskFile, cdFile string) error {
	work, err := os.MkdirTemp(filepath.Dir(diskFile), "guest-*")
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
	if err := b.writeDisk(diskFile); err != nil {
		return err
	}
	return nil
}
