package delta_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/swdt-dev/swdt/internal/wire/delta"
)

// executables returns two small PE files. The second has more code, so every
// call and every address behind it differs.
func executables() (old, new []byte) {
	return executable(40, 0), executable(40, 64)
}

const (
	textAddress = 0x1000
	textOffset  = 0x200
	sectionRoom = 0x4000
	dataAddress = textAddress + sectionRoom
)

// executable makes a PE file with functions that call each other and read data,
// and with a table of their addresses. Extra bytes of code precede the tenth
// function.
func executable(functions, extra int) []byte {
	le := binary.LittleEndian
	file := make([]byte, textOffset+2*sectionRoom)
	copy(file, "MZ")
	le.PutUint32(file[0x3c:], 0x40)
	copy(file[0x40:], "PE\x00\x00")
	le.PutUint16(file[0x44:], 0x8664) // AMD64
	le.PutUint16(file[0x46:], 2)      // sections
	for i, name := range []string{".text", ".data"} {
		header := file[0x58+40*i:]
		copy(header, name)
		le.PutUint32(header[8:], sectionRoom)
		le.PutUint32(header[12:], uint32(textAddress+i*sectionRoom))
		le.PutUint32(header[16:], sectionRoom)
		le.PutUint32(header[20:], uint32(textOffset+i*sectionRoom))
		flags := uint32(0x40000040)
		if name == ".text" {
			flags = 0x60000020
		}
		le.PutUint32(header[36:], flags)
	}
	address := func(function int) int {
		at := textAddress + function*256
		if function >= 10 {
			at += extra
		}
		return at
	}
	for i := range functions {
		at := address(i)
		code := file[textOffset+at-textAddress:][:256]
		copy(code, noise(uint64(i), 256))
		for k := 8; k+16 < 256; k += 24 {
			end := at + k + 5
			code[k] = 0xe8 // call
			le.PutUint32(code[k+1:], uint32(address((i*7+k)%functions)-end))
			copy(code[k+5:], []byte{0x48, 0x8d, 0x05}) // lea rax, [rip+…]
			le.PutUint32(code[k+8:], uint32(dataAddress+extra+8*i-(at+k+12)))
		}
		le.PutUint32(file[textOffset+sectionRoom+extra+4*i:], uint32(at))
	}
	return file
}

func TestAddressesArePredicted(t *testing.T) {
	old, new := executables()
	fast := len(diff(t, old, new, delta.Fast))
	small := len(diff(t, old, new, delta.Small))
	roundTrip(t, old, new, delta.Options{Variant: delta.Small})
	if small >= fast*2/3 || small > 700 {
		t.Errorf("the patch has %d bytes where addresses are predicted, and else %d", small, fast)
	}
}

func TestDamagedExecutablesAreFiles(t *testing.T) {
	old, new := executables()
	for at := 0x3c; at < 0xa8; at++ {
		damaged := bytes.Clone(new)
		damaged[at] ^= 0xff
		roundTrip(t, old, damaged, delta.Options{Variant: delta.Small, Workers: 1})
		if at%8 == 0 {
			roundTrip(t, damaged, new, delta.Options{Variant: delta.Small, Workers: 1})
		}
	}
}
