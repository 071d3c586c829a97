// Package patchfile makes and applies patches of files on your machine and measures
// the cost, for swdt's own developers and for benchmarks.
package patchfile

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/obtain/blobs"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/delta"
)

// Result is the cost of making or applying a patch.
type Result struct {
	OldBytes   int64  `json:"oldBytes"`
	NewBytes   int64  `json:"newBytes"`
	PatchBytes int64  `json:"patchBytes"`
	Variant    string `json:"variant"`
	NewSHA256  string `json:"newSha256"`
	// DiffSeconds is the time from opening the files until the patch is complete.
	DiffSeconds float64 `json:"diffSeconds,omitempty"`
	// ApplySeconds is the time from opening the patch until the new file is complete and
	// verified.
	ApplySeconds float64 `json:"applySeconds,omitempty"`
	// PeakMemoryBytes is the most memory that this process had, including the files themselves.
	// With --verify it does not include the memory for applying the patch.
	PeakMemoryBytes int64 `json:"peakMemoryBytes"`
}

// WriteText writes the result for people.
func (r Result) WriteText(w *ui.Page) error {
	rows := [][]string{
		{"old", ui.Size(r.OldBytes)},
		{"new", ui.Size(r.NewBytes)},
		{"patch", fmt.Sprintf("%s (%d bytes, %s)", ui.Size(r.PatchBytes), r.PatchBytes, r.Variant)},
	}
	for _, row := range []struct {
		label   string
		seconds float64
	}{{"diff", r.DiffSeconds}, {"apply", r.ApplySeconds}} {
		if row.seconds > 0 {
			took := time.Duration(row.seconds * float64(time.Second))
			rows = append(rows, []string{row.label, ui.Seconds(took) + ", " + ui.Rate(r.NewBytes, took)})
		}
	}
	return ui.Lines(w, append(rows, []string{"memory", ui.Size(r.PeakMemoryBytes)}))
}

// Options configure how a patch is made.
type Options struct {
	Delta  delta.Options
	Out    string // the file to write; empty: none
	Verify bool   // apply the patch too, and compare the result with the new file
}

// Diff makes a patch from the old file to the new one.
func Diff(ctx context.Context, oldPath, newPath string, o Options) (Result, error) {
	begun := time.Now()
	base, err := blobs.MapFile(oldPath)
	if err != nil {
		return Result{}, fmt.Errorf("read the old file: %w", err)
	}
	defer base.Close()
	rebuilt, err := blobs.MapFile(newPath)
	if err != nil {
		return Result{}, fmt.Errorf("read the new file: %w", err)
	}
	defer rebuilt.Close()
	old, new := base.Bytes, rebuilt.Bytes
	patch, err := createBeside(o.Out)
	if err != nil {
		return Result{}, fmt.Errorf("write the patch: %w", err)
	}
	defer patch.discard()
	info, err := delta.Diff(ctx, old, new, patch, o.Delta)
	if err != nil {
		return Result{}, fmt.Errorf("make a patch from %s to %s: %w", oldPath, newPath, err)
	}
	result := newResult(info)
	result.PatchBytes = info.PatchSize
	result.DiffSeconds = time.Since(begun).Seconds()
	result.PeakMemoryBytes = peakMemory()
	if o.Verify {
		begun := time.Now()
		made := bufio.NewReaderSize(io.NewSectionReader(patch, 0, info.PatchSize), 1<<20)
		applied, err := delta.Apply(ctx, bytes.NewReader(old), int64(len(old)), made, io.Discard)
		if err != nil {
			return Result{}, fmt.Errorf("verify the patch: %w", err)
		}
		if applied.NewSHA256 != sha256.Sum256(new) {
			return Result{}, fmt.Errorf("verify the patch: it makes another file than %s; this is a mistake in swdt: "+
				"report it with both files", newPath)
		}
		result.ApplySeconds = time.Since(begun).Seconds()
	}
	if o.Out != "" {
		if err := patch.finish(o.Out); err != nil {
			return Result{}, fmt.Errorf("write the patch: %w", err)
		}
	}
	return result, nil
}

// unfinished is a temporary file beside its destination. finish renames it to the destination,
// even if another program is reading the file there.
type unfinished struct{ *os.File }

// createBeside creates a temporary file beside path, or in the system's temporary folder if
// path is empty.
func createBeside(path string) (unfinished, error) {
	folder, name := os.TempDir(), "swdt"
	if path != "" {
		folder, name = filepath.Dir(path), "."+filepath.Base(path)
	}
	file, err := os.CreateTemp(folder, name+"-*")
	return unfinished{file}, err
}

func (f unfinished) finish(path string) error {
	if err := errors.Join(f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// discard removes the temporary file. After finish it does nothing.
func (f unfinished) discard() {
	f.Close()
	os.Remove(f.Name())
}

func newResult(info delta.Info) Result {
	return Result{
		OldBytes: info.OldSize, NewBytes: info.NewSize, PatchBytes: info.PatchSize,
		Variant: info.Variant.String(), NewSHA256: hex.EncodeToString(info.NewSHA256[:]),
	}
}

// Apply applies a patch to the old file and writes the new one. It may replace the
// old file.
func Apply(ctx context.Context, oldPath, patchPath, out string) (Result, error) {
	begun := time.Now()
	info, err := applyPatch(ctx, oldPath, patchPath, out)
	if err != nil {
		return Result{}, err
	}
	result := newResult(info)
	result.ApplySeconds = time.Since(begun).Seconds()
	result.PeakMemoryBytes = peakMemory()
	return result, nil
}

// applyPatch writes a temporary file beside out and renames it, so that out is either
// complete or unchanged; out may also be the old file.
func applyPatch(ctx context.Context, oldPath, patchPath, out string) (delta.Info, error) {
	old, err := os.Open(oldPath)
	if err != nil {
		return delta.Info{}, fmt.Errorf("read the old file: %w", err)
	}
	defer old.Close()
	stat, err := old.Stat()
	if err != nil {
		return delta.Info{}, fmt.Errorf("read the old file: %w", err)
	}
	patch, err := os.Open(patchPath)
	if err != nil {
		return delta.Info{}, fmt.Errorf("read the patch: %w", err)
	}
	defer patch.Close()
	new, err := createBeside(out)
	if err != nil {
		return delta.Info{}, fmt.Errorf("write the new file: %w", err)
	}
	defer new.discard()
	info, err := delta.Apply(ctx, old, stat.Size(), bufio.NewReaderSize(patch, 1<<20), new)
	if err != nil {
		return delta.Info{}, fmt.Errorf("apply %s to %s: %w", patchPath, oldPath, err)
	}
	old.Close() // Windows does not replace an open file
	if err := new.finish(out); err != nil {
		return delta.Info{}, fmt.Errorf("write the new file: %w", err)
	}
	return info, nil
}

// peakMemory returns the most memory that this process ever had, in bytes. On Linux the kernel
// counts it; on other systems it is the memory that Go obtained from the system.
func peakMemory() int64 {
	if status, err := os.ReadFile("/proc/self/status"); err == nil {
		for line := range strings.Lines(string(status)) {
			if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
				if kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"),
					10, 64); err == nil {
					return kilobytes << 10
				}
			}
		}
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return int64(memory.Sys)
}
