package cli

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/sandbox"
)

// exportConfig returns the shell command that makes a node file the default.
func exportConfig(file string) string {
	if runtime.GOOS == "windows" {
		return fmt.Sprintf("$env:%s = '%s'", configVariable, strings.ReplaceAll(file, "'", "''"))
	}
	plain := func(r rune) bool {
		return r == '/' || r == '.' || r == '_' || r == '-' || '0' <= r && r <= '9' || 'a' <= r|0x20 && r|0x20 <= 'z'
	}
	if strings.IndexFunc(file, func(r rune) bool { return !plain(r) }) >= 0 {
		file = shellQuoted(file)
	}
	return "export " + configVariable + "=" + file
}

// writeSandboxUp prints a sandbox and the commands to continue with.
func writeSandboxUp(w io.Writer, info sandbox.Info) error {
	commands := []string{exportConfig(info.Config), "swdt status"}
	switch {
	case info.Kubeconfig != "":
		commands = append(commands, "swdt join --kubeconfig "+info.Kubeconfig+" --allow-reboot")
	case info.Driver == sandbox.DefaultDriver:
		commands = append(commands, "swdt setup", "swdt push")
	}
	_, err := fmt.Fprintf(w, "sandbox %s (%s) listens on %s\n\n  %s\n", info.Name, info.Driver, info.Hostname,
		strings.Join(commands, "\n  "))
	return err
}

// offerSandbox adds a sandbox to the remedy of a missing node file: the running one,
// or the command that starts one.
func offerSandbox(err error) error {
	missing, ok := errors.AsType[*config.Error](err)
	if !ok || len(missing.Problems) == 0 {
		return err
	}
	offer := "or try it on a sandbox: `swdt sandbox up`"
	if running := sandbox.Running(); len(running) > 0 {
		offer = fmt.Sprintf("or use sandbox %s, which runs: `%s`", running[0].Name, exportConfig(running[0].Config))
	}
	missing.Problems[0].Remedy += ", " + offer
	return missing
}
