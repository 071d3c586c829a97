package windows

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// parameters are the parameters with which a process was started, in its own memory: RTL_USER_PROCESS_PARAMETERS. Addresses
// of another process are integers here, since Go must not treat them as pointers.
type parameters [unsafe.Sizeof(windows.RTL_USER_PROCESS_PARAMETERS{}) / 8]uint64

// Places in parameters, in units of 8 bytes.
const (
	lineAt            = unsafe.Offsetof(windows.RTL_USER_PROCESS_PARAMETERS{}.CommandLine) / 8
	lineTextAt        = lineAt + unsafe.Offsetof(windows.NTUnicodeString{}.Buffer)/8
	environmentAt     = unsafe.Offsetof(windows.RTL_USER_PROCESS_PARAMETERS{}.Environment) / 8
	environmentSizeAt = unsafe.Offsetof(windows.RTL_USER_PROCESS_PARAMETERS{}.EnvironmentSize) / 8
)

// largestEnvironment bounds what is read of another process, in bytes. Windows has no limit since Vista.
const largestEnvironment = 1 << 20

// openMemory opens a process so that its memory can be read.
func openMemory(pid uint32) (windows.Handle, error) {
	return windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION|windows.PROCESS_VM_READ, false, pid)
}

// parametersOf reads the parameters of a process that openMemory has opened.
func parametersOf(process windows.Handle) (params parameters, err error) {
	var (
		basic [unsafe.Sizeof(windows.PROCESS_BASIC_INFORMATION{}) / 8]uint64
		block [unsafe.Sizeof(windows.PEB{}) / 8]uint64
	)
	const (
		blockAt  = unsafe.Offsetof(windows.PROCESS_BASIC_INFORMATION{}.PebBaseAddress) / 8
		paramsAt = unsafe.Offsetof(windows.PEB{}.ProcessParameters) / 8
	)
	err = windows.NtQueryInformationProcess(process, windows.ProcessBasicInformation, unsafe.Pointer(&basic),
		uint32(unsafe.Sizeof(basic)), nil)
	if err == nil {
		err = readMemory(process, basic[blockAt], unsafe.Pointer(&block), unsafe.Sizeof(block))
	}
	if err == nil {
		err = readMemory(process, block[paramsAt], unsafe.Pointer(&params), unsafe.Sizeof(params))
	}
	return params, err
}

// commandLineInMemory reads the command line from the process's own memory,
// where Windows and Wine store it. Under Wine 8 there is no other way to get
// it.
func commandLineInMemory(pid uint32) string {
	process, err := openMemory(pid)
	if err != nil {
		return ""
	}
	defer windows.CloseHandle(process)
	params, err := parametersOf(process)
	if err != nil {
		return ""
	}
	text := make([]uint16, uint16(params[lineAt])/2) // the field before the text's address holds its length in bytes
	if len(text) == 0 || readMemory(process, params[lineTextAt], unsafe.Pointer(&text[0]), 2*uintptr(len(text))) != nil {
		return ""
	}
	return windows.UTF16ToString(text)
}

// Environment reads the block of variables from the process's own memory: Windows has no call for it.
func (processes) Environment(_ context.Context, pid uint32) ([]string, error) {
	what := fmt.Sprintf("read the environment of process %d", pid)
	process, err := openMemory(pid)
	if errors.Is(err, windows.ERROR_INVALID_PARAMETER) {
		return nil, fmt.Errorf("%s: %w", what, fault.ErrNotExist)
	}
	if err != nil {
		return nil, failed(err, "%s", what)
	}
	defer windows.CloseHandle(process)
	params, err := parametersOf(process)
	if err != nil {
		return nil, failed(err, "%s", what)
	}
	text := make([]uint16, min(params[environmentSizeAt], largestEnvironment)/2)
	if len(text) == 0 {
		return nil, nil
	}
	if err := readMemory(process, params[environmentAt], unsafe.Pointer(&text[0]), 2*uintptr(len(text))); err != nil {
		return nil, failed(err, "%s", what)
	}
	return variablesOf(text), nil
}

// variablesOf returns the variables of a block: texts with a NUL at their ends, and another NUL after the last one. Names
// that begin with = are of cmd.exe: they hold the current folder of each drive.
func variablesOf(block []uint16) (all []string) {
	for len(block) > 0 && block[0] != 0 {
		end := 0
		for end < len(block) && block[end] != 0 {
			end++
		}
		if text := windows.UTF16ToString(block[:end]); text[0] != '=' {
			all = append(all, text)
		}
		block = block[min(end+1, len(block)):]
	}
	return all
}

// readMemory copies from an address of another process.
func readMemory(process windows.Handle, from uint64, to unsafe.Pointer, size uintptr) error {
	return windows.ReadProcessMemory(process, uintptr(from), (*byte)(to), size, nil)
}
