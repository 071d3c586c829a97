package remedy_test

import (
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/swdt-dev/swdt/internal/ui/remedy"
)

func TestRewriteFindsWhatCommandWrote(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		args := rapid.SliceOf(rapid.OneOf(rapid.String(), rapid.StringMatching("[a-z'\"`$\\\\ |;&<>\n]{0,8}"))).Draw(t,
			"args")
		text := "see why: " + remedy.Command(args...) + "; then go on"
		found := remedy.Commands(text)
		if len(found) != 1 || !slices.Equal(found[0], append([]string{"swdt"}, args...)) {
			t.Fatalf("%q was read from %s", found, text)
		}
	})
}

// A name that a node reported must not become a command when it is pasted into a shell.
func TestAShellReadsWhatWasQuoted(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no bash")
	}
	args := []string{
		"", "plain", "two words", "it's", `C:\Program Files\x`, "$(touch /tmp/owned)", "`touch /tmp/owned`",
		"a;b", "a\nb", "\x1b[2J",
		"*", "~", "#", "!x", `"`, "\\", "a|b", "ä", "{a,b}", "[x]", "=x", "\xff", "-n",
	}
	out, err := exec.Command("bash", "-c", `printf '%s\0' `+remedy.POSIX.Join(args)).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"); !slices.Equal(got, args) {
		t.Errorf("bash read\n%q, want\n%q", got, args)
	}
}

func TestQuoteForWindows(t *testing.T) {
	for arg, want := range map[string]string{
		`C:\k\kubelet.exe`: `C:\k\kubelet.exe`,
		`C:\Program Files`: `"C:\Program Files"`,
		"":                 `""`,
		"$env:X":           "'$env:X'",
		"it's":             `"it's"`,
		`a"'b`:             `'a"''b'`,
		"a,b":              `"a,b"`,
		// PowerShell's tokenizer (CharTraits.cs) takes typographic quotes for the plain ones.
		"a”b":   "'a”b'",
		"a’“b":  "'a’’“b'",
		"a’ $b": "'a’’ $b'",
	} {
		if got := remedy.Windows.Quote(arg); got != want {
			t.Errorf("%q is quoted as %s, want %s", arg, got, want)
		}
	}
}

func TestRewriteKeepsTheRest(t *testing.T) {
	upper := func(args []string) string { return strings.ToUpper(strings.Join(args, "_")) }
	for text, want := range map[string]string{
		"no command":                              "no command",
		"`swdt`":                                  "`SWDT`",
		"use `swdt config init > a.yaml` now":     "use `SWDT_CONFIG_INIT > a.yaml` now",
		"`swdt a` and `swdt b`":                   "`SWDT_A` and `SWDT_B`",
		"`swdtx a`, `kubectls get`, swdt a":       "`swdtx a`, `kubectls get`, swdt a",
		"`kubectl get pods -A | wc -l`":           "`KUBECTL_GET_PODS_-A | wc -l`",
		"`swdt exec -- cmd /c del \"C:\\a b\"`":   "`SWDT_EXEC_--_CMD_/C_DEL_C:\\A B`",
		"`swdt exec 'not closed`":                 "`swdt exec 'not closed`",
		"`swdt capture -w - | wireshark -k -i -`": "`SWDT_CAPTURE_-W_- | wireshark -k -i -`",
	} {
		if got := remedy.Rewrite(text, upper); got != want {
			t.Errorf("%s became %s, want %s", text, got, want)
		}
	}
}
