package push

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/node/transfer"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/ui"
)

// WriteText writes the report for people: one line for each component and, for
// several nodes, a summary at the end that lists the failed nodes and the reasons.
func (r Report) WriteText(w io.Writer) error {
	for i, n := range r.Nodes {
		if len(r.Nodes) > 1 {
			if i > 0 {
				fmt.Fprintln(w)
			}
			fmt.Fprintf(w, "%s: %s\n", n.Name, n.headline())
		}
		if err := n.writeComponents(w); err != nil {
			return err
		}
	}
	if len(r.Nodes) < 2 {
		return nil
	}
	return r.writeSummary(w)
}

// headline returns a node's result in a few words.
func (n NodeResult) headline() string {
	switch {
	case n.DryRun && n.Result == Changed:
		return "would change"
	case n.Result == Unchanged:
		return "nothing to do"
	case n.Result == RolledBack:
		return "failed and rolled back"
	}
	return string(n.Result)
}

func (n NodeResult) writeComponents(w io.Writer) error {
	if n.Result == Unchanged && len(n.Components) > 0 && !n.hasMessages() {
		names := make([]string, len(n.Components))
		for i, c := range n.Components {
			names[i] = c.Name
		}
		_, err := fmt.Fprintf(w, "nothing to do: %s up to date\n", strings.Join(names, ", "))
		return err
	}
	var rows [][]string
	for _, c := range n.Components {
		if c.Action != "" {
			rows = append(rows, c.row(n.DryRun))
		}
	}
	return ui.Lines(w, rows)
}

func (n NodeResult) hasMessages() bool {
	for _, c := range n.Components {
		if c.Message != "" || c.Action != ActionUnchanged {
			return true
		}
	}
	return false
}

// row returns a component's line, such as
//
//	kubelet  v1.28.4 → v1.29.0  a1b2c3 → d4e5f6  83.6 MB (sent 0.5 MB)  push 0.9s  down 0.6s  healthy 1.8s
func (c *ComponentResult) row(dryRun bool) []string {
	row, message := []string{c.Name, c.versions(), c.hashes()}, c.Message
	message, _, _ = strings.Cut(message, "\n") // the error has the rest, see Shown
	if dryRun {
		return append(row, dryRunText(c.Action), message)
	}
	if c.Action != ActionReplaced && c.Action != ActionCreated && c.Action != ActionRestarted {
		return append(row, actionText(c.Action), message)
	}
	return append(row, c.sent(), c.times(), message)
}

// versions returns the versions before and after the push, or one version if both are equal or only
// one version is known.
func (c *ComponentResult) versions() string {
	before, after := ui.Version(c.Version.Before), ui.Version(c.Version.After)
	switch {
	case c.Version.After == "":
		return before
	case c.Version.Before == "" || before == after:
		return after
	}
	return before + " → " + after
}

func (c *ComponentResult) hashes() string {
	switch {
	case c.PreviousSHA256 == "" && c.Action == ActionCreated:
		return "new " + ui.Hash(c.SHA256)
	case c.PreviousSHA256 == c.SHA256, c.Action == ActionUnchanged, c.Action == ActionRestarted,
		c.Action == ActionSkipped:
		return ui.Hash(c.PreviousSHA256)
	}
	return ui.Hash(c.PreviousSHA256) + " → " + ui.Hash(c.SHA256)
}

// moved reports whether the push brought the binary to the node, or found it there from an earlier,
// interrupted push.
func (c *ComponentResult) moved() bool { return c.Transfer != nil && c.Transfer.SizeBytes > 0 }

func (c *ComponentResult) sent() string {
	switch t := c.Transfer; {
	case !c.moved():
		return actionText(c.Action)
	case t.Method == transfer.MethodNone:
		return ui.Size(t.SizeBytes) + " (sent before)"
	default:
		return fmt.Sprintf("%s (sent %s)", ui.Size(t.SizeBytes), ui.Size(t.SentBytes))
	}
}

func (c *ComponentResult) times() string {
	text := func(label string, s float64) string {
		return label + " " + ui.Seconds(time.Duration(s*float64(time.Second)))
	}
	var parts []string
	if c.moved() {
		parts = append(parts, text("push", c.Seconds.Transfer))
	}
	if c.Service != nil {
		parts = append(parts, text("down", c.Seconds.Down), text("healthy", c.Seconds.Healthy))
	}
	return strings.Join(parts, "  ")
}

func actionText(a Action) string {
	switch a {
	case ActionRolledBack:
		return "rolled back"
	case ActionSkipped:
		return "left alone"
	}
	return string(a)
}

func dryRunText(a Action) string {
	if a == ActionUnchanged || a == ActionSkipped {
		return actionText(a)
	}
	return "would be " + actionText(a)
}

func (r Report) writeSummary(w io.Writer) error {
	fmt.Fprintf(w, "\n%d nodes: %d changed, %d unchanged, %d failed\n", len(r.Nodes), r.Summary.Changed,
		r.Summary.Unchanged, r.Summary.Failed)
	var rows [][]string
	for _, n := range r.Nodes {
		if n.Result == Failed || n.Result == RolledBack {
			first, _, _ := strings.Cut(n.Error, "\n")
			rows = append(rows, []string{"  " + n.Name, n.headline(), first})
		}
	}
	return ui.Lines(w, rows)
}

