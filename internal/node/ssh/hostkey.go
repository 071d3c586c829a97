package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"
)

// hostKeys decides whether a hop is the intended machine.
type hostKeys struct {
	path      string
	db        *knownhosts.HostKeyDB
	pinned    string // fingerprint; empty: known_hosts decides
	acceptNew bool
	prompt    Prompter
}

func newHostKeys(o Options, pinned string) (*hostKeys, error) {
	h := &hostKeys{path: o.KnownHosts, pinned: pinned, acceptNew: o.AcceptNewHostKey, prompt: o.Prompt}
	files := []string{o.KnownHosts}
	if _, err := os.Stat(o.KnownHosts); errors.Is(err, fs.ErrNotExist) {
		files = nil
	}
	var err error
	if h.db, err = knownhosts.NewDB(files...); err != nil {
		return nil, &KnownHostsError{Path: o.KnownHosts, Err: err}
	}
	return h, nil
}

// algorithms returns the host key algorithms to offer to the host. The algorithms of the host's
// known keys are first, so that the host shows a known key if it has one. The others follow in
// ssh's order of preference, since users know the fingerprint that ssh shows. If the host now has
// only a key of another type, it shows that key, and swdt detects that the key has changed.
func (h *hostKeys) algorithms(address string) []string {
	var known []string
	if h.pinned == "" {
		known = h.db.HostKeyAlgorithms(address)
	}
	if slices.ContainsFunc(known, isCertificate) {
		return known // the authority has not signed any plain key, so plain keys are not offered
	}
	for _, algorithm := range slices.Concat(keyFamilies()...) {
		if !slices.Contains(known, algorithm) {
			known = append(known, algorithm)
		}
	}
	return known
}

func isCertificate(algorithm string) bool { return strings.Contains(algorithm, "-cert-") }

// keyFamilies returns the kinds of host keys, each with its signature algorithms.
func keyFamilies() [][]string {
	return [][]string{
		{ssh.KeyAlgoED25519},
		{ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521},
		{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256},
	}
}

// otherFamilies returns all families except the family of the key that was shown.
func otherFamilies(shown string) [][]string {
	if shown == ssh.KeyAlgoRSA {
		shown = ssh.KeyAlgoRSASHA512
	}
	return slices.DeleteFunc(keyFamilies(), func(family []string) bool { return slices.Contains(family, shown) })
}

// check returns nil if the key is trusted. It may ask the user to accept an unknown key.
func (h *hostKeys) check(ctx context.Context, address string, remote net.Addr, key ssh.PublicKey) error {
	err := h.db.HostKeyCallback()(address, remote, key)
	var revoked *xknownhosts.RevokedError
	var mismatch *xknownhosts.KeyError
	switch {
	case errors.As(err, &revoked): // a revoked key is refused even if it is pinned
		return changed(address, key, []xknownhosts.KnownKey{revoked.Revoked}, true)
	case h.pinned != "":
		return h.checkPinned(address, key)
	case err == nil:
		return nil
	case errors.As(err, &mismatch) && len(mismatch.Want) > 0:
		return changed(address, key, mismatch.Want, false)
	case errors.As(err, &mismatch):
		return h.unknown(ctx, address, key)
	default:
		return &KnownHostsError{Path: h.path, Err: err}
	}
}

func (h *hostKeys) checkPinned(address string, key ssh.PublicKey) error {
	if got := ssh.FingerprintSHA256(key); got != h.pinned {
		return &HostKeyChangedError{Address: address, Type: key.Type(), Fingerprint: got, Pinned: h.pinned}
	}
	return nil
}

func changed(address string, key ssh.PublicKey, known []xknownhosts.KnownKey, revoked bool) error {
	e := &HostKeyChangedError{
		Address: address, Type: key.Type(), Fingerprint: ssh.FingerprintSHA256(key), Revoked: revoked,
	}
	for _, k := range known {
		e.Known = append(e.Known, KnownKey{
			File: k.Filename, Line: k.Line, Type: k.Key.Type(), Fingerprint: ssh.FingerprintSHA256(k.Key),
		})
	}
	return e
}

func (h *hostKeys) unknown(ctx context.Context, address string, key ssh.PublicKey) error {
	e := &HostKeyUnknownError{
		Address: address, Type: key.Type(), Fingerprint: ssh.FingerprintSHA256(key), KnownHosts: h.path,
	}
	switch {
	case h.acceptNew:
		return h.add(address, key)
	case h.prompt == nil:
		return e
	}
	yes, err := h.prompt.Confirm(ctx, fmt.Sprintf(
		"The host %s is not known.\nIts %s key has the fingerprint %s.\nTrust it, and add it to %s?",
		address, e.Type, e.Fingerprint, h.path))
	if err != nil {
		return fmt.Errorf("ask about the host key of %s: %w", address, err)
	}
	if !yes {
		e.Declined = true
		return e
	}
	return h.add(address, key)
}

// add appends the key's line to known_hosts in one write, so that several swdt do not mix their
// lines.
func (h *hostKeys) add(address string, key ssh.PublicKey) error {
	if err := appendLine(h.path, knownhosts.Line([]string{address}, key)); err != nil {
		return &KnownHostsError{Path: h.path, Err: err}
	}
	return nil
}

func appendLine(path, line string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	line += "\n"
	if unfinished(f) {
		line = "\n" + line
	}
	_, err = f.WriteString(line)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

// unfinished reports whether the file's last line lacks its line end.
func unfinished(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return false
	}
	last := make([]byte, 1)
	if _, err := f.ReadAt(last, info.Size()-1); err != nil && !errors.Is(err, io.EOF) {
		return false
	}
	return last[0] != '\n'
}
