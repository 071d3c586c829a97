// Package watch pushes binaries again whenever they change. It is a state machine that uses
// nodes and builds only through interfaces. It looks at the files to find changes; a
// notification of the operating system only triggers a look. So a lost notification only
// delays a push.
//
//   - watch.go: options, events and interfaces; loop.go: the goroutine that owns all state
//   - binary.go: a file that a linker writes, from its first byte until it is complete
//   - builder.go, tree.go, pattern.go: a build and its sources
//   - target.go: one node, its connection and the pushes to it
//   - notify.go: the operating system's notifications of changed folders
package watch

import (
	"context"
	"time"
)

// Options are the binaries to watch and the nodes that they go to.
type Options struct {
	Binaries []*Binary
	Targets  []*Target
	// Notifier reports changed folders; nil: swdt looks at the files only at intervals. Run closes
	// the Notifier.
	Notifier Notifier
	// Examine checks whether a file is complete and can be pushed. It runs while the
	// watch waits for the file to settle, so its result may be discarded.
	Examine func(ctx context.Context, b *Binary) error
	// Prepare does part of the work of a push ahead of time, for a file that Examine
	// found complete. It starts while the watch waits for the file to settle, continues
	// during the push, and ends when the file changes, so its result may be discarded.
	// nil: no such work.
	Prepare func(ctx context.Context, b *Binary)
	// Report receives the events, one at a time.
	Report func(Event)
	// Commands are the requests of the user; nil: there are none.
	Commands <-chan Command
	// Force makes the first push to each target restart services even if nothing differs.
	Force bool
}

// Binary is a file that is pushed when it changes.
type Binary struct {
	// Name is printed.
	Name string
	Path string
	// Build makes the binary; nil: the user builds it by other means. Binaries of one
	// build command share one Build.
	Build *Build
}

// Build makes binaries from sources.
type Build struct {
	Name string // printed
	// Dir and Patterns select the sources, as in v1alpha1.Build.
	Dir      string
	Patterns []string
	// Run builds once. When ctx ends, Run ends everything that it started and returns soon.
	Run func(ctx context.Context) error
}

// Target is a node to which binaries are pushed.
type Target struct {
	Name       string
	Components []Component
	Remote     Remote
}

// Component is one of a target's binaries. A component without a Binary is obtained
// from elsewhere and not watched.
type Component struct {
	Name   string
	Binary *Binary
}

// Remote is the node's side of a target. Its methods are called one at a time.
type Remote interface {
	// Connect makes a connection that stays open between pushes. It replaces a previous connection.
	Connect(ctx context.Context) error
	// Lost returns a channel that is closed when the present connection has ended.
	Lost() <-chan struct{}
	// Push brings the named components to the node, all in one transaction, and
	// returns the result to report.
	Push(ctx context.Context, order Order) (result any, err error)
	// RollBack undoes the last push.
	RollBack(ctx context.Context) (result any, err error)
	// Retry reports whether a later try may succeed after err.
	Retry(err error) bool
	// Close ends the connection. Once ctx has ended, it does not wait for the node.
	Close(ctx context.Context)
}

// Order is one push.
type Order struct {
	Names []string
	// Force restarts the services even if nothing differs.
	Force bool
	// Built is how long the builds of the pushed binaries took, by component.
	Built map[string]time.Duration
	// Commit must be called when everything is ready, before the node is changed. If
	// it returns false, a newer binary exists and the node must not be changed. After
	// true the push is no longer cancelled, unless swdt ends.
	Commit func() bool
	// Healthy may be called when the node is done and only the report is missing.
	Healthy func()
}

// Command is a request of the user.
type Command int

const (
	Again    Command = iota // push all components, even if nothing differs
	RollBack                // undo the last push
	Quit
)

// Kind is the kind of an event.
type Kind string

const (
	Watching     Kind = "watching"     // the watch begins; if there are no notifications, Message says how changes are found
	Changed      Kind = "changed"      // a binary changed
	Waiting      Kind = "waiting"      // the watch waits for a binary that is missing or broken; Err has the reason
	Building     Kind = "building"     // a build began
	Built        Kind = "built"        // a build succeeded
	Unchanged    Kind = "unchanged"    // a build made the same binary as before
	BuildFailed  Kind = "buildFailed"  // a build failed; Err has the build's output
	BuildStopped Kind = "buildStopped" // a build was stopped, because its sources changed
	BuildLoops   Kind = "buildLoops"   // the build changes its own sources: Message names them
	Connected    Kind = "connected"
	Lost         Kind = "lost" // the connection broke; swdt reconnects
	Pushing      Kind = "pushing"
	Committing   Kind = "committing" // everything is on the node, which begins to replace files
	Healthy      Kind = "healthy"    // the node has replaced the binaries, and they are healthy
	Superseded   Kind = "superseded" // a push was cancelled, or failed, after a newer binary appeared
	Pushed       Kind = "pushed"     // Result is the result of Remote.Push
	RolledBack   Kind = "rolledBack" // on the user's request
	Failed       Kind = "failed"     // a connection, push or rollback failed
)

// Event is one thing that happened.
type Event struct {
	Time  time.Time
	Kind  Kind
	Node  string
	Names []string // names of components, of a build or of a binary
	// Took is the duration of the work that ended with this event. Retry is the time until swdt
	// repeats work that failed; 0: swdt does not repeat it.
	Took    time.Duration
	Retry   time.Duration
	Message string
	Err     error
	Result  any
}

// Notifier reports the folders in which something changed. The regular looks make up
// for a lost notification.
type Notifier interface {
	// Watch starts watching a folder, without the folders below it. After an error, the folder
	// must be looked at more often.
	Watch(folder string) error
	// Events returns the changed paths; an empty path means that some paths were lost.
	Events() <-chan string
	Close() error
}

// Intervals and limits; see docs/guides/watch.md.
const (
	// Quiet is the time for which a file must stay unchanged to count as written.
	Quiet = 200 * time.Millisecond
	// early is the time for which a file must stay unchanged to be read in advance, so that its
	// hash is known when the file counts as written.
	early = 50 * time.Millisecond
	// reportBrokenAfter is the time for which a file may be missing or broken before swdt
	// reports it.
	reportBrokenAfter = 2 * time.Second

	fileSafety = 2 * time.Second        // interval between looks at the files if notifications work
	filePoll   = 300 * time.Millisecond // interval between looks at the files if notifications do not work
	treeSafety = 15 * time.Second
	treePoll   = time.Second

	firstRetry = time.Second
	lastRetry  = 30 * time.Second
)

// Run watches and pushes until ctx ends or the command Quit arrives. It returns the cause of
// ctx or, after Quit, nil.
func Run(ctx context.Context, o Options) error {
	return newLoop(o).run(ctx)
}
