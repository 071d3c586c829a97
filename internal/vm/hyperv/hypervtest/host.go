// Package hypervtest simulates Hyper-V: its program stands in for powershell.exe, runs the scripts
// that package hyperv has built, and keeps the VMs of an imagined Windows in a file. The program is
// strict: it accepts only cmdlets and parameters that Microsoft documents and that the driver uses,
// and fails on any other. Tests with it prove that the driver's logic is right for a Hyper-V that
// works as documented. They do not prove that the real Hyper-V works as documented.
//
//   - host.go: the state of the imagined Windows, and the program
//   - parse.go: reads scripts
//   - run.go: runs scripts
//   - cmdlets.go: what each cmdlet does
package hypervtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/node/powershell"
	"github.com/swdt-dev/swdt/internal/wait"
)

// Variable is the environment variable that makes a test's program the stand-in; its value
// is the path of the host's file.
const Variable = "SWDT_HYPERV_STAND_IN"

// Host is the state of an imagined Windows with Hyper-V.
type Host struct {
	VMs      []*VM
	Switches []string
	Modules  []string // of PowerShell
	// Server2016 makes the host a Windows Server 2016, whose cmdlets lack parameters.
	Server2016 bool
	Calls      []string          // the cmdlets that were called
	Scripts    []string          // the scripts that were run
	Faults     map[string]string // the errors that cmdlets return, by the cmdlet's name
	Ignoring   []string          // the notes of VMs whose guests do not shut down
	Neighbour  map[string]string // IP addresses by MAC address, which is in Windows' form
	// Output replaces the output of scripts, unless Output is empty. Cut is the number of bytes to
	// which the output is shortened; 0 means that it is not shortened.
	Output string
	Cut    int
}

// VM is a VM of an imagined Hyper-V.
type VM struct {
	ID, Name, State, Notes, Path, Disk string
	Started                            time.Time
	CPUs, Memory                       int64
	Settings                           map[string]string // by cmdlet and parameter
	Discs                              []string
	Typed                              []byte // scan codes
	Addresses                          []string
	Checkpoints                        []*Checkpoint
}

// Checkpoint is a checkpoint of a VM.
type Checkpoint struct {
	ID, Name, State, Disk string // Disk is the content of the disk
	Created               time.Time
}

// Change changes the state in the file at path, while it holds the file's lock. If the file is
// missing, Change begins with a new host.
func Change(path string, change func(*Host) error) error {
	lock, err := claim(path + ".lock")
	if err != nil {
		return err
	}
	defer lock.Close()
	host := &Host{Switches: []string{"Default Switch"}, Modules: []string{"Hyper-V"}}
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, host)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	failed := change(host)
	if text, err = json.Marshal(host); err == nil {
		err = localfile.Replace(path, text)
	}
	return errors.Join(failed, err)
}

// claim waits for the lock at path and takes it.
func claim(path string) (lock *os.File, err error) {
	err = wait.Condition{
		Name: "the lock of the imagined Windows", Interval: 5 * time.Millisecond, Limit: time.Minute,
		Look: func(context.Context) (err error) {
			lock, err = localfile.Claim(path)
			return err
		},
	}.Wait(context.Background())
	return lock, err
}

// Main is the main function of the stand-in. args are the arguments of powershell.exe, which
// contain a script. Main runs the script on the host whose state is in the file at path, and
// returns the exit code.
func Main(path string, args []string, stdout, stderr io.Writer) int {
	text, err := script(args)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	statements, err := parse(text)
	if err != nil {
		fmt.Fprintf(stderr, "the stand-in cannot read the script: %v\n", err)
		return 2
	}
	var out []byte
	waits := false
	err = Change(path, func(h *Host) error {
		s := &session{host: h, variables: map[string][]object{}}
		h.Scripts = append(h.Scripts, text)
		err := s.run(statements)
		out = s.out
		if h.Output != "" {
			out = []byte(h.Output)
		}
		if h.Cut > 0 {
			out = out[:min(h.Cut, len(out))]
		}
		waits = errors.Is(err, errWaits)
		return err
	})
	if waits {
		interrupted, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		defer stop()
		<-interrupted.Done() // waits for an interrupt, unless this process is killed
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	if _, err := stdout.Write(out); err != nil {
		return 1
	}
	return 0
}

// script returns the script in the arguments of powershell.exe, without the code that package
// powershell puts around each script.
func script(args []string) (string, error) {
	if len(args) < 2 || args[len(args)-2] != "-EncodedCommand" {
		return "", errors.New("no -EncodedCommand")
	}
	whole, err := powershell.Decode(args[len(args)-1])
	if err != nil {
		return "", err
	}
	_, quoted, found := strings.Cut(whole, "$swdtScript = '")
	if !found {
		return "", errors.New("no script")
	}
	return (&parser{quoted}).text()
}

// content returns the content of a disk's file; "" if the file cannot be read.
func content(path string) string {
	text, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return ""
	}
	return string(text)
}
