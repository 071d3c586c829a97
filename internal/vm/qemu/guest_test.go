package qemu_test

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// guestUp is the line that the guest of these tests writes to its serial port.
const guestUp = "SWDT guest is up\n"

// guestDisk returns a qcow2 image with a UEFI program that acts as the guest: it reports
// on the serial port that it runs, waits for the power button, and powers off.
func guestDisk(t *testing.T) string { return bootDisk(t, guestProgram()) }

// floodDisk returns a qcow2 image with a hostile guest, which writes to its serial port without
// end.
func floodDisk(t *testing.T) string {
	return bootDisk(t, efi([]byte{
		0x66, 0xba, com1 & 0xff, com1 >> 8, // mov dx, com1
		0xb0, 'x', // mov al, 'x'
		0xee, 0xeb, 0xfd, // next: out dx, al; jmp next
	}))
}

// com1 is the address of the first serial port.
const com1 = 0x3f8

// bootDisk returns a qcow2 image with a UEFI program.
func bootDisk(t *testing.T, program []byte) string {
	t.Helper()
	folder := t.TempDir()
	raw, image := filepath.Join(folder, "guest.raw"), filepath.Join(folder, "guest.qcow2")
	if err := os.WriteFile(raw, floppy(program), 0o600); err != nil {
		t.Fatal(err)
	}
	tool(t, "qemu-img", "convert", "-f", "raw", "-O", "qcow2", raw, image)
	return image
}

// tool runs a program to its end.
func tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v: %s", name, args, err, out)
	}
	return string(out)
}

// guestProgram is the program of guestDisk.
func guestProgram() []byte {
	const (
		status, enable = 0x600, 0x602 // q35's power management ports, as OVMF places them
		control        = 0x604
	)
	var code []byte
	emit := func(bytes ...byte) { code = append(code, bytes...) }
	emit(0x48, 0x8d, 0x35, 0, 0, 0, 0)                   // lea rsi, [message]
	emit(0xb9, byte(len(guestUp)), 0, 0, 0)              // mov ecx, len
	emit(0x66, 0xba, com1&0xff, com1>>8)                 // mov dx, com1
	emit(0xac, 0xee, 0xe2, 0xfc)                         // next: lodsb; out dx, al; loop next
	emit(0x66, 0xba, enable&0xff, enable>>8)             // mov dx, enable
	emit(0x66, 0xb8, 0x00, 0x01, 0x66, 0xef)             // mov ax, the power button; out dx, ax
	emit(0x66, 0xba, status&0xff, status>>8)             // mov dx, status
	emit(0xf4)                                           // wait: hlt, until the firmware's timer
	emit(0x66, 0xed, 0xf6, 0xc4, 0x01, 0x74, 0xf8)       // in ax, dx; test ah, 1; jz wait
	emit(0x66, 0xba, control&0xff, control>>8)           // mov dx, control
	emit(0x66, 0xb8, 0x00, 0x20, 0x66, 0xef, 0xeb, 0xfe) // mov ax, sleep; out dx, ax; loop for ever
	binary.LittleEndian.PutUint32(code[3:], uint32(len(code)-7))
	emit([]byte(guestUp)...)
	return efi(code)
}

// efi returns a UEFI application, a PE32+ file with one section of code.
func efi(code []byte) []byte {
	const headers, alignment = 0x200, 0x1000
	file := make([]byte, headers+512)
	le := binary.LittleEndian
	copy(file, "MZ")
	le.PutUint32(file[0x3c:], 0x40)
	pe := file[0x40:]
	copy(pe, "PE\x00\x00")
	le.PutUint16(pe[4:], 0x8664)  // x86-64
	le.PutUint16(pe[6:], 1)       // sections
	le.PutUint16(pe[20:], 0xf0)   // size of the optional header
	le.PutUint16(pe[22:], 0x0022) // executable, large addresses
	optional := pe[24:]
	le.PutUint16(optional[0:], 0x20b) // PE32+
	le.PutUint32(optional[4:], 512)   // code
	le.PutUint32(optional[16:], alignment)
	le.PutUint32(optional[20:], alignment)
	le.PutUint32(optional[32:], alignment)
	le.PutUint32(optional[36:], 512)
	le.PutUint32(optional[56:], 2*alignment) // image
	le.PutUint32(optional[60:], headers)
	le.PutUint16(optional[68:], 10) // EFI application
	le.PutUint32(optional[108:], 16)
	section := optional[0xf0:]
	copy(section, ".text")
	le.PutUint32(section[8:], 512)
	le.PutUint32(section[12:], alignment)
	le.PutUint32(section[16:], 512)
	le.PutUint32(section[20:], headers)
	le.PutUint32(section[36:], 0x60000020) // code, executable, readable
	copy(file[headers:], code)
	return file
}

// floppy returns a FAT12 file system of 1.44 MB with \EFI\BOOT\BOOTX64.EFI.
func floppy(program []byte) []byte {
	const sector, fat, root, data, sectors = 512, 1, 19, 33, 2880
	disk := make([]byte, sectors*sector)
	le := binary.LittleEndian
	copy(disk, []byte{0xeb, 0x3c, 0x90})
	copy(disk[3:], "MSDOS5.0")
	le.PutUint16(disk[11:], sector)
	disk[13], disk[16], disk[21] = 1, 2, 0xf0 // sectors a cluster, tables, medium
	le.PutUint16(disk[14:], 1)                // sectors before the tables
	le.PutUint16(disk[17:], 224)              // entries of the root folder
	le.PutUint16(disk[19:], sectors)
	le.PutUint16(disk[22:], 9) // sectors a table
	le.PutUint16(disk[24:], 18)
	le.PutUint16(disk[26:], 2)
	disk[38] = 0x29
	copy(disk[43:], "SWDT       FAT12   ")
	disk[510], disk[511] = 0x55, 0xaa

	link := func(cluster, next uint16) {
		for _, table := range []int{fat, fat + 9} {
			at := disk[table*sector+int(cluster)*3/2:]
			if cluster%2 == 0 {
				at[0], at[1] = byte(next), at[1]&0xf0|byte(next>>8)
			} else {
				at[0], at[1] = at[0]&0x0f|byte(next<<4), byte(next>>4)
			}
		}
	}
	entry := func(at int, name string, attribute byte, cluster uint16, size int) {
		e := disk[at:]
		copy(e, name)
		e[11] = attribute
		le.PutUint16(e[26:], cluster)
		le.PutUint32(e[28:], uint32(size))
	}
	at := func(cluster int) int { return (data + cluster - 2) * sector }
	const folder, end = 0x10, 0xfff
	link(0, 0xff0)
	link(1, end)
	link(2, end)
	link(3, end)
	entry(root*sector, "EFI        ", folder, 2, 0)
	entry(at(2), ".          ", folder, 2, 0)
	entry(at(2)+32, "..         ", folder, 0, 0)
	entry(at(2)+64, "BOOT       ", folder, 3, 0)
	entry(at(3), ".          ", folder, 3, 0)
	entry(at(3)+32, "..         ", folder, 2, 0)
	entry(at(3)+64, "BOOTX64 EFI", 0x20, 4, len(program))
	clusters := (len(program) + sector - 1) / sector
	for i := range clusters {
		link(uint16(4+i), uint16(4+i+1))
	}
	link(uint16(4+clusters-1), end)
	copy(disk[at(4):], program)
	return disk
}
