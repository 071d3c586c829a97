package source

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/binaryset"
	"github.com/swdt-dev/swdt/internal/wire/distribution"
)

// Refused reports whether err means that a source has something else than was requested. To try again
// is useless until a person changes the source or the request.
func Refused(err error) bool {
	return is[*HashMismatchError](err) || is[*NotExecutableError](err) || is[*MachineError](err) ||
		is[*TooLargeError](err) || is[*binaryset.HashError](err) || is[*binaryset.ManifestError](err) ||
		is[*binaryset.ComponentError](err) || is[*binaryset.ContentError](err) || is[*binaryset.SizeError](err) ||
		is[*distribution.MismatchError](err) || is[*distribution.TooLargeError](err) ||
		is[*distribution.RedirectError](err) || is[*distribution.ReferenceError](err)
}

// Denied reports whether err means that a server does not have what was requested, or does not give it to this
// login.
func Denied(err error) bool {
	var status int
	if answer, ok := errors.AsType[*StatusError](err); ok {
		status = answer.Status
	}
	if answer, ok := errors.AsType[*distribution.StatusError](err); ok {
		status = answer.Status
	}
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusGone:
		return true
	}
	return false
}

func is[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

// FileError is returned for a local path that does not name a readable file.
type FileError struct {
	Path   string
	What   string // the problem, such as "does not exist" or "is a folder"
	Remedy string
	Err    error // may be nil
}

func (e *FileError) Error() string { return e.Path + " " + e.What + ": " + e.Remedy }
func (e *FileError) Unwrap() error { return e.Err }

// ChangingError is returned for a file that another program is still writing.
type ChangingError struct{ Path string }

func (e *ChangingError) Error() string {
	return fmt.Sprintf("%s changed while it was read: wait for the build to finish and push again", e.Path)
}

// HashMismatchError is returned for a binary whose hash differs from sha256 in the node
// file.
type HashMismatchError struct{ Name, Want, Got string }

func (e *HashMismatchError) Error() string {
	return fmt.Sprintf("%s has sha256 %s, but the node file wants %s: correct sha256, or find out who changed the file",
		e.Name, e.Got, e.Want)
}

// NotExecutableError is returned for a file that is not a Windows program.
type NotExecutableError struct {
	Name   string
	Looks  string // what the file seems to be, as a phrase such as "is a zip archive"
	Remedy string
}

func (e *NotExecutableError) Error() string {
	return fmt.Sprintf("%s is not a Windows executable, it %s: %s", e.Name, e.Looks, e.Remedy)
}

// MachineError is returned for a program built for another processor.
type MachineError struct{ Name, Got, Want string }

func (e *MachineError) Error() string {
	return fmt.Sprintf("%s is built for %s, but the node is %s: build it with GOOS=windows GOARCH=%s", e.Name,
		e.Got, e.Want, e.Want)
}

// TruncatedError is returned for a download that ended early. The part is kept, and the
// next try continues it if the server supports that.
type TruncatedError struct {
	URL       string
	Got, Want int64 // bytes; Want is 0 if the server did not report it
	Err       error
}

func (e *TruncatedError) Error() string {
	of := ""
	if e.Want > 0 {
		of = fmt.Sprintf(" of %d", e.Want)
	}
	return fmt.Sprintf("download %s: the connection ended after %d%s bytes (%v): run the command again to go on "+
		"from there", e.URL, e.Got, of, e.Err)
}

func (e *TruncatedError) Unwrap() error { return e.Err }

// TooLargeError is returned for a download beyond the limit. Its part is not kept.
type TooLargeError struct {
	URL         string
	Size, Limit int64 // bytes; Size is 0 if the server did not report it
}

func (e *TooLargeError) Error() string {
	size := "it goes on"
	if e.Size > 0 {
		size = fmt.Sprintf("it has %s, which is", ui.Size(e.Size))
	}
	return fmt.Sprintf("download %s: %s beyond the limit of %s: check the URL, or set %s", e.URL, size,
		ui.Size(e.Limit), SizeVariable)
}

// StatusError is returned for an HTTP answer other than success.
type StatusError struct {
	URL    string
	Status int
	Text   string
}

func (e *StatusError) Error() string {
	remedy := "try again later"
	switch {
	case e.Status == 404 || e.Status == 410:
		remedy = "correct sourceURL"
	case e.Status == 401 || e.Status == 403:
		remedy = "the server wants credentials; download the file yourself and give its path"
	case e.Status < 500:
		remedy = "check sourceURL"
	}
	return fmt.Sprintf("download %s: the server answered %d %s: %s", e.URL, e.Status, e.Text, remedy)
}
