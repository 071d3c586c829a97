//go:build linux

package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Pair is two builds of one program.
type Pair struct {
	Name     string `json:"name"`
	What     string `json:"what"`
	OldBytes int64  `json:"oldBytes"`
	NewBytes int64  `json:"newBytes"`

	old, new string
}

// kubeletPair is the name of the pair that the part pushes uses.
const kubeletPair = "kubelet"

// allPairs returns the files to work on, the most important first.
func (b *bench) allPairs(ctx context.Context) ([]Pair, error) {
	inLab := func(name string) string { return filepath.Join(b.lab, name+".exe") }
	pairs := []Pair{
		{Name: kubeletPair, What: "kubelet.exe 1.36.3 → the same with one log line more",
			old: inLab("kubelet-1.36.3"), new: inLab("kubelet-1.36.3-edited")},
		{Name: "containerd-edit", What: "containerd.exe 1.7.12 → the same with one function changed",
			old: inLab("containerd-1.7.12-cloned"), new: inLab("containerd-1.7.12-edited")},
		{Name: "containerd-version", What: "containerd.exe 1.7.11 → 1.7.12",
			old: inLab("containerd-1.7.11"), new: inLab("containerd-1.7.12")},
		{Name: "agent", What: "swdt-agent.exe → the same with one function changed",
			old: inLab("agent"), new: inLab("agent-edited")},
	}
	if b.wanted("cpp") || b.wanted("unrelated") {
		cpp, err := b.cppPair(ctx)
		if err != nil {
			logf("no C++ pair: %v", err)
		} else {
			pairs = append(pairs, cpp, Pair{Name: "unrelated", What: "containerd.exe 1.7.12 → " + cppFile,
				old: inLab("containerd-1.7.12"), new: cpp.new})
		}
	}
	if b.wanted("random") {
		random, err := b.randomPair()
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, random)
	}
	pairs = slices.DeleteFunc(pairs, func(p Pair) bool { return !b.wanted(p.Name) })
	for i := range pairs {
		var err error
		if pairs[i].OldBytes, err = sizeOf(pairs[i].old); err != nil {
			return nil, fmt.Errorf("%w: run lab/build.sh bench", err)
		}
		if pairs[i].NewBytes, err = sizeOf(pairs[i].new); err != nil {
			return nil, fmt.Errorf("%w: run lab/build.sh bench", err)
		}
	}
	return pairs, nil
}

func (b *bench) wanted(pair string) bool {
	return len(b.pairs) == 0 || slices.Contains(b.pairs, pair)
}

// randomPair returns two files of random bytes.
func (b *bench) randomPair() (Pair, error) {
	p := Pair{Name: "random", What: "32 MB of random bytes → others",
		old: filepath.Join(b.work, "random-old"), new: filepath.Join(b.work, "random-new")}
	for _, path := range []string{p.old, p.new} {
		file, err := os.Create(path)
		if err != nil {
			return p, err
		}
		_, err = io.CopyN(file, rand.Reader, 32<<20)
		if closeErr := file.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			return p, err
		}
	}
	return p, nil
}

// cppPackage is a large C++ library. Debian usually has two builds of this library at a time: the
// build of the release, and the build with the latest security fixes.
const cppPackage, cppFile = "libnode108", "libnode.so.108"

// cppPair returns the two newest builds that apt lists.
func (b *bench) cppPair(ctx context.Context) (Pair, error) {
	list, err := output(ctx, "apt-cache", "madison", cppPackage)
	if err != nil {
		return Pair{}, err
	}
	var versions []string // newest first
	for line := range strings.Lines(list) {
		if fields := strings.Split(line, "|"); len(fields) == 3 && strings.Contains(fields[2], "Packages") {
			if version := strings.TrimSpace(fields[1]); !slices.Contains(versions, version) {
				versions = append(versions, version)
			}
		}
	}
	if len(versions) < 2 {
		return Pair{}, fmt.Errorf("apt knows %d builds of %s and two are needed", len(versions), cppPackage)
	}
	p := Pair{Name: "cpp", What: fmt.Sprintf("%s (C++, ELF) of Debian, %s → %s", cppFile, versions[1], versions[0])}
	if p.old, err = b.unpacked(ctx, versions[1]); err == nil {
		p.new, err = b.unpacked(ctx, versions[0])
	}
	return p, err
}

func (b *bench) unpacked(ctx context.Context, version string) (string, error) {
	kept := filepath.Join(b.lab, fmt.Sprintf("%s-%s", cppFile, version))
	if _, err := os.Stat(kept); err == nil {
		return kept, nil
	}
	folder, err := os.MkdirTemp(b.work, "deb-")
	if err != nil {
		return "", err
	}
	// apt downloads into the working directory.
	const script = `cd "$1" && apt-get -q download "$2=$3" && dpkg-deb -x ./*.deb .`
	if _, err := output(ctx, "sh", "-c", script, "sh", folder, cppPackage, version); err != nil {
		return "", err
	}
	found, err := output(ctx, "find", folder, "-name", cppFile, "-type", "f")
	if err != nil {
		return "", err
	}
	if found == "" {
		return "", fmt.Errorf("no %s in %s %s", cppFile, cppPackage, version)
	}
	return kept, copyFile(found, kept)
}
