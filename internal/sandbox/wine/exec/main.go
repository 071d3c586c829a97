// Command exec runs one Windows program in a Wine prefix of its own, with its
// arguments, standard streams and exit code. scripts/wine-exec runs it for go test:
//
//	GOOS=windows go test -exec "$PWD/scripts/wine-exec" ./internal/platform/windows/...
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"

	"github.com/swdt-dev/swdt/internal/sandbox/wine"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code, err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "wine-exec:", err)
	}
	os.Exit(code)
}

func run(ctx context.Context, args []string) (code int, err error) {
	if len(args) == 0 {
		return 2, errors.New("usage: wine-exec PROGRAM.exe [ARGUMENT…]")
	}
	folder, err := os.MkdirTemp("", "swdt-wine-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	prefix, err := wine.Prepare(ctx, filepath.Join(folder, "prefix"))
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, prefix.Close()) }()

	program, err := install(prefix, args[0])
	if err != nil {
		return 1, err
	}
	cmd := prefix.Command(ctx, program, args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		return exit.ExitCode(), nil
	}
	if err != nil {
		return 1, fmt.Errorf("run %s: %w", args[0], err)
	}
	return 0, nil
}

// install copies the program to drive C:, the only drive.
func install(prefix *wine.Prefix, program string) (windowsPath string, err error) {
	content, err := os.ReadFile(program)
	if err != nil {
		return "", err
	}
	windowsPath = `C:\test\` + filepath.Base(program)
	path, err := prefix.Path(windowsPath)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	return windowsPath, os.WriteFile(path, content, 0o755)
}
