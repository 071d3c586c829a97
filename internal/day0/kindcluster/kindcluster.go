// Package kindcluster makes, describes and deletes clusters of kind: Kubernetes in containers
// on your machine, with the control plane that Windows nodes join.
//
//   - kindcluster.go: the clusters of this user; record.go: records of the clusters that swdt made
//   - config.go: a cluster document as kind's configuration; check.go: checks of your machine
//   - nodeimage.go: checks of kind's node image, before and after a failure; answers.go: mirrors that
//     do not answer
//   - create.go, delete.go: the changes; status.go: the state of a cluster
//   - difference.go: a cluster against a document that has changed since
//   - provide.go: the images and the registry mirrors of a cluster's Linux nodes; lacking.go: those that
//     the nodes lack
//   - runtime.go: Docker, Podman or nerdctl
//   - progress.go, errors.go: kind's messages as progress, and its failures with their reasons
//
// kind's own library does the work. The library cannot be interrupted, and a swdt that is killed
// leaves containers behind. So swdt writes a record before it begins to make a cluster: the next
// Create finds the record, removes the remains, and begins again. A cluster without a record
// belongs to another tool, and swdt does not change it.
package kindcluster

import (
	"context"
	"io"
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
	// HasNetwork reports whether the network of kind's containers exists, or whether the user has
	// chosen another network for them. In both cases, kind makes no network.
	HasNetwork(ctx context.Context) (bool, error)
	RemoveNetwork(ctx context.Context) error
	// Removing reports whether the container runtime is removing a container of a cluster.
	Removing(ctx context.Context, name string) (bool, error)
	// ImageID returns the ID of an image of the container runtime, and SaveImage writes an archive
	// with the image. Both fail if the runtime has no such image.
	ImageID(ctx context.Context, image string) (string, error)
	SaveImage(ctx context.Context, image string, to io.Writer) error
	// ImageArchitecture returns the processor architecture of an image in Go's spelling, such as amd64.
	// It fails if the runtime has no such image.
	ImageArchitecture(ctx context.Context, image string) (string, error)
	// RuntimeInfo returns facts about the machine on which the container runtime works.
	RuntimeInfo(ctx context.Context) (RuntimeInfo, error)
}

// RuntimeInfo has facts about the machine on which the container runtime works.
type RuntimeInfo struct {
	Architecture string // in Go's spelling, such as amd64; "" if it is not known
	// OldCgroups reports whether the machine has version 1 of control groups.
	OldCgroups bool
}

// Clusters are the clusters of kind that this user has.
type Clusters struct {
	kind    Kind
	records records
}

// New returns the clusters that kind knows. folder is the folder of swdt's records; empty:
// swdt/clusters in the user's data folder ($XDG_DATA_HOME).
func New(kind Kind, folder string) (*Clusters, error) {
	records, err := openRecords(folder)
	if err != nil {
		return nil, err
	}
	return &Clusters{kind: kind, records: records}, nil
}

// exists reports whether kind has containers of a cluster, even if the cluster is incomplete.
func (c *Clusters) exists(name string) (bool, error) {
	all, err := c.kind.List()
	if err != nil {
		return false, failed(err, "list the clusters of kind")
	}
	return slices.Contains(all, name), nil
}
