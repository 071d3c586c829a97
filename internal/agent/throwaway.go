package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/throwaway"
)

// throwawayMain is the throw-away program of `swdt selftest`. args are the arguments after
// throwaway.Argument.
func throwawayMain(ctx context.Context, m Machine, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	note, err := ownNote(m)
	if err != nil {
		fmt.Fprintln(stderr, "swdt-agent: read the note of this program:", err)
		return exitFailed
	}
	switch {
	case len(args) == 1 && args[0] == "--version":
		fmt.Fprintln(stdout, note.Version)
		return exitDone
	case len(args) == 3 && args[0] == throwaway.Service:
		return throwawayService(ctx, m, note, args[2])
	case len(args) >= 2 && args[0] == throwaway.Echo:
		return throwawayEcho(args[1], args[2:], stdin, stdout, stderr)
	case len(args) == 3 && args[0] == throwaway.Hold:
		return throwawayHold(m.Platform.Files, args[1], args[2], stdin, stderr)
	}
	fmt.Fprintln(stderr, "swdt-agent: unknown mode of the throw-away program")
	return exitUsage
}

// ownNote reads the note behind this program's executable.
func ownNote(m Machine) (throwaway.Note, error) {
	file, err := m.Platform.Files.Open(m.Executable)
	if err != nil {
		return throwaway.Note{}, err
	}
	defer file.Close()
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return throwaway.Note{}, err
	}
	note, _, ok := throwaway.Read(seekingReaderAt{file}, size)
	if !ok {
		return throwaway.Note{}, errors.New("the executable has none")
	}
	return note, nil
}

// seekingReaderAt reads at an offset by seeking; it is for one goroutine.
type seekingReaderAt struct{ io.ReadSeeker }

func (r seekingReaderAt) ReadAt(b []byte, offset int64) (int, error) {
	if _, err := r.Seek(offset, io.SeekStart); err != nil {
		return 0, err
	}
	return io.ReadFull(r, b)
}

// throwawayService logs its start, runs until ctx ends, and logs its end.
func throwawayService(ctx context.Context, m Machine, note throwaway.Note, log string) int {
	if err := appendLine(m.Platform.Files, log, "started "+note.Version); err != nil {
		return exitFailed
	}
	if note.ExitCode != 0 {
		_ = appendLine(m.Platform.Files, log, fmt.Sprintf("ending with code %d", note.ExitCode))
		return note.ExitCode
	}
	<-ctx.Done()
	if err := appendLine(m.Platform.Files, log, "stopped "+note.Version); err != nil {
		return exitFailed
	}
	return exitDone
}

// appendLine appends a line in klog's format to a file.
func appendLine(files platform.Files, path, text string) error {
	file, err := files.Create(path, platform.CreateAppend)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(file, "I%s       1 throwaway.go:1] %q\n", time.Now().UTC().Format("0102 15:04:05.000000"), text)
	return errors.Join(err, file.Close())
}

// throwawayEcho returns the exit code that its first argument asks for.
func throwawayEcho(code string, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	for _, arg := range args {
		fmt.Fprintln(stdout, arg)
	}
	if _, err := io.Copy(stdout, stdin); err != nil {
		return exitFailed
	}
	fmt.Fprint(stderr, throwaway.EchoError)
	number, err := strconv.Atoi(code)
	if err != nil {
		return exitUsage
	}
	return number
}

// throwawayHold keeps a file open, without sharing it for deletion, until stdin ends.
func throwawayHold(files platform.Files, path, text string, stdin io.Reader, stderr io.Writer) int {
	lock, err := files.Lock(path, []byte(text))
	if err != nil {
		fmt.Fprintln(stderr, "swdt-agent:", err)
		return exitFailed
	}
	_, read := io.Copy(io.Discard, stdin)
	if read != nil || lock.Unlock() != nil {
		return exitFailed
	}
	return exitDone
}
