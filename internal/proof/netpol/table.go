package netpol

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/swdt-dev/swdt/internal/proof/policy"
	"github.com/swdt-dev/swdt/internal/ui"
)

// cell is an attempt of a pod to reach a port of another pod.
type cell struct {
	from, to int // indexes of pods
	port     int // index of the port
	verdict  policy.Verdict
}

// cells returns all cells of a model with what policies mean, by port, source and target.
func (m Model) cells(policies []networkingv1.NetworkPolicy) ([]cell, error) {
	set, err := policy.New(policies)
	if err != nil {
		return nil, err
	}
	pods := m.ends()
	var all []cell
	for p, port := range m.Ports {
		for f := range pods {
			for t := range pods {
				if f == t {
					continue
				}
				all = append(all, cell{f, t, p, set.Decide(policy.Connection{From: pods[f], To: pods[t], Port: port.Number,
					Protocol: port.Protocol})})
			}
		}
	}
	return all, nil
}

// The marks of cells in tables.
const (
	markSelf    = '-' // a pod to itself
	markAllowed = '.' // passes, as the policies mean
	markDenied  = 'x' // is denied, as the policies mean
	markLeaks   = 'P' // passes, and must be denied
	markBlocked = 'D' // is denied, and must pass
	markUnknown = '?' // was not measured
	markOpen    = 'o' // passes, and policies do not define it
	markShut    = 'b' // is blocked, and policies do not define it
	markLimited = 'l' // is not as the policies mean, by a known limit of the pod network
)

// Table is the table of ports for which all cells are equal.
type Table struct {
	Ports []string `json:"ports"` // such as TCP/80
	// Rows has a row for each source, in the order of the pods, with a mark for each target: . passes and x
	// is denied, as the policies mean; P passes and must be denied; D is denied and must pass; o passes and b is
	// blocked where the meaning of policies is undefined; l differs by a known limit of the pod network; ? was not
	// measured; - is the pod itself.
	Rows []string `json:"rows"`
}

// tables returns the tables of a model, with the marks of its cells.
func (m Model) tables(all []cell, mark func(i int) rune) []Table {
	rows := make([][][]rune, len(m.Ports))
	for p := range rows {
		rows[p] = make([][]rune, len(m.Pods))
		for f := range m.Pods {
			rows[p][f] = slices.Repeat([]rune{markSelf}, len(m.Pods))
		}
	}
	for i, c := range all {
		rows[c.port][c.from][c.to] = mark(i)
	}
	var tables []Table
	for p, port := range m.Ports {
		t := Table{Ports: []string{port.String()}}
		for _, row := range rows[p] {
			t.Rows = append(t.Rows, string(row))
		}
		same := slices.IndexFunc(tables, func(other Table) bool { return slices.Equal(other.Rows, t.Rows) })
		if same >= 0 {
			tables[same].Ports = append(tables[same].Ports, t.Ports...)
			continue
		}
		tables = append(tables, t)
	}
	return tables
}

// expected returns the mark of a cell that is as the policies mean.
func (c cell) expected() rune {
	if c.verdict.Allowed() {
		return markAllowed
	}
	return markDenied
}

// deciding returns the policies that deny the cell or, if it is allowed, those that allow it.
func (c cell) deciding() []string {
	var all []string
	for _, side := range []policy.Side{c.verdict.Egress, c.verdict.Ingress} {
		if side.Allowed == c.verdict.Allowed() {
			all = append(all, side.Policies...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

const (
	// shortName is the length of a pod's name up to which it heads a column.
	shortName = 5
	// legend explains the marks of a text.
	legend = ". passes, x is denied, - the pod itself"
	// wrongLegend explains the marks of differences.
	wrongLegend = "P passes and must be denied, D is denied and must pass, ? was not measured"
	// limitLegend explains the mark of cells that differ by a known limit.
	limitLegend = "l differs by a known limit of the pod network on Windows nodes"
	// nodesLegend explains the marks of cells with nodes.
	nodesLegend = "o passes and b is blocked from or to a node, for which policies are not defined"
)

// writeText writes a table for people.
func (t Table) writeText(page *ui.Page, pods []string) error {
	numbered := slices.ContainsFunc(pods, func(name string) bool { return len(name) > shortName })
	if _, err := fmt.Fprintln(page, strings.Join(t.Ports, " ")); err != nil {
		return err
	}
	header := []string{"FROM"}
	for i, name := range pods {
		if numbered {
			name = strconv.Itoa(i + 1)
		}
		header = append(header, name)
	}
	var rows [][]string
	for f, marks := range t.Rows {
		if f >= len(pods) {
			break
		}
		row := []string{pods[f]}
		if numbered {
			row[0] = strconv.Itoa(f+1) + " " + pods[f]
		}
		for _, mark := range marks {
			row = append(row, shown(mark))
		}
		rows = append(rows, row)
	}
	return ui.Table(page, header, rows)
}

// shown returns a mark with its colour.
func shown(mark rune) string {
	switch text := string(mark); mark {
	case markLeaks, markBlocked:
		return ui.Bad(text)
	case markUnknown, markLimited:
		return ui.Warn(text)
	default:
		return text
	}
}

// differs reports whether a table has a cell that is not as the policies mean.
func (t Table) differs() bool {
	return slices.ContainsFunc(t.Rows, func(row string) bool {
		return strings.ContainsAny(row, string([]rune{markLeaks, markBlocked, markUnknown, markLimited}))
	})
}
