// Package hosttest is the contract of package host as tests: what its comments
// promise is checked here, against the real Windows (under Wine) and against the
// simulated one alike. Where the two disagree, Windows is right.
//
// An implementation's test calls Run with a function that makes a Fixture. What
// a machine cannot do is declared in Capabilities, and only that is skipped.
package hosttest

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/host"
)

// Fixture is a machine to test. The names and files that the tests use are their
// own; a test removes what it makes.
type Fixture struct {
	Host   *host.Host
	Folder string // an empty folder that may be written to

	// Program is an executable that does what its arguments, after ProgramArgs,
	// say. They are words, done one after the other:
	//
	//	args A…          prints every argument that follows as a JSON string on a line; exit 0
	//	stderr TEXT      prints a line on stderr
	//	stdin            copies stdin to stdout
	//	env NAME         prints the variable and a newline
	//	folder           prints the working folder and a newline
	//	exit N           ends with that code
	//	child WORDS…     starts itself with WORDS, prints its PID and a newline; exit 0
	//	childandwait …   the same, but waits for the child
	//	lock PATH TEXT   takes host's lock on the file, prints "locked" and a newline,
	//	                 and holds it until stdin ends
	//	forever          waits to be killed
	Program     string
	ProgramArgs []string

	// InstallService registers a service whose program behaves in this way, with
	// config's other fields as they are, and removes it after the test.
	InstallService func(t *testing.T, config host.ServiceConfig, b Behaviour)

	// ServeHTTP lets the machine answer HTTP on a loopback port and returns the
	// URL of its root. ServePipe serves a named pipe that returns what it gets.
	// Either may be nil.
	ServeHTTP func(t *testing.T, handler http.Handler) (url string)
	ServePipe func(t *testing.T) (path string)

	// Feature is an optional feature that may be switched on and off.
	Feature string

	Has Capabilities
}

// Behaviour is what a service program does; zero: it runs until it is stopped.
type Behaviour struct {
	CrashAtStart bool          // ends before it has answered the SCM
	HangOnStop   bool          // is stop pending until it is killed
	ExitAfter    time.Duration // ends by itself, without telling the SCM
	ExitCode     uint32        // the service-specific code that a clean stop reports
	SlowStart    time.Duration // how long it is start pending
	Record       string        // a file that gets a line for each start: the arguments, service name first, as a JSON list
}

// Capabilities are what not every machine has.
type Capabilities struct {
	ACL               bool // access lists are kept
	Inheritance       bool // … and inherited
	Recovery          bool // recovery actions can be read back
	Restarts          bool // … and are acted on
	StartDependencies bool // the SCM starts what a service depends on
	DeletePending     bool // a running service that is deleted is marked, not gone
	Features          bool
	Firewall          bool
	ParentPID         bool
	RunningReplace    bool // replacing a running executable by a rename is refused
	SpecificExit      bool // 1066 and the service's own code are kept
	Respelling        bool // a rename may change a name's case alone
	PortOwner         bool // it is known which process listens on a port
	PlantedHNS        bool // HNS and HCS answer with the files of a folder: no real Windows
}

// Run runs the whole suite; every test gets a fixture of its own.
func Run(t *testing.T, fixture func(t *testing.T) Fixture) {
	t.Run("Files", func(t *testing.T) { testFiles(t, fixture) })
	t.Run("Rename", func(t *testing.T) { testRename(t, fixture) })
	t.Run("Sharing", func(t *testing.T) { testSharing(t, fixture) })
	t.Run("RunningExecutable", func(t *testing.T) { testRunningExecutable(t, fixture(t)) })
	t.Run("Lock", func(t *testing.T) { testLock(t, fixture) })
	t.Run("ACL", func(t *testing.T) { testACL(t, fixture) })
	t.Run("Registry", func(t *testing.T) { testRegistry(t, fixture) })
	t.Run("Processes", func(t *testing.T) { testProcesses(t, fixture) })
	t.Run("Services", func(t *testing.T) { testServices(t, fixture) })
	t.Run("Machine", func(t *testing.T) { testMachine(t, fixture(t)) })
	t.Run("Network", func(t *testing.T) { testNetwork(t, fixture) })
	t.Run("Compute", func(t *testing.T) { testCompute(t, fixture) })
	t.Run("Features", func(t *testing.T) { testFeatures(t, fixture(t)) })
	t.Run("Firewall", func(t *testing.T) { testFirewall(t, fixture(t)) })
}

// patience bounds every wait for another process.
const patience = 30 * time.Second

// need skips what a machine has declared that it cannot do.
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

// eventually waits for a condition that another process brings about.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
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

// path is a path below the fixture's folder.
func (f Fixture) path(parts ...string) string {
	return f.Folder + `\` + strings.Join(parts, `\`)
}

func (f Fixture) write(t *testing.T, path, text string) {
	t.Helper()
	w, err := f.Host.Files.Create(path, host.CreateTruncate)
	check(t, err)
	_, err = w.Write([]byte(text))
	check(t, err)
	check(t, w.Sync())
	check(t, w.Close())
}

func (f Fixture) read(t *testing.T, path string) string {
	t.Helper()
	r, err := f.Host.Files.Open(path)
	check(t, err)
	defer r.Close()
	var b bytes.Buffer
	_, err = b.ReadFrom(r)
	check(t, err)
	return b.String()
}

// command is a run of the fixture's program.
func (f Fixture) command(words ...string) host.Command {
	return host.Command{Path: f.Program, Args: slices.Concat(f.ProgramArgs, words)}
}
