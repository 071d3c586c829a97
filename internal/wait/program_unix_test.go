//go:build unix

package wait_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/swdt-dev/swdt/internal/wait"
)

// A program that leaves a process with its output succeeds or fails by its own exit code.
func TestProgramLeavesAProcessWithItsOutput(t *testing.T) {
	for exitCode, script := range map[int]string{0: "cat <&3 & exit 0", 3: "cat <&3 & exit 3"} {
		held, release, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer held.Close()
		defer release.Close() // ends cat
		cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
		cmd.ExtraFiles, cmd.Stdout, cmd.WaitDelay = []*os.File{held}, &bytes.Buffer{}, 1
		err = wait.Program(cmd)
		var exit *exec.ExitError
		switch {
		case exitCode == 0 && err != nil:
			t.Errorf("a program that succeeds: %v", err)
		case exitCode != 0 && (!errors.As(err, &exit) || exit.ExitCode() != exitCode):
			t.Errorf("a program that fails with %d: %v", exitCode, err)
		}
	}
}
