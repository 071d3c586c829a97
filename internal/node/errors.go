package node

import (
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/internal/layout"
)

// UnreachableError is returned when a node could not be reached or trusted, or
// its agent could not be started. Err says why, and what helps: one of the types
// of this package or of package ssh. The text of an error of this package does not
// name the node: the layer that works on several nodes does that, once.
type UnreachableError struct {
	Node string
	Err  error
}

func (e *UnreachableError) Error() string { return e.Err.Error() }
func (e *UnreachableError) Unwrap() error { return e.Err }

// LostError is returned by calls to a node whose connection has broken, or
// whose agent has died, since it was connected. Reconnect may help.
type LostError struct {
	Node   string
	Stderr string // the last of what the agent wrote to stderr
	Err    error
}

func (e *LostError) Error() string {
	text := "lost the connection to the node's agent"
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text + quoted("its last words", e.Stderr)
}
func (e *LostError) Unwrap() error { return e.Err }

// NotWindowsError: the machine at that address has no drive C:.
type NotWindowsError struct {
	Address string
	Output  string // what its shell said to the agent's path
}

func (e *NotWindowsError) Error() string {
	return fmt.Sprintf("%s does not look like a Windows node: it has no C:%s; check spec.credentials.hostname",
		e.Address, quoted("its shell said", e.Output))
}

// AgentBlockedError: the agent is on the node, or was until it vanished, and
// does not start there.
type AgentBlockedError struct {
	Path     string
	Vanished bool
	ExitCode int // -1: unknown
	Output   string
}

func (e *AgentBlockedError) Error() string {
	said := quoted("the node said", e.Output)
	// Where it is put, and where it is uploaded to.
	const folder = layout.Agents + `,"$env:USERPROFILE\` + uploadedPrefix + `*` + uploadedSuffix + `"`
	if e.Vanished {
		return fmt.Sprintf("the agent vanished from the node after its upload%s; an antivirus quarantined it. "+
			"On the node: Add-MpPreference -ExclusionPath %s", said, folder)
	}
	return fmt.Sprintf("the agent %s is on the node but does not start (exit code %d)%s; does AppLocker, "+
		"an application control policy or an antivirus block it? On the node: Add-MpPreference -ExclusionPath %s",
		e.Path, e.ExitCode, said, folder)
}

// NoAnswerError: the agent was started and said nothing in time.
type NoAnswerError struct {
	Path   string
	Output string
	Err    error
}

func (e *NoAnswerError) Error() string {
	return fmt.Sprintf("the agent %s did not answer (%v)%s; is the node very busy? Try again with a longer --timeout",
		e.Path, e.Err, quoted("the node said", e.Output))
}
func (e *NoAnswerError) Unwrap() error { return e.Err }

// DiskFullError: the agent does not fit on the node's disk.
type DiskFullError struct {
	Path string
	Size int64
	Err  error
}

func (e *DiskFullError) Error() string {
	return fmt.Sprintf("put the agent (%.1f MB) on the node: the disk is full (%v); free some space on drive %.2s",
		float64(e.Size)/1e6, e.Err, e.Path)
}
func (e *DiskFullError) Unwrap() error { return e.Err }

// NotAdministratorError: the user may not do on the node what swdt needs.
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
	return text + quoted("the node said", e.Output) +
		"; log in as an administrator of the node (spec.credentials.username)"
}
func (e *NotAdministratorError) Unwrap() error { return e.Err }

// ForeignFolderError: a folder of ours on the node could be another account's, and
// cannot be moved aside.
type ForeignFolderError struct{ Err error }

func (e *ForeignFolderError) Error() string { return "install the agent: " + e.Err.Error() }
func (e *ForeignFolderError) Unwrap() error { return e.Err }

// InstallError is any other failure to bring the agent to the node.
type InstallError struct {
	Attempt string
	Err     error
}

func (e *InstallError) Error() string { return e.Attempt + ": " + e.Err.Error() }
func (e *InstallError) Unwrap() error { return e.Err }

// quoted appends what somebody said, in one line of bearable length.
func quoted(who, text string) string {
	const most = 300
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		return ""
	}
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return fmt.Sprintf("; %s: %q", who, text)
}
