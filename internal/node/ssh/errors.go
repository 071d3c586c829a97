package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/format/windowstext"
	"github.com/swdt-dev/swdt/internal/wire/handshake"
)

// RefusedError reports that the machine answers, but nothing listens on the port.
type RefusedError struct {
	Address string
	Err     error
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("connect to %s: connection refused; is OpenSSH Server running there? "+
		"On the node: Start-Service sshd", e.Address)
}
func (e *RefusedError) Unwrap() error { return e.Err }

// TimeoutError reports that no answer arrived in time.
type TimeoutError struct {
	Address string
	During  string // "connection" or "SSH handshake"
	After   time.Duration
	Err     error
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("connect to %s: no answer to the %s after %s; "+
		"is the machine on, and does its firewall let the port in?", e.Address, e.During, e.After.Round(time.Second/10))
}
func (e *TimeoutError) Unwrap() error { return e.Err }

// NoRouteError reports that the address cannot be reached from your machine, or from
// the jump host Via.
type NoRouteError struct {
	Address string
	Via     string
	Err     error
}

func (e *NoRouteError) Error() string {
	from := "from your machine"
	if e.Via != "" {
		from = "from the jump host " + e.Via
	}
	return fmt.Sprintf("connect to %s: it cannot be reached %s: %v; check the address, and the VPN or network that "+
		"leads to it",
		e.Address, from, e.Err)
}
func (e *NoRouteError) Unwrap() error { return e.Err }

// NameError reports that the host's name does not resolve.
type NameError struct {
	Host string
	Err  error
}

func (e *NameError) Error() string {
	return fmt.Sprintf("find the address of %q: %v; check spec.credentials.hostname, or give the IP address", e.Host,
		e.Err)
}
func (e *NameError) Unwrap() error { return e.Err }

// DialError reports a TCP connection that failed for a cause that has no other type in this
// package.
type DialError struct {
	Address string
	Err     error
}

func (e *DialError) Error() string {
	return fmt.Sprintf("connect to %s: %v; check spec.credentials.hostname", e.Address, e.Err)
}
func (e *DialError) Unwrap() error { return e.Err }

// HandshakeError reports that a program listens on the port, but the SSH handshake failed.
type HandshakeError struct {
	Address string
	Err     error
}

func (e *HandshakeError) Error() string {
	return fmt.Sprintf(
		"start an SSH connection to %s: %v; is an SSH server on that port, and what does its log report?", e.Address,
		e.Err)
}
func (e *HandshakeError) Unwrap() error { return e.Err }

// AuthError reports that the machine rejected all credentials.
type AuthError struct {
	User      string
	Address   string
	Server    string   // version of the machine's SSH server, such as SSH-2.0-OpenSSH_for_Windows_8.1
	Tried     []string // methods, with the keys that were offered
	Passwords int      // how often a password was sent; too many can lock the account
	Accepts   []string // methods that the machine accepts
	Skipped   []string // credentials that were not tried, each with the reason
	Err       error
}

func (e *AuthError) Error() string {
	tried := strings.Join(e.Tried, ", ")
	switch {
	case len(e.Tried) > 0:
	case len(e.Skipped) > 0:
		tried = "nothing"
	default:
		tried = "nothing, since there are no credentials"
	}
	text := fmt.Sprintf("log in to %s as %s: rejected; tried %s", e.Address, e.User, tried)
	if len(e.Skipped) > 0 {
		text += "; skipped " + strings.Join(e.Skipped, ", ")
	}
	if len(e.Accepts) > 0 {
		text += "; the machine accepts " + strings.Join(e.Accepts, ", ")
	}
	return text + "; set username and privateKey or passwordFrom in spec.credentials. " +
		`An administrator's key belongs into C:\ProgramData\ssh\administrators_authorized_keys` + e.keyHints()
}
func (e *AuthError) Unwrap() error { return e.Err }

// keyHints returns further reasons for which Windows' sshd does not take an administrator's key.
func (e *AuthError) keyHints() (text string) {
	if len(e.Tried) == e.Passwords {
		return ""
	}
	if knowsOnlyEnglishGroups(e.Server) {
		text += "; unless Windows is in English, this version of OpenSSH may not know the group administrators in " +
			`C:\ProgramData\ssh\sshd_config: update Windows, or write the group's local name there`
	}
	if strings.ContainsAny(e.User, `\@`) {
		text += "; after a boot, keys of a domain's accounts are rejected until a domain controller answers"
	}
	return text
}

