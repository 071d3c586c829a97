package swap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/hashcache"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/layout"
)

// Question asks what stands at a destination now.
type Question struct {
	Name        string
	Destination string
	Service     string // empty: none to look at
	// VersionArgs make the binary print its version; none: it is not run.
	VersionArgs []string
	// Processes of the machine, as listed by the caller.
	Processes []host.Process
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
	// Leftovers are files beside the destination that an interrupted swdt left
	// there; none while a transaction is under way is anybody's to remove.
	Leftovers     []string
	ServiceExists bool
	// Outdated reports that the service runs another file than this one.
	Outdated bool
	// RunBy are services of other names that run the file; looked for only if
	// the service does not exist.
	RunBy         []string
	Service       host.ServiceStatus
	ServiceConfig host.ServiceConfig
}

// Inspect looks at a component. It writes nothing.
func Inspect(ctx context.Context, h *host.Host, hashes *hashcache.Cache, q Question) (Answer, error) {
	var a Answer
	if err := a.inspectService(ctx, h, q.Service); err != nil {
		return a, err
	}
	a.Leftovers = leftovers(h.Files, q.Destination)
	info, err := h.Files.Stat(q.Destination)
	switch {
	case errors.Is(err, host.ErrNotExist):
	case err != nil:
		return a, fmt.Errorf("look at %s: %w", q.Destination, err)
	case info.Folder:
		a.Exists, a.Folder = true, true
		return a, nil
	default:
		a.Exists = true
		if a.SHA256, a.Size, err = hashes.Hash(ctx, q.Destination); err != nil {
			return a, fmt.Errorf("hash %s: %w", q.Destination, err)
		}
		a.Version = versionOf(ctx, h, q.Destination, q.VersionArgs)
		a.Outdated = a.outdated(h.Files, q, info)
	}
	if q.Service != "" && !a.ServiceExists {
		a.RunBy = runBy(ctx, h.Services, q.Destination)
	}
	return a, a.inspectPrevious(ctx, h, hashes, q)
}

func (a *Answer) inspectService(ctx context.Context, h *host.Host, service string) error {
	if service == "" {
		return nil
	}
	status, err := h.Services.Status(ctx, service)
	if errors.Is(err, host.ErrNoService) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at service %s: %w", service, err)
	}
	a.ServiceExists, a.Service = true, status
	if a.ServiceConfig, err = h.Services.Config(ctx, service); err != nil {
		return fmt.Errorf("read the registration of service %s: %w", service, err)
	}
	return nil
}

func (a *Answer) inspectPrevious(ctx context.Context, h *host.Host, hashes *hashcache.Cache, q Question) error {
	path := layout.Previous(q.Destination)
	sum, err := hashOrNothing(ctx, hashes, path)
	if err != nil {
		return fmt.Errorf("look at the previous binary: %w", err)
	}
	if sum != "" {
		a.PreviousPath, a.PreviousSHA256 = path, sum
		a.PreviousVersion = versionOf(ctx, h, path, q.VersionArgs)
	}
	return nil
}

// versionTimeout bounds a binary that does not know the version argument and
// runs on instead.
const versionTimeout = 10 * time.Second

// versionOf runs a binary for its version; empty where it does not tell.
func versionOf(ctx context.Context, h *host.Host, path string, args []string) string {
	if len(args) == 0 {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	var out limitedBuffer
	code, err := h.Processes.Run(ctx, host.Command{Path: path, Args: args, Stdout: &out, Stderr: &out})
	if err != nil || code != 0 {
		return ""
	}
	return findVersion(out.Bytes())
}

// findVersion is the first word that looks like a version, such as v1.29.0 in
// "Kubernetes v1.29.0"; empty if there is none.
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

// limitedBuffer keeps the beginning of what a program prints.
type limitedBuffer struct{ bytes.Buffer }

func (b *limitedBuffer) Write(p []byte) (int, error) {
	const most = 64 << 10
	if room := most - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
