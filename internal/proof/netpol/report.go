package netpol

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/proof/netprobe"
	"github.com/swdt-dev/swdt/internal/proof/probepod"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Results of cases and runs.
const (
	AsMeant    = "asMeant"    // all cells are as the policies mean
	Differs    = "differs"    // a cell is not
	KnownLimit = "knownLimit" // a cell is not, by a known limit of the pod network on Windows, and no other cell
	Unmeasured = "unmeasured" // the table could not be measured
)

// maxDifferences bounds the differences of a case in a report. Its tables have all.
const maxDifferences = 500

// Report is the result of a run.
type Report struct {
	Result  string      `json:"result"`  // asMeant, knownLimit, differs or unmeasured
	Error   string      `json:"error"`   // why the tables could not be measured; "" if they were
	Cluster string      `json:"cluster"` // the API server's URL
	Begin   time.Time   `json:"begin"`
	Seconds float64     `json:"seconds"`
	Pods    []PodReport `json:"pods"`
	Ports   []string    `json:"ports"` // such as TCP/8080
	// Unsupported has the protocols that pods do not have, such as "SCTP on windows", and what nodes cannot serve.
	// Their cells are not measured.
	Unsupported []string `json:"unsupported"`
	// Limits are the known limits of the pod network on Windows nodes by which cells differ.
	Limits []Limit `json:"limits"`
	// Leftovers are the namespaces of killed runs that this run has removed.
	Leftovers []string     `json:"leftovers"`
	Cases     []CaseReport `json:"cases"`
}

// PodReport is a pod of a run.
type PodReport struct {
	Name      string `json:"name"`      // in the tables
	Namespace string `json:"namespace"` // in the cluster
	Node      string `json:"node"`
	System    string `json:"system"`  // linux or windows
	Host      bool   `json:"host"`    // it uses the network of its node, and stands for the node
	Address   string `json:"address"` // "" if the pod did not start
}

// CaseReport is the result of a case.
type CaseReport struct {
	Name     string   `json:"name"`
	Proves   string   `json:"proves"`
	Policies []string `json:"policies"` // as NAMESPACE/NAME
	Result   string   `json:"result"`   // asMeant, knownLimit, differs or unmeasured
	Cells    int      `json:"cells"`    // the number of cells that were measured
	Denied   int      `json:"denied"`   // the number of cells that the policies deny
	Wrong    int      `json:"wrong"`    // the number of cells that differ
	// Undefined is the number of cells from or to nodes for which the meaning of policies is undefined. They are
	// measured and not judged.
	Undefined int `json:"undefined"`
	// Limited is the number of cells that differ by a known limit of the pod network. They do not count as wrong.
	Limited int `json:"limited"`
	// BindSeconds is the time from the last policy until all cells were as meant; 0 if they never were.
	BindSeconds float64 `json:"bindSeconds"`
	// Released reports whether all pods reached each other again after the policies were removed, and
	// ReleaseSeconds after which time.
	Released       bool         `json:"released"`
	ReleaseSeconds float64      `json:"releaseSeconds"`
	Differences    []Difference `json:"differences"` // at most 500
	Tables         []Table      `json:"tables"`
	// LeftOut has the policies of other kinds in the files, which were neither made nor judged.
	LeftOut []LeftOut `json:"leftOut"`
}

// Difference is a cell that is not as the policies mean.
type Difference struct {
	From     string `json:"from"`
	To       string `json:"to"`
	Port     string `json:"port"`     // such as TCP/8080
	Expected string `json:"expected"` // allowed or denied
	Outcome  string `json:"outcome"`  // connected, timeout, refused, unreachable, wrong or failed
	// Policies are the policies that deny the cell or, if it is allowed, those that allow it.
	Policies []string `json:"policies"`
	Seen     string   `json:"seen"` // the address from which the target saw the attempt come; "" if it did not
	Text     string   `json:"text"` // more about the outcome
}

// withStates returns the report with the measured cells among all.
func (r CaseReport) withStates(m Model, all, measured []cell, wanted []wish, states []state,
	bound time.Duration) CaseReport {
	at := map[place]int{}
	for i, c := range measured {
		at[place{c.from, c.to, c.port}] = i
		switch wanted[i] {
		case whatever:
			r.Undefined++
		case deny:
			r.Denied++
		case either:
			if !c.verdict.Allowed() {
				r.Denied++
			}
			if states[i].right && !states[i].meant(c) {
				r.Limited++
			}
		}
		if !states[i].right {
			r.Wrong++
			if len(r.Differences) < maxDifferences {
				r.Differences = append(r.Differences, difference(m, c, states[i]))
			}
		}
	}
	r.Cells = len(measured)
	r.Tables = m.tables(all, func(i int) rune {
		c := all[i]
		j, ok := at[place{c.from, c.to, c.port}]
		switch {
		case !ok, states[j].Outcome == netprobe.Failed, states[j].Outcome == "":
			return markUnknown
		case states[j].right && wanted[j] == whatever && states[j].Outcome == netprobe.Connected:
			return markOpen
		case states[j].right && wanted[j] == whatever:
			return markShut
		case states[j].right && wanted[j] == either && !states[j].meant(c):
			return markLimited
		case states[j].right:
			return c.expected()
		case states[j].Outcome == netprobe.Connected:
			return markLeaks
		}
		return markBlocked
	})
	switch r.Result = AsMeant; {
	case r.Wrong > 0:
		r.Result = Differs
		return r
	case r.Limited > 0:
		r.Result = KnownLimit
	}
	r.BindSeconds = bound.Seconds()
	return r
}

