package config

import (
	"strings"

	"github.com/swdt-dev/swdt/api/v1alpha1"
)

// OfNames returns documents for nodes by the names of their Nodes: those of known, and new ones for the others.
// complete sets how they are reached. The error is an *Error.
func OfNames(names []string, known map[string]Document, complete func([]Document) []Document) ([]Document, error) {
	var documents []Document
	for _, name := range names {
		if d, ok := known[name]; ok {
			documents = append(documents, d)
			continue
		}
		d := Document{File: Stdin}
		d.Node.APIVersion, d.Node.Kind = v1alpha1.APIVersion, v1alpha1.Kind
		d.Node.Metadata.Name = name
		v1alpha1.SetDefaults(&d.Node)
		documents = append(documents, d)
	}
	documents = complete(documents)
	var problems []Problem
	for _, d := range documents {
		for _, p := range v1alpha1.Validate(&d.Node) {
			field := strings.TrimPrefix(p.Field, "spec.credentials.kubernetes.")
			if field == "node" || p.Field == "metadata.name" {
				problems = append(problems, Problem{Field: "--node", What: p.What, Remedy: p.Remedy})
				break
			}
			problems = append(problems, Problem{Field: "--via " + field, What: p.What, Remedy: p.Remedy})
		}
	}
	return documents, asError(problems)
}
