package diag

import (
	"slices"
	"time"
)

// Format is the first field of a manifest. A bundle of another one is refused.
const Format = "swdt-diag/1"

// manifestName is where the manifest is in a bundle, and the first thing in it.
const manifestName = "manifest.json"

// Manifest is what is in a bundle.
type Manifest struct {
	Format   string       `json:"format"`
	SWDT     string       `json:"swdt"` // its version
	Created  time.Time    `json:"created"`
	Profile  string       `json:"profile"`
	Patterns int          `json:"patterns"` // of the person's own that were redacted; the patterns are not told
	Nodes    []NodeRecord `json:"nodes"`
}

// How a node, or a collector, ended.
const (
	Whole   = "whole"   // a node: nothing failed
	Partial = "partial" // a node: some collectors failed
	Done    = "done"    // a collector
	Absent  = "absent"  // a collector: the node has not what it asks for
	Failed  = "failed"  // either
	Late    = "late"    // a collector: its deadline passed
)

// NodeRecord is one node's part.
type NodeRecord struct {
	Name       string            `json:"name"`
	Folder     string            `json:"folder,omitempty"` // in the bundle
	Result     string            `json:"result"`
	Error      string            `json:"error"` // why there is nothing
	Began      time.Time         `json:"began"`
	Seconds    float64           `json:"seconds"`
	Windows    string            `json:"windows,omitempty"`
	Simulated  string            `json:"simulated,omitempty"`
	Collectors []CollectorRecord `json:"collectors"`
	Findings   []Finding         `json:"findings,omitempty"`

	Err error `json:"-"` // Error, while swdt runs
}

// Examined is whether some collector looked for what is wrong: where none did, that
// nothing was found says nothing.
func (r NodeRecord) Examined() bool {
	return slices.ContainsFunc(r.Collectors, func(c CollectorRecord) bool { return c.Examined })
}

// Count gives how many collectors ended so.
func (r NodeRecord) Count(result string) (n int) {
	for _, c := range r.Collectors {
		if c.Result == result {
			n++
		}
	}
	return n
}

// CollectorRecord is what came of one collector.
type CollectorRecord struct {
	Examined bool         `json:"examined,omitempty"` // it looked for what is wrong
	Name     string       `json:"name"`
	About    string       `json:"about"`
	Result   string       `json:"result"`
	Error    string       `json:"error,omitempty"`
	Seconds  float64      `json:"seconds"`
	Tables   []string     `json:"tables,omitempty"`
	Files    []FileRecord `json:"files,omitempty"`
}

// FileRecord is one file.
type FileRecord struct {
	Path  string `json:"path"`           // in the bundle
	From  string `json:"from,omitempty"` // a path on the node, or a command
	Bytes int64  `json:"bytes"`
	Cut   string `json:"cut,omitempty"` // what is not there of it
	Log   bool   `json:"log,omitempty"`
	Raw   bool   `json:"raw,omitempty"` // as it is on the node: nothing is redacted in it
}

// Finding is something that a person should look at.
type Finding struct {
	Severity string `json:"severity"`
	Title    string `json:"title"`
	Evidence string `json:"evidence,omitempty"`
	Remedy   string `json:"remedy,omitempty"`
}

// table is where a node's table is, of that kind.
func (r NodeRecord) table(name, kind string) string {
	return r.Folder + "/tables/" + name + "." + kind
}

// Tables are the names of a node's tables.
func (r NodeRecord) Tables() (names []string) {
	for _, c := range r.Collectors {
		names = append(names, c.Tables...)
	}
	return names
}
