package hang

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/ui"
)

// WriteText writes the nodes of a report, each with its verdict first.
func (r Report) WriteText(p *ui.Page) error {
	for i, n := range r.Nodes {
		if i > 0 {
			fmt.Fprintln(p)
		}
		if err := n.WriteText(p); err != nil {
			return err
		}
	}
	return nil
}

// WriteText writes the verdict of a node, and the tables behind it.
func (n Node) WriteText(p *ui.Page) error {
	if n.Error != "" {
		_, err := fmt.Fprintf(p, "%s: %s\n", n.Name, ui.Bad(n.Error))
		return err
	}
	verdict := ui.Bad(n.Verdict)
	switch {
	case len(n.Waits) == 0 && len(n.Calls) == 0 && len(n.Unread) == 0:
		verdict = ui.Good(n.Verdict)
	case len(n.Waits) == 0:
		verdict = ui.Warn(n.Verdict)
	}
	fmt.Fprintf(p, "%s: %s\n", n.Name, verdict)
	if n.Remedy != "" {
		fmt.Fprintf(p, "Remedy: %s.\n", n.Remedy)
	}
	for _, write := range []func(*ui.Page) error{n.writeWaits, n.writeKnown, n.writeCalls, n.writeProbes, n.writeProcesses, n.writeProblems} {
		if err := write(p); err != nil {
			return err
		}
	}
	return nil
}

func waitHeader() []string {
	return []string{"PROCESS", "WAITS FOR", "SERVING", "SINCE", "COUNT", "POD", "ID"}
}

// row returns a wait as a row of a table.
func (w Wait) row() []string {
	since := "-"
	if w.Minutes > 0 {
		since = fmt.Sprintf("%dm", w.Minutes)
	}
	return []string{nameOf(w.Process, w.PID), w.Operation, w.Method, since, strconv.Itoa(w.Count), perhaps(w.PodsInferred, strings.Join(w.Pods, ",")), shortID(w.ID)}
}

// nameOf returns a process in one word.
func nameOf(kind Kind, pid uint32) string {
	name := string(kind)
	if name == "" {
		name = "unknown"
	}
	if pid != 0 {
		name += "/" + strconv.FormatUint(uint64(pid), 10)
	}
	return name
}

// shortID returns the beginning of an ID, as long as crictl shows it.
func shortID(id string) string { return id[:min(len(id), 13)] }

// age returns seconds in words, such as 3m12s.
func age(seconds float64) string {
	return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
}

func (n Node) writeWaits(p *ui.Page) error {
	if len(n.Waits) == 0 {
		return nil
	}
	var rows [][]string
	for _, w := range n.Waits {
		rows = append(rows, w.row())
	}
	fmt.Fprintln(p)
	return ui.Table(p, waitHeader(), rows)
}

func (n Node) writeKnown(p *ui.Page) error {
	seen := map[string]bool{}
	var rows [][]string
	for _, w := range n.Waits {
		for _, k := range w.Known {
			if seen[k.ID] {
				continue
			}
			seen[k.ID] = true
			fixed := k.Fixed
			if k.Absent {
				fixed += "; this node has the fix"
			}
			rows = append(rows, []string{k.ID, k.Text, fixed})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	fmt.Fprintln(p)
	return ui.Table(p, []string{"KNOWN", "DEFECT", "FIXED IN"}, rows)
}

func (n Node) writeCalls(p *ui.Page) error {
	if len(n.Calls) == 0 {
		return nil
	}
	var rows [][]string
	for _, c := range n.Calls {
		since := "unknown"
		if c.Began != nil {
			since = age(c.Seconds)
		}
		rows = append(rows, []string{c.Method, since, c.Pod, c.Subject})
	}
	fmt.Fprintln(p)
	return ui.Table(p, []string{"CALL", "SINCE", "POD", "SUBJECT"}, rows)
}

func (n Node) writeProbes(p *ui.Page) error {
	if len(n.Probes) == 0 {
		return nil
	}
	var rows [][]string
	for _, probe := range n.Probes {
		state := ui.Good("answers")
		switch {
		case !probe.Answers:
			state = ui.Bad(fmt.Sprintf("no answer within %s", age(probe.Seconds)))
		case probe.Error != "":
			state = ui.Warn("answers: " + probe.Error)
		}
		rows = append(rows, []string{probe.Name, state})
	}
	fmt.Fprintln(p)
	return ui.Table(p, []string{"SERVICE", "STATE"}, rows)
}

func (n Node) writeProcesses(p *ui.Page) error {
	var rows [][]string
	for _, one := range n.Processes {
		read := strconv.Itoa(one.Goroutines)
		switch {
		case one.Error != "":
			read = ui.Warn(one.Error)
		case one.Source == "":
			read = ""
		case one.Cut:
			read += " or more"
		}
		rows = append(rows, []string{nameOf(one.Kind, one.PID), one.Version, one.Source, number(one.Handles), number(one.Threads),
			perhaps(one.PodInferred, one.Pod), read})
	}
	fmt.Fprintln(p)
	return ui.TableOr(p, "no process was found", []string{"PROCESS", "VERSION", "READ BY", "HANDLES", "THREADS", "POD", "GOROUTINES"}, rows)
}

func (n Node) writeProblems(p *ui.Page) error {
	for _, problem := range n.Problems {
		if _, err := fmt.Fprintf(p, "%s %s\n", ui.Warn("!"), problem); err != nil {
			return err
		}
	}
	return nil
}

// perhaps marks a pod that is inferred.
func perhaps(inferred bool, pod string) string {
	if inferred && pod != "" {
		return "perhaps " + pod
	}
	return pod
}

func number(n uint32) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(n), 10)
}
