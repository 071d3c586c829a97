package suite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"

	"github.com/swdt-dev/swdt/internal/format/bounded"
	"github.com/swdt-dev/swdt/internal/wait"
)

const (
	// versionLimit bounds the time of --version. e2e.test loads 140 MB first.
	versionLimit = 2 * time.Minute
	// listLimit bounds the time of a list. e2e.test needs seconds; on a busy machine, minutes.
	listLimit = 10 * time.Minute
	// shortOutput bounds the output of a process that only answers a question, in bytes.
	shortOutput = 64 << 10
)

// Binary is an e2e.test program.
type Binary struct {
	Path    string `json:"path"`    // absolute
	Version string `json:"version"` // the version of Kubernetes, such as v1.36.3
}

// BinaryError reports a file that is not a usable e2e.test.
type BinaryError struct {
	Path   string
	What   string
	Remedy string
	Err    error // nil if no other error caused it
}

func (e *BinaryError) Error() string {
	text := e.Path + " " + e.What
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text + "; " + e.Remedy
}

func (e *BinaryError) Unwrap() error { return e.Err }

// Open asks the program at path for its version. The error is a *BinaryError if the file is not an
// e2e.test that runs on this machine.
func Open(ctx context.Context, path string) (Binary, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return Binary{}, fmt.Errorf("find %s: %w", path, err)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Binary{}, &BinaryError{Path: path, What: "does not exist",
			Remedy: "correct the path, or leave it out to download the program"}
	case err != nil:
		return Binary{}, &BinaryError{Path: path, What: "cannot be used", Err: err, Remedy: "correct the path"}
	case !info.Mode().IsRegular():
		return Binary{}, &BinaryError{Path: path, What: "is no file", Remedy: "name the file e2e.test"}
	}
	out, err := ask(ctx, path, versionLimit, "--version")
	if err != nil {
		return Binary{}, &BinaryError{Path: path, What: "did not print its version", Err: err,
			Remedy: "is it an e2e.test for this machine, and executable?"}
	}
	version := regexp.MustCompile(`v\d{1,4}\.\d{1,4}\.\d{1,4}[-+.0-9A-Za-z]{0,80}`).Find(out)
	if version == nil {
		return Binary{}, &BinaryError{Path: path, What: fmt.Sprintf("has no version in the output %.100q of --version", out),
			Remedy: "is it Kubernetes' e2e.test?"}
	}
	return Binary{Path: path, Version: string(version)}, nil
}

// ask runs the program without a cluster and returns its stdout, at most shortOutput bytes.
func ask(ctx context.Context, path string, limit time.Duration, args ...string) ([]byte, error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out, problems := &bounded.Head{Most: shortOutput}, &bounded.Head{Most: shortOutput}
	cmd := exec.CommandContext(limited, path, args...)
	cmd.Stdout, cmd.Stderr = out, problems
	if err := wait.Program(cmd); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if limited.Err() != nil {
			return nil, fmt.Errorf("it did not end within %s", limit)
		}
		return nil, fmt.Errorf("%w: %.2000q", err, bytes.TrimSpace(append(problems.Bytes(), out.Bytes()...)))
	}
	return out.Bytes(), nil
}
