package handshake

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// InstallArgument has the agent put itself in its place on the node and say how that
// went, in one line that PrintInstalled writes and FindInstalled finds.
const InstallArgument = "install"

// installedMark begins that line. What a login shell prints stands around it.
const installedMark = "swdt-agent install: "

// Installed is what an agent says that was asked to install itself.
type Installed struct {
	Path string `json:"path,omitempty"` // where it is now
	// Kept says that this very agent was there, in a safe place: nothing was changed.
	Kept bool `json:"kept,omitempty"`
	// MovedAside is where a folder of ours went that another account could change.
	MovedAside string `json:"movedAside,omitempty"`

	Failure FailureKind `json:"failure,omitempty"` // empty: it is installed
	Message string      `json:"message,omitempty"` // of a failure
}

// FailureKind is why an agent could not install itself.
type FailureKind string

const (
	NotAllowed FailureKind = "notAllowed" // the user is no administrator
	DiskFull   FailureKind = "diskFull"
	Foreign    FailureKind = "foreign" // what has our name could be another account's
	Failed     FailureKind = "failed"  // anything else
)

// PrintInstalled writes the line.
func PrintInstalled(w io.Writer, i Installed) error {
	text, err := json.Marshal(i)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s%s\r\n", installedMark, text)
	return err
}

// FindInstalled finds the line in what a node printed; false: there is none.
func FindInstalled(output string) (i Installed, ok bool) {
	lines := bufio.NewScanner(strings.NewReader(output))
	for lines.Scan() {
		_, text, found := strings.Cut(lines.Text(), installedMark)
		if found && json.Unmarshal([]byte(text), &i) == nil && (i.Path != "" || i.Failure != "") {
			return i, true
		}
	}
	return Installed{}, false
}
