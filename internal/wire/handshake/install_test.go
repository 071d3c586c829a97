package handshake_test

import (
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/wire/handshake"
)

const installedMark = "swdt-agent install: "

func TestFindInstalled(t *testing.T) {
	const line = installedMark + `{"path":"C:\\a.exe"}` + "\r\n"
	for name, test := range map[string]struct {
		output string
		want   handshake.Installed
		absent bool
	}{
		"alone":           {output: line, want: handshake.Installed{Path: `C:\a.exe`}},
		"behind a prompt": {output: `PS C:\> ` + line, want: handshake.Installed{Path: `C:\a.exe`}},
		"behind a line of 100 KB": {output: strings.Repeat("x", 100_000) + "\n" + line,
			want: handshake.Installed{Path: `C:\a.exe`}},
		"behind its mark": {output: installedMark + line, want: handshake.Installed{Path: `C:\a.exe`}},
		"behind a line that is cut": {output: installedMark + `{"kept":true,"movedAside":"C:\\b"` + "\n" + line,
			want: handshake.Installed{Path: `C:\a.exe`}},
		"behind one without a path": {output: installedMark + `{"kept":true}` + "\n" + line,
			want: handshake.Installed{Path: `C:\a.exe`}},
		"failed": {output: installedMark + `{"failure":"diskFull","message":"x"}`,
			want: handshake.Installed{Failure: handshake.DiskFull, Message: "x"}},
		"a failure that no agent writes": {output: installedMark + `{"path":"C:\\a.exe","failure":"x"}`, absent: true},
		"cut":                            {output: line[:len(line)-4], absent: true},
		"no JSON":                        {output: installedMark + "null\n", absent: true},
		"nothing":                        {absent: true},
	} {
		switch got, ok := handshake.FindInstalled(test.output); {
		case ok == test.absent:
			t.Errorf("%s: ok is %v, want anything but %v", name, ok, test.absent)
		case got != test.want:
			t.Errorf("%s: got is %v, want %v", name, got, test.want)
		}
	}
}

// FuzzFindInstalled reads an agent's line among arbitrary output of a node: it finds the line as it was written, and
// accepts no line that has neither the agent's path nor a failure.
func FuzzFindInstalled(f *testing.F) {
	f.Add("banner\r\nPS C:\\> ", `C:\ProgramData\swdt\agent\x\swdt-agent.exe`, "", uint8(0), true, "\r\n")
	f.Add(installedMark, "", "two\nlines", uint8(2), false, "")
	f.Add(installedMark+`{"kept":true}`+"\n", "x", "", uint8(0), false, installedMark)
	f.Add(installedMark+`{"path":"`, `"}`, "\u2028<", uint8(4), false, "{")
	failures := []handshake.FailureKind{"", handshake.NotAllowed, handshake.DiskFull,
		handshake.Foreign, handshake.Failed}
	f.Fuzz(func(t *testing.T, before, path, message string, failure uint8, kept bool, after string) {
		checkFound(t, before+after)
		want := handshake.Installed{
			Path: strings.ToValidUTF8(path, "?"), Message: strings.ToValidUTF8(message, "?"), Kept: kept,
			MovedAside: strings.ToValidUTF8(message, "?"),
			Failure:    failures[int(failure)%len(failures)],
		}
		if want.Path == "" && want.Failure == "" {
			return
		}
		var printed strings.Builder
		if err := handshake.PrintInstalled(&printed, want); err != nil {
			t.Fatal(err)
		}
		if strings.Count(printed.String(), "\n") != 1 {
			t.Fatalf("not one line: %q", printed.String())
		}
		_, earlier := handshake.FindInstalled(before)
		if got, ok := handshake.FindInstalled(before + printed.String() + after); !earlier && (!ok || got != want) {
			t.Errorf("printed %q behind %q: got %+v, %v", printed.String(), before, got, ok)
		}
	})
}

func checkFound(t *testing.T, output string) {
	t.Helper()
	got, ok := handshake.FindInstalled(output)
	switch {
	case !ok && got != (handshake.Installed{}):
		t.Errorf("nothing was found in %q, and yet it says %+v", output, got)
	case ok && !strings.Contains(output, installedMark):
		t.Errorf("%q has no line of an agent, and yet: %+v", output, got)
	case ok && got.Path == "" && got.Failure == "":
		t.Errorf("%q says neither where nor why not: %+v", output, got)
	}
}
