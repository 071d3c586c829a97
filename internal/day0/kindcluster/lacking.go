package kindcluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
)

const (
	mirrorsField = "spec.controlPlane.kind.registryMirrors"
	imagesField  = "spec.controlPlane.kind.images"
)

// lacking returns a problem for each image and each registry mirror of a document that a Linux node of
// its cluster lacks, and for each earlier mirror that the document does not name any more. It changes
// nothing. It asks the container runtime only for the things that the document or the record names.
func (c *Clusters) lacking(ctx context.Context, doc config.ClusterDocument, one record) ([]config.Problem, error) {
	wanted := *doc.Cluster.Spec.ControlPlane.Kind
	if len(wanted.Images)+len(wanted.RegistryMirrors)+len(one.Mirrors) == 0 {
		return nil, nil
	}
	containers, err := c.kind.ListNodes(one.Name)
	if err != nil {
		return nil, failed(err, "list the containers of cluster %s", one.Name)
	}
	slices.SortFunc(containers, func(a, b nodes.Node) int { return strings.Compare(a.String(), b.String()) })
	var all []config.Problem
	for i, mirror := range wanted.RegistryMirrors {
		text, err := hosts(mirror)
		if err != nil {
			return nil, err
		}
		if on := without(containers, func(n nodes.Node) bool { return hasMirrors(ctx, n, mirror.Registry, text) }); on != "" {
			all = append(all, doc.Problem(fmt.Sprintf("%s[%d]", mirrorsField, i),
				"containerd on "+on+" does not have these mirrors of "+mirror.Registry, "`swdt cluster create` writes them"))
		}
	}
	for _, earlier := range one.Mirrors {
		named := func(m v1alpha1.RegistryMirror) bool { return m.Registry == earlier }
		if !slices.ContainsFunc(wanted.RegistryMirrors, named) {
			all = append(all, doc.Problem(mirrorsField, "has no mirrors of "+earlier+", but the cluster has some of an "+
				"earlier document", "`swdt cluster create` removes them"))
		}
	}
	for i, image := range wanted.Images {
		what, remedy := c.lackingImage(ctx, one, containers, image)
		if what != "" {
			all = append(all, doc.Problem(fmt.Sprintf("%s[%d]", imagesField, i), what, remedy))
		}
	}
	return all, nil
}

// lackingImage returns the problem of an image that a node lacks, or that the node has from an earlier
// build; "" if there is none.
func (c *Clusters) lackingImage(ctx context.Context, one record, containers []nodes.Node, image string) (what,
	remedy string) {
	source, unknown := c.kind.ImageID(ctx, image)
	ids := map[string]string{} // the image's ID by node; "" if the node lacks the image
	var mu sync.Mutex
	absent := without(containers, func(n nodes.Node) bool {
		id, err := nodeutils.ImageID(n, image) // fails if the node has no such image
		mu.Lock()
		defer mu.Unlock()
		ids[n.String()] = id
		return err == nil
	})
	switch {
	case absent != "" && unknown != nil:
		return image + " is neither on " + absent + " nor in the container runtime",
			"build or pull it, or remove it from the list"
	case absent != "":
		return image + " is not on " + absent, "`swdt cluster create` loads it"
	case unknown != nil: // the nodes keep their image, whatever the container runtime has
		return "", ""
	}
	other := without(containers, func(n nodes.Node) bool {
		there := ids[n.String()]
		return there == source || one.Images[n.String()+" "+image] == loaded{source, there}
	})
	if other == "" {
		return "", ""
	}
	return image + " on " + other + " is another build than the container runtime's",
		"`swdt cluster create` loads it again"
}

// without returns the names of the nodes for which has returns false, separated by commas. It calls has
// for all nodes at the same time.
func without(containers []nodes.Node, has func(nodes.Node) bool) string {
	there := make([]bool, len(containers))
	var asked sync.WaitGroup
	for i, n := range containers {
		asked.Go(func() { there[i] = has(n) })
	}
	asked.Wait()
	var names []string
	for i, n := range containers {
		if !there[i] {
			names = append(names, n.String())
		}
	}
	return strings.Join(names, ", ")
}
