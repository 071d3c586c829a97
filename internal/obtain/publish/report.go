package publish

import (
	"fmt"

	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/binaryset"
	"github.com/swdt-dev/swdt/internal/wire/distribution"
)

// Result is the outcome of a publish.
type Result string

const (
	Published Result = "published"
	Unchanged Result = "unchanged" // the tag had the set already
	Planned   Result = "planned"   // --dry-run: nothing was pushed
)

// Report describes a set that was published.
type Report struct {
	// Reference is the tag.
	Reference string `json:"reference"`
	// Digest of the manifest. REPOSITORY@DIGEST always names this set.
	Digest string `json:"digest"`
	Result Result `json:"result"`
	// SentBytes is how much was sent to the registry.
	SentBytes  int64             `json:"sentBytes"`
	Components []ComponentReport `json:"components"`
}

// ComponentReport is a binary of the set.
type ComponentReport struct {
	Name    string `json:"name"`
	File    string `json:"file"`
	Version string `json:"version"`
	SHA256  string `json:"sha256"`
	// SizeBytes is the size of the binary.
	SizeBytes int64 `json:"sizeBytes"`
	// Layer is the compressed binary, which a node without an earlier build fetches.
	Layer LayerReport `json:"layer"`
	// Patches are the layers that a node with an earlier build fetches instead.
	Patches []PatchReport `json:"patches"`
}

// LayerReport is a layer of the set.
type LayerReport struct {
	Digest    string `json:"digest"`
	SizeBytes int64  `json:"sizeBytes"`
	// SentBytes is 0 if the registry had the layer.
	SentBytes int64 `json:"sentBytes"`
}

// PatchReport is a patch of the set.
type PatchReport struct {
	// FromSHA256 is the build that the patch begins from.
	FromSHA256 string      `json:"fromSha256"`
	Layer      LayerReport `json:"layer"`
}

func (p *plan) report() Report {
	r := Report{Reference: p.options.Target.Name(), Digest: distribution.DigestOf(p.manifest),
		Components: []ComponentReport{}}
	for _, b := range p.set.Binaries {
		r.Components = append(r.Components, reportOf(b))
	}
	return r
}

func reportOf(b binaryset.Binary) ComponentReport {
	c := ComponentReport{
		Name: b.Component, File: b.Title, Version: b.Version, SHA256: b.SHA256, SizeBytes: b.Size,
		Layer: LayerReport{Digest: b.Layer.Digest, SizeBytes: b.Layer.Size}, Patches: []PatchReport{},
	}
	for _, p := range b.Patches {
		c.Patches = append(c.Patches, PatchReport{FromSHA256: p.Base,
			Layer: LayerReport{Digest: p.Layer.Digest, SizeBytes: p.Layer.Size}})
	}
	return c
}

// addSent fills in how many bytes were sent, by digest.
func (r *Report) addSent(sent map[string]int64, manifest int64) {
	r.SentBytes = manifest
	for _, n := range sent {
		r.SentBytes += n
	}
	for i := range r.Components {
		c := &r.Components[i]
		c.Layer.SentBytes = sent[c.Layer.Digest]
		for j := range c.Patches {
			c.Patches[j].Layer.SentBytes = sent[c.Patches[j].Layer.Digest]
		}
	}
}

// WriteText prints the report for people.
func (r Report) WriteText(w *ui.Page) error {
	var rows [][]string
	for _, c := range r.Components {
		row := []string{c.Name, ui.Version(c.Version), ui.Hash(c.SHA256), ui.Size(c.SizeBytes), ui.Size(c.Layer.SizeBytes), "-"}
		if len(c.Patches) == 0 {
			rows = append(rows, row)
		}
		for i, p := range c.Patches {
			if i > 0 {
				row = make([]string, len(row))
			}
			row[len(row)-1] = fmt.Sprintf("%s from %s", ui.Size(p.Layer.SizeBytes), ui.Hash(p.FromSHA256))
			rows = append(rows, row)
		}
	}
	err := ui.Table(w, []string{"COMPONENT", "VERSION", "SHA256", "SIZE", "COMPRESSED", "PATCH"}, rows)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s: %s@%s, sent %s\n", r.Result, r.Reference, r.Digest, ui.Size(r.SentBytes))
	return err
}
