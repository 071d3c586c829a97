package pktmon

import (
	"errors"

	"github.com/swdt-dev/swdt/internal/platform"
)

// ErrBusy reports that another swdt captures on this node.
var ErrBusy = errors.New("another swdt captures on this node")

// Machine is the machine on which a capture runs.
type Machine struct {
	Platform   *platform.Platform
	Executable string // the agent's own path
}
