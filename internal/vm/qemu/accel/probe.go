package accel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/swdt-dev/swdt/internal/format/bounded"
	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/wait"
)

// Try runs the firmware with an accelerator and a CPU model. It returns the reason why the
// firmware did not work, or "". An error means that the probe itself failed.
func (p Prober) Try(ctx context.Context, accelerator, cpu string) (string, error) {
	scratch, err := localfile.Scratch()
	if err != nil {
		return "", fmt.Errorf("probe %s: %w", accelerator, err)
	}
	defer scratch.Remove()
	bios := filepath.Join(scratch.Path, "probe.bin")
	if err := os.WriteFile(bios, image(), localfile.Private); err != nil {
		return "", fmt.Errorf("probe %s: %w", accelerator, err)
	}
	limited, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	cmd := exec.CommandContext(limited, p.Program, "-nodefaults", "-no-user-config", "-machine", "q35", "-m", "16",
		"-accel", accelerator, "-cpu", cpu, "-display", "none", "-no-reboot", "-bios", bios,
		"-device", fmt.Sprintf("isa-debug-exit,iobase=%#x,iosize=0x4", debugExit))
	cmd.WaitDelay = probeLimit
	output := bounded.Tail{Most: maxTail}
	cmd.Stdout, cmd.Stderr = &output, &output
	err = wait.Program(cmd)
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("probe %s: %w", accelerator, context.Cause(ctx))
	case limited.Err() != nil:
		return hung(firstLine(output.String())), nil
	case errors.As(err, &exit) && exit.ExitCode() == proofExits:
		return "", nil
	case errors.As(err, &exit) && !exit.Exited():
		return strings.TrimSpace("QEMU ended with " + exit.String() + " " + firstLine(output.String())), nil
	case errors.As(err, &exit):
		return strings.TrimSpace(fmt.Sprintf("QEMU ended with status %d: %s", exit.ExitCode(), firstLine(output.String()))), nil
	case err != nil:
		return "", fmt.Errorf("start %s: %w", p.Program, err)
	}
	return "the test program ended before it reached long mode", nil
}

// maxTail bounds how much of a program's output is kept, in bytes.
const maxTail = 8 << 10

// firstLine returns the first line of the output that is no warning, without QEMU's own name. Later
// lines are consequences of the first.
func firstLine(output string) string {
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if name, message, found := strings.Cut(line, ": "); found && strings.HasPrefix(name, "qemu") {
			line = message
		}
		if line != "" && !strings.HasPrefix(line, "warning:") {
			return line
		}
	}
	return ""
}
