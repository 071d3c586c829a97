// Package diag gathers diagnostics of many nodes into one bundle: facts, services,
// configurations, logs, events, containers, the network. It gathers from the nodes in
// parallel, with one collector for each subject. A collector has its own deadline, and its
// failure is recorded beside the results of the other collectors.
//
// The agent redacts its replies to all calls (package redact), except for the names of files and
// the event channels of evtx.go. Your machine redacts all files of the bundle once more, except for
// these channels, and redacts the names of files.
//
//   - collectors.go: the table of collectors; to add one, add a line
//   - commands.go: the table of commands; to add one, add a line
//   - machine.go, network.go, registry.go, runtime.go, compute.go, files.go, events.go,
//     cluster.go, examine.go, hangs.go: the collectors that are not commands
//   - evtx.go: event channels as files, which are the only files that cannot be redacted
//   - collector.go: runs collectors within their deadlines
//   - folder.go: stores the results of collectors
//   - gather.go: gathers from many nodes and writes the bundle
//   - manifest.go: lists the content of a bundle
//   - page.go, page.html: the bundle as a page
//   - open.go: reads a bundle
//   - settings.go: the settings of a bundle's nodes, for `swdt upgrade check`
//   - text.go: prints the output of `swdt diag`
package diag

import (
	"fmt"
	"time"
)

// Profile selects the collectors that run; each profile includes the previous one.
type Profile int

// The profiles, from the smallest.
const (
	Quick Profile = iota
	Network
	Full
)

// Profiles returns all profiles by name.
func Profiles() []string { return []string{"quick", "network", "full"} }

func (p Profile) String() string { return Profiles()[p] }

// Set sets the profile from a flag's value.
func (p *Profile) Set(name string) error {
	for i, known := range Profiles() {
		if name == known {
			*p = Profile(i)
			return nil
		}
	}
	return fmt.Errorf("%q is not a profile: use quick, network or full", name)
}

// Type returns the allowed values, for a flag's usage text.
func (p *Profile) Type() string { return "quick|network|full" }

// of returns one of its last three arguments, the one for profile p.
func of[T any](p Profile, quick, network, full T) T { return [...]T{quick, network, full}[p] }

// Defaults of Options.
const (
	// NodeTimeout limits the time for one node.
	NodeTimeout = 10 * time.Minute
	// collectorTimeout is the deadline of collectors that set none.
	collectorTimeout = 30 * time.Second
	// abreast is the number of collectors that work on one node at a time. It is small, since the
	// commands of collectors share the node's processors with the node's pods.
	abreast = 4
	// readers is the maximum number of files that are read at a time, from all nodes
	// together. Each read may have megabytes in flight.
	readers = 3
	// MostNodes is the maximum number of nodes to gather from at a time, whatever the user allows,
	// since the data in flight of each node takes memory.
	MostNodes = 6
	// memory is Go's memory limit in bytes, which makes Go collect garbage earlier. It is
	// half of the memory that swdt may use.
	memory = 80 << 20
)
