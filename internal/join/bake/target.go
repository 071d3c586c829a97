package bake

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/swdt-dev/swdt/internal/localfile"
)

// stagingPrefix begins the name of the hidden folder in which the image is made. The folder is
// beside the image's file.
const stagingPrefix = ".swdt-bake"

// target is the image's file. It is created complete, or not at all.
type target struct {
	file    string // absolute
	staging *localfile.Staging
}

func newTarget(file string) (*target, error) {
	file, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	staging, err := localfile.Stage(filepath.Dir(file), stagingPrefix)
	if err != nil {
		return nil, fmt.Errorf("write beside %s: %w", file, err)
	}
	return &target{file, staging}, nil
}

func (t *target) unfinished() string { return filepath.Join(t.staging.Path, filepath.Base(t.file)) }

func (t *target) discard() error { return t.staging.Remove() }

// manifestFile returns the file of an image's manifest.
func manifestFile(file string) string { return file + ".manifest.json" }

// write writes the disk and the manifest, and moves both to their places. The manifest is moved
// first, so that no image exists without a manifest. A manifest without its image is harmless,
// since it names the hash of the image.
func (b *oven) write(ctx context.Context) (string, error) {
	format, err := Format(b.options.File)
	if err != nil {
		return "", err
	}
	bytes, err := b.options.Machines.Room(ctx, b.name(), format)
	if err != nil {
		return "", err
	}
	unfinished := b.target.unfinished()
	if err := localfile.Fits(filepath.Dir(unfinished), bytes); err != nil {
		return "", err
	}
	err = b.options.Machines.Export(ctx, b.name(), unfinished, format, bytes, b.reporter)
	if err != nil {
		return "", err
	}
	if err := b.completeManifest(ctx, unfinished, format); err != nil {
		return "", err
	}
	text, err := json.MarshalIndent(b.manifest, "", "  ")
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(manifestFile(unfinished), append(text, '\n'), 0o644); err != nil { //nolint:gosec // not secret
		return "", fmt.Errorf("write the manifest: %w", err)
	}
	if err := context.Cause(ctx); err != nil {
		return "", err
	}
	for _, path := range []func(string) string{manifestFile, func(file string) string { return file }} {
		if err := place(path(unfinished), path(b.target.file), b.options.Replace); err != nil {
			return "", err
		}
	}
	return "", nil
}

// place moves a finished file to its place. If a file has appeared there meanwhile and replace is
// false, place leaves that file as it is, and returns an *ExistsError.
func place(from, to string, replace bool) error {
	file, err := os.OpenFile(from, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		file.Close()
		return fmt.Errorf("write %s: %w", to, err)
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("write %s: %w", to, err)
	}
	if _, err := os.Lstat(to); err == nil && !replace {
		return &ExistsError{to}
	}
	return os.Rename(from, to)
}
