package binaryset

import (
	"fmt"
	"strings"
)

// ManifestError is returned for a manifest that is not that of a valid set of binaries.
type ManifestError struct{ What string }

func (e *ManifestError) Error() string {
	return "it is no set of binaries (" + e.What + "): publish one with `swdt fleet publish`"
}

// ComponentError is returned if a set does not have a component.
type ComponentError struct {
	Component string
	Has       []string
}

func (e *ComponentError) Error() string {
	return fmt.Sprintf("it has no component %q, but %.300s: correct the name, or publish the component too",
		e.Component, strings.Join(e.Has, ", "))
}

// ContentError is returned for a layer that does not contain what the manifest says.
type ContentError struct {
	Title string
	What  string
	Err   error // may be nil
}

func (e *ContentError) Error() string {
	return fmt.Sprintf("%s %s: publish it again", e.Title, e.What)
}

func (e *ContentError) Unwrap() error { return e.Err }

// SizeError is returned for a binary that is larger than the caller allows.
type SizeError struct {
	Title       string
	Size, Limit int64 // bytes
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("%s has %d bytes, more than the limit of %d: check that it is the right artifact", e.Title,
		e.Size, e.Limit)
}

// HashError is returned if the set's binary is not the one that the caller wants.
type HashError struct{ Title, Want, Got string }

func (e *HashError) Error() string {
	return fmt.Sprintf("%s has sha256 %s, but %s is wanted: correct sha256 or the reference", e.Title, e.Got, e.Want)
}
