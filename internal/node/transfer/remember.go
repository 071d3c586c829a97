package transfer

import (
	"encoding/json"
	"os"

	"github.com/swdt-dev/swdt/internal/localfile"
)

// remembered is the format of the file that keeps costs between runs. Without the file, each push
// from the command line would start with assumptions, since each is a new process.
type remembered struct {
	Rates rates       `json:"rates"`
	Parts parts       `json:"parts"`
	Files []knownFile `json:"files,omitempty"` // least recently used first
}

type knownFile struct {
	Name   string `json:"name"`
	Stands string `json:"stands,omitempty"`
	parts
}

// load replaces the costs by the measurements of an earlier run. It ignores a missing or invalid
// file, and invalid numbers.
func (c *costs) load(path string) {
	var r remembered
	data, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(data, &r) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rate := range []*float64{
		&r.Rates.Fast, &r.Rates.Small, &r.Rates.Apply, &r.Rates.Plain, &r.Rates.Compress, &r.Rates.Ratio,
	} {
		*rate = max(*rate, 0)
	}
	c.rates, c.parts = r.Rates, r.Parts.sensible()
	for _, file := range r.Files {
		c.touch(file.Name)
		c.files[file.Name] = program{file.parts.sensible(), file.Stands}
	}
}

func (p parts) sensible() parts {
	return parts{Fast: min(max(p.Fast, 0), largestPart), Small: min(max(p.Small, 0), largestPart)}
}

// save stores the costs for the next run. If it fails, the next run uses assumptions.
func (c *costs) save(path string) {
	c.mu.Lock()
	r := remembered{Rates: c.rates, Parts: c.parts}
	for _, name := range c.order {
		known := c.files[name]
		r.Files = append(r.Files, knownFile{name, known.stands, known.parts})
	}
	c.mu.Unlock()
	data, err := json.Marshal(r)
	if err != nil {
		return
	}
	_ = localfile.Replace(path, data)
}