// knowsOnlyEnglishGroups reports whether this version of Windows' sshd finds the group administrators only by its
// English name. Versions from 8.6 on find it by its SID (PowerShell/openssh-portable#488).
func knowsOnlyEnglishGroups(server string) bool {
	_, version, windows := strings.Cut(server, "OpenSSH_for_Windows_")
	major, rest, _ := strings.Cut(version, ".")
	if !windows || len(major) != 1 || rest == "" {
		return false
	}
	return major[0] < '8' || major[0] == '8' && rest[0] < '6'
}

// DroppedError reports that the machine has accepted the login, and has closed the connection before it opened a
// session.
type DroppedError struct {
	User    string
	Address string
	Err     error
}

func (e *DroppedError) Error() string {
	return fmt.Sprintf("log in to %s as %s: accepted, but then the machine closed the connection (%v); does a policy deny "+
		"the account the logon over the network (SeDenyNetworkLogonRight), or does no domain controller answer? "+
		"On the node: Get-WinEvent -LogName OpenSSH/*", e.Address, e.User, e.Err)
}
func (e *DroppedError) Unwrap() error { return e.Err }

// KeyProblem is the problem with a private key's file.
type KeyProblem string

const (
	KeyMissing         KeyProblem = "there is no such file"
	KeyUnreadable      KeyProblem = "it cannot be read"
	KeyTooOpen         KeyProblem = "other users may read it"
	KeyInvalid         KeyProblem = "it is not a private key"
	KeyNeedsPassphrase KeyProblem = "it needs a passphrase"
	KeyWrongPassphrase KeyProblem = "the passphrase is wrong"
)

// KeyFileError reports that a configured private key cannot be used.
type KeyFileError struct {
	Path    string
	Problem KeyProblem
	Err     error
}

func (e *KeyFileError) Error() string {
	return fmt.Sprintf("private key %s: %s; %s", e.Path, e.Problem, e.remedy())
}
func (e *KeyFileError) Unwrap() error { return e.Err }

func (e *KeyFileError) remedy() string {
	switch e.Problem {
	case KeyMissing:
		return "check spec.credentials.privateKey, or make one with: ssh-keygen -t ed25519"
	case KeyUnreadable:
		return fmt.Sprintf("make it readable to you (%v)", e.Err)
	case KeyTooOpen:
		return fmt.Sprintf("close it with: chmod 600 %q", e.Path)
	case KeyInvalid:
		if encoded, ok := errors.AsType[*windowstext.Error](e.Err); ok {
			return encoded.Error()
		}
		return "name the private key, not the .pub file, in OpenSSH or PEM format"
	case KeyNeedsPassphrase:
		return "set spec.credentials.passphraseFrom, load it with ssh-add, or run swdt on a terminal"
	default:
		return "check spec.credentials.passphraseFrom, or what you typed"
	}
}

// SecretError reports that a password or passphrase could not be obtained.
type SecretError struct {
	What string // "password", "passphrase of …"
	Err  error
}

func (e *SecretError) Error() string { return fmt.Sprintf("get the %s: %v", e.What, e.Err) }
func (e *SecretError) Unwrap() error { return e.Err }

// HostKeyUnknownError reports that the host is new, and its key was not accepted.
type HostKeyUnknownError struct {
	Address     string
	Type        string
	Fingerprint string
	KnownHosts  string
	Declined    bool // the user answered no
}

func (e *HostKeyUnknownError) Error() string {
	if e.Declined {
		return fmt.Sprintf("the host key %s of %s was not accepted; nothing was sent", e.Fingerprint, e.Address)
	}
	return fmt.Sprintf("%s is not a known host (%s key %s is not in %s); compare the fingerprint, then use "+
		"--accept-new-host-key, or set spec.credentials.hostKey: %s",
		e.Address, e.Type, e.Fingerprint, e.KnownHosts, e.Fingerprint)
}

// HostKeyChangedError reports that the machine that answered has another host key than the known or
// pinned machine.
type HostKeyChangedError struct {
	Address     string
	Type        string
	Fingerprint string
	Known       []KnownKey // the lines of known_hosts with other keys
	Pinned      string     // the fingerprint in the node file, if the key does not match it; else ""
	Revoked     bool       // the line in Known revokes this key
}