// WriteText writes the states for people: for one node, the node's facts and below them a table of
// its components; for several nodes, one table with the components of all nodes. A wide page has
// more columns.
func (r StatusReport) WriteText(p *ui.Page) error {
	if len(r.Nodes) != 1 {
		return r.writeTable(p, p.Wide)
	}
	return r.Nodes[0].writeText(p, p.Wide)
}

// writeTable writes one table of all nodes, and below it the notes.
func (r StatusReport) writeTable(w io.Writer, wide bool) error {
	header := append([]string{"NODE"}, StatusColumns(wide)...)
	var rows [][]string
	var notes []string
	for _, n := range r.Nodes {
		for _, c := range n.Components {
			row := append([]string{n.Name}, c.row(wide)...)
			if wide {
				row = append(row, n.OS.Product+" "+n.OS.Build)
			}
			rows = append(rows, row)
		}
		for _, note := range n.notes() {
			notes = append(notes, n.Name+": "+note)
		}
	}
	if len(rows) > 0 {
		if err := ui.Table(w, header, rows); err != nil {
			return err
		}
	}
	for _, note := range notes {
		if _, err := fmt.Fprintln(w, note); err != nil {
			return err
		}
	}
	return nil
}

// noComponents is the note of a node without a row in the table.
const noComponents = "none of containerd, kubelet and kube-proxy is installed, and the node file has no " +
	"kubernetes.provisioners; `swdt ps` lists the services that run"

// failure returns the reason why the node's state is unknown, without the node's name.
func (s NodeStatus) failure() string { return ui.Bad(s.Error) }

// notes returns the facts about a node that the table of several nodes does not show.
func (s NodeStatus) notes() (all []string) {
	if s.Error != "" {
		return []string{s.failure()}
	}
	all = s.warnings()
	if len(s.Components) == 0 {
		all = append(all, noComponents)
	}
	return all
}

func (s NodeStatus) warnings() (all []string) {
	if len(s.PendingReboot) > 0 {
		all = append(all, ui.Warn("a reboot is pending")+": "+strings.Join(s.PendingReboot, ", "))
	}
	for _, t := range s.Transactions {
		all = append(all, fmt.Sprintf("transaction %s by %s: %s", t.ID, t.Holder, t.text()))
	}
	return all
}

// StatusColumns returns the columns of the table of a StatusReport of several nodes, without the node's name. If wide is
// true, they are those of -o wide. The table of one node has no column WINDOWS.
func StatusColumns(wide bool) []string {
	header := statusHeader(wide)
	if wide {
		header = append(header, "WINDOWS")
	}
	return header
}

func statusHeader(wide bool) []string {
	header := []string{"COMPONENT", "VERSION", "HASH", "SERVICE", "PID", "UPTIME", "DRIFT", "MESSAGE"}
	if wide {
		header = append(header, "PREVIOUS", "DESTINATION")
	}
	return header
}

func (s NodeStatus) writeText(w io.Writer, wide bool) error {
	if s.Error != "" {
		_, err := fmt.Fprintf(w, "%s: %s\n", s.Name, s.failure())
		return err
	}
	fmt.Fprintf(w, "%s: %s %s %s, up %s\n", s.Name, s.OS.Product, s.OS.Build, s.Architecture,
		ui.Age(time.Duration(s.UptimeSeconds*float64(time.Second))))
	for _, warning := range s.warnings() {
		fmt.Fprintf(w, "  %s\n", warning)
	}
	rows := make([][]string, len(s.Components))
	for i, c := range s.Components {
		rows[i] = c.row(wide)
	}
	return ui.TableOr(w, "  "+noComponents, statusHeader(wide), rows)
}

func (r Recovered) text() string {
	switch {
	case r.Result == "":
		return "unfinished (" + ui.Words(r.State) + ")"
	case r.Message == "":
		return ui.Words(r.Result)
	}
	return ui.Words(r.Result) + ": " + r.Message
}

// serviceState returns a service's state in words, coloured unless it is running.
func serviceState(state string) string {
	switch words := ui.Words(state); platform.ServiceState(state) {
	case platform.Running:
		return words
	case platform.Stopped:
		return ui.Bad(words)
	default: // starting or stopping
		return ui.Warn(words)
	}
}

// coloured returns the drift as text. The text has a colour unless the drift is DriftNone.
func (d Drift) coloured() string {
	if d == DriftNone {
		return string(d)
	}
	return ui.Warn(string(d))
}

func (c ComponentStatus) row(wide bool) []string {
	state, pid, uptime := "no such service", "", ""
	if c.Service != nil {
		state = serviceState(c.Service.State)
		if c.PID != 0 {
			pid = fmt.Sprint(c.PID)
		}
		if c.UptimeSeconds > 0 {
			uptime = ui.Age(time.Duration(c.UptimeSeconds * float64(time.Second)))
		}
	}
	row := []string{c.Name, ui.Version(c.Version), ui.Hash(c.SHA256), state, pid, uptime, c.Drift.coloured(), c.Message}
	if wide {
		row = append(row, ui.Hash(c.PreviousSHA256), c.Destination)
	}
	return row
}
