package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
)

// Dial connects to the target over all hops of its route. ctx bounds the dialing, not the
// connection. Most errors have a type of this package, and are wrapped in a JumpError if a jump
// host failed. If ctx was cancelled, Dial returns ctx's error.
func Dial(ctx context.Context, target Target, opts Options) (*Client, error) {
	opts, err := opts.complete()
	if err != nil {
		return nil, err
	}
	client, err := dial(ctx, target, opts)
	if err != nil {
		return nil, withLeftOut(err, opts)
	}
	client.further.dial = func(ctx context.Context) (*Client, error) { return dial(ctx, target, opts) }
	return client, nil
}

// LeftOutError reports that a connection has failed, and that ssh may have used more of the SSH config than swdt did.
type LeftOutError struct {
	Err   error
	Lines []string // each as FILE:LINE (TEXT)
}

func (e *LeftOutError) Error() string {
	return fmt.Sprintf("%v; swdt does not know the conditions of %s, so it used nothing of these blocks", e.Err,
		strings.Join(e.Lines, ", "))
}

func (e *LeftOutError) Unwrap() error { return e.Err }

// withLeftOut adds the Match blocks of the SSH config that were not used to the error of a connection.
func withLeftOut(err error, opts Options) error {
	config, readErr := readConfig(opts)
	if readErr != nil || len(config.leftOut) == 0 {
		return err
	}
	return &LeftOutError{err, config.leftOut}
}

func dial(ctx context.Context, target Target, opts Options) (*Client, error) {
	d := dialer{target: target, options: opts}
	hops, err := route(target, d.options)
	if err != nil {
		return nil, err
	}
	defer d.close()
	if err := d.prepare(ctx, hops[len(hops)-1]); err != nil {
		return nil, err
	}
	var chain []*ssh.Client
	for i, h := range hops {
		own := i == len(hops)-1
		client, err := d.connect(ctx, h, chain, hops[:i], own)
		if err != nil {
			closeAll(chain)
			if ctx.Err() != nil && errors.Is(err, context.Canceled) {
				return nil, fmt.Errorf("connect to %s: %w", h.address(), err)
			}
			return nil, withJumpHost(err, h, own)
		}
		chain = append(chain, client)
	}
	return newClient(chain, hops[len(hops)-1], d.hostKey), nil
}

// withJumpHost returns err wrapped in a JumpError that names the jump host h. It returns err
// unchanged if h is the target (own) or if err already names a jump host.
func withJumpHost(err error, h hop, own bool) error {
	var jump *JumpError
	if own || errors.As(err, &jump) {
		return err
	}
	return &JumpError{Host: h.address(), Err: err}
}

