package windows

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/windows"
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
	return &Error{Code: code, kind: kindOf(uint32(code))}
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
