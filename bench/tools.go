//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// tool is a program that makes and applies patches.
type tool struct {
	name  string
	diff  func(old, new, patch string) command
	apply func(old, patch, out string) command
}

// The names of swdt's two variants in tables.
const (
	swdtFast  = "swdt fast"
	swdtSmall = "swdt small"
)

func (b *bench) tools() []tool {
	return []tool{
		b.swdtTool(swdtFast, "fast"),
		b.swdtTool(swdtSmall, "small"),
		{"bsdiff",
			func(old, new, patch string) command { return words("bsdiff", old, new, patch) },
			func(old, patch, out string) command { return words("bspatch", old, out, patch) }},
		xdelta("-1"),
		xdelta("-9"),
		zstdPatch("-1"),
		zstdPatch("-9"),
		{"zstd -1, no base",
			func(_, new, patch string) command { return words("zstd", "-q", "-f", "-1", new, "-o", patch) },
			func(_, patch, out string) command { return words("zstd", "-q", "-f", "-d", patch, "-o", out) }},
	}
}

func (b *bench) swdtTool(name, variant string) tool {
	return tool{name,
		func(old, new, patch string) command {
			return words(b.swdt, "debug", "diff", "--verify=false", "--variant", variant, "--out", patch,
				"-o", "json", old, new)
		},
		func(old, patch, out string) command {
			return words(b.swdt, "debug", "patch", "-o", "json", old, patch, "--out", out)
		}}
}

// xdelta runs with a window that holds the whole old file.
func xdelta(level string) tool {
	const window = "134217728"
	return tool{"xdelta3 " + level,
		func(old, new, patch string) command {
			return words("xdelta3", "-e", "-f", level, "-B", window, "-s", old, new, patch)
		},
		func(old, patch, out string) command {
			return words("xdelta3", "-d", "-f", "-B", window, "-s", old, patch, out)
		}}
}

func zstdPatch(level string) tool {
	return tool{"zstd " + level + " --patch-from",
		func(old, new, patch string) command {
			return words("zstd", "-q", "-f", level, "--long=27", "--patch-from="+old, new, "-o", patch)
		},
		func(old, patch, out string) command {
			return words("zstd", "-q", "-f", "-d", "--long=27", "--patch-from="+old, patch, "-o", out)
		}}
}

// rsyncLocal connects rsync's two halves by a pipe, and counts the bytes of both
// directions. It makes no patch that could be applied later.
func (b *bench) rsyncLocal(ctx context.Context, p Pair, cell *Patch) error {
	shell := filepath.Join(b.work, "here")
	// The script replaces ssh: it drops the host's name, and runs the command on this machine.
	if err := os.WriteFile(shell, []byte("#!/bin/sh\nshift\nexec sh -c \"$*\"\n"), 0o755); err != nil {
		return err
	}
	target := filepath.Join(b.work, "rsynced")
	if err := copyFile(p.old, target); err != nil {
		return err
	}
	t, err := words("rsync", "-z", "--ignore-times", "--stats", "-e", shell, p.new, "here:"+target).run(ctx)
	if err != nil {
		return err
	}
	cell.DiffSeconds, cell.DiffCPU, cell.DiffMemory = t.seconds, t.cpu, t.memory
	if cell.Bytes, err = rsyncBytes(t.stdout); err != nil {
		return err
	}
	return expectSame(target, p.new)
}

// rsyncBytes returns the sum of the sent and the received bytes in the output of rsync --stats.
func rsyncBytes(stats []byte) (int64, error) {
	found := regexp.MustCompile(`Total bytes (?:sent|received): ([0-9,.]+)`).FindAllSubmatch(stats, -1)
	if len(found) != 2 {
		return 0, fmt.Errorf("rsync --stats prints no bytes: %s", bytes.TrimSpace(stats))
	}
	var sum int64
	for _, match := range found {
		n, err := strconv.ParseInt(strings.NewReplacer(",", "", ".", "").Replace(string(match[1])), 10, 64)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}