func closeAll(chain []*ssh.Client) error {
	var errs []error
	for _, c := range slices.Backward(chain) {
		if err := c.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

type dialer struct {
	target  Target
	options Options

	key      ssh.Signer
	keyName  string
	password *string
	hostKey  string // fingerprint of the key that the latest hop has shown
	closers  []func() error
}

func (d *dialer) close() {
	for _, f := range d.closers {
		f() // closes the connection to an SSH agent; its error does not matter
	}
}

// prepare reads the target's credentials. dial calls it before it contacts any machine, so that
// problems of the credentials are reported first.
func (d *dialer) prepare(ctx context.Context, last hop) error {
	if d.target.Password != nil {
		password, err := d.target.Password()
		if err != nil {
			return &SecretError{What: "password", Err: err}
		}
		d.password = &password
	}
	if d.target.PrivateKey == "" {
		return nil
	}
	k, err := readKey(d.target.PrivateKey)
	if err != nil {
		return err
	}
	d.keyName = k.path
	d.key, err = d.signer(ctx, k, last)
	return err
}

func (d *dialer) signer(ctx context.Context, k *keyFile, last hop) (ssh.Signer, error) {
	if k.signer != nil {
		return k.signer, nil
	}
	if d.target.Passphrase == nil {
		if held := d.fromAgent(ctx, k, last); held != nil {
			return held, nil
		}
	}
	return d.options.Keyring.key(k.path, func() (ssh.Signer, error) {
		return k.unlock(ctx, d.target.Passphrase, d.options.Prompt)
	})
}

// fromAgent returns the SSH agent's signer for the key, so that no passphrase is needed; nil if
// the agent does not have the key.
func (d *dialer) fromAgent(ctx context.Context, k *keyFile, last hop) ssh.Signer {
	socket := agentSocket(last, d.options)
	if socket == "" {
		return nil
	}
	keys, end, err := agentKeys(ctx, socket, d.options.Timeout)
	if err != nil {
		if socket != defaultAgent { // on Windows it is usual that no agent runs
			d.options.Warn("skipped the SSH agent at %s: %v", socket, err)
		}
		return nil // the caller then asks for the passphrase
	}
	d.closers = append(d.closers, end)
	return signerOf(keys, k.public)
}

// connect makes the connection to one hop. It dials through the last client of chain.
func (d *dialer) connect(ctx context.Context, h hop, chain []*ssh.Client, before []hop, own bool) (*ssh.Client, error) {
	via := ""
	if len(before) > 0 {
		via = before[len(before)-1].address()
	}
	attempt := func(algorithms []string) (*ssh.Client, error) {
		conn, err := d.dial(ctx, h, chain, via)
		if err != nil {
			return nil, err
		}
		client, err := d.handshake(ctx, conn, h, own, algorithms)
		if err != nil {
			conn.Close()
		}
		return client, err
	}
	client, err := attempt(nil)
	var mismatch *HostKeyChangedError
	if !errors.As(err, &mismatch) || mismatch.Pinned == "" {
		return client, err
	}
	// A machine has several host keys, and may first show another key than the pinned one.
	for _, algorithms := range otherFamilies(mismatch.Type) {
		if client, err := attempt(algorithms); err == nil {
			return client, nil
		}
	}
	return nil, err
}

func (d *dialer) dial(ctx context.Context, h hop, chain []*ssh.Client, via string) (net.Conn, error) {
	begun := time.Now()
	limited, cancel := context.WithTimeout(ctx, d.options.Timeout)
	defer cancel()
	var conn net.Conn
	var err error
	if len(chain) == 0 {
		conn, err = new(net.Dialer).DialContext(limited, "tcp", h.address())
	} else {
		conn, err = chain[len(chain)-1].DialContext(limited, "tcp", h.address())
	}
	if err == nil {
		return conn, nil
	}
	if ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled) {
		return nil, ctx.Err()
	}
	return nil, classifyDial(err, h, via, time.Since(begun))
}

func classifyDial(err error, h hop, via string, after time.Duration) error {
	var name *net.DNSError
	var channel *ssh.OpenChannelError
	var network net.Error
	switch {
	case errors.As(err, &channel) && channel.Reason == ssh.Prohibited:
		return &JumpError{Host: via, Err: &NoForwardingError{Address: h.address(), Err: err}}
	case errors.As(err, &channel):
		return &NoRouteError{Address: h.address(), Via: via, Err: err}
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout() &&
		!errors.As(err, &name):
		return &TimeoutError{Address: h.address(), During: "connection", After: after, Err: err}
	case errors.As(err, &name):
		return &NameError{Host: h.host, Err: err}
	case isRefused(err):
		return &RefusedError{Address: h.address(), Err: err}
	case isNoRoute(err):
		return &NoRouteError{Address: h.address(), Err: err}
	case via != "":
		return &JumpError{Host: via, Err: &DialError{Address: h.address(), Err: err}}
	default:
		return &DialError{Address: h.address(), Err: err}
	}
}

// handshake checks the host's key and logs in. If the handshake takes longer than the timeout, or
// if ctx ends, handshake closes the connection.
func (d *dialer) handshake(ctx context.Context, conn net.Conn, h hop, own bool, algorithms []string) (
	*ssh.Client, error) {
	dog := newWatchdog(d.options.Timeout, func() { conn.Close() })
	defer dog.stop()
	unhook := context.AfterFunc(ctx, func() { conn.Close() })
	defer unhook()

	options := d.options
	if options.Prompt != nil {
		options.Prompt = unhurried{d.options.Prompt, dog}
	}
	keys, err := newHostKeys(options, d.pin(own))
	if err != nil {
		return nil, err
	}
	if algorithms == nil {
		algorithms = keys.algorithms(h.address())
	}
	l := &login{
		hop: h, options: options, watchdog: dog, own: own,
		key: d.key, keyName: d.keyName, password: d.password,
	}
	defer l.close()

	var untrusted error
	begun := time.Now()
	watched := &witness{Conn: conn}
	c, channels, requests, err := ssh.NewClientConn(watched, h.address(), &ssh.ClientConfig{
		User:              h.user,
		Auth:              l.methods(ctx),
		AuthCallback:      l.note,
		HostKeyAlgorithms: algorithms,
		HostKeyCallback: func(address string, remote net.Addr, key ssh.PublicKey) error {
			untrusted = keys.check(ctx, address, remote, key)
			d.hostKey = ssh.FingerprintSHA256(key)
			return untrusted
		},
	})
	switch {
	case err == nil:
		l.succeeded()
		return ssh.NewClient(c, channels, requests), nil
	case untrusted != nil:
		return nil, untrusted
	case errors.Is(ctx.Err(), context.Canceled):
		return nil, ctx.Err()
	case ctx.Err() != nil || dog.expired():
		return nil, &TimeoutError{Address: h.address(), During: "SSH handshake", After: time.Since(begun),
			Err: context.DeadlineExceeded}
	case l.failure != nil:
		return nil, l.failure
	case len(l.accepts) > 0 && !watched.broke(err):
		return nil, &AuthError{
			User: h.user, Address: h.address(), Server: l.server, Tried: l.tried, Passwords: l.passwords,
			Skipped: append(l.skipped, l.refusedMethods()...), Accepts: withoutNone(l.accepts), Err: err,
		}
	default:
		return nil, &HandshakeError{Address: h.address(), Err: err}
	}
}

func (d *dialer) pin(own bool) string {
	if !own {
		return ""
	}
	return strings.TrimRight(strings.TrimSpace(d.target.HostKey), "=")
}

func withoutNone(methods []string) []string {
	return slices.DeleteFunc(slices.Clone(methods), func(m string) bool { return m == "none" })
}

// witness is a connection that remembers whether it has broken.
type witness struct {
	net.Conn
	broken atomic.Bool
}

func (w *witness) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if err != nil {
		w.broken.Store(true)
	}
	return n, err
}

