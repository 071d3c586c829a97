package node

import (
	"context"
	"time"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node/agentbin"
	"github.com/swdt-dev/swdt/internal/node/carrier"
	"github.com/swdt-dev/swdt/internal/node/ssh"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Prompter asks the person at the terminal.
type Prompter = ssh.Prompter

// Keyring keeps unlocked keys and passwords in memory, see ssh.Keyring.
type Keyring = ssh.Keyring

// NewKeyring returns an empty keyring, for all nodes of a command.
func NewKeyring() *Keyring { return ssh.NewKeyring() }

// Clusters reach nodes through their clusters, see viapod.Clusters.
type Clusters interface {
	// Way returns the way to a node whose credentials name a cluster. It contacts nothing.
	Way(config.Document, Options) (carrier.Way, error)
}

// Options configure connections to nodes; one value serves many nodes.
type Options struct {
	// Agent is the agent that the node runs; it is installed if it is missing.
	Agent agentbin.Agent
	// AgentFor returns the Agent of one node, before it is contacted. nil: all nodes get Agent.
	AgentFor func(context.Context, config.Document, ui.Reporter) (agentbin.Agent, error)
	// Prompt asks about unknown host keys, passphrases and passwords; nil if there is
	// no terminal.
	Prompt Prompter
	// AcceptNewHostKey adds the key of an unknown host to known_hosts without asking.
	// A changed key is always refused.
	AcceptNewHostKey bool
	// KnownHosts and SSHConfig are files; empty: the files in HomeDir's .ssh.
	KnownHosts string
	SSHConfig  string
	// HomeDir is the folder that holds .ssh; empty: the user's home folder.
	HomeDir string
	// StateFile lists the machines on which this user has restricted the agent's folder to
	// administrators; empty: swdt/machines.json in the user's cache folder.
	StateFile string
	// Locate completes the credentials of a machine whose address is known only when it is
	// contacted, such as a VM. nil: the document has all credentials. If Locate fails, the
	// machine counts as unreachable.
	Locate func(context.Context, config.Document) (config.Document, error)
	// Way reaches the node in place of the way that its credentials describe; nil: the credentials decide.
	Way carrier.Way
	// KeepPod leaves the pod on a node that is reached through its cluster, for the next contact.
	KeepPod bool
	// PullLimit bounds the time in which the image of that pod is pulled; 0: the default of package viapod.
	PullLimit time.Duration
	// SharedNamespace accepts a namespace for that pod in which other users of the cluster may get
	// into pods.
	SharedNamespace bool
	// Clusters is shared by the nodes of a command that are reached through their clusters, so that
	// each cluster and namespace is checked only once. nil: such nodes are not reached.
	Clusters Clusters
	// LookupEnv reads the environment (SSH_AUTH_SOCK, secrets); nil: os.LookupEnv.
	LookupEnv func(name string) (string, bool)
	// DialTimeout bounds the TCP connection and, separately, the SSH handshake, on every
	// hop. 0: 20 s.
	DialTimeout time.Duration
	// AgentTimeout bounds the start of the agent on the node. 0: 60 s.
	AgentTimeout time.Duration
	// Keyring remembers passphrases and passwords that were typed. For all nodes that share a
	// Keyring, swdt asks for each secret only once. nil: each node has its own.
	Keyring *Keyring
	// Reporter receives progress and warnings; nil: none are reported.
	Reporter ui.Reporter
}
