package v1alpha1

import (
	_ "embed"
	"slices"
)

//go:generate go run ../../internal/config/schemagen .

//go:embed schema.json
var schema []byte

// Schema returns the JSON Schema of the node file, generated from these types
// and their comments. It rejects what the loader rejects, as far as a schema
// can.
func Schema() []byte { return slices.Clone(schema) }
