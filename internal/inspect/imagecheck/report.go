package imagecheck

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/format/imagefit"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// Report is the result of a check.
type Report struct {
	Images   []ImageReport `json:"images"`
	Findings []Finding     `json:"findings"`
	// Unread are the images and files that could not be read.
	Unread []Unread `json:"unread"`
}

// ImageReport is an image on all nodes.
type ImageReport struct {
	Image  string   `json:"image"`
	Digest string   `json:"digest"` // of the index, or of the only manifest
	UsedBy []string `json:"usedBy"` // such as DaemonSet kube-system/kube-proxy
	// Manifests are those of the index, in its order.
	Manifests []ManifestReport `json:"manifests"`
	Nodes     []NodeReport     `json:"nodes"`
}

// ManifestReport is a manifest of an index.
type ManifestReport struct {
	Digest       string   `json:"digest"`
	OS           string   `json:"os"` // "": the index names no platform
	Architecture string   `json:"architecture"`
	OSVersion    string   `json:"osVersion"`
	OSFeatures   []string `json:"osFeatures"`
}

// Result is the answer for one image on one node.
type Result string

// The results.
const (
	Fits    Result = "fits"
	NoMatch Result = "noMatch" // containerd takes none of its manifests
	Refused Result = "refused" // Windows does not run it with process isolation
	Unknown Result = "unknown"
)

// NodeReport is an image on one node.
type NodeReport struct {
	Node       string `json:"node"`
	Windows    string `json:"windows"`
	Containerd string `json:"containerd"`
	Result     Result `json:"result"`
	Problem    string `json:"problem"` // why the result is unknown
	// Digest is that of the manifest that containerd takes; "": it takes none.
	Digest    string           `json:"digest"`
	OSVersion string           `json:"osVersion"`
	Release   string           `json:"release"` // such as ltsc2022; "": the version is that of no release
	Runs      imagefit.Verdict `json:"runs"`
	// HostProcess reports that the containers do not use the Windows of the image.
	HostProcess bool `json:"hostProcess"`
	// PullBytes is the size of all layers of a pull, compressed; NewBytes that of those which the node does not have, nor
	// gets with an image before, unless the images are the tags of a list. Both are 0 if BytesProblem has a reason why they are
	// not known.
	PullBytes    int64  `json:"pullBytes"`
	NewBytes     int64  `json:"newBytes"`
	BytesProblem string `json:"bytesProblem"`
	// PulledManifests counts the manifests whose layers are fetched.
	PulledManifests int `json:"pulledManifests"`
	// Present reports that the node has the image.
	Present bool `json:"present"`
	// Support is the state of the base image's support, and SupportEnd the last day of that state.
	Support    imagefit.Support `json:"support"`
	SupportEnd string           `json:"supportEnd"`
}

// Unread is an image, or a file with manifests, that could not be read.
type Unread struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

func newManifestReport(digest string, p *imagefit.Platform) ManifestReport {
	m := ManifestReport{Digest: digest, OSFeatures: []string{}}
	if p != nil {
		m.OS, m.Architecture, m.OSVersion = p.OS, p.Architecture, p.OSVersion
		m.OSFeatures = append(m.OSFeatures, p.OSFeatures...)
	}
	return m
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

// sort orders the findings, the worst first.
func (r *Report) sort() {
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(a.Severity.Compare(b.Severity), strings.Compare(a.Rule, b.Rule), strings.Compare(a.Image, b.Image))
	})
}

// Columns are the columns of the table.
func Columns(wide bool) []string {
	all := []string{"IMAGE", "NODES", "WINDOWS", "CONTAINERD", "TAKES", "RUNS", "NEW", "SUPPORT"}
	if wide {
		all = append(all, "DIGEST", "USED BY")
	}
	return all
}

// WriteText writes a row for each image and each kind of node, then the findings, the worst first, and what was not read. The
// wide form has the digests, and the sources of the facts.
func (r Report) WriteText(p *ui.Page) error {
	var rows [][]string
	for _, image := range r.Images {
		rows = append(rows, image.rows(p.Wide)...)
	}
	if len(rows) > 0 {
		if err := ui.Table(p, Columns(p.Wide), rows); err != nil {
			return err
		}
	}
	if err := finding.WriteList(p, r.entries(p.Wide)); err != nil {
		return err
	}
	for _, u := range r.Unread {
		if _, err := fmt.Fprintf(p, "not read: %s: %s\n", u.Name, u.Why); err != nil {
			return err
		}
	}
	return nil
}

func (r Report) entries(wide bool) []finding.Entry {
	var all []finding.Entry
	for _, f := range r.Findings {
		e := finding.Entry{By: f.Rule, Finding: f.Finding, On: names(f.Nodes)}
		if f.Image != "" {
			e.Seen = []string{strings.TrimSuffix(f.Image+": "+f.Evidence, ": ")}
		}
		if wide && f.Source != "" {
			e.Remedy += " (" + f.Source + ")"
		}
		all = append(all, e)
	}
	return all
}

// rows returns the rows of an image: nodes that differ in nothing but their names have one.
func (i ImageReport) rows(wide bool) (rows [][]string) {
	at := map[string]int{}
	var nodes [][]string
	for _, n := range i.Nodes {
		row := n.cells()
		if wide {
			row = append(row, n.Digest, names(i.UsedBy))
		}
		key := strings.Join(row, "\x00")
		if place, ok := at[key]; ok {
			nodes[place] = append(nodes[place], n.Node)
			continue
		}
		at[key] = len(rows)
		rows, nodes = append(rows, append([]string{i.Image, ""}, row...)), append(nodes, []string{n.Node})
	}
	for place := range rows {
		rows[place][1] = names(nodes[place])
	}
	return rows
}

// cells returns the cells of a row after those of the image and the nodes.
func (n NodeReport) cells() []string {
	takes := cmp.Or(n.OSVersion, "no version")
	if n.Digest == "" {
		takes = "nothing"
	}
	runs := n.runs()
	if n.Result == NoMatch || n.Result == Refused {
		runs = ui.Bad(runs)
	}
	support := string(n.Support)
	if n.SupportEnd != "" {
		support += ", until " + n.SupportEnd
	}
	size := ui.Size(n.NewBytes)
	switch {
	case n.Present:
		size = "none, present"
	case n.Digest == "":
		size = ""
	case n.BytesProblem != "":
		size = "unknown"
	}
	return []string{n.Windows, n.Containerd, takes, runs, size, support}
}

func (n NodeReport) runs() string {
	switch {
	case n.Result == Unknown:
		return string(imagefit.Unknown)
	case n.Result == NoMatch:
		return "no"
	case n.HostProcess:
		return "HostProcess"
	}
	return string(n.Runs)
}

// mostNames bounds the names in a cell.
const mostNames = 3

func names(all []string) string {
	if more := len(all) - mostNames; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(all[:mostNames], ", "), more)
	}
	return strings.Join(all, ", ")
}
