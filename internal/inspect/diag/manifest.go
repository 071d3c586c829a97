package diag

import (
	"slices"
	"time"

	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// Format is the value of the first field of a manifest. Open rejects a bundle with another format.
const Format = "swdt-diag/1"

// manifestName is the path of the manifest, which is the first file in a bundle.
const manifestName = "manifest.json"

// Manifest lists the content of a bundle.
type Manifest struct {
	Format  string    `json:"format"`
	SWDT    string    `json:"swdt"` // version of swdt
	Created time.Time `json:"created"`
	Profile string    `json:"profile"`
	// Patterns is the number of the user's own patterns for redaction. The patterns are not stored.
	Patterns int          `json:"patterns"`
	Nodes    []NodeRecord `json:"nodes"`
}

// The results of nodes and collectors.
const (
	Whole   = "whole"   // for a node: nothing failed
	Partial = "partial" // for a node: some collectors failed
	Done    = "done"    // for a collector: nothing failed
	Absent  = "absent"  // for a collector: the node lacks the object to read
	Failed  = "failed"  // for a node or a collector
	Late    = "late"    // for a collector: it did not end in time
)

// NodeRecord is the part of the manifest about one node.
type NodeRecord struct {
	Name   string `json:"name"`
	Folder string `json:"folder"` // in the bundle
	Result string `json:"result"`
	// why nothing was gathered, or the first failure; empty: neither
	Error      string            `json:"error"`
	Began      time.Time         `json:"began"`
	Seconds    float64           `json:"seconds"`
	Windows    string            `json:"windows"`
	Simulated  string            `json:"simulated"`
	Collectors []CollectorRecord `json:"collectors"`
	Findings   []Finding         `json:"findings"`

	Err error `json:"-"` // the error whose text is Error, for use while swdt runs
}

// Examined reports whether a collector searched for faults: if none did, the absence of
// findings means nothing.
func (r NodeRecord) Examined() bool {
	return slices.ContainsFunc(r.Collectors, func(c CollectorRecord) bool { return c.Examined })
}

// Count returns the number of collectors with this result.
func (r NodeRecord) Count(result string) (n int) {
	for _, c := range r.Collectors {
		if c.Result == result {
			n++
		}
	}
	return n
}

// CollectorRecord is the result of one collector.
type CollectorRecord struct {
	Examined bool         `json:"examined"` // reports whether the collector searched for faults
	Name     string       `json:"name"`
	About    string       `json:"about"`
	Result   string       `json:"result"`
	Error    string       `json:"error"`
	Seconds  float64      `json:"seconds"`
	Tables   []string     `json:"tables"`
	Files    []FileRecord `json:"files"`
}

// FileRecord describes one file of the bundle.
type FileRecord struct {
	Path  string `json:"path"` // in the bundle
	From  string `json:"from"` // a path on the node, a command or an event channel
	Bytes int64  `json:"bytes"`
	Cut   string `json:"cut"` // the part that is missing, in words; empty: none
	Log   bool   `json:"log"`
	Raw   bool   `json:"raw"` // reports whether the file is stored without redaction
	// LinesOnly marks a document that could not be parsed, since it is invalid, cut or too large.
	// Secrets that only the structure of the document shows may remain.
	LinesOnly bool `json:"linesOnly"`
}

// Finding is a finding.Finding with the field names of the bundle's format.
type Finding struct {
	Severity finding.Severity `json:"severity"`
	What     string           `json:"title"`
	Evidence string           `json:"evidence"`
	Remedy   string           `json:"remedy"`
}

// table returns the path in the bundle of a node's table; kind is the file's extension.
func (r NodeRecord) table(name, kind string) string {
	return r.Folder + "/tables/" + name + "." + kind
}

// Tables returns the names of a node's tables.
func (r NodeRecord) Tables() (names []string) {
	for _, c := range r.Collectors {
		names = append(names, c.Tables...)
	}
	return names
}
