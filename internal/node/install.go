package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/swdt-dev/swdt/internal/node/carrier"
	"github.com/swdt-dev/swdt/internal/wire/handshake"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// install brings the agent to the node. failed is an earlier attempt to start the agent, or nil. The
// cause of its failure need not be a missing agent. known reports whether this user has restricted the
// agent's folder, so that its content can be trusted.
func (n *Node) install(ctx context.Context, conn carrier.Connection, failed *carrier.FailedStart, known bool) error {
	stage, err := conn.Stage(ctx, failed)
	if err != nil {
		return err
	}
	defer stage.Close()
	i := &installation{stage: stage, conn: conn, node: n, path: layout.Agent(n.opts.Agent.Hash), known: known}
	err = i.run(ctx)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("install the agent: %w", ctx.Err())
	}
	return err
}

// installation is one attempt to install the agent on the node.
type installation struct {
	stage carrier.Stage
	conn  carrier.Connection
	node  *Node
	path  string // the agent's path, as Windows spells it
	known bool   // the content of the agent's folder can be trusted
}

// run puts the agent into a place where no ordinary user of the node can write. It then runs this
// agent, which installs itself into its folder: only native calls can create that folder without a
// moment in which other users have access to it.
func (i *installation) run(ctx context.Context) error {
	if i.known {
		// If the agent's folder already has this agent, there are two cases: another swdt has
		// installed the agent since the failed start, or the start failed for another reason. In
		// both cases the caller starts the agent again, and that start reports any other reason.
		if there, err := i.stage.HasAgent(ctx, i.path, i.node.opts.Agent.Hash); err != nil || there {
			return err
		}
	}
	i.node.opts.Reporter.Step("installing the agent on %s", i.conn.Address())
	program, err := i.stage.Put(ctx, i.node.opts.Agent, i.node.opts.Reporter)
	if err != nil {
		return err
	}
	return i.install(ctx, program)
}

// install runs the uploaded agent once.
func (i *installation) install(ctx context.Context, uploaded string) error {
	const attempt = "install the agent"
	limited, cancel := context.WithTimeout(ctx, i.node.opts.AgentTimeout)
	defer cancel()
	out, err := i.conn.Run(limited, uploaded, handshake.InstallArgument)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil:
		return &NoAnswerError{Path: uploaded, Err: limited.Err()}
	case err != nil:
		return &InstallError{Attempt: attempt, Err: err}
	}
	result, ok := handshake.FindInstalled(out.Stdout)
	if !ok {
		return blockedOrShell(i.path, i.stage.Vanished(ctx, uploaded), out.ExitCode, out.Stdout+" "+out.Stderr)
	}
	if result.MovedAside != "" {
		i.node.opts.Reporter.Warn("%s: other users could change %s: moved it to %s, and made a new one. "+
			"Its records of earlier joins and traces are not used, since others could have changed them",
			i.node.Name, layout.Root, result.MovedAside)
	}
	reported := errors.New(result.Message)
	switch result.Failure {
	case "":
		return nil
	case handshake.NotAllowed:
		return &NotAdministratorError{Attempt: attempt, Err: reported}
	case handshake.DiskFull:
		return &carrier.DiskFullError{Path: i.path, Size: i.node.opts.Agent.Size, Err: reported}
	case handshake.Foreign:
		return &ForeignFolderError{Err: reported}
	default:
		return &InstallError{Attempt: attempt, Err: reported}
	}
}

// blocked returns the error for an agent that was just installed and still does not
// start.
func (n *Node) blocked(ctx context.Context, conn carrier.Connection, failed carrier.FailedStart) error {
	path := layout.Agent(n.opts.Agent.Hash)
	stage, err := conn.Stage(ctx, &failed)
	if err != nil {
		return err // the connection has broken: another try may succeed
	}
	defer stage.Close()
	return blockedOrShell(path, stage.Vanished(ctx, path), failed.ExitCode, failed.Output)
}
