// Command exec runs one Windows program in a Wine prefix of its own, with its
// arguments, standard streams and exit code. scripts/wine-exec runs it for go test:
//
//	GOOS=windows go test -exec "$PWD/scripts/wine-exec" ./internal/platform/windows/...
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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
	if cmd.Dir, err = bringData(prefix); err != nil {
		return 1, err
	}
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

// bringData copies what tests read to drive C:, as far as it exists: the folder testdata of the
// package, in whose folder go test runs this program, and the module's reference. It returns the
// folder of the package there.
func bringData(prefix *wine.Prefix) (folder string, err error) {
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	root, err := moduleRoot(here)
	if err != nil {
		return "", err
	}
	below, err := filepath.Rel(root, here)
	if err != nil {
		return "", err
	}
	module := filepath.Join(prefix.DriveC(), "module")
	for _, data := range []string{filepath.Join(below, "testdata"), filepath.Join("docs", "reference")} {
		err := os.CopyFS(filepath.Join(module, data), os.DirFS(filepath.Join(root, data)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	folder = filepath.Join(module, below)
	return folder, os.MkdirAll(folder, 0o755)
}

// moduleRoot returns the nearest folder at or above folder with a go.mod.
func moduleRoot(folder string) (string, error) {
	for {
		_, err := os.Stat(filepath.Join(folder, "go.mod"))
		parent := filepath.Dir(folder)
		if err == nil || parent == folder {
			return folder, err
		}
		folder = parent
	}
}
