package accel

import "encoding/binary"

// imageSize is the size of the probe's firmware in bytes. The CPU starts 16 bytes before the end of
// the firmware.
const imageSize = 64 << 10

// base is the address below 1 MB at which QEMU mirrors the image.
const base = 0xf0000

// Selectors of the descriptors in gdt.
const (
	code32 = 0x08
	data32 = 0x10
	code64 = 0x18
)

// proof is the byte that the 64-bit code writes. The code moves it through the upper half of a
// 64-bit register, so no other mode can produce this byte.
const proof = 0x15

// debugExit is the port of QEMU's isa-debug-exit. After a byte is written to this port, QEMU exits
// with the status 2·byte+1.
const (
	debugExit  = 0xf4
	proofExits = 2*proof + 1
)

// image returns a flat firmware that takes the CPU from real mode through protected mode
// and paging to long mode, writes proof to debugExit, and halts. On the way it does what
// UEFI does: it identifies the CPU, initialises the FPU, and uses SSE and a stack.
//
// Two kinds of broken KVM were seen. One executes a whole BIOS in real and protected mode
// and hangs in long mode. The other emulates all modes except long mode: it would reach long
// mode, but already stops at the first FPU instruction, which comes earlier.
func image() []byte {
	rom := make([]byte, imageSize)
	const gdt, gdtr, real, protected, long = 0x100, 0x140, 0x200, 0x300, 0x400

	// Descriptors are marked as accessed already, since the CPU cannot write to a ROM.
	for i, descriptor := range []uint64{0, 0x00cf9b000000ffff, 0x00cf93000000ffff, 0x00af9b000000ffff} {
		binary.LittleEndian.PutUint64(rom[gdt+8*i:], descriptor)
	}
	binary.LittleEndian.PutUint16(rom[gdtr:], 4*8-1)
	binary.LittleEndian.PutUint32(rom[gdtr+2:], base+gdt)

	put := func(at int, instructions ...[]byte) {
		for _, i := range instructions {
			at += copy(rom[at:], i)
		}
	}
	// The reset vector jumps to the mirror, which a 16-bit segment reaches.
	put(imageSize-16, []byte{0xea, real & 0xff, real >> 8, 0x00, 0xf0}) // jmp f000:real
	put(real,
		[]byte{0xfa}, // cli
		[]byte{0x2e, 0x66, 0x0f, 0x01, 0x16, gdtr & 0xff, gdtr >> 8}, // lgdt cs:[gdtr]
		[]byte{0x0f, 0x20, 0xc0},                                     // mov eax, cr0
		[]byte{0x66, 0x83, 0xc8, 0x01},                               // or eax, 1 (protected mode)
		[]byte{0x0f, 0x22, 0xc0},                                     // mov cr0, eax
		append([]byte{0x66}, farJump(code32, base+protected)...),
	)
	// The page tables, at 0x1000, 0x2000 and 0x3000, map the first 2 MB onto themselves.
	put(protected,
		[]byte{0x66, 0xb8, data32, 0x00},  // mov ax, data32
		[]byte{0x8e, 0xd8},                // mov ds, ax
		[]byte{0x9b, 0xdb, 0xe3},          // finit
		store(0x4000, 0x037f),             // the value that UEFI gives the FPU's control word
		[]byte{0xd9, 0x2d, 0, 0x40, 0, 0}, // fldcw [0x4000]
		[]byte{0xb8, 1, 0, 0, 0},          // mov eax, 1
		[]byte{0x0f, 0xa2},                // cpuid
		store(0x1000, 0x2000|0x03),        // level 4: present, writable
		store(0x2000, 0x3000|0x03),        // level 3
		store(0x3000, 0x83),               // level 2: one page of 2 MB
		[]byte{0xb8, 0x20, 0x06, 0, 0},    // mov eax, 0x620
		[]byte{0x0f, 0x22, 0xe0},          // mov cr4, eax (physical address extension, SSE)
		[]byte{0xb8, 0x00, 0x10, 0, 0},    // mov eax, 0x1000
		[]byte{0x0f, 0x22, 0xd8},          // mov cr3, eax
		[]byte{0xb9, 0x80, 0, 0, 0xc0},    // mov ecx, 0xc0000080 (EFER)
		[]byte{0x0f, 0x32},                // rdmsr
		[]byte{0x0d, 0x00, 0x01, 0, 0},    // or eax, 0x100 (long mode)
		[]byte{0x0f, 0x30},                // wrmsr
		[]byte{0x0f, 0x20, 0xc0},          // mov eax, cr0
		[]byte{0x0d, 0, 0, 0, 0x80},       // or eax, 0x80000000 (paging)
		[]byte{0x0f, 0x22, 0xc0},          // mov cr0, eax
		farJump(code64, base+long),
	)
	put(long,
		[]byte{0xbc, 0, 0x80, 0, 0},                   // mov esp, 0x8000
		[]byte{0x9b, 0xdb, 0xe3},                      // finit
		[]byte{0x66, 0x0f, 0xef, 0xc0},                // pxor xmm0, xmm0
		[]byte{0x0f, 0xae, 0x04, 0x25, 0, 0x50, 0, 0}, // fxsave [0x5000]
		[]byte{0xb8, proof, 0, 0, 0},                  // mov eax, proof
		[]byte{0x48, 0xc1, 0xe0, 0x20},                // shl rax, 32
		[]byte{0x50, 0x59},                            // push rax; pop rcx
		[]byte{0x48, 0xc1, 0xe9, 0x20},                // shr rcx, 32
		[]byte{0x89, 0xc8},                            // mov eax, ecx
		[]byte{0x66, 0xba, debugExit, 0x00},           // mov dx, debugExit
		[]byte{0xee, 0xf4, 0xeb, 0xfd, 0x90},          // out dx, al; hlt; jmp to the hlt
	)
	return rom
}

// farJump returns a jump to a 32-bit offset in a segment.
func farJump(segment uint16, offset uint32) []byte {
	i := binary.LittleEndian.AppendUint32([]byte{0xea}, offset)
	return binary.LittleEndian.AppendUint16(i, segment)
}

// store returns a write of a 32-bit value to an address.
func store(address, value uint32) []byte {
	i := binary.LittleEndian.AppendUint32([]byte{0xc7, 0x05}, address)
	return binary.LittleEndian.AppendUint32(i, value)
}