func difference(m Model, c cell, s state) Difference {
	d := Difference{From: m.Pods[c.from].Name(), To: m.Pods[c.to].Name(), Port: m.Ports[c.port].String(),
		Expected: "allowed", Outcome: s.Outcome, Policies: []string{}, Seen: s.Seen, Text: s.Text}
	if !c.verdict.Allowed() {
		d.Expected = "denied"
	}
	for _, name := range c.deciding() { // with the names of the model's namespaces
		namespace, policy, _ := strings.Cut(name, "/")
		if i := slices.IndexFunc(m.Namespaces, func(n Namespace) bool { return n.Real == namespace }); i >= 0 {
			namespace = m.Namespaces[i].Name
		}
		d.Policies = append(d.Policies, namespace+"/"+policy)
	}
	return d
}

// judged returns the report with its result. err is why the tables could not be measured, or nil.
func (r Report) judged(took time.Duration, err error) Report {
	r.Seconds, r.Result = took.Seconds(), AsMeant
	for _, result := range []string{KnownLimit, Differs} { // the worst last
		if slices.ContainsFunc(r.Cases, func(c CaseReport) bool { return c.Result == result }) {
			r.Result = result
		}
	}
	if err != nil {
		r.Result, r.Error = Unmeasured, probepod.Shortened(err.Error())
	}
	return r
}

// DiffersError reports that cells are not as the policies mean.
type DiffersError struct{ Wrong, Cells int }

func (e *DiffersError) Error() string {
	return fmt.Sprintf("%d of %s differ from what the policies mean", e.Wrong, plural(e.Cells, "cell"))
}

// Failure returns a *DiffersError if a cell differs, and an error if the tables could not be measured.
func (r Report) Failure() error {
	if r.Result == Unmeasured {
		return fmt.Errorf("the tables could not be measured: %s", r.Error)
	}
	e := &DiffersError{}
	for _, c := range r.Cases {
		e.Wrong, e.Cells = e.Wrong+c.Wrong, e.Cells+c.Cells
	}
	if e.Wrong == 0 {
		return nil
	}
	return e
}

// Names returns the cases that differ or were not measured, for -o name.
func (r Report) Names() []string {
	names := []string{}
	for _, c := range r.Cases {
		if c.Result != AsMeant && c.Result != KnownLimit {
			names = append(names, "case/"+c.Name)
		}
	}
	return names
}

// shownDifferences is the number of differences of a case for which the text has lines.
const shownDifferences = 20

