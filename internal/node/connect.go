package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node/carrier"
	"github.com/swdt-dev/swdt/internal/node/ssh"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Connect reaches the node, by SSH or through its cluster, and starts its agent. If the agent is missing, Connect
// installs it first. The error is an *UnreachableError, unless ctx was cancelled or Options.AgentFor failed.
func Connect(ctx context.Context, doc config.Document, opts Options) (*Node, error) {
	opts = opts.complete()
	if opts.AgentFor != nil {
		var err error
		if opts.Agent, err = opts.AgentFor(ctx, doc, opts.Reporter); err != nil {
			return nil, err
		}
	}
	if opts.Locate != nil {
		located, err := opts.Locate(ctx, doc)
		if err != nil {
			return nil, &UnreachableError{Node: doc.Node.Metadata.Name, Err: err}
		}
		doc = located
	}
	if doc.KnownHosts != "" {
		opts.KnownHosts, opts.AcceptNewHostKey = doc.KnownHosts, doc.AcceptNewHostKey
	}
	n := &Node{Name: doc.Node.Metadata.Name, opts: opts}
	var err error
	if n.way, err = wayTo(doc, opts); err != nil {
		return nil, &UnreachableError{Node: n.Name, Err: err}
	}
	n.caller = &caller{node: n.Name, calls: &n.calls}
	n.Machine = agentv1.NewMachineClient(n.caller)
	n.Services = agentv1.NewServicesClient(n.caller)
	n.Registry = agentv1.NewRegistryClient(n.caller)
	n.Files = agentv1.NewFilesClient(n.caller)
	n.Settings = agentv1.NewSettingsClient(n.caller)
	n.Processes = agentv1.NewProcessesClient(n.caller)
	n.Features = agentv1.NewFeaturesClient(n.caller)
	n.Firewall = agentv1.NewFirewallClient(n.caller)
	n.Network = agentv1.NewNetworkClient(n.caller)
	n.Compute = agentv1.NewComputeClient(n.caller)
	n.Swap = agentv1.NewSwapClient(n.caller)
	n.Capture = agentv1.NewCaptureClient(n.caller)
	if err := n.Reconnect(ctx); err != nil {
		n.way.Leave(ctx)
		return nil, err
	}
	return n, nil
}

// wayTo returns the way to a node that its credentials describe. It contacts nothing.
func wayTo(doc config.Document, opts Options) (carrier.Way, error) {
	if opts.Way != nil {
		return opts.Way, nil
	}
	if doc.Node.Spec.Credentials.Kubernetes == nil {
		return newSSHWay(target(doc, opts), opts), nil
	}
	if opts.Clusters == nil {
		return nil, errors.New("this program reaches no node through its cluster")
	}
	return opts.Clusters.Way(doc, opts)
}

// Close ends the agent and the connection. It waits up to 3 seconds until the agent has ended by
// itself. An agent that has ended by itself has released everything that it held on the node, such
// as the node's lock, so that the next agent can take the lock.
func (n *Node) Close() (err error) {
	if n.caller == nil { // n was not made by Connect, as in tests
		return nil
	}
	if l := n.caller.swap(nil); l != nil {
		err = l.close()
	}
	if n.way != nil {
		n.way.Leave(context.Background())
	}
	return err
}

// Reconnect makes a new connection to the node and starts the agent on it; the clients of n
// then work again. Like Connect, Reconnect returns an *UnreachableError, unless ctx was cancelled.
// After an error n is not connected, and Reconnect can be called again.
func (n *Node) Reconnect(ctx context.Context) error {
	if n.redial != nil {
		return n.redial(ctx)
	}
	if old := n.caller.swap(nil); old != nil {
		old.close() // an error is expected if the connection is broken
	}
	l, fresh, err := n.connect(ctx)
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return fmt.Errorf("connect: %w", ctx.Err())
	}
	if err != nil {
		return &UnreachableError{Node: n.Name, Err: err}
	}
	n.caller.swap(l)
	if fresh {
		n.tidy(ctx)
	}
	return nil
}

