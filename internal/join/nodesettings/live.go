package nodesettings

import (
	"context"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
)

// live is a node that is asked.
type live struct{ node *node.Node }

// Components implements Source.
func (n live) Components(ctx context.Context) (*agentv1.InspectReply, error) {
	return n.node.Swap.Inspect(ctx, &agentv1.InspectRequest{Components: []*agentv1.InspectComponent{
		component(kubelet, kubeletExe), component(kubeProxy, kubeProxyExe), component(containerd, containerdExe)}})
}

func component(name, path string) *agentv1.InspectComponent {
	return &agentv1.InspectComponent{Name: name, Service: name, Destination: path, AskVersion: true}
}

// File implements Source.
func (n live) File(ctx context.Context, path string) ([]byte, error) {
	return smallfile.Read(ctx, n.node, path)
}

// Folder implements Source.
func (n live) Folder(ctx context.Context, path string) (files []string, err error) {
	list, err := n.node.Files.List(ctx, &agentv1.ListFilesRequest{Path: path})
	for _, entry := range list.GetEntries() {
		files = append(files, entry.GetPath())
	}
	return files, err
}

// Values implements Source.
func (n live) Values(ctx context.Context, key string) ([]*agentv1.RegistryValue, error) {
	reply, err := n.node.Registry.List(ctx, &agentv1.RegistryListRequest{Key: key})
	return reply.GetValues(), err
}
