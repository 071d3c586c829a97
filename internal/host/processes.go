package host

import (
	"context"
	"io"
	"time"
)

// Process is one running process.
type Process struct {
	PID       uint32
	ParentPID uint32
	Name      string    // kubelet.exe
	Image     string    // full path of the executable; empty where access is denied
	Started   time.Time // zero where access is denied
	CPU       time.Duration
	Memory    uint64 // working set, bytes
	Handles   uint32
	Threads   uint32
	Session   uint32 // services have 0, a container with process isolation one of its own
	// CommandLine is what the process was started with; empty where access is denied.
	CommandLine string
}

// ProcessHandle pins one process, so that its PID cannot come to mean another.
type ProcessHandle interface {
	// Wait returns nil once the process is gone, ctx's error if that is first.
	Wait(ctx context.Context) error
	// Kill ends the process at once; no error if it has ended already.
	Kill() error
	Close() error
}

// Command is a program to run.
type Command struct {
	// Path is an absolute path, or a name that is looked up on the machine's PATH.
	Path string
	Args []string
	// Folder is the working directory; empty: the user's profile.
	Folder string
	// Environment adds NAME=value to the agent's own environment.
	Environment []string
	Stdin       io.Reader // nil: nothing
	Stdout      io.Writer // nil: discarded
	Stderr      io.Writer // nil: discarded
}

// Processes are the machine's processes.
type Processes interface {
	List(ctx context.Context) ([]Process, error)
	// Open pins a running process; ErrNotExist where there is none.
	Open(pid uint32) (ProcessHandle, error)
	// Run runs a command to its end and returns its exit code, whatever it is;
	// err is for a command that could not be started (ErrNotExist) or waited
	// for. The command and all it started end when ctx or the agent does. Args
	// are quoted as Windows programs parse them; for cmd.exe they are joined
	// with spaces, since it parses its command line itself.
	Run(ctx context.Context, c Command) (exitCode int, err error)
}
