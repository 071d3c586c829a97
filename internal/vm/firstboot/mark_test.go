package firstboot_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/vm/firstboot"
)

func TestParseMark(t *testing.T) {
	for _, test := range []struct {
		line string
		want firstboot.Mark
	}{
		{"SWDT stage=sshd begin", firstboot.Mark{Stage: "sshd", State: firstboot.Begun}},
		{"SWDT stage=sshd ok\r\n", firstboot.Mark{Stage: "sshd", State: firstboot.Passed}},
		{"SWDT stage=openssh error msiexec ended with 1603 for openssh.msi\r", firstboot.Mark{
			Stage: "openssh", State: firstboot.Failed, Text: "msiexec ended with 1603 for openssh.msi",
		}},
		{"SWDT stage=power warn powercfg.exe ended with 1: ", firstboot.Mark{
			Stage: "power", State: firstboot.Warned, Text: "powercfg.exe ended with 1:",
		}},
		{"SWDT exit=0", firstboot.Mark{State: firstboot.Exited}},
		{"SWDT exit=1 failed: sshd keys", firstboot.Mark{State: firstboot.Exited, Code: 1, Text: "failed: sshd keys"}},
		{"SWDT exit=2 no drive has the script\n", firstboot.Mark{State: firstboot.Exited, Code: 2,
			Text: "no drive has the script"}},
		{"\x1b[2J\x1b[01;01HBdsDxe: starting Boot0001\x00\xffSWDT stage=keys ok", firstboot.Mark{Stage: "keys",
			State: firstboot.Passed}},
		{"SWDT sSWDT stage=SWDT stage=keys ok", firstboot.Mark{Stage: "keys", State: firstboot.Passed}},
		{"SWDT stage=keys error SWDT exit=0", firstboot.Mark{Stage: "keys", State: firstboot.Failed, Text: "SWDT exit=0"}},
		{"SWDT stage=keys error \x1b]0;title\x07\u202e", firstboot.Mark{Stage: "keys", State: firstboot.Failed,
			Text: "?]0;title????"}},
		{"SWDT stage=keys error " + strings.Repeat("x", 1<<20), firstboot.Mark{
			Stage: "keys", State: firstboot.Failed, Text: strings.Repeat("x", 400),
		}},
	} {
		got, ok := firstboot.ParseMark(test.line)
		if diff := cmp.Diff(test.want, got); diff != "" || !ok {
			t.Errorf("%.80q: %t (-want +got)\n%s", test.line, ok, diff)
		}
	}
	for _, line := range []string{
		"", "SWDT", "SWDT ", "SWDT stage=", "SWDT stage=sshd", "SWDT stage=sshd o", "SWDT stage=sshd okay",
		"SWDT stage=sshd done",
		"SWDT stage=SSHD ok", "SWDT stage=-a ok", "SWDT stage=a b ok", "SWDT stage=" + strings.Repeat("a", 33) + " ok",
		"SWDT exit=", "SWDT exit=-1", "SWDT exit=1000", "SWDT exit=0x", "swdt exit=0", "SWDT  exit=0", "SWDTexit=0",
		strings.Repeat(" ", 5000) + "SWDT exit=0", // beyond what is looked at
	} {
		if got, ok := firstboot.ParseMark(line); ok {
			t.Errorf("%.80q is the mark %+v", line, got)
		}
	}
}

// FuzzParseMark holds what callers rely on, whatever a guest writes.
func FuzzParseMark(f *testing.F) {
	for _, line := range []string{
		"SWDT stage=sshd begin", "SWDT stage=openssh error 1603", "SWDT exit=0", "SWDT exit=1 failed: sshd",
		"\x1b[2JSWDT stage=keys ok\r\n", "SWDT stage=keys error SWDT exit=0", "SWDT SWDT", "\xff\x00",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		m, ok := firstboot.ParseMark(line)
		if !ok {
			if m != (firstboot.Mark{}) {
				t.Errorf("%q is no mark, but %+v", line, m)
			}
			return
		}
		if len(m.Text) > 400 || len(m.Stage) > 32 {
			t.Errorf("%q gives a text of %d and a stage of %d characters", line, len(m.Text), len(m.Stage))
		}
		if strings.ContainsFunc(m.Text+m.Stage, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("%q gives %+v, want printable ASCII", line, m)
		}
		switch m.State {
		case firstboot.Exited:
			if m.Stage != "" {
				t.Errorf("%q gives the stage %q, want none", line, m.Stage)
			}
			if m.Code < 0 || m.Code > 999 {
				t.Errorf("%q gives the exit code %d", line, m.Code)
			}
		case firstboot.Begun, firstboot.Passed, firstboot.Warned, firstboot.Failed:
			if m.Stage == "" || m.Code != 0 {
				t.Errorf("%q gives %+v", line, m)
			}
		default:
			t.Errorf("%q gives the state %q", line, m.State)
		}
	})
}
