package trial

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/obtain/artifact"
	"github.com/swdt-dev/swdt/internal/proof/suite"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wait"
)

const (
	// programName is the name of the program in the cache, and in Kubernetes' folder of built programs.
	programName = "e2e.test"
	// buildLimit bounds a build from a checkout. A first build takes most of an hour on two cores.
	buildLimit = 2 * time.Hour
)

// Source is where the program e2e.test comes from. The zero Source is the release of the cluster's
// version, from the cache or from dl.k8s.io.
type Source struct {
	// Path is the path of the program.
	Path string
	// Build is the folder of a checkout of Kubernetes, from which the program is built.
	Build string
	// Mirror is a URL or a folder that replaces https://dl.k8s.io, as in a node file.
	Mirror string
	// Cache is the folder that keeps the programs of all versions; "": the user's cache.
	Cache string
}

// NeedsVersion reports whether the version of the cluster decides which program is used.
func (s Source) NeedsVersion() bool { return s.Path == "" && s.Build == "" }

// find returns the program. version is the API server's, such as v1.36.3; find uses it only if
// NeedsVersion returns true.
func (s Source) find(ctx context.Context, version string, r ui.Reporter) (suite.Binary, error) {
	switch {
	case s.Path != "":
		return suite.Open(ctx, s.Path)
	case s.Build != "":
		return s.build(ctx, r)
	}
	release := regexp.MustCompile(`^v1\.\d{1,3}\.\d{1,3}(-(alpha|beta|rc)\.\d{1,3})?`).FindString(version)
	if release == "" {
		return suite.Binary{}, fmt.Errorf("the cluster's version %.100q is no release of Kubernetes; name its e2e.test "+
			"with --binary, or a checkout of Kubernetes with --checkout", version)
	}
	cached, err := s.cached(release)
	if err != nil {
		return suite.Binary{}, err
	}
	if binary, err := suite.Open(ctx, cached); err == nil && binary.Version == release {
		return binary, nil
	}
	if ctx.Err() != nil {
		return suite.Binary{}, context.Cause(ctx)
	}
	return s.download(ctx, release, cached, r)
}

func (s Source) cached(release string) (string, error) {
	folder := s.Cache
	if folder == "" {
		cache, err := localfile.CacheFolder()
		if err != nil {
			return "", err
		}
		folder = filepath.Join(cache, "swdt", "e2e")
	}
	name := programName
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return filepath.Join(folder, release, name), nil
}

// download gets the published program, verified by its published checksum, and keeps it in the cache.
func (s Source) download(ctx context.Context, release, cached string, r ui.Reporter) (suite.Binary, error) {
	set, err := artifact.Resolve(ctx, artifact.Wish{Component: artifact.E2ETest, Version: release,
		Arch: runtime.GOARCH, Mirror: s.Mirror, Field: "--binary"}, r)
	if err != nil {
		return suite.Binary{}, fmt.Errorf("get e2e.test %s: %w; without a download, name a mirror with --mirror, "+
			"or the program with --binary", release, err)
	}
	if err := os.MkdirAll(filepath.Dir(cached), 0o700); err != nil {
		return suite.Binary{}, fmt.Errorf("keep e2e.test in the cache: %w", err)
	}
	if err := install(set.Files[0].Path, cached); err != nil {
		return suite.Binary{}, fmt.Errorf("keep e2e.test in the cache: %w", err)
	}
	return suite.Open(ctx, cached)
}

// install copies a program, so that its user can run the copy.
func install(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	return localfile.ReplaceBy(to, func(w io.Writer) error {
		if file, ok := w.(*os.File); ok {
			if err := file.Chmod(0o700); err != nil {
				return err
			}
		}
		_, err := io.Copy(w, source)
		return err
	})
}

// build builds the program as Kubernetes' developers do, with make.
func (s Source) build(ctx context.Context, r ui.Reporter) (suite.Binary, error) {
	folder, err := filepath.Abs(s.Build)
	if err != nil {
		return suite.Binary{}, err
	}
	if _, err := os.Stat(filepath.Join(folder, "test", "e2e", "e2e_test.go")); err != nil {
		return suite.Binary{}, fmt.Errorf("%s is no checkout of Kubernetes (%w); name the folder with its Makefile",
			folder, err)
	}
	r.Step("building e2e.test in %s", folder)
	bounded, cancel := context.WithTimeout(ctx, buildLimit)
	defer cancel()
	cmd := exec.CommandContext(bounded, "make", "-C", folder, "WHAT=test/e2e/e2e.test")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = wait.Program(cmd)
	if ctx.Err() != nil {
		return suite.Binary{}, context.Cause(ctx)
	}
	if err != nil {
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		return suite.Binary{}, fmt.Errorf("build e2e.test in %s: %w; the end of make's output:\n%s", folder, err,
			strings.Join(lines[max(0, len(lines)-20):], "\n"))
	}
	binary, err := suite.Open(ctx, filepath.Join(folder, "_output", "bin", programName))
	if err != nil {
		err = errors.Join(errors.New("make ended well, but its e2e.test cannot be used"), err)
	}
	return binary, err
}
