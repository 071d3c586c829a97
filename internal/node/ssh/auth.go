package ssh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// passwordTries is how often the user may enter a password.
const passwordTries = 3

// login is the authentication to one hop: the credentials to try, and the results.
type login struct {
	hop      hop
	options  Options
	watchdog *watchdog

	key      ssh.Signer // the key in the node file; nil: none
	keyName  string
	password *string // the password in the node file; nil: none
	own      bool    // this hop is the target: if key or password is set, login tries only that credential

	tried, accepts, skipped []string
	passwords               int    // how often a password was sent
	server                  string // the version of the machine's SSH server
	failure                 error  // the error of a key that could not be decrypted
	typed                   string
	closers                 []func() error
}

func (l *login) account() string { return l.hop.user + "@" + l.hop.address() }

func (l *login) close() {
	for _, f := range l.closers {
		f() // closes the connection to an SSH agent; its error does not matter
	}
}

// methods returns the authentication methods in the order in which they are tried. The SSH library
// skips the methods that the machine does not accept.
func (l *login) methods(ctx context.Context) []ssh.AuthMethod {
	if l.own && l.password != nil {
		return l.passwordMethods(ctx)
	}
	methods := []ssh.AuthMethod{ssh.PublicKeysCallback(func() ([]ssh.Signer, error) {
		return l.signers(ctx), nil
	})}
	if l.own && l.key != nil {
		return methods
	}
	return append(methods, l.passwordMethods(ctx)...)
}

// note is called before each attempt. It records the methods that the machine accepts.
func (l *login) note(c *ssh.ClientAuthContext) (ssh.AuthMethod, error) {
	l.accepts, l.server = c.AllowedMethods, string(c.Metadata.ServerVersion())
	return nil, nil // continue with the next method
}

// refusedMethods lists the credentials of the node file that were not tried, because the machine
// does not accept their method.
func (l *login) refusedMethods() []string {
	takes := func(methods ...string) bool {
		return slices.ContainsFunc(methods, func(m string) bool { return slices.Contains(l.accepts, m) })
	}
	switch {
	case l.own && l.password != nil && !takes("password", "keyboard-interactive"):
		return []string{"the password (the machine accepts none)"}
	case l.own && l.key != nil && !takes("publickey"):
		return []string{l.keyName + " (the machine accepts no keys)"}
	}
	return nil
}

// ------------------------------------------------------------------- keys

func (l *login) signers(ctx context.Context) []ssh.Signer {
	var set signerSet
	if l.key != nil {
		set.add(l.key, l.keyName)
	}
	if !l.own || l.key == nil {
		l.addUsual(ctx, &set)
	}
	if len(set.signers) > 0 {
		l.tried = append(l.tried, "publickey ("+strings.Join(set.names, ", ")+")")
	}
	for i, signer := range set.signers {
		set.signers[i] = &pausingSigner{signer, l.watchdog}
	}
	return set.signers
}

// addUsual adds the keys that the ssh command would offer, each once: the keys configured for
// this host and, unless IdentitiesOnly is set, the keys of the SSH agent and the default keys.
// If the SSH agent has an encrypted key too, the agent signs, so that no passphrase is needed.
func (l *login) addUsual(ctx context.Context, set *signerSet) {
	held := l.agentSigners(ctx)
	for _, path := range l.hop.identityFiles {
		l.addFile(ctx, set, path, held)
	}
	if l.hop.identitiesOnly {
		return
	}
	for _, signer := range held {
		set.add(signer, "SSH agent's "+ssh.FingerprintSHA256(signer.PublicKey()))
	}
	for _, name := range []string{"id_ed25519", "id_ecdsa", "id_rsa"} {
		l.addFile(ctx, set, filepath.Join(l.options.HomeDir, ".ssh", name), held)
	}
}

func (l *login) addFile(ctx context.Context, set *signerSet, path string, held []ssh.Signer) {
	k, err := readKey(path)
	var problem *KeyFileError
	switch {
	case errors.As(err, &problem) && problem.Problem == KeyMissing:
		return
	case errors.As(err, &problem):
		l.skipped = append(l.skipped, fmt.Sprintf("%s (%s)", path, problem.Problem))
		return
	case k.signer != nil:
		set.add(k.signer, path)
	case signerOf(held, k.public) != nil:
		set.add(signerOf(held, k.public), path)
	case k.public == nil || l.options.Prompt == nil:
		l.skipped = append(l.skipped, fmt.Sprintf("%s (%s)", path, KeyNeedsPassphrase))
	default:
		set.add(l.lazily(ctx, k), path)
	}
}

