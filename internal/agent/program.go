package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/handshake"
)

// AsService connects to the SCM and runs the function `work` as the service for which the SCM started this process. The
// ctx of `work` ends when the SCM asks the service to end. AsService returns the exit code of `work`. If a person or an
// SSH session started the process, AsService returns false without calling `work`.
type AsService func(ctx context.Context, work func(context.Context) int) (code int, started bool, err error)

// Program is the agent as a program of a machine: Main, on its standard streams or as a service. If m.Hash is empty, a
// session and an installation hash the program's own file. A service connects first: at a boot, the SCM waits 30 s for
// it, reading the file from a cold disk takes a part of that, and no second start follows a late one. A guardian needs no hash.
func Program(ctx context.Context, m Machine, args []string, service AsService,
	stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) == 0 || args[0] == handshake.InstallArgument {
		if m.Hash == "" {
			var err error
			if m.Hash, err = hashOf(m.Platform.Files, m.Executable); err != nil {
				fmt.Fprintln(stderr, "swdt-agent: hash this program's own file:", err)
				return exitFailed
			}
		}
		return Main(ctx, m, args, stdin, stdout, stderr)
	}
	code, started, err := service(ctx, func(ctx context.Context) int {
		// A service's standard streams are not connected.
		return Main(ctx, m, args, eof{}, io.Discard, stderr)
	})
	switch {
	case err != nil:
		fmt.Fprintln(stderr, "swdt-agent: run as a service:", err)
		return exitFailed
	case !started:
		return Main(ctx, m, args, stdin, stdout, stderr)
	}
	return code
}

func hashOf(files platform.Files, path string) (string, error) {
	file, err := files.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// eof is a reader without data.
type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }
