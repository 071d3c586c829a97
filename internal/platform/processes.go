package platform

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
	Image     string    // full path of the executable; empty if access is denied
	Started   time.Time // zero if access is denied
	CPU       time.Duration
	Memory    uint64 // working set, bytes
	Handles   uint32
	Threads   uint32
	Session   uint32 // 0 for services; a container with process isolation has its own
	// CommandLine is the process's command line; empty if access is denied.
	CommandLine string
}

// ProcessHandle pins one process, so that no other process can get its PID.
type ProcessHandle interface {
	// Wait returns nil once the process has ended, or ctx's error if that is first.
	Wait(ctx context.Context) error
	// Kill ends the process at once; no error if it has ended already.
	Kill() error
	Close() error
}

// Command is a program to run.
type Command struct {
	// Path is an absolute path, or a name that is found on the machine's PATH.
	Path string
	Args []string
	// Folder is the working directory; empty: the user's profile.
	Folder string
	// Environment adds NAME=value to the agent's own environment.
	Environment []string
	Stdin       io.Reader // nil: empty
	Stdout      io.Writer // nil: discarded
	Stderr      io.Writer // nil: discarded
}

// Processes are the machine's processes.
type Processes interface {
	List(ctx context.Context) ([]Process, error)
	// Open pins a running process; fault.ErrNotExist if there is none.
	Open(pid uint32) (ProcessHandle, error)
	// Run runs a command to its end and returns its exit code, zero or not. err means that the
	// command could not be started (fault.ErrNotExist) or waited for. The command and all its
	// children end when ctx ends or the agent's process does. Args are quoted as Windows programs
	// parse them; for cmd.exe they are joined with spaces, since it parses its command line itself.
	Run(ctx context.Context, c Command) (exitCode int, err error)
}
