package v1alpha1

import (
	_ "embed"
	"slices"
)

//go:generate go run ../../internal/config/schemagen .

//go:embed schema.json
var schema []byte

// Schema returns the JSON Schema of the documents of a node file, which are nodes and
// clusters, generated from the types of this package and their comments. The schema of a
// document is the definition that its kind names. The schema rejects the files that package
// config rejects, as far as a JSON Schema can.
func Schema() []byte { return slices.Clone(schema) }
