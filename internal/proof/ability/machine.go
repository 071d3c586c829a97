package ability

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/join"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

const (
	// rebootLimit bounds a reboot.
	rebootLimit = 20 * time.Minute
	holder      = "swdt readiness run"
)

// Machine is a way to a node that does not need its cluster.
type Machine interface {
	// Restart stops a service with the services that depend on it, starts them again, and waits until they run.
	Restart(ctx context.Context, service string) error
	// Reboot restarts the machine, and waits until it has come back.
	Reboot(ctx context.Context) error
	Close()
}

// Machines returns the function of Options.Machine for node files.
func Machines(documents []config.Document, connect func(context.Context, config.Document, ui.Reporter) (*node.Node,
	func(), error)) func(context.Context, cluster.Node, ui.Reporter) (Machine, error) {
	return func(ctx context.Context, n cluster.Node, r ui.Reporter) (Machine, error) {
		i := slices.IndexFunc(documents, func(d config.Document) bool { return node.LikelyObjectName(d.Node) == n.Name })
		if i < 0 {
			return nil, &UnavailableError{"no node file names node " + n.Name + ": -c names one"}
		}
		opened, hangUp, err := connect(ctx, documents[i], r)
		if err != nil {
			return nil, err
		}
		m := &machine{node: opened, hangUp: hangUp}
		if err := m.open(ctx, n); err != nil {
			hangUp()
			return nil, err
		}
		return m, nil
	}
}

// machine is a node that swdt has connected to.
type machine struct {
	node   *node.Node
	hangUp func()
	bootID string
}

// open checks that the machine is that of the Node object, and locks it.
func (m *machine) open(ctx context.Context, n cluster.Node) error {
	uuid, err := m.node.SystemUUID(ctx)
	if err != nil {
		return err
	}
	if same, known := cluster.SameMachine(uuid, n.SystemUUID); known && !same {
		return &cluster.OtherMachineError{Node: n.Name, UUID: n.SystemUUID, Machine: uuid}
	}
	facts, err := m.node.Machine.Facts(ctx, &agentv1.FactsRequest{})
	if err != nil {
		return fmt.Errorf("read the boot id: %w", err)
	}
	m.bootID = facts.GetBootId()
	if err := m.node.Lock(ctx, holder); err != nil {
		return fmt.Errorf("lock the node: %w", err)
	}
	return nil
}

// Close unlocks the node, and ends the connection.
func (m *machine) Close() { m.hangUp() } // the lock ends with the session

// Restart restarts a service.
func (m *machine) Restart(ctx context.Context, service string) error {
	return join.RestartService(ctx, m.node, service)
}

// Reboot restarts the machine.
func (m *machine) Reboot(ctx context.Context) error {
	_, err := m.node.Machine.Reboot(ctx, &agentv1.RebootRequest{Reason: holder})
	var lost *node.LostError
	if err != nil && !errors.As(err, &lost) { // a lost connection may be the reboot
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, rebootLimit)
	defer cancel()
	return m.node.AwaitReboot(ctx, m.bootID)
}
