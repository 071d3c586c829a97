// Package kindcluster makes, describes and deletes clusters of kind: Kubernetes in containers
// on your machine, with the control plane that Windows nodes join.
//
//   - kindcluster.go: the clusters of this user; record.go: which of them swdt made
//   - config.go: a cluster document as kind's configuration; check.go: what is in its way
//   - create.go, delete.go: the changes; status.go: a cluster as it is
//   - runtime.go: Docker, Podman or nerdctl
//   - progress.go, errors.go: kind's messages as progress, and its failures with their reasons
//
// kind's own library does the work. It cannot be interrupted, and a swdt that is killed
// leaves containers behind. So swdt records that it makes a cluster before it begins: the next
// create finds the record, removes the remains, and begins again. A cluster without a record
// belongs to another tool, and swdt changes nothing of it.
package kindcluster

import (
	"context"
	"slices"

	kind "sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/cluster/nodes"
)

// Kind is the part of kind's library that this package uses.
type Kind interface {
	Create(name string, options ...kind.CreateOption) error
	Delete(name, kubeconfig string) error
	List() ([]string, error)
	ListNodes(name string) ([]nodes.Node, error)
	KubeConfig(name string, internal bool) (string, error)
	// HasNetwork reports whether the network of kind's containers exists, or is the user's own.
	HasNetwork(ctx context.Context) (bool, error)
	RemoveNetwork(ctx context.Context) error
}

// Clusters are the clusters of kind that this user has.
type Clusters struct {
	kind    Kind
	records records
}

// New returns the clusters that kind knows. folder holds swdt's records; empty: the user's
// own, $XDG_DATA_HOME/swdt/clusters.
func New(kind Kind, folder string) (*Clusters, error) {
	records, err := openRecords(folder)
	if err != nil {
		return nil, err
	}
	return &Clusters{kind: kind, records: records}, nil
}

// exists reports whether kind has containers of a cluster, whole or not.
func (c *Clusters) exists(name string) (bool, error) {
	all, err := c.kind.List()
	if err != nil {
		return false, failed(err, "list the clusters of kind")
	}
	return slices.Contains(all, name), nil
}
