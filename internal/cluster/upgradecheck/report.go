package upgradecheck

import (
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// Report is the result of a check.
type Report struct {
	// Kubernetes, Containerd and Windows are what the upgrade is to; "": that is not upgraded.
	Kubernetes string `json:"kubernetes"`
	Containerd string `json:"containerd"`
	Windows    string `json:"windows"`
	// Server is the API server's version; "": no cluster was asked.
	Server string `json:"server"`
	// Texts counts the files and objects that were read.
	Texts    int       `json:"texts"`
	Nodes    []Node    `json:"nodes"`
	Findings []Finding `json:"findings"`
	Unread   []Unread  `json:"unread"`
}

// NewReport returns the report of a check.
func NewReport(target Target, facts Facts, findings []Finding) Report {
	r := Report{Windows: target.Windows, Server: facts.Server, Texts: facts.Texts, Nodes: facts.Nodes, Findings: findings,
		Unread: facts.Unread}
	if target.Kubernetes != nil {
		r.Kubernetes = target.Kubernetes.String()
	}
	if target.Containerd != nil {
		r.Containerd = target.Containerd.String()
	}
	if r.Nodes == nil {
		r.Nodes = []Node{}
	}
	if r.Findings == nil {
		r.Findings = []Finding{}
	}
	if r.Unread == nil {
		r.Unread = []Unread{}
	}
	return r
}

// Has reports whether there is a finding of severity s or worse.
func (r Report) Has(s finding.Severity) bool { return finding.Has(r.faults(), s) }

func (r Report) faults() []finding.Finding {
	all := make([]finding.Finding, 0, len(r.Findings))
	for _, f := range r.Findings {
		all = append(all, f.Finding)
	}
	return all
}

// upgrade returns the targets, such as "Kubernetes 1.38, containerd 2.4".
func (r Report) upgrade() string {
	var parts []string
	for _, part := range []struct{ name, version string }{{"Kubernetes ", r.Kubernetes}, {"containerd ", r.Containerd}, {"Windows Server ", r.Windows}} {
		if part.version != "" {
			parts = append(parts, part.name+part.version)
		}
	}
	return strings.Join(parts, ", ")
}

// mostPlaces bounds the places of a finding that the text names.
const mostPlaces = 5

// WriteText writes the findings, the worst first, then what was not read. The wide form has all places and the sources.
func (r Report) WriteText(p *ui.Page) error {
	summary := finding.Counts(r.faults())
	if summary == "" {
		summary = "nothing breaks that swdt knows of"
	}
	if _, err := fmt.Fprintf(p, "%s: %s (read: %s)\n", r.upgrade(), summary, r.read()); err != nil {
		return err
	}
	var all []finding.Entry
	for _, f := range r.Findings {
		all = append(all, f.entry(p.Wide))
	}
	if err := finding.WriteList(p, all); err != nil {
		return err
	}
	for _, u := range r.Unread {
		if _, err := fmt.Fprintf(p, "not read: %s: %s\n", u.Place, u.Why); err != nil {
			return err
		}
	}
	return nil
}

// read returns what was read.
func (r Report) read() string {
	texts := finding.Several(r.Texts, "file or object")
	if r.Texts != 1 {
		texts = fmt.Sprintf("%d files and objects", r.Texts)
	}
	if len(r.Nodes) == 0 {
		return texts
	}
	return finding.Several(len(r.Nodes), "Windows node") + ", " + texts
}

func (f Finding) entry(wide bool) finding.Entry {
	e := finding.Entry{By: f.Rule, Finding: f.Finding}
	if wide {
		e.Remedy += " (" + f.Source + ")"
	}
	places := f.Places
	more := 0
	if !wide && len(places) > mostPlaces {
		places, more = places[:mostPlaces], len(places)-mostPlaces
	}
	for _, place := range places {
		seen := place.String()
		if f.Evidence != "" {
			seen += ": " + f.Evidence
		}
		e.Seen = append(e.Seen, seen)
	}
	if more > 0 {
		e.Seen = append(e.Seen, fmt.Sprintf("and in %s, which -o wide lists", finding.Several(more, "more place")))
	}
	return e
}
