package cri

import (
	"slices"
	"strings"
)

// DefaultPipe is the pipe on which containerd serves the CRI unless its
// configuration names another.
const DefaultPipe = `\\.\pipe\containerd-containerd`

// Pipes returns the named pipes to which an agent relays. They are pipes of
// container runtimes; a caller cannot select any other pipe.
func Pipes() []string { return []string{DefaultPipe, `\\.\pipe\cri-dockerd`} }

// IsPipe reports whether path, with either kind of slash, is one of Pipes.
// Windows ignores case in the names of pipes.
func IsPipe(path string) bool {
	path = strings.ReplaceAll(path, "/", `\`)
	return slices.ContainsFunc(Pipes(), func(known string) bool { return strings.EqualFold(known, path) })
}
