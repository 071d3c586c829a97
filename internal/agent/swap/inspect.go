package swap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/agent/internal/hashcache"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// Question names a destination to inspect.
type Question struct {
	Name        string
	Destination string
	Service     string // empty: no service
	// VersionArgs make the binary print its version; if empty, the binary is
	// not run.
	VersionArgs []string
	// Processes of the machine, as listed by the caller.
	Processes []platform.Process
}

// Answer is a component's state.
type Answer struct {
	Exists          bool
	Folder          bool   // the destination is a folder
	SHA256          string // of the binary at the destination
	Size            int64  // bytes
	Version         string // as the binary reports it; empty: unknown
	PreviousPath    string // of the kept previous binary; empty: none
	PreviousSHA256  string
	PreviousVersion string
	// Leftovers are files beside the destination that an interrupted swdt left there. While
	// a transaction is in flight, no other swdt may remove these files.
	Leftovers     []string
	ServiceExists bool
	// Outdated reports that the service runs a file other than the one at the destination.
	Outdated bool
	// RunBy are services with other names that run the file at the destination. It is set
	// only if the service named in the question does not exist.
	RunBy         []string
	Service       platform.ServiceStatus
	ServiceConfig platform.ServiceConfig
}

// Inspect inspects a component. It writes nothing.
func Inspect(ctx context.Context, p *platform.Platform, hashes *hashcache.Cache, q Question) (Answer, error) {
	var a Answer
	if err := a.inspectService(ctx, p, q.Service); err != nil {
		return a, err
	}
	a.Leftovers = leftovers(p.Files, q.Destination)
	info, err := p.Files.Stat(q.Destination)
	switch {
	case errors.Is(err, fault.ErrNotExist):
	case err != nil:
		return a, fmt.Errorf("inspect %s: %w", q.Destination, err)
	case info.Folder:
		a.Exists, a.Folder = true, true
		return a, nil
	default:
		a.Exists = true
		if a.SHA256, a.Size, err = hashes.Hash(ctx, q.Destination); err != nil {
			return a, fmt.Errorf("hash %s: %w", q.Destination, err)
		}
		a.Version = versionOf(ctx, p, q.Destination, q.VersionArgs)
		a.Outdated = a.outdated(p.Files, q, info)
	}
	if q.Service != "" && !a.ServiceExists {
		a.RunBy = runBy(ctx, p.Services, q.Destination)
	}
	return a, a.inspectPrevious(ctx, p, hashes, q)
}

func (a *Answer) inspectService(ctx context.Context, p *platform.Platform, service string) error {
	if service == "" {
		return nil
	}
	status, err := p.Services.Status(ctx, service)
	if errors.Is(err, fault.ErrNoService) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("query service %s: %w", service, err)
	}
	a.ServiceExists, a.Service = true, status
	if a.ServiceConfig, err = p.Services.Config(ctx, service); err != nil {
		return fmt.Errorf("read the registration of service %s: %w", service, err)
	}
	return nil
}

func (a *Answer) inspectPrevious(ctx context.Context, p *platform.Platform, hashes *hashcache.Cache, q Question) error {
	path := layout.Previous(q.Destination)
	sum, err := hashOrNothing(ctx, hashes, path)
	if err != nil {
		return fmt.Errorf("inspect the previous binary: %w", err)
	}
	if sum != "" {
		a.PreviousPath, a.PreviousSHA256 = path, sum
		a.PreviousVersion = versionOf(ctx, p, path, q.VersionArgs)
	}
	return nil
}

// versionTimeout limits how long a binary may run that does not support the version argument
// and so does not end.
const versionTimeout = 10 * time.Second

// versionOf runs a binary to get its version; empty if it prints none.
func versionOf(ctx context.Context, p *platform.Platform, path string, args []string) string {
	if len(args) == 0 {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	var out limitedBuffer
	code, err := p.Processes.Run(ctx, platform.Command{Path: path, Args: args, Stdout: &out, Stderr: &out})
	if err != nil || code != 0 {
		return ""
	}
	return findVersion(out.Bytes())
}

// findVersion returns the first word that looks like a version, such as v1.29.0
// in "Kubernetes v1.29.0"; empty if there is none.
func findVersion(output []byte) string {
	for word := range strings.FieldsSeq(string(output)) {
		word = strings.Trim(word, `",;:()`)
		major, rest, ok := strings.Cut(strings.TrimPrefix(word, "v"), ".")
		if _, err := strconv.Atoi(major); ok && err == nil && rest != "" && '0' <= rest[0] && rest[0] <= '9' {
			return word
		}
	}
	return ""
}

// limitedBuffer keeps the beginning of a program's output.
type limitedBuffer struct{ bytes.Buffer }

func (b *limitedBuffer) Write(p []byte) (int, error) {
	const most = 64 << 10
	if room := most - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
