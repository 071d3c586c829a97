package windowstext_test

import (
	"testing"

	"github.com/swdt-dev/swdt/internal/format/windowstext"
)

func TestExitCodesOfWindows(t *testing.T) {
	for code, want := range map[int]string{
		0: "0", 1: "1", 127: "127", 1060: "1060", -1: "-1",
		0xC0000135:         "0xC0000135, a DLL is missing",
		0xC0000005 - 1<<32: "0xC0000005, access violation", // as a signed 32-bit number
		0x80070005:         "0x80070005",
		0xC0000906:         "0xC0000906, an antivirus has found a virus",
	} {
		if got := windowstext.ExitCode(code); got != want {
			t.Errorf("%d: %q, want %q", code, got, want)
		}
	}
}
