package hang

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// Comparison has the changes between two dumps. It is the result of `swdt diag dump show FILE OTHER`.
type Comparison struct {
	Seconds float64      `json:"seconds"` // between the two dumps; 0: unknown
	Nodes   []Difference `json:"differences"`
}

// Difference has the changes on one node.
type Difference struct {
	Name string `json:"name"`
	// Stuck are the waits of both dumps whose goroutines are the same ones: they did not move.
	Stuck []Wait `json:"stuck"`
	// Moved are the waits of the first dump that the second lacks, or that other goroutines have there.
	Moved []Wait `json:"moved"`
	New   []Wait `json:"new"` // the waits that began between the dumps
	// Processes are the programs of both dumps, and those of one of them.
	Processes []ProcessChange `json:"processes"`
}

// ProcessChange is how a program changed between two dumps.
type ProcessChange struct {
	Kind       Kind   `json:"kind"`
	PID        uint32 `json:"pid"`
	ID         string `json:"id"`
	State      string `json:"state"` // same, ended, started
	Goroutines int    `json:"goroutines"`
	Handles    int    `json:"handles"` // the later numbers minus the earlier ones
	Threads    int    `json:"threads"`
}

// Compare compares two dumps. Goroutines are the same ones if the process is the same and their numbers are: Go never uses
// a number twice in a process. Nodes are the same if their names are, and files of text if they have the goroutines of one kind
// of program. Without a node in common, Nodes is empty.
func Compare(a, b Report) Comparison {
	if b.Created.Before(a.Created) {
		a, b = b, a
	}
	c := Comparison{Nodes: []Difference{}}
	if !a.Created.IsZero() {
		c.Seconds = b.Created.Sub(a.Created).Round(time.Millisecond).Seconds()
	}
	for _, earlier := range a.Nodes {
		i := slices.IndexFunc(b.Nodes, func(later Node) bool { return later.Name == earlier.Name })
		if i >= 0 {
			c.Nodes = append(c.Nodes, earlier.compare(b.Nodes[i]))
		}
	}
	if len(c.Nodes) == 0 && len(a.Nodes) == 1 && len(b.Nodes) == 1 && areTexts(a.Nodes[0], b.Nodes[0]) {
		d := a.Nodes[0].compare(b.Nodes[0])
		d.Name += " and " + b.Nodes[0].Name
		c.Nodes = append(c.Nodes, d)
	}
	return c
}

// areTexts reports whether two nodes are files of text with the goroutines of one kind of program. Their names are paths.
func areTexts(a, b Node) bool {
	isText := func(n Node) bool { return len(n.Processes) == 1 && n.Processes[0].Source == "file" }
	return isText(a) && isText(b) && a.Processes[0].Kind == b.Processes[0].Kind
}

func (n Node) compare(later Node) Difference {
	d := Difference{Name: n.Name, Stuck: []Wait{}, Moved: []Wait{}, New: []Wait{}, Processes: []ProcessChange{}}
	isSame, at, stuck := n.sameIn(later, stuckFunctions), map[waitKey]int{}, map[waitKey]bool{}
	for i, w := range slices.Backward(later.Waits) {
		at[w.key()] = i
	}
	for _, w := range n.Waits {
		if i, ok := at[w.key()]; ok && isSame(w) {
			d.Stuck, stuck[w.key()] = append(d.Stuck, later.Waits[i]), true
		} else {
			d.Moved = append(d.Moved, w)
		}
	}
	for _, w := range later.Waits {
		if !stuck[w.key()] {
			d.New = append(d.New, w)
		}
	}
	for _, p := range n.Processes {
		change := ProcessChange{Kind: p.Kind, PID: p.PID, ID: p.ID, State: "ended"}
		if other, ok := later.process(p); ok {
			change.State, change.Goroutines = "same", other.Goroutines-p.Goroutines
			change.Handles, change.Threads = int(other.Handles)-int(p.Handles), int(other.Threads)-int(p.Threads)
		}
		d.Processes = append(d.Processes, change)
	}
	for _, p := range later.Processes {
		if _, ok := n.process(p); !ok {
			d.Processes = append(d.Processes, ProcessChange{Kind: p.Kind, PID: p.PID, ID: p.ID, State: "started"})
		}
	}
	return d
}

// waitKey identifies a wait in the dumps of one node.
type waitKey struct {
	of                processKey
	operation, method string
}