func (w *witness) Write(p []byte) (int, error) {
	n, err := w.Conn.Write(p)
	if err != nil {
		w.broken.Store(true)
	}
	return n, err
}

// broke reports whether err, the failure of a login, is that of the connection. A machine that has rejected
// the login may also close the connection; the failure is then its answer. An agent that signs can fail in
// the same way as a connection, which is then whole.
func (w *witness) broke(err error) bool {
	var network *net.OpError
	return w.broken.Load() && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.As(err, &network))
}

// watchdog calls the function bark when the limit has passed. The time while the watchdog is paused
// does not count.
type watchdog struct {
	mu     sync.Mutex
	limit  time.Duration
	timer  *time.Timer
	paused int
	did    bool
}

func newWatchdog(limit time.Duration, bark func()) *watchdog {
	w := &watchdog{limit: limit}
	w.timer = time.AfterFunc(limit, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.paused == 0 && !w.did {
			w.did = true
			bark()
		}
	})
	return w
}

func (w *watchdog) pause() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.paused++
	w.timer.Stop()
}

// resume ends one pause. When the last pause has ended, the whole limit begins again, since the
// other side has been waiting too.
func (w *watchdog) resume() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.paused--; w.paused == 0 {
		w.timer.Reset(w.limit)
	}
}

func (w *watchdog) stop() { w.timer.Stop() }

func (w *watchdog) expired() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.did
}

// unhurried is a Prompter that pauses the watchdog until the user has answered.
type unhurried struct {
	Prompter
	dog *watchdog
}

func (u unhurried) Confirm(ctx context.Context, question string) (bool, error) {
	u.dog.pause()
	defer u.dog.resume()
	return u.Prompter.Confirm(ctx, question)
}

func (u unhurried) Secret(ctx context.Context, question string) (string, error) {
	u.dog.pause()
	defer u.dog.resume()
	return u.Prompter.Secret(ctx, question)
}
