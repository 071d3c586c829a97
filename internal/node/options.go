package node

import (
	"time"

	"github.com/swdt-dev/swdt/internal/agentbin"
	"github.com/swdt-dev/swdt/internal/ssh"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Prompter asks the person at the terminal.
type Prompter = ssh.Prompter

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
	// LookupEnv reads the environment (SSH_AUTH_SOCK, secrets); nil: os.LookupEnv.
	LookupEnv func(name string) (string, bool)
	// DialTimeout bounds the TCP connection and the SSH handshake, each, on
	// every hop. 0: 20 s.
	DialTimeout time.Duration
	// Reporter hears what is going on; nil: nobody does.
	Reporter ui.Reporter
}
