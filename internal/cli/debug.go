package cli

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

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/blobs"
	"github.com/swdt-dev/swdt/internal/delta"
	"github.com/swdt-dev/swdt/internal/ui"
)

// debugCommand is hidden: it is for those who work on swdt, and for benchmarks.
func (a *app) debugCommand() *cobra.Command {
	cmd := group("debug", "Look at the parts that swdt is made of", a.debugDiffCommand(), a.debugPatchCommand())
	cmd.Hidden = true
	return cmd
}

// deltaResult is what a patch took to make or to apply.
type deltaResult struct {
	OldBytes   int64  `json:"oldBytes"`
	NewBytes   int64  `json:"newBytes"`
	PatchBytes int64  `json:"patchBytes"`
	Variant    string `json:"variant"`
	NewSHA256  string `json:"newSha256"`
	// DiffSeconds is from opening the files to the patch's last byte.
	DiffSeconds float64 `json:"diffSeconds,omitempty"`
	// ApplySeconds is from opening the patch to the last, verified byte of the new
	// file.
	ApplySeconds float64 `json:"applySeconds,omitempty"`
	// PeakMemoryBytes is the most that this process had in memory, the files
	// themselves included, before the check that --verify adds.
	PeakMemoryBytes int64 `json:"peakMemoryBytes"`
}

func (r deltaResult) writeText(w *ui.Page) error {
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

func (a *app) printDelta(r deltaResult) error {
	return a.print(r, r.writeText)
}

type debugDiffOptions struct {
	variant string
	workers int
	out     string
	verify  bool
}

func (a *app) debugDiffCommand() *cobra.Command {
	o := &debugDiffOptions{}
	cmd := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Make a patch of two files and tell what it took",
		Args:  arguments(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := a.global.bounded(cmd.Context())
			defer cancel()
			return explain(ctx, a.runDebugDiff(ctx, o, args[0], args[1]))
		},
	}
	cmd.Flags().StringVar(&o.variant, "variant", "fast", "how to make it: fast or small")
	cmd.Flags().IntVar(&o.workers, "workers", 0, "`number` of processors to use (default all)")
	cmd.Flags().StringVarP(&o.out, "out", "w", "", "`file` to write the patch to")
	cmd.Flags().BoolVar(&o.verify, "verify", true, "apply the patch too, and see that it gives the new file")
	return cmd
}

func (o *debugDiffOptions) deltaOptions() (delta.Options, error) {
	if o.workers < 0 {
		return delta.Options{}, usagef("--workers %d: use 1 or more", o.workers)
	}
	switch o.variant {
	case "fast":
		return delta.Options{Variant: delta.Fast, Workers: o.workers}, nil
	case "small":
		return delta.Options{Variant: delta.Small, Workers: o.workers}, nil
	}
	return delta.Options{}, usagef("--variant %s: use fast or small", o.variant)
}

func (a *app) runDebugDiff(ctx context.Context, o *debugDiffOptions, oldPath, newPath string) error {
	options, err := o.deltaOptions()
	if err != nil {
		return err
	}
	begun := time.Now()
	base, err := blobs.MapFile(oldPath)
	if err != nil {
		return fmt.Errorf("read the old file: %w", err)
	}
	defer base.Close()
	rebuilt, err := blobs.MapFile(newPath)
	if err != nil {
		return fmt.Errorf("read the new file: %w", err)
	}
	defer rebuilt.Close()
	old, new := base.Bytes, rebuilt.Bytes
	patch, err := createBeside(o.out)
	if err != nil {
		return fmt.Errorf("write the patch: %w", err)
	}
	defer patch.discard()
	info, err := delta.Diff(ctx, old, new, patch, options)
	if err != nil {
		return fmt.Errorf("make a patch from %s to %s: %w", oldPath, newPath, err)
	}
	result := newDeltaResult(info)
	result.PatchBytes = info.PatchSize
	result.DiffSeconds = time.Since(begun).Seconds()
	result.PeakMemoryBytes = peakMemory()
	if o.verify {
		begun := time.Now()
		made := bufio.NewReaderSize(io.NewSectionReader(patch, 0, info.PatchSize), 1<<20)
		applied, err := delta.Apply(ctx, bytes.NewReader(old), int64(len(old)), made, io.Discard)
		if err != nil {
			return fmt.Errorf("verify the patch: %w", err)
		}
		if applied.NewSHA256 != sha256.Sum256(new) {
			return fmt.Errorf("verify the patch: it makes another file than %s; this is a mistake in swdt: report it with both files", newPath)
		}
		result.ApplySeconds = time.Since(begun).Seconds()
	}
	if o.out != "" {
		if err := patch.finish(o.out); err != nil {
			return fmt.Errorf("write the patch: %w", err)
		}
	}
	return a.printDelta(result)
}

// unfinished is a file beside the one that it becomes when it is whole, which may
// be one that is being read.
type unfinished struct{ *os.File }

// createBeside makes one that becomes path, or nothing.
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

// discard does nothing to what was finished.
func (f unfinished) discard() {
	f.Close()
	os.Remove(f.Name())
}

func newDeltaResult(info delta.Info) deltaResult {
	return deltaResult{
		OldBytes: info.OldSize, NewBytes: info.NewSize, PatchBytes: info.PatchSize,
		Variant: info.Variant.String(), NewSHA256: hex.EncodeToString(info.NewSHA256[:]),
	}
}

func (a *app) debugPatchCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "patch OLD PATCH --out NEW",
		Short: "Apply a patch and tell what it took",
		Args:  arguments(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := a.global.bounded(cmd.Context())
			defer cancel()
			return explain(ctx, a.runDebugPatch(ctx, args[0], args[1], out))
		},
	}
	cmd.Flags().StringVarP(&out, "out", "w", "", "`file` to write")
	must(cmd.MarkFlagRequired("out"))
	return cmd
}

func (a *app) runDebugPatch(ctx context.Context, oldPath, patchPath, out string) error {
	begun := time.Now()
	info, err := applyPatch(ctx, oldPath, patchPath, out)
	if err != nil {
		return err
	}
	result := newDeltaResult(info)
	result.ApplySeconds = time.Since(begun).Seconds()
	result.PeakMemoryBytes = peakMemory()
	return a.printDelta(result)
}

// applyPatch writes beside out and renames, so that out is whole or not there;
// it may also be the old file.
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
	old.Close() // on Windows an open file is not replaced
	if err := new.finish(out); err != nil {
		return delta.Info{}, fmt.Errorf("write the new file: %w", err)
	}
	return info, nil
}

// peakMemory is the most memory that this process ever had: on Linux as the
// kernel counts it, elsewhere what Go asked of the system.
func peakMemory() int64 {
	if status, err := os.ReadFile("/proc/self/status"); err == nil {
		for line := range strings.Lines(string(status)) {
			if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
				if kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64); err == nil {
					return kilobytes << 10
				}
			}
		}
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return int64(memory.Sys)
}
