package node

import (
	"fmt"

	"github.com/swdt-dev/swdt/internal/format/windowstext"
	"github.com/swdt-dev/swdt/internal/node/carrier"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// UnreachableError is returned when a node could not be reached or trusted, or when its agent could
// not be started. Err has the cause and the remedy; most errors in Err have a type of this package
// or of package ssh. Errors of this package do not name the node: package fleet, which works on
// several nodes, adds the name once.
type UnreachableError struct {
	Node string
	Err  error
}

func (e *UnreachableError) Error() string { return e.Err.Error() }
func (e *UnreachableError) Unwrap() error { return e.Err }

// LostError is returned by calls to a node if the connection broke, the agent ended, or the node
// was closed. Reconnect may help.
type LostError struct {
	Node   string
	Stderr string // the last part of the agent's stderr
	Err    error
}

func (e *LostError) Error() string {
	text := "lost the connection to the node's agent"
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text + quoted("its last output", e.Stderr)
}
func (e *LostError) Unwrap() error { return e.Err }

// NotWindowsError reports that the machine at Address is not a Windows node: SFTP shows no drive
// C:, or the machine has no SFTP and its shell is a POSIX shell.
type NotWindowsError struct {
	Address string
	Output  string // the shell's answer to the agent's path, or to `cmd /c ver`
}

func (e *NotWindowsError) Error() string {
	return fmt.Sprintf("%s does not look like a Windows node: it has no C:%s; check spec.credentials.hostname",
		e.Address, quoted("its shell answered", e.Output))
}

// AgentBlockedError reports that the agent does not start, although swdt has put it on the node.
// Vanished reports whether something has removed the agent since, and Held whether the node does not let swdt read it.
type AgentBlockedError struct {
	Path     string
	Vanished bool
	Held     bool
	ExitCode int // -1: unknown
	Output   string
}

func (e *AgentBlockedError) Error() string {
	output := quoted("the node answered", e.Output)
	// The folders of the installed agent and of its upload, for a PowerShell command.
	const folder = layout.Agents + `,"$env:USERPROFILE\` + carrier.StagedPattern + `"`
	if e.Vanished {
		return fmt.Sprintf("the agent vanished from the node after its upload%s; an antivirus quarantined it. "+
			"On the node: %s", output, fault.ExclusionCommand+folder)
	}
	if e.Held {
		return fmt.Sprintf("the agent %s is on the node but cannot be read there%s; an antivirus blocks or still scans it. "+
			"On the node: %s", e.Path, output, fault.ExclusionCommand+folder)
	}
	return fmt.Sprintf("the agent %s is on the node but does not start (exit code %s)%s; %s",
		e.Path, windowstext.ExitCode(e.ExitCode), output, fault.BlockedQuestion+fault.ExclusionCommand+folder)
}

// ShellError reports that the default shell of the node's SSH server does not start swdt's agent, although the agent is
// on the node: the shell is a POSIX shell, and does not find the program under a Windows path.
type ShellError struct {
	Path   string
	Output string
}

func (e *ShellError) Error() string {
	return fmt.Sprintf("the default shell of the node's sshd, a POSIX shell, does not start %s%s; use cmd, PowerShell or "+
		`Git's bash. On the node: Set-ItemProperty HKLM:\SOFTWARE\OpenSSH DefaultShell C:\Windows\System32\cmd.exe`,
		e.Path, quoted("it answered", e.Output))
}

// blockedOrShell returns the error for an agent that is on the node and did not start. vanished reports whether
// something has removed it since.
func blockedOrShell(path string, vanished bool, code int, output string) error {
	if code == noSuchCommand && !vanished {
		return &ShellError{Path: path, Output: output}
	}
	return &AgentBlockedError{Path: path, Vanished: vanished, ExitCode: code, Output: output}
}

// NoAnswerError reports that the agent was started and did not answer in time.
type NoAnswerError struct {
	Path   string
	Output string
	Err    error
}

func (e *NoAnswerError) Error() string {
	return fmt.Sprintf("the agent %s did not answer (%v)%s; is the node very busy? Try again with a longer --timeout",
		e.Path, e.Err, quoted("the node answered", e.Output))
}
func (e *NoAnswerError) Unwrap() error { return e.Err }

// NotAdministratorError reports that the user lacks rights that swdt needs on the node.
type NotAdministratorError struct {
	Attempt string
	Output  string
	Err     error
}

func (e *NotAdministratorError) Error() string {
	text := e.Attempt
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text + quoted("the node answered", e.Output) +
		"; log in as an administrator of the node (spec.credentials.username)"
}
func (e *NotAdministratorError) Unwrap() error { return e.Err }

// ForeignFolderError reports that another account may own one of swdt's folders on the
// node, and that the folder cannot be moved aside.
type ForeignFolderError struct{ Err error }

func (e *ForeignFolderError) Error() string { return "install the agent: " + e.Err.Error() }
func (e *ForeignFolderError) Unwrap() error { return e.Err }

// InstallError reports any other failure to install the agent on the node.
type InstallError struct {
	Attempt string
	Err     error
}

func (e *InstallError) Error() string { return e.Attempt + ": " + e.Err.Error() }
func (e *InstallError) Unwrap() error { return e.Err }

// quoted returns text with its source, in one line of readable length. It returns "" if
// text is empty.
func quoted(source, text string) string {
	if text = windowstext.Brief(text); text == "" {
		return ""
	}
	return fmt.Sprintf("; %s: %q", source, text)
}
