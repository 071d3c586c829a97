package pktmon

import (
	"context"
	"time"

	"github.com/swdt-dev/swdt/internal/agent/internal/guard"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/captureplan"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// Argument is the argument that runs the agent as a capture's guardian.
const Argument = "capture"

// guardianOf returns the service that owns this machine's capture. If this service is killed, the
// SCM starts it again at once, since a capture must end even if no swdt contacts the node.
func guardianOf(m Machine) guard.Guardian {
	return guard.Guardian{
		Services:    m.Platform.Services,
		Service:     layout.CaptureService,
		DisplayName: "swdt capture",
		Description: "Ends a packet capture that swdt began, then removes itself.",
		Guards:      "the capture",
		Executable:  m.Executable,
		Argument:    Argument,
		Recovery:    &platform.Recovery{Restarts: []time.Duration{0, time.Second, 5 * time.Second}, Reset: time.Hour},
		Poll:        pollInterval,
	}
}

// startGuardian starts the guardian of a capture. The guardian has run before if the journal's
// state is past the first one.
func startGuardian(ctx context.Context, m Machine, id string) error {
	return guardianOf(m).Start(ctx, id, func() bool {
		j, err := readJournal(m.Platform.Files)
		return err == nil && j != nil && j.Plan.ID == id && j.State != captureplan.Prepared
	})
}