// lazily returns a signer for an encrypted key. It asks for the passphrase only if the machine
// accepts the key.
func (l *login) lazily(ctx context.Context, k *keyFile) ssh.Signer {
	return &lockedSigner{public: k.public, unlock: func() (ssh.Signer, error) {
		signer, err := l.options.Keyring.key(k.path, func() (ssh.Signer, error) {
			return k.unlock(ctx, nil, l.options.Prompt)
		})
		if err != nil {
			l.failure = err
		}
		return signer, err
	}}
}

func (l *login) agentSigners(ctx context.Context) []ssh.Signer {
	socket := agentSocket(l.hop, l.options)
	if socket == "" {
		return nil
	}
	l.watchdog.pause() // an agent that does not answer is skipped, and the login goes on
	defer l.watchdog.resume()
	keys, end, err := agentKeys(ctx, socket, l.options.Timeout)
	if err != nil {
		if socket != defaultAgent { // on Windows it is usual that no agent runs
			l.skipped = append(l.skipped, fmt.Sprintf("the SSH agent at %s (%v)", socket, err))
		}
		return nil
	}
	l.closers = append(l.closers, end)
	return keys
}

// agentSocket returns the address of the hop's SSH agent; "" if there is none.
func agentSocket(h hop, o Options) string {
	if strings.EqualFold(h.identityAgent, "none") {
		return ""
	}
	configured := h.identityAgent
	if strings.EqualFold(configured, "SSH_AUTH_SOCK") {
		configured = ""
	}
	if name, ok := strings.CutPrefix(configured, "$"); ok {
		configured, _ = o.LookupEnv(name)
	}
	if configured != "" {
		return configured
	}
	if socket, ok := o.LookupEnv("SSH_AUTH_SOCK"); ok && socket != "" {
		return socket
	}
	return defaultAgent
}

func signerOf(signers []ssh.Signer, public ssh.PublicKey) ssh.Signer {
	if public == nil {
		return nil
	}
	for _, s := range signers {
		if bytes.Equal(s.PublicKey().Marshal(), public.Marshal()) {
			return s
		}
	}
	return nil
}

// signerSet is a list of keys without duplicates, in the order in which they were added.
type signerSet struct {
	signers []ssh.Signer
	names   []string
}

func (s *signerSet) add(signer ssh.Signer, name string) {
	if signerOf(s.signers, signer.PublicKey()) == nil {
		s.signers = append(s.signers, signer)
		s.names = append(s.names, name)
	}
}

// -------------------------------------------------------------- passwords

// passwordMethods returns the two methods by which a server may accept a password.
func (l *login) passwordMethods(ctx context.Context) []ssh.AuthMethod {
	if l.own && l.password != nil {
		return []ssh.AuthMethod{
			ssh.PasswordCallback(func() (string, error) {
				l.trying("password")
				return *l.password, nil
			}),
			ssh.KeyboardInteractive(l.answerOnce(func(string) (string, error) { return *l.password, nil })),
		}
	}
	remembered, known := l.options.Keyring.password(l.account())
	if l.options.Prompt == nil && !known {
		return nil
	}
	ask := func(question string) (string, error) {
		if known {
			known = false // if the remembered password is wrong by now, the next try asks the user
			return remembered, nil
		}
		if l.options.Prompt == nil {
			return "", errors.New("there is no terminal to ask on")
		}
		l.watchdog.pause()
		defer l.watchdog.resume()
		password, err := l.options.Prompt.Secret(ctx, question)
		l.typed = password
		return password, err
	}
	return []ssh.AuthMethod{
		ssh.RetryableAuthMethod(ssh.PasswordCallback(func() (string, error) {
			l.trying("password")
			return ask("Password of " + l.account() + ": ")
		}), passwordTries),
		ssh.KeyboardInteractive(l.answerOnce(func(question string) (string, error) {
			return ask(l.account() + ": " + question)
		})),
	}
}

// trying notes that a password is sent with this method.
func (l *login) trying(method string) {
	l.tried = append(l.tried, method)
	l.passwords++
}

// answerOnce returns a challenge that answers one round of questions, and fails in a second round.
// It refuses a question whose answer would be visible, since a password prompt never shows the
// answer.
func (l *login) answerOnce(answer func(question string) (string, error)) ssh.KeyboardInteractiveChallenge {
	answered := false
	return func(_, _ string, questions []string, visible []bool) ([]string, error) {
		if len(questions) == 0 {
			return nil, nil
		}
		if answered {
			return nil, errors.New("the machine asks again")
		}
		answered = true
		l.trying("keyboard-interactive")
		answers := make([]string, len(questions))
		for i, question := range questions {
			if visible[i] {
				return nil, fmt.Errorf("the machine asks %q, which is not for a password", question)
			}
			var err error
			if answers[i], err = answer(question); err != nil {
				return nil, err
			}
		}
		return answers, nil
	}
}

// succeeded stores, for the next connection, the password that the user typed.
func (l *login) succeeded() {
	if l.typed != "" {
		l.options.Keyring.keepPassword(l.account(), l.typed)
	}
}
