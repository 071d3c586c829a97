package main

import (
	"debug/pe"
	"fmt"
	"os"
)

// writeReset writes an EFI program that only resets the machine, as a broken Windows does again and
// again: a copy of the stub with other instructions at its entry.
func writeReset(stub, file string) error {
	data, err := os.ReadFile(stub)
	if err != nil {
		return fmt.Errorf("read the EFI stub: %w; install the package systemd-boot-efi", err)
	}
	at, err := entry(stub)
	if err != nil {
		return err
	}
	code := resetCode()
	if at < 0 || at+len(code) > len(data) {
		return fmt.Errorf("read the EFI stub %s: its entry is outside of it", stub)
	}
	copy(data[at:], code)
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return fmt.Errorf("write the program that resets: %w", err)
	}
	return nil
}

// resetCode returns x86-64 instructions that call the firmware's ResetSystem for a cold reset.
// rdx has the address of the EFI system table.
func resetCode() []byte {
	return []byte{
		0x48, 0x83, 0xec, 0x28, // sub rsp, 40
		0x48, 0x8b, 0x42, 0x58, // mov rax, [rdx+88]: the runtime services
		0x31, 0xc9, // xor ecx, ecx: EfiResetCold
		0x31, 0xd2, // xor edx, edx: success
		0x45, 0x31, 0xc0, // xor r8d, r8d: no data
		0x45, 0x31, 0xc9, // xor r9d, r9d
		0xff, 0x50, 0x68, // call [rax+104]: ResetSystem
		0xeb, 0xfe, // jmp to itself
	}
}

// entry returns the offset of an EFI program's first instruction in its file.
func entry(file string) (int, error) {
	f, err := pe.Open(file)
	if err != nil {
		return 0, fmt.Errorf("read the EFI stub: %w", err)
	}
	defer f.Close()
	header, ok := f.OptionalHeader.(*pe.OptionalHeader64)
	if !ok {
		return 0, fmt.Errorf("read the EFI stub %s: it is not for 64 bits", file)
	}
	at := header.AddressOfEntryPoint
	for _, section := range f.Sections {
		if at >= section.VirtualAddress && at < section.VirtualAddress+section.Size {
			return int(at - section.VirtualAddress + section.Offset), nil
		}
	}
	return 0, fmt.Errorf("read the EFI stub %s: no section has its entry", file)
}