// processKey identifies a process as a wait names it.
type processKey struct {
	kind Kind
	pid  uint32
	id   string
}

func (w Wait) key() waitKey {
	return waitKey{processKey{w.Process, w.PID, w.ID}, w.Operation, w.Method}
}

// process returns the process of a dump that is the same as p: a PID alone is used again.
func (n Node) process(p Process) (Process, bool) {
	for _, o := range n.Processes {
		if o.Kind == p.Kind && o.PID == p.PID && o.ID == p.ID &&
			(o.Started == nil || p.Started == nil || o.Started.Equal(*p.Started)) {
			return o, true
		}
	}
	return Process{}, false
}

// sameIn returns a function that reports whether a goroutine of a wait is in both dumps, with the same functions. A wait without
// goroutines, such as a service that does not answer, is the same. It calls stuck, which is stuckFunctions, once for each process,
// since a dump may come from a stranger.
func (n Node) sameIn(later Node, stuck func(earlier, later Process) map[string]bool) func(Wait) bool {
	processes := map[processKey]Process{}
	for _, p := range slices.Backward(n.Processes) {
		processes[processKey{p.Kind, p.PID, p.ID}] = p
	}
	seen := map[processKey]map[string]bool{}
	return func(w Wait) bool {
		of := w.key().of
		p, ok := processes[of]
		if !ok {
			return w.Function == ""
		}
		functions, ok := seen[of]
		if !ok {
			if other, found := later.process(p); found {
				functions = stuck(p, other)
			}
			seen[of] = functions
		}
		return functions[w.Function]
	}
}

// stuckFunctions returns the functions and methods of the goroutines that are in both dumps of a process with the same functions,
// and "" for a wait without goroutines.
func stuckFunctions(earlier, later Process) map[string]bool {
	type goroutine struct {
		frames string
		id     uint64
	}
	inLater := map[goroutine]bool{}
	for _, g := range later.Groups {
		frames := strings.Join(g.Frames, "\n")
		for _, id := range g.IDs {
			inLater[goroutine{frames, id}] = true
		}
	}
	functions := map[string]bool{"": true}
	for _, g := range earlier.Groups {
		frames := strings.Join(g.Frames, "\n")
		if !slices.ContainsFunc(g.IDs, func(id uint64) bool { return inLater[goroutine{frames, id}] }) {
			continue
		}
		functions[methodOf(earlier.Kind, g.Frames)] = true
		for _, f := range g.Frames {
			functions[f] = true
		}
	}
	return functions
}

// WriteText writes what moved and what did not.
func (c Comparison) WriteText(p *ui.Page) error {
	for i, d := range c.Nodes {
		if i > 0 {
			fmt.Fprintln(p)
		}
		between := ""
		if c.Seconds > 0 {
			between = " in " + age(c.Seconds)
		}
		fmt.Fprintf(p, "%s: %s%s\n", d.Name, d.summary(), between)
		var rows [][]string
		for _, part := range []struct {
			state string
			waits []Wait
		}{{ui.Bad("did not move"), d.Stuck}, {ui.Good("moved"), d.Moved}, {ui.Warn("new"), d.New}} {
			for _, w := range part.waits {
				rows = append(rows, append([]string{part.state}, w.row()...))
			}
		}
		if len(rows) > 0 {
			if err := ui.Table(p, append([]string{"STATE"}, waitHeader()...), rows); err != nil {
				return err
			}
		}
		if err := d.writeProcesses(p); err != nil {
			return err
		}
	}
	return nil
}

func (d Difference) summary() string {
	return fmt.Sprintf("%s did not move, %d moved, %d new", finding.Several(len(d.Stuck), "wait"), len(d.Moved), len(d.New))
}

func (d Difference) writeProcesses(w io.Writer) error {
	var rows [][]string
	for _, p := range d.Processes {
		rows = append(rows, []string{nameOf(p.Kind, p.PID), p.State, signed(p.Goroutines), signed(p.Handles), signed(p.Threads), clean(p.ID)})
	}
	return ui.Table(w, []string{"PROCESS", "STATE", "GOROUTINES", "HANDLES", "THREADS", "ID"}, rows)
}

func signed(n int) string { return cmp.Or(strings.TrimPrefix(fmt.Sprintf("%+d", n), "+0"), "0") }
