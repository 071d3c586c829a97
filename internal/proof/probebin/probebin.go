// Package probebin holds the builds of swdt-probe, compressed, inside the swdt executable. `make build`
// builds and packs them; they are never committed. A plain `go build` of a fresh clone works without
// them; Embedded then returns an error with the remedy.
package probebin

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/swdt-dev/swdt/internal/node/agentbin"
)

// The folder has a .md file that this pattern matches too, so that the package compiles in a fresh clone.
//
//go:embed swdt-probe*
var embedded embed.FS

// maxSize bounds the size of a probe, in bytes.
const maxSize = 32 << 20

// Targets returns the systems and processors that `make build` builds probes for, such as linux/amd64.
func Targets() []string { return []string{"linux/amd64", "linux/arm64", "windows/amd64"} }

// MissingError reports that this swdt has no probe for a system.
type MissingError struct{ System, Processor string }

func (e *MissingError) Error() string {
	return fmt.Sprintf("this swdt was built without the probe for %s/%s: build it with `make build`, "+
		"which has probes for %s", e.System, e.Processor, strings.Join(Targets(), ", "))
}

// Embedded returns the executable for nodes with a system, such as windows, and a processor, such as
// amd64. The error is a *MissingError if there is none.
func Embedded(system, processor string) ([]byte, error) { return fromFS(embedded, system, processor) }

func fromFS(files fs.FS, system, processor string) ([]byte, error) {
	name := "swdt-probe-" + system + "-" + processor + ".zst"
	if !fs.ValidPath(name) {
		return nil, &MissingError{system, processor}
	}
	packed, err := fs.ReadFile(files, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &MissingError{system, processor}
	}
	if err != nil {
		return nil, fmt.Errorf("read the embedded probe: %w", err)
	}
	program, err := agentbin.Unpack(packed)
	if err != nil {
		return nil, fmt.Errorf("read the embedded probe for %s on %s: %w", system, processor, err)
	}
	body, err := program.Open()
	if err != nil {
		return nil, fmt.Errorf("read the embedded probe: %w", err)
	}
	defer body.Close()
	executable, err := io.ReadAll(io.LimitReader(body, maxSize))
	if err != nil {
		return nil, fmt.Errorf("decompress the embedded probe: %w", err)
	}
	return executable, nil
}
