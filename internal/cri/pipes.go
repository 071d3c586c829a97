package cri

import (
	"slices"
	"strings"
)

// DefaultPipe is where containerd serves the CRI unless its configuration says
// otherwise.
const DefaultPipe = `\\.\pipe\containerd-containerd`

// Pipes are the named pipes that an agent relays to: those of container runtimes,
// and no others, whatever a caller names.
func Pipes() []string { return []string{DefaultPipe, `\\.\pipe\cri-dockerd`} }

// IsPipe is whether path, in either spelling of its slashes, is one of Pipes.
// Windows does not tell upper from lower case in the names of pipes.
func IsPipe(path string) bool {
	path = strings.ReplaceAll(path, "/", `\`)
	return slices.ContainsFunc(Pipes(), func(known string) bool { return strings.EqualFold(known, path) })
}
