package node

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/swdt-dev/swdt/internal/node/carrier"
	"github.com/swdt-dev/swdt/internal/node/ssh"
)

// sshWay reaches a node by SSH.
type sshWay struct {
	target       ssh.Target
	options      ssh.Options
	shell        sshShell
	agentTimeout time.Duration
}

func newSSHWay(target ssh.Target, o Options) *sshWay {
	return &sshWay{target: target, agentTimeout: o.AgentTimeout, options: ssh.Options{
		Prompt:           o.Prompt,
		Keyring:          o.Keyring,
		AcceptNewHostKey: o.AcceptNewHostKey,
		KnownHosts:       o.KnownHosts,
		Config:           o.SSHConfig,
		HomeDir:          o.HomeDir,
		LookupEnv:        o.LookupEnv,
		Timeout:          o.DialTimeout,
	}}
}

func (w *sshWay) Destination() string   { return w.target.Host }
func (w *sshWay) Names() []string       { return ssh.Names(w.target, w.options) }
func (w *sshWay) Leave(context.Context) {}

func (w *sshWay) dial(ctx context.Context) (*ssh.Client, error) {
	return ssh.Dial(ctx, w.target, w.options)
}

func (w *sshWay) Connect(ctx context.Context) (carrier.Connection, error) {
	client, err := w.dial(ctx)
	if err != nil {
		return nil, err
	}
	return sshConnection{client, w}, nil
}

// sshConnection is an SSH connection as a carrier.Connection.
type sshConnection struct {
	*ssh.Client
	way *sshWay
}

// Machine returns the host key, which no other machine has.
func (c sshConnection) Machine() (identity string, lasting bool) { return c.HostKey(), true }

// Learn implements carrier.Learner.
func (c sshConnection) Learn(exitCode int) bool { return c.way.shell.learn(exitCode) }

func (c sshConnection) Start(ctx context.Context, program string, args ...string) (carrier.Process, error) {
	process, err := c.Client.Start(ctx, c.way.shell.program(program, args))
	if err != nil {
		return nil, err
	}
	return sshProcess{process}, nil
}

func (c sshConnection) Run(ctx context.Context, program string, args ...string) (carrier.Output, error) {
	out, err := c.Client.Run(ctx, c.way.shell.program(program, args))
	if err == nil && c.Learn(out.ExitCode) {
		out, err = c.Client.Run(ctx, c.way.shell.program(program, args))
	}
	return carrier.Output(out), err
}

func (c sshConnection) Stage(ctx context.Context, failed *carrier.FailedStart) (carrier.Stage, error) {
	stage, err := newSSHStage(ctx, c, failed)
	if err != nil {
		return nil, err
	}
	return stage, nil
}

// sshProcess is a program over SSH as a carrier.Process.
type sshProcess struct{ *ssh.Process }

func (p sshProcess) Input() io.WriteCloser { return p.Stdin }
func (p sshProcess) Output() io.Reader     { return p.Stdout }

// needsSSH returns the node's way if it is SSH. Otherwise it returns a *NeedsSSHError. doing is the
// attempted action.
func (n *Node) needsSSH(doing string) (*sshWay, error) {
	if way, ok := n.way.(*sshWay); ok {
		return way, nil
	}
	return nil, &NeedsSSHError{Doing: doing}
}

// NeedsSSHError reports work that only an SSH connection can do.
type NeedsSSHError struct{ Doing string }

func (e *NeedsSSHError) Error() string {
	return fmt.Sprintf("%s: this needs SSH, and the node is reached through its cluster; use a node file with "+
		"spec.credentials.hostname", e.Doing)
}
