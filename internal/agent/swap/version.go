package swap

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/agent/internal/hashcache"
	"github.com/swdt-dev/swdt/internal/format/bounded"
	"github.com/swdt-dev/swdt/internal/platform"
)

// versions are the versions of a transaction's new binaries, which are asked while the services settle.
type versions struct {
	stop  context.CancelFunc
	ended chan struct{}
	of    map[string]string // by component name; complete when ended is closed
}

// askVersions begins to ask the new binaries for their versions, if it has not begun yet. The binaries are in place.
func (t *transaction) askVersions(ctx context.Context) {
	if t.versions != nil {
		return
	}
	ctx, stop := context.WithTimeout(ctx, versionTimeout) // of all: the commit waits for the answers
	v := &versions{stop: stop, ended: make(chan struct{}), of: map[string]string{}}
	t.versions = v
	go func() {
		defer close(v.ended)
		for _, c := range t.plan.Components {
			if !c.swaps() || !c.AskVersion || ctx.Err() != nil {
				continue
			}
			// Only a file whose hash is known keeps its version in the cache.
			if _, _, err := t.Hashes.Hash(ctx, c.Destination); err == nil {
				v.of[c.Name] = versionOf(ctx, t.Platform, t.Hashes, c.Destination)
			}
		}
	}()
}

// await returns the versions by component name.
func (v *versions) await() map[string]string {
	<-v.ended
	return v.of
}

// giveUp ends the programs that are being asked. It returns when they have ended: the undo renames their files.
func (v *versions) giveUp() {
	if v != nil {
		v.stop()
		<-v.ended
	}
}

// versionTimeout limits how long versionOf runs a binary, since a binary that does not support the
// version argument may run on.
const versionTimeout = 10 * time.Second

// versionOf returns the version that a binary prints if it is run with --version, or "" if it prints none. It runs a
// binary only if hashes does not know its version: a large program needs a fifth of a second to print it.
func versionOf(ctx context.Context, p *platform.Platform, hashes *hashcache.Cache, path string) string {
	if version, ok := hashes.Version(path); ok {
		return version
	}
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	out := bounded.Head{Most: 64 << 10}
	code, err := p.Processes.Run(ctx, platform.Command{Path: path, Args: []string{"--version"}, Stdout: &out, Stderr: &out})
	if err != nil || code != 0 {
		return ""
	}
	version := findVersion(out.Bytes())
	hashes.LearnVersion(path, version)
	return version
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