// WriteText writes the tables of the cases that differ, or of all cases if they are few or the page is wide,
// then the differences, and then a line for each case.
func (r Report) WriteText(page *ui.Page) error {
	var pods []string
	for _, p := range r.Pods {
		pods = append(pods, p.Name)
	}
	tables := false
	for _, c := range r.Cases {
		if c.Result == Unmeasured || !page.Wide && c.Wrong+c.Limited == 0 && (len(r.Cases) > 2 || c.Name == Before) {
			continue
		}
		tables = true
		if err := c.writeTables(page, pods, page.Wide); err != nil {
			return err
		}
	}
	if tables {
		if err := r.writeLegend(page); err != nil {
			return err
		}
	}
	if page.Wide {
		if err := r.writePods(page); err != nil {
			return err
		}
	}
	var rows [][]string
	for _, c := range r.Cases {
		rows = append(rows, []string{c.Name, c.result(), fmt.Sprint(c.Cells), fmt.Sprint(c.Denied), fmt.Sprint(c.Wrong),
			c.bound(), c.released()})
	}
	header := []string{"CASE", "RESULT", "CELLS", "DENIED", "WRONG", "BOUND", "RELEASED"}
	if err := ui.TableOr(page, "no case was measured", header, rows); err != nil {
		return err
	}
	for _, c := range r.Cases {
		if err := writeLeftOut(page, c.LeftOut); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(page, r.Sentence())
	return err
}

func (r Report) writeLegend(page *ui.Page) error {
	text := fmt.Sprintf("rows are sources, columns targets: %s\n%s\n", legend, wrongLegend)
	if slices.ContainsFunc(r.Pods, func(p PodReport) bool { return p.Host }) {
		text += nodesLegend + "\n"
	}
	if len(r.Limits) > 0 {
		text += limitLegend + "\n"
	}
	_, err := fmt.Fprintln(page, text)
	return err
}

func (r Report) writePods(page *ui.Page) error {
	var rows [][]string
	for _, p := range r.Pods {
		rows = append(rows, []string{p.Name, p.Node, p.System, p.Address})
	}
	if err := ui.TableOr(page, "no pod was made", []string{"POD", "NODE", "SYSTEM", "ADDRESS"}, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintln(page)
	return err
}

// writeTables writes the tables of a case and its differences. Unless all is true, it leaves out tables
// without a difference if another one has some.
func (c CaseReport) writeTables(page *ui.Page, pods []string, all bool) error {
	title := c.Name
	if c.Proves != "" {
		title += ": " + c.Proves
	}
	if _, err := fmt.Fprintln(page, title); err != nil {
		return err
	}
	for _, t := range c.Tables {
		if !all && c.Wrong > 0 && !t.differs() {
			continue
		}
		if err := t.writeText(page, pods); err != nil {
			return err
		}
	}
	for i, d := range c.Differences {
		if i == shownDifferences && !page.Wide {
			if _, err := fmt.Fprintf(page, "… and %d more\n", c.Wrong-i); err != nil {
				return err
			}
			break
		}
		if _, err := fmt.Fprintln(page, ui.Bad(d.String())); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(page)
	return err
}

// String returns the difference as a sentence.
func (d Difference) String() string {
	outcome := d.Outcome
	if d.Text != "" {
		outcome += " (" + d.Text + ")"
	}
	text := fmt.Sprintf("%s → %s %s: %s, and must be %s", d.From, d.To, d.Port, outcome, d.Expected)
	if len(d.Policies) > 0 {
		text += " by " + strings.Join(d.Policies, ", ")
	}
	return text
}

func (c CaseReport) result() string {
	switch c.Result {
	case AsMeant:
		return ui.Good("as meant")
	case KnownLimit:
		return ui.Warn("known limit")
	case Differs:
		return ui.Bad("differs")
	}
	return ui.Warn("unmeasured")
}

// bound returns the time until the policies were bound; "" if there are none, or never.
func (c CaseReport) bound() string {
	switch {
	case len(c.Policies) == 0 || c.Result == Unmeasured:
		return ""
	case c.Result == Differs:
		return ui.Bad("never")
	}
	return ui.Seconds(time.Duration(c.BindSeconds * float64(time.Second)))
}

func (c CaseReport) released() string {
	switch {
	case len(c.Policies) == 0 || c.Result == Unmeasured:
		return ""
	case !c.Released:
		return ui.Bad("never")
	}
	return ui.Seconds(time.Duration(c.ReleaseSeconds * float64(time.Second)))
}

// sentence describes the case in one line.
func (c CaseReport) sentence() string {
	if c.Result == Differs {
		return fmt.Sprintf("%s: %d of %s differ", c.Name, c.Wrong, plural(c.Cells, "cell"))
	}
	if c.Result == KnownLimit {
		return fmt.Sprintf("%s: %d of %s differ by a known limit, all others are as meant", c.Name, c.Limited,
			plural(c.Cells, "cell"))
	}
	return fmt.Sprintf("%s: all %s are as meant", c.Name, plural(c.Cells, "cell"))
}

// Sentence returns the numbers of the run in one line.
func (r Report) Sentence() string {
	wrong, cells, differ := 0, 0, 0
	for _, c := range r.Cases {
		wrong, cells = wrong+c.Wrong, cells+c.Cells
		if c.Result == Differs {
			differ++
		}
	}
	nodes := 0
	for _, p := range r.Pods {
		if p.Host {
			nodes++
		}
	}
	ends := plural(len(r.Pods)-nodes, "pod")
	if nodes > 0 {
		ends += ", " + plural(nodes, "node")
	}
	text := fmt.Sprintf("%s, %s, %s: ", ends, plural(len(r.Cases), "case"), plural(cells, "cell"))
	switch {
	case cells == 0:
		text += "nothing is proved"
	case wrong == 0 && r.Result == KnownLimit:
		text += "all as meant, but " + r.limitSentence()
	case wrong == 0:
		text += "all as meant"
	default:
		text += fmt.Sprintf("%d wrong, in %s", wrong, plural(differ, "case"))
		if limited := r.limitSentence(); limited != "" {
			text += "; " + limited
		}
	}
	if len(r.Unsupported) > 0 {
		text += "; not supported: " + strings.Join(r.Unsupported, ", ")
	}
	return text + " in " + ui.Seconds(time.Duration(r.Seconds*float64(time.Second)))
}
