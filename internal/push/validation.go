package push

import (
	"fmt"
	"io"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
)

// Validation is the result of `swdt config validate`.
type Validation struct {
	Nodes    []ValidNode      `json:"nodes"`    // the nodes of the files without a problem
	Problems []config.Problem `json:"problems"` // printed on stderr too
	Warnings []string         `json:"warnings"`
}

// ValidNode is a node file without a problem.
type ValidNode struct {
	fleet.Outcome        // the node's result: valid
	File          string `json:"file"`
	Line          int    `json:"line"`
}

// Validate returns the result for node files without a problem. It warns about local
// binaries that do not exist and that no build creates.
func Validate(documents []config.Document) (v Validation) {
	for _, d := range documents {
		valid := fleet.NewOutcome(d.Node.Metadata.Name, "valid", nil)
		v.Nodes = append(v.Nodes, ValidNode{Outcome: valid, File: d.File, Line: d.Line})
		v.Warnings = append(append(v.Warnings, d.Warnings...), d.OtherMeanings...)
		for _, problem := range LookAtSources(d, nil) {
			if !problem.Builds {
				v.Warnings = append(v.Warnings, problem.String())
			}
		}
	}
	return v
}

// WriteText writes a line for each valid node.
func (v Validation) WriteText(w io.Writer) error {
	for _, n := range v.Nodes {
		if _, err := fmt.Fprintf(w, "%s:%d: node %s is valid\n", n.File, n.Line, n.Name); err != nil {
			return err
		}
	}
	return nil
}
