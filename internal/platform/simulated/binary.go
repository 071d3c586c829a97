package simulated

import (
	"bytes"
	"debug/pe"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Fault is a defect of a program. The lab's service program understands the
// same words.
type Fault string

const (
	NoFault      Fault = ""
	CrashAtStart Fault = "crash-at-start" // ends before it has reported to the SCM
	CrashStarted Fault = "crash-starting" // ends while start pending
	HangOnStop   Fault = "hang-on-stop"   // stays stop pending until it is killed
	// HangInHandler is the fault of a program whose handler does not return: the SCM waits for it, and its state does not
	// change. The lab's program does not know this fault.
	HangInHandler Fault = "hang-in-handler"
	Unhealthy     Fault = "unhealthy"     // runs, but healthz and the pipe report failures
	HangAtStart   Fault = "hang-at-start" // never reports to the SCM
)

// ExitAfter returns the fault of a program that crashes after it has run for d. SlowStart returns
// the fault of a program that is start pending for d.
func ExitAfter(d time.Duration) Fault { return Fault("exit-after=" + d.String()) }
func SlowStart(d time.Duration) Fault { return Fault("slow-start=" + d.String()) }

// duration returns the value of a fault such as exit-after=2s.
func (f Fault) duration(name string) (time.Duration, bool) {
	value, ok := strings.CutPrefix(string(f), name+"=")
	if !ok {
		return 0, false
	}
	d, err := time.ParseDuration(value)
	return d, err == nil
}

// BinarySpec describes a synthetic executable.
type BinarySpec struct {
	Name    string `json:"name,omitempty"`    // kubelet, containerd, …; the name determines how the program behaves
	Version string `json:"version,omitempty"` // v1.29.0
	Fault   Fault  `json:"fault,omitempty"`
	Machine string `json:"-"` // architecture as GOARCH: amd64 (default), 386, arm64
	Size    int    `json:"-"` // minimum size in bytes; the rest is filled
	// Seed distinguishes executables that are otherwise equal.
	Seed int `json:"seed,omitempty"`
}

const (
	noteOffset = 0x400 // start of the only section
	noteLimit  = 4096
	noteMagic  = "SWDT-SIMULATED-PROGRAM\n"
)

var machines = map[string]uint16{
	"amd64": pe.IMAGE_FILE_MACHINE_AMD64,
	"386":   pe.IMAGE_FILE_MACHINE_I386,
	"arm64": pe.IMAGE_FILE_MACHINE_ARM64,
}

// Binary returns a small, valid PE executable that carries `spec` in its only section.
func Binary(spec BinarySpec) []byte {
	if spec.Machine == "" {
		spec.Machine = "amd64"
	}
	note, err := json.Marshal(spec)
	if err != nil {
		panic(fmt.Sprintf("describe a binary: %v", err)) // a BinarySpec can always be encoded
	}
	body := append([]byte(noteMagic), note...)
	body = append(body, 0)
	const alignment = 512
	size := max(noteOffset+len(body), spec.Size)
	size = (size + alignment - 1) / alignment * alignment
	out := make([]byte, size)
	copy(out, header(machines[spec.Machine], uint32(size-noteOffset)))
	copy(out[noteOffset:], body)
	fill(out[noteOffset+len(body):], uint64(spec.Seed))
	return out
}

// fill writes random bytes into half of b and leaves the other half unchanged. If b was zero
// before, it then compresses as badly as machine code.
func fill(b []byte, seed uint64) {
	x := seed*0x9E3779B97F4A7C15 + 0x2545F4914F6CDD1D
	for i := 0; i+16 <= len(b); i += 16 {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		binary.LittleEndian.PutUint64(b[i:], x)
	}
}

func header(machine uint16, section uint32) []byte {
	var b bytes.Buffer
	dos := make([]byte, 0x80)
	copy(dos, "MZ")
	binary.LittleEndian.PutUint32(dos[0x3c:], 0x80)
	b.Write(dos)
	b.WriteString("PE\x00\x00")
	write := func(v any) { _ = binary.Write(&b, binary.LittleEndian, v) }
	characteristics := uint16(pe.IMAGE_FILE_EXECUTABLE_IMAGE | pe.IMAGE_FILE_LARGE_ADDRESS_AWARE)
	wide := machine != pe.IMAGE_FILE_MACHINE_I386
	optional := binary.Size(pe.OptionalHeader32{})
	if wide {
		optional = binary.Size(pe.OptionalHeader64{})
	} else {
		characteristics |= pe.IMAGE_FILE_32BIT_MACHINE
	}
	write(pe.FileHeader{
		Machine: machine, NumberOfSections: 1,
		SizeOfOptionalHeader: uint16(optional), Characteristics: characteristics,
	})
	pages := (section + 0xfff) &^ 0xfff
	if wide {
		write(pe.OptionalHeader64{
			Magic: 0x20b, AddressOfEntryPoint: 0x1000, BaseOfCode: 0x1000, ImageBase: 0x400000,
			SectionAlignment: 0x1000, FileAlignment: 0x200, MajorSubsystemVersion: 6,
			SizeOfCode: section, SizeOfImage: 0x1000 + pages, SizeOfHeaders: noteOffset,
			Subsystem: pe.IMAGE_SUBSYSTEM_WINDOWS_CUI, NumberOfRvaAndSizes: 16,
		})
	} else {
		write(pe.OptionalHeader32{
			Magic: 0x10b, AddressOfEntryPoint: 0x1000, BaseOfCode: 0x1000, ImageBase: 0x400000,
			SectionAlignment: 0x1000, FileAlignment: 0x200, MajorSubsystemVersion: 6,
			SizeOfCode: section, SizeOfImage: 0x1000 + pages, SizeOfHeaders: noteOffset,
			Subsystem: pe.IMAGE_SUBSYSTEM_WINDOWS_CUI, NumberOfRvaAndSizes: 16,
		})
	}
	text := pe.SectionHeader32{
		VirtualSize: section, VirtualAddress: 0x1000, SizeOfRawData: section, PointerToRawData: noteOffset,
		Characteristics: pe.IMAGE_SCN_CNT_CODE | pe.IMAGE_SCN_MEM_EXECUTE | pe.IMAGE_SCN_MEM_READ,
	}
	copy(text.Name[:], ".text")
	write(text)
	return b.Bytes()
}
