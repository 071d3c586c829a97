// Package diag gathers what is known about many nodes into one file: facts,
// services, configurations, logs, events, containers, the network. Each node is
// asked at once with the others, each thing by a collector that has its own
// deadline and whose failure stands beside what the others found.
//
// Every call to a node asks the agent to redact its answer there (package
// redact), all but the names of files; what is written is redacted once more here.
//
//   - collectors.go: the table of collectors; to add one, add a line
//   - commands.go: the table of commands; the same
//   - machine.go, network.go, runtime.go, files.go, events.go, cluster.go: what the
//     others do
//   - evtx.go: event channels as files, the one thing that cannot be redacted
//   - collector.go: running them, within their deadlines
//   - folder.go: where their results go
//   - gather.go: many nodes, and the bundle that comes of them
//   - manifest.go: what is in a bundle
//   - page.go, page.html: the bundle as a page
//   - open.go: a bundle that is there
package diag

import (
	"fmt"
	"time"
)

// Profile is how much is gathered; each has all of the one before it.
type Profile int

// Profiles.
const (
	Quick Profile = iota
	Network
	Full
)

// Profiles are all there are, with their names.
func Profiles() []string { return []string{"quick", "network", "full"} }

func (p Profile) String() string { return Profiles()[p] }

// Set takes a flag's value.
func (p *Profile) Set(name string) error {
	for i, known := range Profiles() {
		if name == known {
			*p = Profile(i)
			return nil
		}
	}
	return fmt.Errorf("%q is no profile: use quick, network or full", name)
}

// Type names the values in a flag's usage text.
func (p *Profile) Type() string { return "quick|network|full" }

// of picks a value by profile.
func of[T any](p Profile, quick, network, full T) T { return [...]T{quick, network, full}[p] }

// Defaults of Options.
const (
	// NodeTimeout bounds all of one node.
	NodeTimeout = 10 * time.Minute
	// collectorTimeout is a collector's where its line does not say.
	collectorTimeout = 30 * time.Second
	// abreast is how many collectors work on one node at a time: their commands
	// share its processors with what it is for.
	abreast = 4
	// readers are how many files of all nodes are read at a time. Each may have
	// megabytes on their way.
	readers = 3
	// MostNodes are gathered from at a time, however many may be worked on: each
	// takes memory for what is on its way.
	MostNodes = 6
	// memory is what Go is told to keep to, by collecting sooner: half of what swdt
	// may take.
	memory = 80 << 20
)
