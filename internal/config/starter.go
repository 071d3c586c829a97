package config

import (
	_ "embed"
	"slices"

	"github.com/swdt-dev/swdt/api/v1alpha1"
)

//go:embed starter.yaml
var starter []byte

// Starter is a commented node file to begin with. It loads as it is.
func Starter() []byte { return slices.Clone(starter) }

// Schema is the JSON Schema of the node file, for editors.
func Schema() []byte { return v1alpha1.Schema() }