// KnownKey is a line of known_hosts.
type KnownKey struct {
	File        string
	Line        int
	Type        string
	Fingerprint string
}

func (e *HostKeyChangedError) Error() string {
	if e.Pinned != "" {
		return fmt.Sprintf("the host key of %s is %s (%s), but spec.credentials.hostKey is %s; nothing was sent. "+
			"If the machine was reinstalled, change hostKey", e.Address, e.Fingerprint, e.Type, e.Pinned)
	}
	var lines []string
	for _, k := range e.Known {
		lines = append(lines, fmt.Sprintf("%s:%d (%s %s)", k.File, k.Line, k.Type, k.Fingerprint))
	}
	at := strings.Join(lines, ", ")
	if e.Revoked {
		return fmt.Sprintf("the host key %s of %s is revoked in %s; nothing was sent. Whoever has that key can pose "+
			"as the machine: "+
			`leave the line as it is, and give the machine new keys (on the node: Remove-Item `+
			`C:\ProgramData\ssh\ssh_host_*; Restart-Service sshd)`,
			e.Fingerprint, e.Address, at)
	}
	which := "that line"
	if len(e.Known) > 1 {
		which = "those lines"
	}
	return fmt.Sprintf("the host key of %s has changed to %s (%s): it does not match %s; nothing was sent. "+
		"If the machine was reinstalled, remove %s", e.Address, e.Fingerprint, e.Type, at, which)
}

// KnownHostsError reports that known_hosts itself cannot be used.
type KnownHostsError struct {
	Path string
	Err  error
}

func (e *KnownHostsError) Error() string {
	return fmt.Sprintf("use the known hosts in %s: %v; correct the file", e.Path, e.Err)
}
func (e *KnownHostsError) Unwrap() error { return e.Err }

// RouteError reports a wrong setting of the route to the machine.
type RouteError struct {
	Where string // the setting
	Err   error
}

func (e *RouteError) Error() string { return fmt.Sprintf("%s: %v", e.Where, e.Err) }
func (e *RouteError) Unwrap() error { return e.Err }

// JumpError reports that a jump host on the route failed.
type JumpError struct {
	Host string
	Err  error
}

func (e *JumpError) Error() string { return fmt.Sprintf("jump host %s: %v", e.Host, e.Err) }
func (e *JumpError) Unwrap() error { return e.Err }

// NoForwardingError reports that a jump host does not forward connections.
type NoForwardingError struct {
	Address string
	Err     error
}

func (e *NoForwardingError) Error() string {
	return fmt.Sprintf("connect onwards to %s: %v; AllowTcpForwarding must be on in its sshd_config", e.Address, e.Err)
}
func (e *NoForwardingError) Unwrap() error { return e.Err }

// NoSFTPError reports that the machine starts no SFTP.
type NoSFTPError struct {
	Address string
	Refused bool   // sshd has refused the subsystem; otherwise its default shell has started something else
	Printed string // the text that came instead of SFTP
	Err     error
}

func (e *NoSFTPError) Error() string {
	switch {
	case e.Refused:
		return fmt.Sprintf("%s does not offer SFTP: %v; its sshd_config needs the line: Subsystem sftp sftp-server.exe",
			e.Address, e.Err)
	case e.Printed != "":
		return fmt.Sprintf("%s starts no SFTP: %s. Before that, its default shell printed %q. sshd starts SFTP through "+
			"that shell: its profile, or AutoRun of cmd, must not end it, wait for input or print much", e.Address, e.cause(),
			windowstext.Brief(e.Printed))
	}
	return fmt.Sprintf("%s starts no SFTP: %s. sshd starts sftp-server.exe through the default shell: does its profile end "+
		"the shell or wait for input, and is OpenSSH's folder on the machine's PATH?", e.Address, e.cause())
}

// cause returns Err without the words of the SFTP library, if one of the usual causes is in it.
func (e *NoSFTPError) cause() string {
	switch {
	case errors.Is(e.Err, context.DeadlineExceeded):
		return "it did not answer in time"
	case errors.Is(e.Err, handshake.ErrNoise):
		return handshake.ErrNoise.Error()
	case errors.Is(e.Err, io.EOF), errors.Is(e.Err, io.ErrUnexpectedEOF):
		return "the program ended at once"
	}
	return e.Err.Error()
}
func (e *NoSFTPError) Unwrap() error { return e.Err }
