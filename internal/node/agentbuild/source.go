package agentbuild

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"golang.org/x/mod/sumdb/dirhash"
)

const modulePath = "github.com/swdt-dev/swdt"

// source is the source of a swdt: a version of its module, of which the sum is known, or a revision of a
// checkout.
type source struct {
	version, sum       string
	checkout, revision string
	compiler           string // Go's version
}

func (s source) name() string {
	if s.sum != "" {
		return s.version
	}
	return s.checkout
}

// NoSourceError reports that the source of a swdt is not known for sure.
type NoSourceError struct{ Why string }

func (e *NoSourceError) Error() string {
	return "this swdt has no agent and no probes inside, and " + e.Why + ", so that it cannot build them: " +
		"build swdt with `make build`, or install a version of it with go install"
}

// OtherSourceError reports that the source is not that of this swdt.
type OtherSourceError struct{ Where, Got, Want string }

func (e *OtherSourceError) Error() string {
	return fmt.Sprintf("%s is not the source of this swdt: it has %s, and this swdt was built from %s", e.Where, e.Got,
		e.Want)
}

// source returns where the source of the swdt is. It contacts nothing.
func (b *Builder) source() (source, error) {
	info := b.Info
	if info == nil {
		own, ok := debug.ReadBuildInfo()
		if !ok {
			return source{}, &NoSourceError{"Go has recorded nothing about it"}
		}
		info = own
	}
	s := source{compiler: info.GoVersion}
	switch main := info.Main; {
	case main.Path != modulePath || main.Replace != nil:
		return s, &NoSourceError{"it is part of another module"}
	case main.Sum != "":
		s.version, s.sum = main.Version, main.Sum
		return s, nil
	}
	settings := map[string]string{}
	for _, setting := range info.Settings {
		settings[setting.Key] = setting.Value
	}
	s.checkout, s.revision = cmp.Or(b.Checkout, compiledIn()), settings["vcs.revision"]
	switch {
	case settings["vcs"] != "git" || s.revision == "":
		return s, &NoSourceError{"Go has not recorded its version"}
	case settings["vcs.modified"] != "false":
		return s, &NoSourceError{"its source had changes that were not committed"}
	case s.checkout == "":
		return s, &NoSourceError{"Go has not recorded the folder of its source"}
	}
	return s, nil
}

// compiledIn returns the root of the source from which this swdt was compiled, or "" if that was recorded
// without its folder, as with -trimpath.
func compiledIn() string {
	_, file, _, _ := runtime.Caller(0)
	if !filepath.IsAbs(file) {
		return ""
	}
	return filepath.Join(filepath.Dir(file), "..", "..", "..")
}

// folder returns the folder of the source, after comparing it with the swdt.
func (s source) folder(ctx context.Context, g golang) (string, error) {
	if s.sum == "" {
		return s.checkout, s.compareCheckout(ctx, g)
	}
	downloaded, err := g.download(ctx, modulePath+"@"+s.version)
	if err != nil {
		return "", err
	}
	// Go compares what it downloads with its checksum database, unless the environment forbids that. This
	// compares the files themselves, also those of an earlier download.
	sum, err := dirhash.HashDir(downloaded, modulePath+"@"+s.version, dirhash.Hash1)
	if err != nil {
		return "", fmt.Errorf("read the source of swdt: %w", err)
	}
	if sum != s.sum {
		return "", &OtherSourceError{downloaded, sum, s.sum}
	}
	return downloaded, nil
}

// compareCheckout returns an error unless the checkout still is at the revision, without changes.
func (s source) compareCheckout(ctx context.Context, g golang) error {
	head, err := g.run(ctx, "git", "-C", s.checkout, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	if head = strings.TrimSpace(head); head != s.revision {
		return &OtherSourceError{s.checkout, head, s.revision}
	}
	changes, err := g.run(ctx, "git", "-C", s.checkout, "status", "--porcelain")
	if err != nil {
		return err
	}
	if changes != "" {
		return &OtherSourceError{s.checkout, "changes", s.revision}
	}
	return nil
}
