package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// record is the result of a run of a stage.
type record struct {
	Stage   string    `json:"stage"`
	Key     string    `json:"key"` // the commit, or the hash of the inputs; "": the record counts for no other run
	Commit  string    `json:"commit"`
	Passed  bool      `json:"passed"`
	Began   time.Time `json:"began"`
	Wall    float64   `json:"wallSeconds"`
	CPU     float64   `json:"cpuSeconds"` // of the stage and of all processes that it waited for
	System  string    `json:"system"`
	Skipped bool      `json:"-"` // an earlier run counts
}

func (h *house) path(stage, key string) string {
	return filepath.Join(h.records, stage+"-"+key[:min(len(key), 16)]+".json")
}

// earlier returns the record of a passed run that makes another one needless, or nil.
func (h *house) earlier(s stage, key string) (*record, error) {
	r, err := h.last(s, key)
	if r == nil || err != nil || !r.Passed {
		return nil, err
	}
	return r, nil
}

// last returns the record of the last run with a key, or nil.
func (h *house) last(s stage, key string) (*record, error) {
	if key == "" {
		return nil, nil
	}
	text, err := os.ReadFile(h.path(s.name, key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var r record
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s: %w; remove the file", h.path(s.name, key), err)
	}
	if r.Stage != s.name || r.Key != key {
		return nil, nil
	}
	return &r, nil
}

// save writes a record that may count for later runs, whole or not at all.
func (h *house) save(r record) error {
	if r.Key == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(h.records, 0o700); err != nil {
		return err
	}
	path := h.path(r.Stage, r.Key)
	if err := os.WriteFile(path+".new", append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// key returns what a record of a stage is filed under now: "" if no record may count.
func (h *house) key(ctx context.Context, s stage) (string, error) {
	switch s.record {
	case byCommit:
		changes, err := h.git(ctx, "status", "--porcelain")
		if err != nil || changes != "" {
			return "", err
		}
		return h.git(ctx, "rev-parse", "HEAD")
	case byInputs:
		return h.inputs(ctx, s.name)
	}
	return "", nil
}

// inputs returns the hash of the files that a stage depends on: those of the patterns in
// scripts/inputs/STAGE.txt, committed or not, as they are now, with the versions of Go and of the system.
func (h *house) inputs(ctx context.Context, name string) (string, error) {
	files, err := h.inputFiles(ctx, name)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s %s/%s\n", runtime.Version(), runtime.GOOS, runtime.GOARCH)
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(h.root, file))
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed, and not committed yet
		}
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %x\n", file, sha256.Sum256(content))
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func (h *house) inputFiles(ctx context.Context, name string) ([]string, error) {
	list, err := os.Open(filepath.Join(h.root, "scripts", "inputs", name+".txt"))
	if err != nil {
		return nil, err
	}
	defer list.Close()
	args := []string{"ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"}
	lines := bufio.NewScanner(list)
	for lines.Scan() {
		if line := strings.TrimSpace(lines.Text()); line != "" && !strings.HasPrefix(line, "#") {
			args = append(args, line)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	found, err := h.git(ctx, args...)
	if err != nil {
		return nil, err
	}
	files := strings.FieldsFunc(found, func(r rune) bool { return r == 0 })
	if len(files) == 0 {
		return nil, fmt.Errorf("no file matches scripts/inputs/%s.txt", name)
	}
	return files, nil
}

func (h *house) printInputs(ctx context.Context, out io.Writer, name string) error {
	hash, err := h.inputs(ctx, name)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, hash)
	return err
}

// git returns the output of a git command in the checkout, without the line's end.
func (h *house) git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = h.root
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}
