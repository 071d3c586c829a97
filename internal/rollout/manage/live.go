package manage

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/livetable"
)

// Live shows the reports of a watch: as a table that is redrawn, as a line for each change, or as records.
type Live struct {
	Record func(Report) error // writes changes as a record; nil: they are printed as text
	Screen *livetable.Screen  // nil: no terminal; each change is a line on Page
	Page   *ui.Page
	Now    func() time.Time

	rollouts map[string]Rollout // as shown last
	nodes    map[string]Node    // by the names of the rollout and the node
	reasons  map[string]string  // as written last, by the same names
}

// See shows a report.
func (l *Live) See(r Report) error {
	if l.Screen != nil && l.Record == nil {
		return l.draw(r)
	}
	changes := l.changes(r)
	switch {
	case len(changes.Rollouts) == 0 && len(r.Rollouts) > 0:
		return nil
	case l.Record != nil:
		return l.Record(changes)
	case len(r.Rollouts) == 0:
		return r.WriteText(l.Page)
	}
	for _, one := range changes.Rollouts {
		if err := l.writeChanges(one); err != nil {
			return err
		}
	}
	return l.Page.Flush()
}

// changes returns the rollouts that have changed, each with the nodes that have changed.
func (l *Live) changes(r Report) Report {
	if l.rollouts == nil {
		l.rollouts, l.nodes, l.reasons = map[string]Rollout{}, map[string]Node{}, map[string]string{}
	}
	changes := Report{Cluster: r.Cluster, Rollouts: []Rollout{}, Unmade: []string{}}
	for _, one := range r.Rollouts {
		before, known := l.rollouts[one.Name]
		l.rollouts[one.Name] = one
		all := one.Touched
		one.Touched = []Node{}
		for _, n := range all {
			if key := one.Name + "/" + n.Name; l.nodes[key] != n {
				l.nodes[key] = n
				one.Touched = append(one.Touched, n)
			}
		}
		if !known || before.summary() != one.summary() || len(one.Touched) > 0 {
			changes.Rollouts = append(changes.Rollouts, one)
		}
	}
	return changes
}

// writeChanges writes a line for each changed node of the present content, and one for the rollout.
func (l *Live) writeChanges(r Rollout) error {
	now := l.Now().Format(time.TimeOnly)
	for _, n := range r.Touched {
		if n.Hash != r.Hash {
			continue
		}
		line := fmt.Sprintf("%s %s %s %s", now, r.Name, n.Name, n.progress())
		if n.Reason != "" {
			line += ": " + l.reason(r.Name+"/"+n.Name, n.Reason)
		}
		if _, err := fmt.Fprintln(l.Page, line); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(l.Page, "%s %s %s\n", now, r.Name, r.summary())
	return err
}

// reason returns all lines of a node's reason the first time, and then the first one: the verdict about a node
// has the reason of the node's report.
func (l *Live) reason(key, reason string) string {
	if l.reasons[key] == reason {
		reason, _, _ = strings.Cut(reason, "\n")
		return reason
	}
	l.reasons[key] = reason
	return indented(reason)
}

// summary returns the progress of a rollout as a part of a line.
func (r Rollout) summary() string {
	parts := []string{r.state(), fmt.Sprintf("%d of %d nodes updated", r.Updated, r.Nodes)}
	for _, count := range []struct {
		n    int32
		name string
	}{{r.Working, "working"}, {r.Failed, "failed"}, {r.RolledBack, "rolled back"}, {r.Unavailable, "unavailable"}} {
		if count.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count.n, count.name))
		}
	}
	if r.Step != "" {
		parts = append(parts, r.Step)
	}
	text := strings.Join(parts, ", ")
	if r.Message != "" {
		text += ": " + r.Message
	}
	return text
}

// progress returns how far a node is, for people.
func (n Node) progress() string {
	switch n.Verdict {
	case string(fleetv1.VerdictUpdated):
		return "updated"
	case string(fleetv1.VerdictFailed):
		return ui.Bad("failed")
	case string(fleetv1.VerdictRolledBack):
		return "rolled back"
	}
	switch {
	case n.Phase == "" || n.Phase == string(fleetv1.PhaseFetched) && n.Released:
		return cmp.Or(map[bool]string{true: "released"}[n.Released], "claimed")
	case n.Phase == string(fleetv1.PhaseDone):
		return "checking"
	}
	return ui.Words(n.Phase)
}

// draw redraws the table.
func (l *Live) draw(r Report) error {
	var text bytes.Buffer
	page := ui.NewPage(&text, false)
	if len(r.Rollouts) == 0 {
		if err := r.WriteText(page); err != nil {
			return err
		}
	} else if err := writeLive(page, r); err != nil {
		return err
	}
	if err := page.Flush(); err != nil {
		return err
	}
	return l.Screen.Draw(text.String(), l.Now().Format(time.TimeOnly)+"  Ctrl-C ends the watch; the rollout goes on")
}

func writeLive(page *ui.Page, r Report) error {
	rows := [][]string{{"ROLLOUT", "PROGRESS", "UPDATED", "WORKING", "FAILED", "STEP", "STATE"}}
	for _, one := range r.Rollouts {
		rows = append(rows, []string{one.Name, bar(one), fmt.Sprintf("%d/%d", one.Updated, one.Nodes),
			strconv.Itoa(int(one.Working)), strconv.Itoa(int(one.Failed)), cmp.Or(one.Step, "-"), one.state()})
	}
	if err := ui.Lines(page, rows); err != nil {
		return err
	}
	var nodes [][]string
	for _, one := range r.Rollouts {
		if one.Message != "" { // below the table, which has no room for it on a narrow terminal
			if _, err := fmt.Fprintf(page, "%s: %s\n", one.Name, one.Message); err != nil {
				return err
			}
		}
		for _, n := range one.Touched {
			if n.Hash == one.Hash && n.Verdict != string(fleetv1.VerdictUpdated) {
				reason, _, _ := strings.Cut(n.Reason, "\n") // `swdt fleet status` shows the other lines
				nodes = append(nodes, []string{n.Name, one.Name, n.progress(), reason})
			}
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	failed := func(row []string) int { // failures first: the screen may have no room for all nodes
		if row[2] == ui.Bad("failed") {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(nodes, func(a, b []string) int { return cmp.Compare(failed(a), failed(b)) })
	return writeNodeRows(page, nodes)
}

// bar returns the part of the nodes that have the content (#), are on their way (+), and have failed (!).
func bar(r Rollout) string {
	const width = 20
	if r.Nodes == 0 {
		return strings.Repeat(".", width)
	}
	part := func(n int32) int {
		if n == 0 {
			return 0
		}
		return max(int(n)*width/int(r.Nodes), 1)
	}
	text := strings.Repeat("#", part(r.Updated)) + strings.Repeat("+", part(r.Working)) +
		strings.Repeat("!", part(r.Failed)) + strings.Repeat(".", width)
	return text[:width]
}
