package hyperv

import (
	"bytes"
	"context"
	_ "embed" // hyperv.ps1
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"regexp"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/swdt-dev/swdt/internal/format/bounded"
	"github.com/swdt-dev/swdt/internal/format/powershell"
	"github.com/swdt-dev/swdt/internal/wait"
)

const (
	// scriptLimit bounds a script: a checkpoint of a large guest takes minutes.
	scriptLimit = 15 * time.Minute
	// maxOutput bounds the output of a script in bytes. The longest output is a screenshot.
	maxOutput = 16 << 20
	// maxMessage bounds the part of PowerShell's error that is kept, in bytes.
	maxMessage = 4 << 10
)

// SystemError reports that swdt does not run on Windows, which Hyper-V needs.
type SystemError struct{ System string }

func (e *SystemError) Error() string {
	return fmt.Sprintf("driver hyperv needs Hyper-V, and this is %s; run swdt on Windows, or write driver: qemu in "+
		"spec.machine", e.System)
}

// ScriptError reports a script that PowerShell did not run to its end.
type ScriptError struct {
	Action string
	Output string // the beginning of PowerShell's error
	Err    error
}

func (e *ScriptError) Error() string {
	if e.Output == "" {
		return fmt.Sprintf("%s: run PowerShell: %v", e.Action, e.Err)
	}
	return fmt.Sprintf("%s: %s", e.Action, strings.Join(strings.Fields(e.Output), " "))
}

func (e *ScriptError) Unwrap() error { return e.Err }

// OutputError reports that the output of a script is not the JSON object that the script prints.
type OutputError struct {
	Action, Output string // Output is the whole output
	Err            error
}

func (e *OutputError) Error() string {
	return fmt.Sprintf("%s: PowerShell's output cannot be read: %v; it begins with %.80q; "+
		"a profile or a policy of your Windows may add to it", e.Action, e.Err, e.Output)
}

func (e *OutputError) Unwrap() error { return e.Err }

// script is the whole of the driver's PowerShell.
//
//go:embed hyperv.ps1
var script string

// arguments are those of a verb of the script, by their names in it.
type arguments map[string]any

// argument passes the VM to a verb.
func (one machine) argument() arguments { return arguments{"id": one.ID} }

// do runs a verb of the script that prints nothing.
func (d *Driver) do(ctx context.Context, action, verb string, with arguments) error {
	_, err := d.run(ctx, action, verb, with)
	return err
}

// ask runs a verb of the script that prints one JSON object, and decodes it.
func (d *Driver) ask(ctx context.Context, action, verb string, with arguments, result any) error {
	out, err := d.run(ctx, action, verb, with)
	if err != nil {
		return err
	}
	if err := decode(out, result); err != nil {
		return &OutputError{Action: action, Output: string(out), Err: err}
	}
	return nil
}

// decode decodes exactly one JSON object without unknown fields.
func decode(out []byte, result any) error {
	decoder := json.NewDecoder(bytes.NewReader(out))
	decoder.DisallowUnknownFields()
	if len(bytes.TrimSpace(out)) == 0 {
		return errors.New("it is empty")
	}
	if err := decoder.Decode(result); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON object")
	}
	return nil
}

// run runs a verb of the script and returns its output.
func (d *Driver) run(ctx context.Context, action, verb string, with arguments) ([]byte, error) {
	all := maps.Clone(with)
	if all == nil {
		all = arguments{}
	}
	all["verb"] = verb
	asked, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", action, err)
	}
	args, ok := powershell.Args(script)
	if !ok {
		return nil, fmt.Errorf("%s: hyperv.ps1 is too long for a command line", action)
	}
	program, err := d.program()
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, scriptLimit)
	defer cancel()
	cmd := exec.CommandContext(limited, program, args...)
	out := &bounded.Head{Most: maxOutput, Refuse: fmt.Errorf("PowerShell prints more than %d bytes", maxOutput)}
	messages := &bounded.Head{Most: maxMessage}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(inASCII(string(asked))), out, messages
	err = wait.Program(cmd)
	switch {
	case limited.Err() != nil:
		return nil, fmt.Errorf("%s: %w", action, context.Cause(limited))
	case err != nil:
		return nil, &ScriptError{Action: action, Output: messages.String(), Err: err}
	}
	return out.Bytes(), nil
}

// inASCII escapes all other characters of a JSON document: Windows PowerShell may read its stdin in the code page of the
// console.
func inASCII(document string) string {
	var b strings.Builder
	for _, r := range document {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// checkID returns an error unless a text is a GUID, as Hyper-V writes its IDs.
func checkID(id string) error {
	if !regexp.MustCompile(`^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`).MatchString(id) {
		return fmt.Errorf("Hyper-V reports %.60q as an ID; it is not a GUID", id)
	}
	return nil
}
