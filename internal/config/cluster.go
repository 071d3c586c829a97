package config

import (
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"

	"github.com/swdt-dev/swdt/api/v1alpha1"
)

// ClusterDocument is one validated cluster of a node file, with its defaults.
type ClusterDocument struct {
	Cluster v1alpha1.Cluster
	// File is the path that the user gave or that swdt found; "-" means stdin.
	File string
	// Line is the first line of the document.
	Line int

	lines map[string]int // by field path
}

// Problem returns a problem with a field of this cluster, with the field's file and line. It
// is for problems that are found after the file was read.
func (d ClusterDocument) Problem(field, what, remedy string) Problem {
	return Problem{File: d.File, Line: lineOf(field, d.lines), Field: field, What: what, Remedy: remedy}
}

// LoadCluster reads the only cluster of the sources, which have the forms that Load accepts. It
// also checks the nodes in the sources. The error is an *Error.
func LoadCluster(sources []string, stdin io.Reader) (ClusterDocument, error) {
	cluster, _, err := LoadAll(sources, stdin)
	return cluster, err
}

// LoadAll reads the only cluster of the sources, which have the forms that Load accepts, and all
// of their nodes. The sources may contain no node. The error is an *Error.
func LoadAll(sources []string, stdin io.Reader) (ClusterDocument, []Document, error) {
	all, problems := loadAll(sources, stdin)
	if len(problems) == 0 {
		problems = onlyOne(all.clusters, sources)
	}
	if err := asError(problems); err != nil {
		return ClusterDocument{}, nil, err
	}
	return all.clusters[0], all.nodes, nil
}

// LoadDocuments reads all documents of the sources, which have the forms that Load accepts: nodes,
// clusters, or both. The error is an *Error.
func LoadDocuments(sources []string, stdin io.Reader) ([]Document, []ClusterDocument, error) {
	all, problems := loadAll(sources, stdin)
	if len(problems) == 0 && len(all.clusters)+len(all.nodes) == 0 {
		problems = []Problem{noNode(sources)}
	}
	if err := asError(problems); err != nil {
		return nil, nil, err
	}
	return all.nodes, all.clusters, nil
}

// LoadAny is like LoadAll, but the sources may have no cluster; the returned cluster is then nil.
// Sources that have neither a cluster nor a node are an error.
func LoadAny(sources []string, stdin io.Reader) (*ClusterDocument, []Document, error) {
	nodes, clusters, err := LoadDocuments(sources, stdin)
	if err != nil || len(clusters) == 0 {
		return nil, nodes, err
	}
	if err := asError(onlyOne(clusters, sources)); err != nil {
		return nil, nil, err
	}
	return &clusters[0], nodes, nil
}

// onlyOne returns a problem if the sources have no cluster or several clusters, and nil if they
// have exactly one.
func onlyOne(clusters []ClusterDocument, sources []string) []Problem {
	switch {
	case len(clusters) == 1:
		return nil
	case len(clusters) > 1:
		second := clusters[1]
		return []Problem{{
			File: second.File, Line: second.Line, Field: "kind",
			What:   fmt.Sprintf("is a second cluster: the first is at %s:%d", clusters[0].File, clusters[0].Line),
			Remedy: "put each cluster into a separate file, and name one file with --config",
		}}
	}
	problem := noNode(sources)
	problem.What = "there is no document of kind Cluster"
	problem.Remedy = "`swdt cluster init` writes one to start from"
	return []Problem{problem}
}

func decodeCluster(d *decoder, root *yaml.Node) (ClusterDocument, []Problem) {
	document := ClusterDocument{File: d.file, Line: d.chunk.lineNumber(root.Line)}
	d.decode(root, &document.Cluster)
	document.lines = d.lines
	v1alpha1.SetClusterDefaults(&document.Cluster)
	var problems []Problem
	for _, p := range v1alpha1.ValidateCluster(&document.Cluster) {
		problems = append(problems, document.Problem(p.Field, p.What, p.Remedy))
	}
	return document, merge(d.problems, problems)
}
