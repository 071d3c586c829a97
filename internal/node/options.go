package node

import (
	"time"

	"github.com/swdt-dev/swdt/internal/agentbin"
	"github.com/swdt-dev/swdt/internal/ssh"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Prompter asks the person at the terminal.
type Prompter = ssh.Prompter

// Keyring remembers in memory what was typed.
type Keyring = ssh.Keyring

// NewKeyring returns an empty keyring, for all nodes of a command.
func NewKeyring() *Keyring { return ssh.NewKeyring() }

// Options say how nodes are reached; one value serves many nodes.
type Options struct {
	// Agent is the agent that the node runs; it is installed if it is missing.
	Agent agentbin.Agent
	// Prompt asks about unknown host keys, passphrases and passwords; nil where
	// there is no terminal.
	Prompt Prompter
	// AcceptNewHostKey adds the key of a host that is not known to known_hosts
	// without asking. A changed key is always refused.
	AcceptNewHostKey bool
	// KnownHosts and SSHConfig are files; empty: those in HomeDir's .ssh.
	KnownHosts string
	SSHConfig  string
	// HomeDir holds .ssh; empty: the user's.
	HomeDir string
	// StateFile remembers on which machines this user has restricted the agent's
	// folder to administrators; empty: in the user's cache folder.
	StateFile string
	// LookupEnv reads the environment (SSH_AUTH_SOCK, secrets); nil: os.LookupEnv.
	LookupEnv func(name string) (string, bool)
	// DialTimeout bounds the TCP connection and the SSH handshake, each, on
	// every hop. 0: 20 s.
	DialTimeout time.Duration
	// AgentTimeout bounds the start of the agent on the node. 0: 60 s.
	AgentTimeout time.Duration
	// Keyring remembers passphrases and passwords that were typed. Nodes that
	// share one ask for each only once; nil: each node has its own.
	Keyring *Keyring
	// Reporter hears what is going on; nil: nobody does.
	Reporter ui.Reporter
}
