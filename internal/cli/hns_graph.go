package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/fleet"
)

// How the picture is written.
const (
	graphSVG = "svg"
	graphDOT = "dot"
)

func (a *app) hnsGraphCommand() *cobra.Command {
	o := &hnsOptions{}
	cmd := forNodes(&cobra.Command{
		Use: "graph [flags]", Short: "A picture of networks, endpoints, pods and load balancers",
		Long: `Draws one node's networks with their endpoints, named by their pods, and the load
balancers that lead to them. Load balancers of one Service that lead to the same
endpoints are drawn as one; those that lead nowhere are red, and endpoints on other
nodes have a broken line.

The SVG refers to nothing outside of itself and is light or dark as its reader is;
dot is Graphviz' language.`,
		Example: examples(
			"hns graph > node.svg", "open it in a browser",
			"hns graph -o dot | dot -Tpdf > node.pdf", "",
			"hns graph --ip 10.96.0.10 > dns.svg", "one Service with its endpoints",
		),
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runHNSGraph(cmd.Context(), o) },
	})
	o.addFlags(cmd)
	return cmd
}

func (a *app) runHNSGraph(ctx context.Context, o *hnsOptions) error {
	if err := o.complete(); err != nil {
		return err
	}
	s, err := a.oneNode("a picture is of one node")
	if err != nil {
		return err
	}
	look, err := a.networkLook(ctx, s, o, true)
	if err != nil {
		return err
	}
	results := onNodes(ctx, s, look.at)
	if err := fleet.Failures(results); err != nil {
		return err
	}
	graph := results[0].Value.Graph(results[0].Name())
	if a.format() == graphDOT {
		return graph.DOT(a.streams.Out)
	}
	return graph.SVG(a.streams.Out)
}
