package handshake

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// InstallArgument makes the agent install itself on the node and report the result in one line.
// PrintInstalled writes this line, and FindInstalled finds it.
const InstallArgument = "install"

// installedMark is the beginning of the line that PrintInstalled writes. The output of a login
// shell may precede and follow the line.
const installedMark = "swdt-agent install: "

// Installed is the report of an agent that was started with InstallArgument.
type Installed struct {
	Path string `json:"path,omitempty"` // the path at which the agent is installed
	// Kept means that this very agent was installed already, in a safe place: nothing was changed.
	Kept bool `json:"kept,omitempty"`
	// MovedAside is the new path of a folder with swdt's name that was moved aside because another account could
	// change it.
	MovedAside string `json:"movedAside,omitempty"`

	Failure FailureKind `json:"failure,omitempty"` // empty if the agent is installed
	Message string      `json:"message,omitempty"` // describes the failure
}

// FailureKind is the reason why an agent could not install itself.
type FailureKind string

const (
	NotAllowed FailureKind = "notAllowed" // the user is not an administrator
	DiskFull   FailureKind = "diskFull"
	Foreign    FailureKind = "foreign" // the file or folder with swdt's name could be another account's
	Failed     FailureKind = "failed"  // any other failure
)

// PrintInstalled writes the report `i` as one line.
func PrintInstalled(w io.Writer, i Installed) error {
	text, err := json.Marshal(i)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s%s\r\n", installedMark, text)
	return err
}

// FindInstalled finds the line of PrintInstalled in a node's output; ok is false if the output has
// no such line.
func FindInstalled(output string) (i Installed, ok bool) {
	for line := range strings.Lines(output) {
		for text, marked := afterMark(line); marked; text, marked = afterMark(text) {
			if i, ok = parseInstalled(text); ok {
				return i, true
			}
		}
	}
	return Installed{}, false
}

func afterMark(text string) (rest string, ok bool) {
	_, rest, ok = strings.Cut(text, installedMark)
	return rest, ok
}

// parseInstalled reads the JSON of one line. ok is false if the text is not a report that
// PrintInstalled could have written. Each line is decoded into a new value, since json.Unmarshal
// keeps the fields that it read before an error.
func parseInstalled(text string) (i Installed, ok bool) {
	if json.Unmarshal([]byte(text), &i) != nil {
		return Installed{}, false
	}
	switch i.Failure {
	case "":
		return i, i.Path != ""
	case NotAllowed, DiskFull, Foreign, Failed:
		return i, true
	}
	return Installed{}, false
}
