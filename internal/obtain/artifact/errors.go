package artifact

import (
	"fmt"
	"io/fs"
	"strings"
)

// MissingError reports a published file that none of its places has.
type MissingError struct {
	What   string   // the component, such as kubelet 1.36.3 for windows/amd64
	Looked []string // the searched places, each with the server's answer, if any
	Mirror bool     // reports whether the places are in a mirror
	Field  string   // the field of the node file that can name another source
	Err    error    // the error of the last server; nil if no server was asked
}

func (e *MissingError) Error() string {
	remedy := fmt.Sprintf("check that this version is published for this processor, or set %s", e.Field)
	if e.Mirror {
		remedy = fmt.Sprintf("put the file (and its checksum) into the mirror at one of these places, or set %s",
			e.Field)
	}
	return fmt.Sprintf("%s was not found, looked for %s: %s", e.What, strings.Join(e.Looked, " and "), remedy)
}

func (e *MissingError) Unwrap() error { return e.Err }

// AbsentError reports a local source that does not exist.
type AbsentError struct {
	Field string // of the node file
	What  string // a description of the missing file
}

func (e *AbsentError) Error() string {
	return fmt.Sprintf("%s: %s: build it first, or correct the path", e.Field, e.What)
}

func (e *AbsentError) Unwrap() error { return fs.ErrNotExist }

// ChecksumError reports a file whose hash differs from the published checksum.
type ChecksumError struct {
	File, Got       string
	Published, Want string // the place and the value of the published checksum
}

func (e *ChecksumError) Error() string {
	return fmt.Sprintf("%s has sha256 %s, but %s says %s: do not use the file; find out which of the two was changed, "+
		"or get it from elsewhere", e.File, e.Got, e.Published, e.Want)
}

// ArchiveError reports an archive that cannot or must not be unpacked.
type ArchiveError struct {
	Archive, What, Remedy string
	Err                   error
}

func (e *ArchiveError) Error() string {
	what := e.What
	if e.Err != nil {
		what = fmt.Sprintf("%s (%v)", what, e.Err)
	}
	return fmt.Sprintf("%s %s: %s", e.Archive, what, e.Remedy)
}

func (e *ArchiveError) Unwrap() error { return e.Err }
