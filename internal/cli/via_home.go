package cli

import (
	"slices"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
)

// choosesInCluster reports whether --node and --selector mean the names and labels of the cluster's Nodes. They do
// with --via, unless the user has named a node file. A file that swdt found only describes nodes if the user chooses by a
// name that it lacks; that of the home folder also if the user chooses by labels. One of the working folder that is not
// trusted is ignored for names.
func (a *app) choosesInCluster() bool {
	if a.global.via.text == "" || a.namesNodeFiles() {
		return false
	}
	source, err := config.DefaultSource()
	if source == "" || a.global.selector != "" {
		return !config.IsHere(source)
	}
	if err != nil {
		return false // the file that was found may not be used, which an error says then
	}
	if len(a.global.nodes) == 0 {
		return false
	}
	if config.IsHere(source) && !a.trusts(source) {
		return true
	}
	documents, err := config.Load([]string{source}, nil)
	return err == nil && slices.ContainsFunc(a.global.nodes, func(name string) bool {
		return !slices.ContainsFunc(documents, func(d config.Document) bool { return d.Node.Metadata.Name == name })
	})
}

// describedNodes returns the nodes of the home folder's node file by the names of their Nodes. They are nodes of
// the cluster of --via, whatever cluster the file names.
func (a *app) describedNodes() (map[string]config.Document, error) {
	source, err := config.DefaultSource()
	if err != nil || a.ignores(source, nil) {
		return nil, nil
	}
	documents, err := config.Load([]string{source}, nil)
	if err != nil {
		return nil, err
	}
	described := map[string]config.Document{}
	for _, d := range documents {
		object := node.LikelyObjectName(d.Node)
		if k := d.Node.Spec.Credentials.Kubernetes; k != nil {
			way := *k
			way.Kubeconfig, way.Context = "", ""
			d.Node.Spec.Credentials.Kubernetes = &way
			if k.Node != "" {
				object = k.Node
			}
		}
		described[object] = d
	}
	return described, nil
}

// namesInCluster returns the names of --node as names of Nodes. A name may also be that of a described node.
func (a *app) namesInCluster(described map[string]config.Document) []string {
	names := slices.Clone(a.global.nodes)
	for object, d := range described {
		if i := slices.Index(names, d.Node.Metadata.Name); i >= 0 {
			names[i] = object
		}
	}
	slices.Sort(names)
	return slices.Compact(names) // a completion parses the flags twice
}
