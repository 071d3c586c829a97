// Package hypervtest simulates Hyper-V: its program stands in for powershell.exe with package hyperv's script. It answers
// the script's verbs, and keeps the VMs of an imagined Windows in a file. The program is strict: it fails on a verb that the
// script does not have, and if the script's verb reads other arguments, or prints other properties. Tests with it prove that the driver's logic is right for a script
// and a Hyper-V that work as documented. They prove nothing about either: a foreign grammar and an inventory of cmdlets
// check the script, and only a real Hyper-V runs it.
//
//   - host.go: the state of the imagined Windows, and the program
//   - verbs.go: what each verb does
package hypervtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/format/powershell"
	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/wait"
)

// Variable is the environment variable that makes a test's program the stand-in; its value
// is the path of the host's file.
const Variable = "SWDT_HYPERV_STAND_IN"

// Host is the state of an imagined Windows with Hyper-V.
type Host struct {
	VMs       []*VM
	Switches  []string
	Modules   []string          // of PowerShell
	Asked     []string          // the requests, in JSON
	Faults    map[string]string // errors of verbs; a text that begins with "late: " is one after the verb's effect
	Ignoring  []string          // the notes of VMs whose guests do not shut down
	Neighbour map[string]string // IP addresses by MAC address, which is in Windows' form
	// Output replaces the output of scripts, unless Output is empty. Cut is the number of bytes to
	// which the output is shortened; 0 means that it is not shortened.
	Output string
	Cut    int
}

// VM is a VM of an imagined Hyper-V.
type VM struct {
	ID, Name, State, Notes, Path, Disk string
	Started                            time.Time
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

// Main is the main function of the stand-in. args are the arguments of powershell.exe, stdin has the request. Main
// answers for the host whose state is in the file at path, and returns the exit code.
func Main(path string, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	request, err := read(args, stdin)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	var out []byte
	waits := false
	err = Change(path, func(h *Host) error {
		h.Asked = append(h.Asked, request.text)
		result, err := h.answer(request)
		if result != nil {
			out, _ = json.Marshal(result)
		}
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

// request is a verb with its arguments.
type request struct {
	text      string
	verb      string
	arguments map[string]any
	block     string // the part of the script for the verb
}

// read reads the request. The command line must have the whole script, and the request is ASCII: Windows PowerShell may
// read other characters in the code page of the console.
func read(args []string, stdin io.Reader) (r request, err error) {
	if len(args) < 2 || args[len(args)-2] != "-EncodedCommand" {
		return r, errors.New("no -EncodedCommand")
	}
	script, err := powershell.Decode(args[len(args)-1])
	if err != nil {
		return r, err
	}
	text, err := io.ReadAll(stdin)
	if err != nil {
		return r, err
	}
	r.text = string(text)
	for _, char := range r.text {
		if char > '~' {
			return r, fmt.Errorf("the request has the character %q", char)
		}
	}
	if err := json.Unmarshal(text, &r.arguments); err != nil {
		return r, err
	}
	r.verb, _ = r.arguments["verb"].(string)
	delete(r.arguments, "verb")
	_, block, found := strings.Cut(strings.ReplaceAll(script, "''", "'"), "\n    '"+r.verb+"' {")
	if !found {
		return r, fmt.Errorf("the script has no verb %s", r.verb)
	}
	r.block = regexp.MustCompile(`(?m)^ {4}['#d]`).Split(block, 2)[0]
	return r, nil
}

// checkArguments returns an error unless the script's verb reads exactly the arguments of the request.
func (r request) checkArguments() error {
	read := map[string]bool{}
	for _, name := range regexp.MustCompile(`\$asked\.(\w+)`).FindAllStringSubmatch(r.block, -1) {
		read[name[1]] = true
	}
	for call, name := range map[string]string{"(Get-AskedVM)": "id", "(Get-AskedCheckpoint)": "checkpoint"} {
		if strings.Contains(r.block, call) {
			read[name] = true
		}
	}
	given, want := slices.Sorted(maps.Keys(r.arguments)), slices.Sorted(maps.Keys(read))
	if !slices.Equal(given, want) {
		return fmt.Errorf("the verb %s gets the arguments %q, and reads %q", r.verb, given, want)
	}
	return nil
}

// checkResult returns an error unless the script's verb prints the properties of a result, and no others. A list without
// elements shows none of theirs.
func (r request) checkResult(out result) error {
	_, prints, _ := strings.Cut(r.block, "Write-Result ")
	printed := map[string]bool{}
	for _, name := range regexp.MustCompile(`[^$\w](\w+) = `).FindAllStringSubmatch(prints, -1) {
		printed[name[1]] = true
	}
	has, empty := map[string]bool{}, false
	for name, value := range out {
		has[name] = true
		elements, objects := value.([]result)
		empty = empty || objects && len(elements) == 0
		for _, element := range elements {
			for name := range element {
				has[name] = true
			}
		}
	}
	for name := range has {
		if !printed[name] {
			return fmt.Errorf("the verb %s prints no %s", r.verb, name)
		}
	}
	if !empty && len(has) != len(printed) {
		return fmt.Errorf("the verb %s prints %q, and the stand-in %q", r.verb, slices.Sorted(maps.Keys(printed)),
			slices.Sorted(maps.Keys(has)))
	}
	return nil
}

// content returns the content of a disk's file; "" if the file cannot be read.
func content(path string) string {
	text, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return ""
	}
	return string(text)
}
