package windowstext

import (
	"fmt"
	"strconv"
)

// ExitCode returns a program's exit code for a message. A code that is an NTSTATUS is in hexadecimal digits, with its
// meaning if a blocked or damaged program often ends with it ([MS-ERREF], 2.3.1).
func ExitCode(code int) string {
	status := uint32(code)
	if code == -1 || status < 0x80000000 { // -1: no program's code, or one that means nothing
		return strconv.Itoa(code)
	}
	meaning := map[uint32]string{
		0xC0000005: "access violation",
		0xC0000022: "access denied",
		0xC000007B: "not a program for this machine",
		0xC0000135: "a DLL is missing",
		0xC000013A: "ended by Ctrl-C",
		0xC0000142: "a DLL could not be initialised",
		0xC0000409: "the program has crashed",
		0xC0000906: "an antivirus has found a virus",
		0xC0000907: "an antivirus has deleted the file",
		0xC0E90002: "an application control policy forbids it",
	}[status]
	if meaning == "" {
		return fmt.Sprintf("0x%08X", status)
	}
	return fmt.Sprintf("0x%08X, %s", status, meaning)
}
