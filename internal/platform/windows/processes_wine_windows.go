package windows

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

// commandLineInMemory reads the command line from the process's own memory,
// where Windows and Wine store it. Under Wine 8 there is no other way to get
// it.
func commandLineInMemory(pid uint32) string {
	process, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION|windows.PROCESS_VM_READ, false, pid)
	if err != nil {
		return ""
	}
	defer windows.CloseHandle(process)
	// Addresses of another process are integers here, since Go must not treat
	// them as pointers.
	var (
		basic  [unsafe.Sizeof(windows.PROCESS_BASIC_INFORMATION{}) / 8]uint64
		block  [unsafe.Sizeof(windows.PEB{}) / 8]uint64
		params [unsafe.Sizeof(windows.RTL_USER_PROCESS_PARAMETERS{}) / 8]uint64
	)
	const (
		blockAt  = unsafe.Offsetof(windows.PROCESS_BASIC_INFORMATION{}.PebBaseAddress) / 8
		paramsAt = unsafe.Offsetof(windows.PEB{}.ProcessParameters) / 8
		lineAt   = unsafe.Offsetof(windows.RTL_USER_PROCESS_PARAMETERS{}.CommandLine) / 8
		textAt   = lineAt + unsafe.Offsetof(windows.NTUnicodeString{}.Buffer)/8
	)
	err = windows.NtQueryInformationProcess(process, windows.ProcessBasicInformation, unsafe.Pointer(&basic),
		uint32(unsafe.Sizeof(basic)), nil)
	if err != nil || !readMemory(process, basic[blockAt], unsafe.Pointer(&block), unsafe.Sizeof(block)) ||
		!readMemory(process, block[paramsAt], unsafe.Pointer(&params), unsafe.Sizeof(params)) {
		return ""
	}
	text := make([]uint16, uint16(params[lineAt])/2) // the field before the text's address holds its length in bytes
	if len(text) == 0 || !readMemory(process, params[textAt], unsafe.Pointer(&text[0]), 2*uintptr(len(text))) {
		return ""
	}
	return windows.UTF16ToString(text)
}

// readMemory copies from an address of another process.
func readMemory(process windows.Handle, from uint64, to unsafe.Pointer, size uintptr) bool {
	return windows.ReadProcessMemory(process, uintptr(from), (*byte)(to), size, nil) == nil
}
