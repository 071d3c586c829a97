package pktmon

import (
	"context"
	"time"

	"github.com/swdt-dev/swdt/internal/guard"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/layout"
)

// Argument is the agent's argument that makes it a capture's guardian.
const Argument = "capture"

// theGuardian is the service that owns this machine's capture. The SCM starts it
// again when it is killed, for a node that captures must not wait for a contact.
func theGuardian(m Machine) guard.Guardian {
	return guard.Guardian{
		Services:    m.Host.Services,
		Service:     layout.CaptureService,
		DisplayName: "swdt capture",
		Description: "Ends a packet capture that swdt began, then removes itself.",
		Guards:      "the capture",
		Executable:  m.Executable,
		Argument:    Argument,
		Recovery:    &host.Recovery{Restarts: []time.Duration{0, time.Second, 5 * time.Second}, Reset: time.Hour},
		Poll:        pollInterval,
	}
}

// startGuardian starts the guardian of a capture, which has run once the journal
// is past its beginning.
func startGuardian(ctx context.Context, m Machine, id string) error {
	return theGuardian(m).Start(ctx, id, func() bool {
		j, err := readJournal(m.Host.Files)
		return err == nil && j != nil && j.Plan.ID == id && j.State != Prepared
	})
}
