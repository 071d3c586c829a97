package ssh

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/swdt-dev/swdt/internal/localfile"
)

// Target is the machine to connect to, with its credentials.
type Target struct {
	// Host is a name or an address, alone or with :port, or a Host of the SSH config. An IPv6
	// address with a port is [IPv6]:port.
	Host string
	// User is the login name; empty: the User of the SSH config, else DefaultUser.
	User string
	// PrivateKey is the path of the only key to try on the target; empty: the keys that ssh would
	// try.
	PrivateKey string
	// Passphrase decrypts PrivateKey; nil: the SSH agent signs if it has the key, else Prompt asks.
	Passphrase Secret
	// Password is the only credential to try on the target; nil: not used.
	Password Secret
	// HostKey is the fingerprint (SHA256:…) of the only acceptable host key. known_hosts can then
	// only revoke that key. Empty: known_hosts decides.
	HostKey string
	// ProxyJump is [user@]host[:port], or several of them separated by commas. Empty:
	// the value in the SSH config. "none": no jump host.
	ProxyJump string
}

// DefaultUser is the login name if none is configured.
const DefaultUser = "Administrator"

// Secret reads a secret. It is called only when the secret is needed.
type Secret func() (string, error)

// Options are the settings that targets share.
type Options struct {
	// Prompt asks the person at the terminal; nil: there is no terminal.
	Prompt Prompter
	// Keyring shares typed secrets between connections; nil: not shared.
	Keyring *Keyring
	// AcceptNewHostKey trusts hosts that known_hosts does not have, and adds them.
	AcceptNewHostKey bool
	// KnownHosts and Config are files; empty: known_hosts and config in HomeDir/.ssh.
	KnownHosts string
	Config     string
	HomeDir    string
	LookupEnv  func(name string) (string, bool)
	// Timeout bounds the TCP connection, the SSH handshake of each hop, and the SSH agent's answer to
	// which keys it has, each separately. The time that a person takes to answer a prompt, or that a
	// key or the SSH agent takes to sign, does not count.
	Timeout time.Duration
	// Warn receives problems that do not stop the connection; nil: none are reported.
	Warn func(format string, args ...any)
}

// DefaultTimeout is long enough for a node that is still booting.
const DefaultTimeout = 20 * time.Second

// Prompter asks the person at the terminal. Implementations are safe for
// concurrent use and ask one question at a time.
type Prompter interface {
	// Confirm asks a question that is answered with yes or no.
	Confirm(ctx context.Context, question string) (bool, error)
	// Secret asks for a password or passphrase, which is not shown.
	Secret(ctx context.Context, question string) (string, error)
}

func (o Options) complete() (Options, error) {
	if o.HomeDir == "" {
		home, err := localfile.Home()
		if err != nil { // without a home folder, swdt must not use .ssh in the current folder
			return o, &RouteError{Where: "your SSH files", Err: err}
		}
		o.HomeDir = home
	}
	if o.KnownHosts == "" {
		o.KnownHosts = filepath.Join(o.HomeDir, ".ssh", "known_hosts")
	}
	if o.Config == "" {
		o.Config = filepath.Join(o.HomeDir, ".ssh", "config")
	}
	if o.LookupEnv == nil {
		o.LookupEnv = os.LookupEnv
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Keyring == nil {
		o.Keyring = NewKeyring()
	}
	if o.Warn == nil {
		o.Warn = func(string, ...any) {}
	}
	return o, nil
}
