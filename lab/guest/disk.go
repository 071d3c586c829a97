package main

import (
	"bytes"
	"debug/pe"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	mebibyte = 1 << 20
	// firstPartition is the offset of the first partition. Partitions begin at multiples of 1 MiB.
	firstPartition = 1 * mebibyte
	// stateSize is the size of the partition for the guest's state, which consists of two slots of
	// half this size. The disk is sparse.
	stateSize = 1024 * mebibyte
	// stateLabel is the name by which the guest finds this partition. e2e/vmguest has the same constant.
	stateLabel = "swdt-state"
	espType    = "C12A7328-F81F-11D2-BA4B-00A0C93EC93B"
	linuxType  = "0FC63DAF-8483-4772-8E79-3D69D8477DE4"
)

// builder makes the parts of a guest in the folder work.
type builder struct {
	work, stub, kernel, initramfs string
}

// writeDisk writes the qcow2 file of an installed guest: an EFI system partition with
// one program, which holds kernel, initramfs and command line, and a raw partition for the
// guest's state.
func (b builder) writeDisk(file string) error {
	esp, err := b.esp("disk", commandLine)
	if err != nil {
		return err
	}
	raw := filepath.Join(b.work, "disk.raw")
	if err := b.partition(raw, esp); err != nil {
		return err
	}
	return b.command("qemu-img", "convert", "-f", "raw", "-O", "qcow2", raw, file)
}

// writeESP writes the image of a FAT file system with the guest's program.
func (b builder) writeESP(file, name, commandLine string) error {
	esp, err := b.esp(name, commandLine)
	if err != nil {
		return err
	}
	return move(esp, file)
}

// writeResetESP writes the image of a FAT file system whose program resets the machine.
func (b builder) writeResetESP(file string) error {
	program := filepath.Join(b.work, "reset.efi")
	if err := writeReset(b.stub, program); err != nil {
		return err
	}
	esp, err := b.espWith("reset", program)
	if err != nil {
		return err
	}
	return move(esp, file)
}

func move(esp, file string) error {
	if err := os.Rename(esp, file); err != nil {
		return fmt.Errorf("write the system partition: %w", err)
	}
	return nil
}

// partition writes a raw disk with the system partition's image in it.
func (b builder) partition(raw, esp string) error {
	image, err := os.ReadFile(esp)
	if err != nil {
		return fmt.Errorf("read the system partition: %w", err)
	}
	f, err := os.Create(raw)
	if err != nil {
		return fmt.Errorf("write the disk: %w", err)
	}
	defer f.Close()
	// The last MiB holds the second copy of the partition table.
	if err := f.Truncate(firstPartition + int64(len(image)) + stateSize + mebibyte); err != nil {
		return fmt.Errorf("write the disk: %w", err)
	}
	table := fmt.Sprintf("label: gpt\nunit: sectors\nstart=%d, size=%d, type=%s, name=esp\n"+
		"start=%d, size=%d, type=%s, name=%s\n",
		firstPartition/512, len(image)/512, espType,
		(firstPartition+len(image))/512, stateSize/512, linuxType, stateLabel)
	if err := b.commandWith(table, "sfdisk", "--quiet", raw); err != nil {
		return err
	}
	if _, err := f.WriteAt(image, firstPartition); err != nil {
		return fmt.Errorf("write the disk: %w", err)
	}
	return nil
}

// esp makes the image of a FAT file system with the guest's program.
func (b builder) esp(name, commandLine string) (string, error) {
	program, err := b.program(name, commandLine)
	if err != nil {
		return "", err
	}
	return b.espWith(name, program)
}

// espWith makes the image of a FAT file system with the program that a UEFI firmware starts.
func (b builder) espWith(name, program string) (string, error) {
	info, err := os.Stat(program)
	if err != nil {
		return "", fmt.Errorf("make the system partition: %w", err)
	}
	file := filepath.Join(b.work, name+".esp")
	size := (info.Size()/mebibyte + 8) * mebibyte
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		return "", fmt.Errorf("make the system partition: %w", err)
	}
	if err := os.Truncate(file, size); err != nil {
		return "", fmt.Errorf("make the system partition: %w", err)
	}
	for _, step := range [][]string{
		{"mkfs.vfat", "-n", "SYSTEM", "-i", "53574454", file}, // a fixed serial number: the same input makes the same image
		{"mmd", "-i", file, "::/EFI", "::/EFI/BOOT"},
		{"mcopy", "-i", file, program, "::/EFI/BOOT/BOOTX64.EFI"},
	} {
		if err := b.command(step[0], step[1:]...); err != nil {
			return "", err
		}
	}
	return file, nil
}

// program makes the EFI program: systemd's stub, with sections for command line, kernel and initramfs
// behind the stub's own sections.
func (b builder) program(name, commandLine string) (string, error) {
	line := filepath.Join(b.work, name+".cmdline")
	if err := os.WriteFile(line, []byte(commandLine), 0o600); err != nil {
		return "", fmt.Errorf("make the EFI program: %w", err)
	}
	at, err := end(b.stub)
	if err != nil {
		return "", err
	}
	args := []string{}
	for _, section := range []struct{ name, file string }{
		{".cmdline", line}, {".linux", b.kernel}, {".initrd", b.initramfs},
	} {
		info, err := os.Stat(section.file)
		if err != nil {
			return "", fmt.Errorf("make the EFI program: %w", err)
		}
		args = append(args, "--add-section", section.name+"="+section.file,
			"--change-section-vma", fmt.Sprintf("%s=%#x", section.name, at))
		at = align(at + uint64(info.Size()))
	}
	file := filepath.Join(b.work, name+".efi")
	return file, b.command("objcopy", append(args, b.stub, file)...)
}

// end returns the address after the last section of an EFI program.
func end(file string) (uint64, error) {
	f, err := pe.Open(file)
	if err != nil {
		return 0, fmt.Errorf("read the EFI stub: %w; install the package systemd-boot-efi", err)
	}
	defer f.Close()
	header, ok := f.OptionalHeader.(*pe.OptionalHeader64)
	if !ok {
		return 0, fmt.Errorf("read the EFI stub %s: it is not for 64 bits", file)
	}
	last := uint64(0)
	for _, section := range f.Sections {
		last = max(last, uint64(section.VirtualAddress)+uint64(section.VirtualSize))
	}
	return align(header.ImageBase + last), nil
}

func align(address uint64) uint64 { return (address + 0xfff) &^ 0xfff }

func (b builder) command(name string, args ...string) error { return b.commandWith("", name, args...) }

// commandWith runs a program with an input. It also looks for the program in /usr/sbin, which a
// user's PATH may lack.
func (b builder) commandWith(input, name string, args ...string) error {
	path, err := exec.LookPath(name)
	if err != nil {
		if path, err = exec.LookPath("/usr/sbin/" + name); err != nil {
			return fmt.Errorf("%s is missing: run scripts/install-test-deps.sh", name)
		}
	}
	cmd := exec.Command(path, args...)
	cmd.Stdin = strings.NewReader(input)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, output.String())
	}
	return nil
}
