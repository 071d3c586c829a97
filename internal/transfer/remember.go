package transfer

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// remembered is what costs are in the file that keeps them between runs: each push
// from the command line is a process of its own, and would only ever assume.
type remembered struct {
	Rates rates       `json:"rates"`
	Parts parts       `json:"parts"`
	Files []knownFile `json:"files,omitempty"` // the one used longest ago first
}

type knownFile struct {
	Name   string `json:"name"`
	Stands string `json:"stands,omitempty"`
	parts
}

// load takes in what an earlier run saw. A file that is missing or makes no sense
// is no file, and neither is a number.
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

// save leaves it for the next run. That it fails costs the next one a guess.
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
	file, err := os.CreateTemp(filepath.Dir(path), "costs-*.new")
	if err != nil {
		return
	}
	_, err = file.Write(data)
	if closeErr := file.Close(); err != nil || closeErr != nil || os.Rename(file.Name(), path) != nil {
		_ = os.Remove(file.Name())
	}
}
