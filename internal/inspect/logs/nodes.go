package logs

import (
	"context"
	"errors"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Via is the way to the logs of a node.
type Via string

const (
	// Auto means SSH. If the node is unreachable by SSH, Auto means the API server, provided that
	// ClusterNamed is set and logs are not followed.
	Auto Via = "auto"
	SSH  Via = "ssh"
	API  Via = "api"
)

// Nodes has the nodes whose logs are merged, and the ways to reach them.
type Nodes struct {
	Documents []config.Document
	Via       Via
	// Connect connects to a node; hangUp closes the connection.
	Connect func(context.Context, config.Document, ui.Reporter) (n *node.Node, hangUp func(), err error)
	// Cluster returns the API server's client, without contacting the server.
	Cluster      func() (*cluster.Cluster, error)
	ClusterNamed bool // reports whether the user chose the cluster
	Reporter     func(config.Document) ui.Reporter
}

// Merge reads the logs of all nodes concurrently. The number of nodes is not limited, since
// a node that waited for its turn would delay the lines of the other nodes. Merge returns
// each node's result, and the error with which merging ended.
func (n Nodes) Merge(ctx context.Context, o Options, sink Sink) ([]fleet.Result[struct{}], error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	merger := NewMerger(o.Follow, sink)
	inputs := map[string]*Input{}
	for _, document := range n.Documents {
		inputs[document.Node.Metadata.Name] = merger.Begin()
	}
	reading := make(chan []fleet.Result[struct{}], 1)
	go func() {
		reading <- fleet.Run(ctx, n.Documents, len(n.Documents),
			func(ctx context.Context, document config.Document) (struct{}, error) {
				in := inputs[document.Node.Metadata.Name]
				err := n.read(ctx, document, o, merger, in)
				in.Close(ctx)
				return struct{}{}, err
			})
	}()
	err := merger.Run(ctx)
	if err != nil {
		cancel() // stdout is closed, or ctx has ended; the readers now end too
	}
	results := <-reading
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return results, err
}

// read reads one node's logs in the way that the user chose.
func (n Nodes) read(ctx context.Context, document config.Document, o Options, merger *Merger, in *Input) error {
	r := n.Reporter(document)
	defer ui.Done(r)
	if n.Via == API {
		return n.readByAPI(ctx, document, o, merger, in, r)
	}
	connected, hangUp, err := n.Connect(ctx, document, r)
	var unreachable *node.UnreachableError
	if errors.As(err, &unreachable) && n.Via == Auto && n.ClusterNamed && !o.Follow {
		r.Warn("SSH: %v; asking the API server instead", err)
		return n.readByAPI(ctx, document, o, merger, in, r)
	}
	if err != nil {
		return err
	}
	defer hangUp()
	ui.Done(r)
	return Show(ctx, connected, o, merger, in, r)
}

func (n Nodes) readByAPI(ctx context.Context, document config.Document, o Options, merger *Merger, in *Input,
	r ui.Reporter) error {
	c, err := n.Cluster()
	if err != nil {
		return err
	}
	return ShowByAPI(ctx, c, node.LikelyObjectName(document.Node), o, merger, in, r)
}
