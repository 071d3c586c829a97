package push

import (
	"errors"
	"fmt"
	"io"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
)

// Validation is the result of `swdt config validate`.
type Validation struct {
	Nodes    []ValidDocument  `json:"nodes"`    // the nodes of the files without a problem
	Clusters []ValidDocument  `json:"clusters"` // the clusters of the files without a problem
	Problems []config.Problem `json:"problems"` // printed on stderr too
	Warnings []string         `json:"warnings"`
}

// ValidDocument is a document without a problem, of a node or of a cluster.
type ValidDocument struct {
	fleet.Outcome        // the result of the node or cluster: always valid
	File          string `json:"file"`
	Line          int    `json:"line"`
}

// Validate returns the result for documents without a problem. It warns about local
// binaries that do not exist and that no build creates.
func Validate(documents []config.Document, clusters []config.ClusterDocument) (v Validation) {
	for _, c := range clusters {
		v.Clusters = append(v.Clusters, validDocument(c.Cluster.Metadata.Name, c.File, c.Line))
	}
	for _, d := range documents {
		v.Nodes = append(v.Nodes, validDocument(d.Node.Metadata.Name, d.File, d.Line))
		v.Warnings = append(append(v.Warnings, d.Warnings...), d.OtherMeanings...)
		for _, problem := range LookAtSources(d, nil) {
			if !problem.Builds {
				v.Warnings = append(v.Warnings, problem.String())
			}
		}
	}
	return v
}

func validDocument(name, file string, line int) ValidDocument {
	return ValidDocument{Outcome: fleet.NewOutcome(name, "valid", nil), File: file, Line: line}
}

// WriteText writes a line for each valid document.
func (v Validation) WriteText(w io.Writer) error {
	return errors.Join(writeValid(w, "cluster", v.Clusters), writeValid(w, "node", v.Nodes))
}

func writeValid(w io.Writer, kind string, documents []ValidDocument) error {
	for _, d := range documents {
		if _, err := fmt.Fprintf(w, "%s:%d: %s %s is valid\n", d.File, d.Line, kind, d.Name); err != nil {
			return err
		}
	}
	return nil
}
