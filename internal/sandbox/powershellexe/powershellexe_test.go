package powershellexe_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/format/powershell"
	"github.com/swdt-dev/swdt/internal/node/viapod/receiver"
	"github.com/swdt-dev/swdt/internal/sandbox/powershellexe"
)

// Main runs the scripts that it knows and refuses every other one.
func TestScriptsOfTheStandIn(t *testing.T) {
	user, _ := powershell.Args("Write-Output 'ä'; exit 7")
	for name, test := range map[string]struct {
		script func(path string) []string
		stdin  string
		code   int
		stdout string // a part of it
	}{
		"the agent": {func(path string) []string { return powershell.ShortArgs(receiver.Script(path, 4)) }, "swdt", 0,
			fmt.Sprintf("%X\r\n", sha256.Sum256([]byte("swdt")))},
		"a part of the agent": {func(path string) []string { return powershell.ShortArgs(receiver.Script(path, 5)) }, "swdt",
			receiver.EndedEarly, ""},
		"a user's script": {func(string) []string { return user }, "stdin", 7, "Write-Output ''ä''"},
		"another script":  {func(string) []string { return powershell.ShortArgs("Get-Process") }, "", 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			path := filepath.Join(t.TempDir(), "agent")
			code := powershellexe.Main(test.script(path), powershellexe.Streams{In: strings.NewReader(test.stdin), Out: &stdout,
				Err: &stderr})
			if code != test.code || !strings.Contains(stdout.String(), test.stdout) {
				t.Errorf("exit code %d, want %d: %q, %s", code, test.code, stdout.String(), &stderr)
			}
			if got, err := os.ReadFile(path); name == "the agent" && string(got) != test.stdin {
				t.Errorf("received %q, %v", got, err)
			}
		})
	}
}
