// Package carrier is the contract between package node and the ways on which it reaches a node. A way
// carries streams: it runs programs on the node with their stdin, stdout and stderr, and it puts the
// agent's file on the node. Everything else that swdt does with a node goes over the stream of its
// agent, whatever the way. SSH is a way (in package node), and so is a pod of the node's cluster
// (package viapod).
//
// The rules of the installation are the same for all ways, and package node follows them: a way puts
// the agent into a place where no ordinary user of the node can write, and verifies its hash there. Then
// the agent installs itself into its folder, with native calls (see package custody).
package carrier

import (
	"context"
	"errors"
	"io"

	"github.com/swdt-dev/swdt/internal/node/agentbin"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Way leads to one node. It can make several connections, one after the other.
type Way interface {
	// Destination names the node's end in progress messages.
	Destination() string
	// Names returns the names of the machines and users on the way, as messages may have them. A report for
	// strangers must not have them.
	Names() []string
	// Connect makes a connection. ctx bounds the connecting, not the connection. If ctx was cancelled,
	// Connect returns ctx's error.
	Connect(ctx context.Context) (Connection, error)
	// Leave removes everything that Connect has made besides connections, such as a pod. The removal goes
	// on for some seconds if ctx was cancelled; a failure is a warning. After that, Connect makes it again.
	Leave(ctx context.Context)
}

// Connection is a connection to a node.
type Connection interface {
	// Address names the node's end in messages, such as host:port.
	Address() string
	// Machine identifies the machine among all machines that this user has contacted: no other machine,
	// and not this machine after its Windows was installed again, can have the same identity. It is ""
	// if the connection cannot prove that; package node then installs the agent at each connection.
	// lasting reports whether a later command can meet the same identity.
	Machine() (identity string, lasting bool)
	// Start starts a program. Neither the program nor its arguments have a space or a character that a
	// shell interprets. ctx bounds the starting only.
	Start(ctx context.Context, program string, args ...string) (Process, error)
	// Run runs a program as Start does, without input, and waits for its end. A nonzero exit code is not
	// an error.
	Run(ctx context.Context, program string, args ...string) (Output, error)
	// Stage opens the place in which an agent waits for its installation. ctx bounds the work in it.
	// failed is the start of an installed agent that has failed before, or nil.
	Stage(ctx context.Context, failed *FailedStart) (Stage, error)
	// Done returns a channel that is closed when the connection has ended; Err then returns the cause.
	// Before the end, Err returns nil.
	Done() <-chan struct{}
	Err() error
	// Close ends the connection and everything that uses it.
	Close() error
}

// Learner is a Connection that can spell the command line of a program in several ways.
type Learner interface {
	// Learn notes the exit code of a start that failed. It reports whether the next start of the program has another
	// command line, so that it may succeed.
	Learn(exitCode int) bool
}

// Process is a program that runs on the node.
type Process interface {
	// Input is the program's stdin. Several goroutines may write to it and close it.
	Input() io.WriteCloser
	// Output is the program's stdout.
	Output() io.Reader
	// Stderr returns the last part of the program's stderr so far.
	Stderr() string
	// Done returns a channel that is closed when the program, or its connection, has ended.
	Done() <-chan struct{}
	// ExitCode waits for the program's end and returns its exit code. It returns -1 and an error if the
	// exit code is unknown, or if ctx ended first.
	ExitCode(ctx context.Context) (int, error)
	// Close ends the program's stream. The program then ends too, if it ends with its stdin.
	Close() error
}

// Output is the result of a program that has ended, with the last part of each output.
type Output struct {
	Stdout, Stderr string
	ExitCode       int
}

// FailedStart is a start of the agent to which no agent of this version has answered.
type FailedStart struct {
	ExitCode int // -1: unknown
	Output   string
}

// Stage is a place on the node in which only its administrators can write.
type Stage interface {
	// HasAgent reports whether the file at the path is the agent with this hash. It may report false if
	// it cannot know; package node then puts the agent there again.
	HasAgent(ctx context.Context, path, hash string) (bool, error)
	// Put sends the agent and verifies the hash of the file that arrived. It returns the program to
	// start, as Connection.Start takes it.
	Put(ctx context.Context, agent agentbin.Agent, r ui.Reporter) (program string, err error)
	// Vanished reports whether the file that Put has sent, or another file of swdt, is gone. It reports
	// false if it cannot know.
	Vanished(ctx context.Context, program string) bool
	// Close removes the file that Put has sent, and closes the stage.
	Close()
}

// IsRefusal reports whether an error of a way repeats itself until a person has changed something: the
// node, the cluster or the credentials have refused swdt. Any other error means that the node could not
// be reached now. An error of a way declares a refusal with a method Refused.
func IsRefusal(err error) bool {
	var refusal interface {
		error
		Refused() bool
	}
	return errors.As(err, &refusal) && refusal.Refused()
}
