package transfer

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/swdt-dev/swdt/internal/delta"
)

// remembered is what costs are in the file that keeps them between runs: each push
// from the command line is a process of its own, and would only ever assume.
type remembered struct {
	Fast     cost    `json:"fast"`
	Small    cost    `json:"small"`
	Compress float64 `json:"compress"`
	Ratio    float64 `json:"ratio"`
}

// load takes in what an earlier run saw. A file that is missing or makes no sense
// is no file.
func (c *costs) load(path string) {
	var r remembered
	data, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(data, &r) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = map[delta.Variant]cost{}
	for v, seen := range map[delta.Variant]cost{delta.Fast: r.Fast, delta.Small: r.Small} {
		if seen.Rate > 0 && seen.Part >= 0 && seen.Part <= largestPart {
			c.seen[v] = seen
		}
	}
	if r.Compress > 0 && r.Ratio > 0 {
		c.compress, c.ratio = r.Compress, r.Ratio
	}
}

// save leaves it for the next run. That it fails costs the next one a guess.
func (c *costs) save(path string) {
	c.mu.Lock()
	r := remembered{Fast: c.seen[delta.Fast], Small: c.seen[delta.Small], Compress: c.compress, Ratio: c.ratio}
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
