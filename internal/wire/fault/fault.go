// Package fault holds the errors of a node's Windows on which both sides of the connection base decisions. The
// platform returns them, rpcerror carries them over gRPC, and the commands on your machine test for them with
// errors.Is.
package fault

import (
	"errors"
	"io/fs"
)

// These errors are returned wrapped with the operation that failed. Callers decide with errors.Is; the text is for
// users.
var (
	ErrNotExist   = fs.ErrNotExist   // no such file, key, value or process exists
	ErrExist      = fs.ErrExist      // the file, key or value exists already
	ErrPermission = fs.ErrPermission // access denied; also: deleting or replacing a running executable

	ErrInUse           = errors.New("in use by another process")      // sharing violation
	ErrDiskFull        = errors.New("not enough space on the disk")   //
	ErrIsDirectory     = errors.New("is a folder")                    // a file was expected
	ErrReadOnly        = errors.New("the disk is write-protected")    //
	ErrNoService       = errors.New("no such service")                //
	ErrServiceExists   = errors.New("the service exists already")     //
	ErrServiceRunning  = errors.New("the service is running already") // returned by Start
	ErrServiceStopped  = errors.New("the service is not running")     // returned by Stop
	ErrServiceDisabled = errors.New("the service is disabled")        // returned by Start
	ErrServiceDeleting = errors.New("the service is marked for deletion")
	ErrDependents      = errors.New("running services depend on it") // returned by Stop
	// ErrNotDelivered is returned by Start and Stop: the SCM talks to one service at a time, and one of them, this or another, did
	// not answer it within 30 s.
	ErrNotDelivered = errors.New("the Service Control Manager waits for a service that does not answer it")
	ErrShuttingDown = errors.New("the system is shutting down") // returned by Start
	// Start returns ErrStartFailed if the process failed or did not report to the SCM.
	ErrStartFailed = errors.New("the service did not start")
	// ErrBlocked is returned for a program that Windows refuses to run, or a file that it refuses to open: an
	// application control policy or an antivirus blocks it.
	ErrBlocked = errors.New("blocked by a policy or an antivirus")
	// ErrSilent is returned if a program accepted a request and did not begin to answer it in time.
	ErrSilent       = errors.New("it accepted the request and does not answer")
	ErrNotSupported = errors.New("not supported on this machine")
)

// IsHeld reports whether a file could probably not be changed since another process has it open or runs it. Windows has
// two words for that: a sharing violation, and "access denied", which can also mean an access list.
func IsHeld(err error) bool { return errors.Is(err, ErrInUse) || errors.Is(err, ErrPermission) }

// LockedError is returned by platform.Files.Lock when another process holds the lock.
type LockedError struct {
	Path   string
	Holder []byte // the holder's description of itself; may be empty
}

func (e *LockedError) Error() string { return e.Path + " is locked by another process" }
