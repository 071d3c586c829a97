// Package platformtest is the contract of package platform as tests. It checks the promises in the
// comments of package platform, against platform/windows (under Wine) and platform/simulated. If
// the two disagree, Windows is right.
//
// An implementation's test calls Run with a function that makes a Fixture. Capabilities declare the abilities of a
// machine; only tests that need a missing ability are skipped.
package platformtest

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/platform"
)

// Fixture is a machine to test. The tests use their own names and files; a test removes what it makes.
type Fixture struct {
	Platform *platform.Platform
	Folder   string // an empty, writable folder

	// Program is an executable that treats its arguments after ProgramArgs as instructions, and carries them out one
	// after the other:
	//
	//	args A…          prints every argument that follows as a JSON string on a line; exit 0
	//	stderr TEXT      prints a line on stderr
	//	stdin            copies stdin to stdout
	//	env NAME         prints the variable and a newline
	//	folder           prints the working folder and a newline
	//	exit N           ends with exit code N
	//	child WORDS…     starts itself again with WORDS, prints the child's PID and
	//	                 a newline; exit 0
	//	childandwait …   the same, but waits for the child
	//	lock PATH TEXT   acquires the lock of the file with the holder TEXT, prints
	//	                 "locked" and a newline, and holds the lock until stdin ends
	//	scan PATH        opens the file and lets other processes only read it, prints
	//	                 "scanning" and a newline, and holds the file until stdin ends
	//	forever          waits to be killed
	//	hang             waits to be killed, and does not handle Ctrl-C
	//	size             prints the size of its terminal, COLUMNSxROWS and a newline
	//	awaitsize SIZE   waits until its terminal has the size, and prints "resized"
	//	                 and a newline
	//	line             reads a line of stdin, and prints "got " and the line
	//	count N          prints "number 1" to "number N", each on a line
	Program     string
	ProgramArgs []string

	// InstallService registers a service with the fields of config and with a program that has the
	// behaviour b. It removes the service after the test.
	InstallService func(t *testing.T, config platform.ServiceConfig, b Behaviour)

	// ServeHTTP serves HTTP on a loopback port of the machine and returns the URL of its root.
	// ServePipe serves a named pipe that echoes its input. Each of these two functions may be nil.
	ServeHTTP func(t *testing.T, handler http.Handler) (url string)
	ServePipe func(t *testing.T) (path string)

	// Feature is an optional feature that tests may enable and disable.
	Feature string

	Has Capabilities
}

// Behaviour is the behaviour of a service program. A program with the zero value runs until it is
// stopped.
type Behaviour struct {
	CrashAtStart bool          // whether the program ends before it has reported to the SCM
	HangOnStop   bool          // whether the service stays stop pending until its process is killed
	ExitAfter    time.Duration // after this time the program ends on its own, without reporting to the SCM
	ExitCode     uint32        // the service-specific code that a clean stop reports
	SlowStart    time.Duration // how long the service is start pending
	// Record is a file that gets a line for each start: the arguments, service name first, as a JSON list.
	Record string
}

// Capabilities are abilities that only some machines have.
type Capabilities struct {
	ACL               bool // access lists are kept
	Inheritance       bool // access lists are inherited
	Recovery          bool // recovery actions can be read back
	Restarts          bool // recovery actions are carried out
	StartDependencies bool // the SCM starts a service's dependencies
	// ServiceEnvironment: the SCM merges the value Environment of a service's key into its variables.
	ServiceEnvironment bool
	DeletePending      bool // a running service that is deleted is marked, and still exists
	Features           bool
	Firewall           bool
	ParentPID          bool
	RunningReplace     bool // replacing a running executable by a rename is refused
	SpecificExit       bool // the exit code 1066 and the service's own code are kept
	Respelling         bool // a rename that changes only the case of a name works
	Terminal           bool // a program can have a terminal of its own
	PortOwner          bool // the PID of the process that listens on a port is known
	Holders            bool // the processes that hold a file are known
	PlantedHNS         bool // HNS and HCS read their objects from the files of a folder; false on real Windows
}

// Run runs the whole suite; every test gets its own fixture.
func Run(t *testing.T, fixture func(t *testing.T) Fixture) {
	t.Run("Files", func(t *testing.T) { testFiles(t, fixture) })
	t.Run("Rename", func(t *testing.T) { testRename(t, fixture) })
	t.Run("Sharing", func(t *testing.T) { testSharing(t, fixture) })
	t.Run("RunningExecutable", func(t *testing.T) { testRunningExecutable(t, fixture(t)) })
	t.Run("Lock", func(t *testing.T) { testLock(t, fixture) })
	t.Run("ACL", func(t *testing.T) { testACL(t, fixture) })
	t.Run("Registry", func(t *testing.T) { testRegistry(t, fixture) })
	t.Run("Roots", func(t *testing.T) { testRoots(t, fixture) })
	t.Run("Processes", func(t *testing.T) { testProcesses(t, fixture) })
	t.Run("Terminal", func(t *testing.T) { testTerminal(t, fixture) })
	t.Run("Services", func(t *testing.T) { testServices(t, fixture) })
	t.Run("Machine", func(t *testing.T) { testMachine(t, fixture(t)) })
	t.Run("Network", func(t *testing.T) { testNetwork(t, fixture) })
	t.Run("Compute", func(t *testing.T) { testCompute(t, fixture) })
	t.Run("Features", func(t *testing.T) { testFeatures(t, fixture(t)) })
	t.Run("Firewall", func(t *testing.T) { testFirewall(t, fixture(t)) })
}

// waitLimit limits every wait for another process.
const waitLimit = 30 * time.Second

// need skips a test if the machine's Capabilities lack an ability.
func need(t *testing.T, has bool, what string) {
	t.Helper()
	if !has {
		t.Skip("this machine does not have: " + what)
	}
}

// check ends the test on an error.
func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits until another process makes a condition true, for at most waitLimit.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !condition() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("never: %s", what)
		}
	}
}

// path returns a path below the fixture's folder.
func (f Fixture) path(parts ...string) string {
	return f.Folder + `\` + strings.Join(parts, `\`)
}

func (f Fixture) write(t *testing.T, path, text string) {
	t.Helper()
	w, err := f.Platform.Files.Create(path, platform.CreateTruncate)
	check(t, err)
	_, err = w.Write([]byte(text))
	check(t, err)
	check(t, w.Sync())
	check(t, w.Close())
}

func (f Fixture) read(t *testing.T, path string) string {
	t.Helper()
	r, err := f.Platform.Files.Open(path)
	check(t, err)
	defer r.Close()
	var b bytes.Buffer
	_, err = b.ReadFrom(r)
	check(t, err)
	return b.String()
}

// command returns a command that runs the fixture's program.
func (f Fixture) command(words ...string) platform.Command {
	return platform.Command{Path: f.Program, Args: slices.Concat(f.ProgramArgs, words)}
}