// OnReconnect makes Reconnect call f instead of connecting. Tests need it for nodes that have
// clients but no connection.
func (n *Node) OnReconnect(f func(context.Context) error) { n.redial = f }

// connect makes one connection with an agent at its other end. fresh reports whether the agent
// was installed first.
func (n *Node) connect(ctx context.Context) (l *link, fresh bool, err error) {
	n.opts.Reporter.Step("connecting to %s", n.way.Destination())
	n.connections.Add(1)
	begun := time.Now()
	conn, err := n.way.Connect(ctx)
	if err != nil {
		return nil, false, err
	}
	connected := time.Now()
	agent, fresh, err := n.runAgent(ctx, conn)
	if err != nil {
		conn.Close()
		return nil, false, err
	}
	l, err = newLink(conn, agent)
	if err != nil {
		conn.Close()
		return nil, false, err
	}
	n.connectTook.Store(int64(connected.Sub(begun)))
	n.agentTook.Store(int64(time.Since(connected)))
	return l, fresh, nil
}

// installTries bounds the installations of one connection. One installation may not be enough:
// another swdt that contacts the node for the first time may remove the agent again.
const installTries = 3

// runAgent starts the agent. If the machine is in this user's state file, runAgent first tries to
// start the agent, and installs it only if no agent of this version answers. So the usual case uses
// one channel and no additional request. On any other machine, runAgent always installs the agent
// first.
func (n *Node) runAgent(ctx context.Context, conn carrier.Connection) (agent carrier.Process, fresh bool, err error) {
	machines := newRestricted(n.opts.StateFile)
	machine, lasting := conn.Machine()
	known := machine != "" && (machine == n.machine || lasting && machines.has(machine))
	silent := &silentError{}
	var failed *carrier.FailedStart
	if known {
		agent, err = n.startAgent(ctx, conn)
		if !errors.As(err, &silent) {
			return agent, false, err
		}
		failed = &silent.FailedStart
	}
	for range installTries {
		if err := n.install(ctx, conn, failed, known); err != nil {
			return nil, false, err
		}
		if !known && machine != "" && lasting {
			if err := machines.add(machine); err != nil {
				n.opts.Reporter.Debug("remember this machine: %v", err)
			}
		}
		known, n.machine = true, machine
		agent, err = n.startAgent(ctx, conn)
		if !errors.As(err, &silent) {
			return agent, true, err
		}
		failed = &silent.FailedStart
	}
	return nil, false, n.blocked(ctx, conn, silent.FailedStart)
}

func (o Options) complete() Options {
	if o.LookupEnv == nil {
		o.LookupEnv = os.LookupEnv
	}
	if o.Keyring == nil {
		o.Keyring = ssh.NewKeyring()
	}
	if o.Reporter == nil {
		o.Reporter = ui.Discard{}
	}
	if o.DialTimeout <= 0 {
		o.DialTimeout = ssh.DefaultTimeout
	}
	if o.AgentTimeout <= 0 {
		o.AgentTimeout = 60 * time.Second
	}
	return o
}

func target(doc config.Document, opts Options) ssh.Target {
	c := doc.Node.Spec.Credentials
	t := ssh.Target{
		Host:       c.Hostname,
		User:       c.Username,
		HostKey:    c.HostKey,
		ProxyJump:  c.ProxyJump,
		Passphrase: secret(c.PassphraseFrom, doc, opts),
		Password:   secret(c.PasswordFrom, doc, opts),
	}
	if c.PrivateKey != "" {
		t.PrivateKey = doc.Resolve(c.PrivateKey)
	}
	if c.Password != "" {
		t.Password = func() (string, error) { return c.Password, nil }
	}
	return t
}

// secret returns a secret from the source that the node file names.
func secret(source *v1alpha1.SecretSource, doc config.Document, opts Options) ssh.Secret {
	if source == nil {
		return nil
	}
	return func() (string, error) { return doc.Secret(*source, opts.LookupEnv) }
}
