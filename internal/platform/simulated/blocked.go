package simulated

import (
	"fmt"
	"slices"

	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// Refusal is a Win32 error with which Windows refuses to run a program.
type Refusal uint32

// The refusals that others have seen. An antivirus also refuses to open the file, as Microsoft Defender does
// (wazuh/wazuh#9251: CreateFile fails with 225); a policy lets programs read it.
const (
	VirusInfected    Refusal = 225  // ERROR_VIRUS_INFECTED
	VirusDeleted     Refusal = 226  // ERROR_VIRUS_DELETED
	DisabledByPolicy Refusal = 1260 // ERROR_ACCESS_DISABLED_BY_POLICY, of AppLocker and software restriction policies
	// IntegrityPolicy is ERROR_SYSTEM_INTEGRITY_POLICY_VIOLATION, of App Control, which was Device Guard. `sc start`
	// prints "StartService FAILED 4551" for it (gist.github.com/wdormann).
	IntegrityPolicy Refusal = 4551
)

func (r Refusal) text() string {
	switch r {
	case VirusInfected, VirusDeleted:
		return "the file contains a virus or potentially unwanted software"
	case DisabledByPolicy:
		return "this program is blocked by group policy"
	}
	return "an Application Control policy has blocked this file"
}

// blocking is a rule of an antivirus or a policy.
type blocking struct {
	match   func(*Image) bool
	refusal Refusal
}

// Block makes the machine refuse the executables that match, from now on. A running process stays.
func (m *Machine) Block(match func(*Image) bool, refusal Refusal) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.blocked = append(m.blocked, blocking{match, refusal})
}

// blockedFile returns the error for a file that must not be run, or, with opened, that must not even be opened; nil
// if it may. The caller holds the lock.
func (m *Machine) blockedFile(f *file, opened bool) error {
	if len(m.blocked) == 0 || f.folder {
		return nil
	}
	image := f.inspect()
	i := slices.IndexFunc(m.blocked, func(b blocking) bool {
		return (!opened || b.refusal == VirusInfected || b.refusal == VirusDeleted) && b.match(image)
	})
	if i < 0 {
		return nil
	}
	return fmt.Errorf("%s: %w", m.blocked[i].refusal.text(), &refusedError{m.blocked[i].refusal})
}

// refusedError is fault.ErrBlocked with the code of Windows.
type refusedError struct{ refusal Refusal }

func (e *refusedError) Error() string { return fmt.Sprintf("Win32 error %d", e.refusal) }
func (e *refusedError) Unwrap() error { return fault.ErrBlocked }
