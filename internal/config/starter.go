package config

import (
	_ "embed"
	"slices"

	"github.com/swdt-dev/swdt/api/v1alpha1"
)

//go:embed starter.yaml
var starter []byte

//go:embed starter-full.yaml
var fullStarter []byte

//go:embed cluster-starter.yaml
var clusterStarter []byte

// ClusterStarter returns a cluster document with comments, for new users. It is valid
// without changes.
func ClusterStarter() []byte { return slices.Clone(clusterStarter) }

// Starter returns a short node file with comments, for new users. It is valid without changes.
func Starter() []byte { return slices.Clone(starter) }

// FullStarter returns a node file with examples of most fields, most of them in comments;
// docs/reference/node-file.md has all. It is valid without changes.
func FullStarter() []byte { return slices.Clone(fullStarter) }

// Schema returns the JSON Schema of a node file's documents, nodes and clusters, for editors.
func Schema() []byte { return v1alpha1.Schema() }
