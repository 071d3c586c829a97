package windows

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/windows"

	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// An Error is a failed Win32 call. If its code corresponds to an error of package fault, errors.Is
// matches only that error, so that one failure has one meaning. errors.As with *Error gives access
// to the code.
type Error struct {
	Code syscall.Errno
	kind error
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s (Win32 error %d)", e.Code.Error(), uint32(e.Code))
}

// Unwrap returns the error of package fault, or the bare code if there is none.
func (e *Error) Unwrap() error {
	if e.kind == nil {
		return e.Code
	}
	return e.kind
}

// failed wraps err with the attempted operation; it returns nil if err is nil.
// A Win32 code anywhere in err (also within os.PathError and the like)
// determines the kind of error.
func failed(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), translate(err))
}

func translate(err error) error {
	var done *Error
	if errors.As(err, &done) {
		return err
	}
	var status windows.NTStatus
	if errors.As(err, &status) {
		err = status.Errno()
	}
	var code syscall.Errno
	if !errors.As(err, &code) {
		return err
	}
	return &Error{Code: code, kind: kindOf(code)}
}

// code returns the Win32 code in err, or 0 if there is none.
func code(err error) syscall.Errno {
	var done *Error
	if errors.As(err, &done) {
		return done.Code
	}
	var code syscall.Errno
	errors.As(err, &code)
	return code
}

func kindOf(code syscall.Errno) error {
	switch code {
	case windows.ERROR_FILE_NOT_FOUND, windows.ERROR_PATH_NOT_FOUND, windows.ERROR_INVALID_DRIVE,
		windows.ERROR_BAD_NETPATH, windows.ERROR_KEY_DELETED, windows.ERROR_MOD_NOT_FOUND:
		return fault.ErrNotExist
	case windows.ERROR_ALREADY_EXISTS, windows.ERROR_FILE_EXISTS, windows.ERROR_DIR_NOT_EMPTY:
		return fault.ErrExist
	case windows.ERROR_ACCESS_DENIED, windows.ERROR_PRIVILEGE_NOT_HELD, windows.ERROR_INVALID_OWNER,
		windows.ERROR_DELETE_PENDING, windows.ERROR_USER_MAPPED_FILE:
		return fault.ErrPermission
	case windows.ERROR_SHARING_VIOLATION, windows.ERROR_LOCK_VIOLATION, windows.ERROR_PIPE_BUSY:
		return fault.ErrInUse
	case windows.ERROR_DISK_FULL, windows.ERROR_HANDLE_DISK_FULL, windows.ERROR_DISK_QUOTA_EXCEEDED:
		return fault.ErrDiskFull
	case windows.ERROR_DIRECTORY_NOT_SUPPORTED:
		return fault.ErrIsDirectory
	case windows.ERROR_WRITE_PROTECT:
		return fault.ErrReadOnly
	case windows.ERROR_CALL_NOT_IMPLEMENTED, windows.ERROR_NOT_SUPPORTED, windows.ERROR_PROC_NOT_FOUND:
		return fault.ErrNotSupported
	}
	return kindOfService(code)
}

func kindOfService(code syscall.Errno) error {
	switch code {
	case windows.ERROR_SERVICE_DOES_NOT_EXIST:
		return fault.ErrNoService
	case windows.ERROR_SERVICE_EXISTS, windows.ERROR_DUPLICATE_SERVICE_NAME:
		return fault.ErrServiceExists
	case windows.ERROR_SERVICE_ALREADY_RUNNING:
		return fault.ErrServiceRunning
	case windows.ERROR_SERVICE_NOT_ACTIVE:
		return fault.ErrServiceStopped
	case windows.ERROR_SERVICE_DISABLED:
		return fault.ErrServiceDisabled
	case windows.ERROR_SERVICE_MARKED_FOR_DELETE:
		return fault.ErrServiceDeleting
	case windows.ERROR_DEPENDENT_SERVICES_RUNNING:
		return fault.ErrDependents
	case windows.ERROR_SERVICE_REQUEST_TIMEOUT, windows.ERROR_PROCESS_ABORTED,
		windows.ERROR_SERVICE_DEPENDENCY_FAIL, windows.ERROR_SERVICE_DEPENDENCY_DELETED,
		windows.ERROR_SERVICE_LOGON_FAILED, windows.ERROR_SERVICE_NO_THREAD,
		windows.ERROR_SERVICE_NEVER_STARTED, windows.ERROR_SERVICE_SPECIFIC_ERROR:
		return fault.ErrStartFailed
	}
	return nil
}
