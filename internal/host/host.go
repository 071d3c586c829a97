// Package host says what the agent needs of the Windows machine it runs on:
// small interfaces, the values they exchange, and the errors they return.
//
// Two implementations exist. host/windows is the real thing, on Win32 calls;
// host/simulated is an in-memory Windows with faults on demand that runs on
// every OS. host/hosttest is the one contract suite that both must pass: a rule
// that is stated in a comment here and not checked there does not hold.
//
// Nothing here knows about RPC, SSH or the command line. Policy (ordering,
// waiting, retrying, editing the hosts file) lives above, written once over
// these primitives.
package host

import (
	"errors"
	"io/fs"
)

// Host is one Windows machine, seen by one process that runs on it.
type Host struct {
	Machine   Machine
	Services  Services
	Registry  Registry
	Files     Files
	Processes Processes
	Features  Features
	Firewall  Firewall
	Network   Network
	Compute   Compute
}

// Errors that implementations return, wrapped with what was attempted. Callers
// decide by errors.Is; the text is for people.
var (
	ErrNotExist   = fs.ErrNotExist   // no such file, key, value or process
	ErrExist      = fs.ErrExist      // it is there already
	ErrPermission = fs.ErrPermission // access denied; also: deleting or replacing a running executable

	ErrInUse           = errors.New("in use by another process")      // sharing violation
	ErrDiskFull        = errors.New("not enough space on the disk")   //
	ErrIsDirectory     = errors.New("is a folder")                    // a file was expected
	ErrReadOnly        = errors.New("the disk is write-protected")    //
	ErrNoService       = errors.New("no such service")                //
	ErrServiceExists   = errors.New("the service exists already")     //
	ErrServiceRunning  = errors.New("the service is running already") // Start
	ErrServiceStopped  = errors.New("the service is not running")     // Stop
	ErrServiceDisabled = errors.New("the service is disabled")        // Start
	ErrServiceDeleting = errors.New("the service is marked for deletion")
	ErrDependents      = errors.New("running services depend on it") // Stop
	ErrStartFailed     = errors.New("the service did not start")     // Start: the process failed or did not answer the SCM
	ErrNotSupported    = errors.New("not supported on this machine")
)

// LockedError is returned by Files.Lock when another process holds the lock.
type LockedError struct {
	Path   string
	Holder []byte // what the holder wrote about itself; may be empty
}

func (e *LockedError) Error() string { return e.Path + " is locked by another process" }
