package sandbox

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/swdt-dev/swdt/internal/ui"
)

// List is the result of `swdt sandbox status`.
type List struct {
	Sandboxes []Info `json:"sandboxes"`
}

// Names returns sandbox/NAME for each sandbox.
func (l List) Names() (all []string) {
	for _, info := range l.Sandboxes {
		all = append(all, "sandbox/"+info.Name)
	}
	return all
}

// Columns returns the columns of the table of sandboxes. If wide is true, they are those of -o wide.
func Columns(wide bool) []string {
	header := []string{"NAME", "DRIVER", "HOSTNAME", "AGE", "CONFIG"}
	if wide {
		header = append(header, "PID", "PODS", "KUBECONFIG", "LOG")
	}
	return header
}

// WriteText writes a row for each sandbox. If there are no sandboxes, it writes its last argument.
func (l List) WriteText(w io.Writer, none string) error {
	var rows [][]string
	for _, info := range l.Sandboxes {
		row := []string{info.Name, info.Driver, info.Hostname, ui.Age(time.Since(info.Started)), info.Config}
		if ui.IsWide(w) {
			row = append(row, strconv.Itoa(info.PID), strconv.Itoa(info.Pods), info.Kubeconfig, info.Log)
		}
		rows = append(rows, row)
	}
	return ui.TableOr(w, none, Columns(ui.IsWide(w)), rows)
}

// Ends is the result of `swdt sandbox down`.
type Ends struct {
	Sandboxes []End `json:"sandboxes"`
}

// End is the result for one sandbox.
type End struct {
	Name  string `json:"name"`
	Ended bool   `json:"ended"` // false: the sandbox did not run
}

// WriteText writes a line for each sandbox.
func (e Ends) WriteText(w io.Writer) error {
	if len(e.Sandboxes) == 0 {
		_, err := fmt.Fprintln(w, "nothing to do: no sandbox runs")
		return err
	}
	for _, end := range e.Sandboxes {
		text := "sandbox " + end.Name + " has ended"
		if !end.Ended {
			text = "nothing to do: no sandbox " + end.Name + " runs"
		}
		if _, err := fmt.Fprintln(w, text); err != nil {
			return err
		}
	}
	return nil
}
