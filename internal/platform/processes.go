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
	Session   uint32 // 0 for services; a container with process isolation has its own session
	// CommandLine is the process's command line; empty if access is denied.
	CommandLine string
}

// ProcessHandle is a handle to one process. While the handle is open, no other process can get the
// same PID.
type ProcessHandle interface {
	// Wait returns nil once the process has ended, or ctx's error if ctx ends first.
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
	// Environment adds variables, each as NAME=value, to the agent's own environment.
	Environment []string
	Stdin       io.Reader // nil: empty
	Stdout      io.Writer // nil: discarded
	Stderr      io.Writer // nil: discarded
	// Terminal gives the command a terminal of its own; nil: none. Stdin then has the keys that a
	// person presses, as a terminal sends them, and Stdout gets what the terminal shows, in UTF-8
	// with control sequences. Stderr is not used.
	Terminal *Terminal
}

// Terminal is the terminal of a command.
type Terminal struct {
	Size TerminalSize
	// Resized gets each further size; nil: the size does not change. Run stops receiving at the end
	// of the command.
	Resized <-chan TerminalSize
}

// TerminalSize is the size of a terminal in characters.
type TerminalSize struct{ Columns, Rows int }

// MostCells is the largest number of columns, and of rows, of a terminal.
const MostCells = 1000

// Valid reports whether a terminal can have this size.
func (s TerminalSize) Valid() bool {
	return s.Columns > 0 && s.Rows > 0 && s.Columns <= MostCells && s.Rows <= MostCells
}

// ExitInterrupted is the exit code of a program that Ctrl-C has ended: STATUS_CONTROL_C_EXIT.
const ExitInterrupted = 0xC000013A

// Processes are the machine's processes.
type Processes interface {
	List(ctx context.Context) ([]Process, error)
	// Open returns a handle to a running process. If no process has this PID, the error is
	// fault.ErrNotExist.
	Open(pid uint32) (ProcessHandle, error)
	// Environment returns the environment of a running process, each variable as NAME=value: the one with which it
	// was started, unless the program itself has changed it since. If no process has this PID, the error is
	// fault.ErrNotExist.
	Environment(ctx context.Context, pid uint32) ([]string, error)
	// Signal sets a named event of another program, such as Global\stackdump-1234. If there is no event of this name, the
	// error is fault.ErrNotExist. It makes none.
	Signal(event string) error
	// Run runs a command to its end and returns its exit code, zero or not. err is set only if the
	// command could not be started (fault.ErrNotExist if the program does not exist) or the wait
	// for its end failed. The command and all its children end when ctx ends or the agent's process
	// ends. Args are quoted as Windows programs parse them; for cmd.exe they are joined with
	// spaces, since cmd.exe parses its command line itself.
	//
	// On a terminal, Ctrl-C (byte 3 of Stdin) interrupts the programs of the command: it ends those
	// that do not handle it, with ExitInterrupted. The end of Stdin hangs up, which ends the command
	// and all its children. If the machine cannot make terminals, the error is fault.ErrNotSupported.
	Run(ctx context.Context, c Command) (exitCode int, err error)
}
