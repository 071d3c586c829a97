// Package watch pushes binaries again whenever they change. It is a small state
// machine that knows nothing of nodes and builds but their interfaces: what
// changed is what looking at files shows, notifications only say when to look,
// and so a lost one costs time and nothing else.
//
//   - watch.go: what is watched, what is told; loop.go: one goroutine owns it all
//   - binary.go: a file that a linker writes, from its first byte to whole
//   - builder.go, tree.go, pattern.go: a build, the sources it is made from
//   - target.go: one node, its connection and the pushes to it
//   - notify.go: what the operating system says of changed folders
package watch

import (
	"context"
	"time"
)

// Options are what is watched and where it goes.
type Options struct {
	Binaries []*Binary
	Targets  []*Target
	// Notifier tells of changed folders; nil: files are only looked at now and
	// then. Run closes it.
	Notifier Notifier
	// Examine finds out whether a file is whole and fit to be pushed. It runs
	// while the file is given time to settle, and may be in vain.
	Examine func(ctx context.Context, b *Binary) error
	// Prepare does ahead what a push of a file will need that Examine found whole.
	// It runs while the file is given time to settle, goes on beside the push, and
	// ends when the file changes. It may be in vain; nil: nothing is done ahead.
	Prepare func(ctx context.Context, b *Binary)
	// Tell hears what happens, one event at a time.
	Tell func(Event)
	// Commands are what a person wants beside; nil: nobody asks.
	Commands <-chan Command
	// Force pushes once although nothing may differ.
	Force bool
}

// Binary is a file that is pushed when it changes.
type Binary struct {
	// Name for people.
	Name string
	Path string
	// Build makes it; nil: somebody else does. Binaries that one command builds
	// share one Build.
	Build *Build
}

// Build makes binaries of sources.
type Build struct {
	Name string // for people
	// Dir and Patterns are the sources, as v1alpha1.Build has them.
	Dir      string
	Patterns []string
	// Run builds once. When ctx ends, it ends everything that it started and
	// returns soon.
	Run func(ctx context.Context) error
}

// Target is a node that binaries are pushed to.
type Target struct {
	Name       string
	Components []Component
	Remote     Remote
}

// Component is one of a target's binaries. One without a Binary comes from
// elsewhere and is not watched.
type Component struct {
	Name   string
	Binary *Binary
}

// Remote is the other end. Its methods are called one at a time.
type Remote interface {
	// Connect makes a connection that stays open between pushes, or makes it
	// anew.
	Connect(ctx context.Context) error
	// Lost is closed when the present connection has ended.
	Lost() <-chan struct{}
	// Push brings the named components to the node, all in one transaction, and
	// returns what is to be told of it.
	Push(ctx context.Context, order Order) (result any, err error)
	// RollBack takes the last push back.
	RollBack(ctx context.Context) (result any, err error)
	// Retry is whether waiting a little and trying again may help against err.
	Retry(err error) bool
	// Close ends the connection; once ctx has ended, without a goodbye.
	Close(ctx context.Context)
}

// Order is one push.
type Order struct {
	Names []string
	// Force restarts what runs although nothing differs.
	Force bool
	// Built is how long the builds took that made what is pushed, by component.
	Built map[string]time.Duration
	// Commit is to be called when all is ready, before the node is changed. On
	// false a newer binary is there and nothing must be changed; after true the
	// push is not cancelled any more, unless swdt ends.
	Commit func() bool
	// Healthy may be called when the node is done and what is left is to tell.
	Healthy func()
}

// Command is what a person wants.
type Command int

const (
	Again    Command = iota // push all, even though it is the same
	RollBack                // take the last push back
	Quit
)

// Kind is what happened.
type Kind string

const (
	Watching     Kind = "watching"     // it begins; Message says so where nobody tells of changes
	Changed      Kind = "changed"      // a binary is not what it was
	Waiting      Kind = "waiting"      // for a binary to be there and whole; Err says what is wrong
	Building     Kind = "building"     // a build began
	Built        Kind = "built"        // and succeeded
	Unchanged    Kind = "unchanged"    // a build made what was there before
	BuildFailed  Kind = "buildFailed"  // Err has its output
	BuildStopped Kind = "buildStopped" // for sources that are newer
	BuildLoops   Kind = "buildLoops"   // the build changes what it is made from: Message names it
	Connected    Kind = "connected"
	Lost         Kind = "lost" // the connection; it is made again
	Pushing      Kind = "pushing"
	Committing   Kind = "committing" // all is on the node, which begins to replace
	Healthy      Kind = "healthy"    // it has, and all that was replaced is healthy
	Superseded   Kind = "superseded" // a push ended for a newer binary; the node is as it was
	Pushed       Kind = "pushed"     // Result has what Remote.Push returned
	RolledBack   Kind = "rolledBack" // as somebody wanted
	Failed       Kind = "failed"     // a connection, push or rollback; again after Retry, if that is not 0
)

// Event is something that happened.
type Event struct {
	Time  time.Time
	Kind  Kind
	Node  string
	Names []string // of components, or a build's or binary's name
	// Took is how long it took that ended with this.
	Took    time.Duration
	Retry   time.Duration
	Message string
	Err     error
	Result  any
}

// Notifier tells in which folders something changed. A lost notification is
// made good by looking now and then.
type Notifier interface {
	// Watch begins to watch a folder, without those below it. An error means that
	// it must be looked at more often.
	Watch(folder string) error
	// Events are paths of what changed; an empty one says that some were lost.
	Events() <-chan string
	Close() error
}

// How long things may take; see docs/guides/watch.md.
const (
	// Quiet is for how long a file must stand still to count as written.
	Quiet = 200 * time.Millisecond
	// early is when a file that seems to stand still is read in advance, so that
	// its hash is known when it counts as written.
	early = 50 * time.Millisecond
	// patience is how long a file may be missing or broken before it is told.
	patience = 2 * time.Second

	fileSafety = 2 * time.Second        // looking at files despite notifications
	filePoll   = 300 * time.Millisecond // and without
	treeSafety = 15 * time.Second
	treePoll   = time.Second

	firstRetry = time.Second
	lastRetry  = 30 * time.Second
)

// Run watches and pushes until ctx ends, whose cause it returns, or somebody
// quits: then it returns nil.
func Run(ctx context.Context, o Options) error {
	return newLoop(o).run(ctx)
}
