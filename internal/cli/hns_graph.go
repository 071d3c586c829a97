package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/fleet"
)

// graphSVG is the format of the picture.
const graphSVG = "svg"

func (a *app) hnsGraphCommand() *cobra.Command {
	o := &hnsOptions{}
	cmd := forNodes(&cobra.Command{
		Use: "graph [flags]", Short: "Draw networks, endpoints, pods and load balancers",
		Long: `Draws the networks of one node with their endpoints, named by their pods, and
the load balancers that lead to them. Load balancers of one Service with the
same endpoints are drawn as one; those without endpoints are red, and endpoints
on other nodes have a broken line.

The SVG refers to nothing outside of itself and follows the light or dark mode
of its viewer.`,
		Example: examples(
			"hns graph > node.svg", "open it in a browser",
			"hns graph --ip 10.96.0.10 > dns.svg", "one Service with its endpoints",
		),
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runHNSGraph(cmd.Context(), o) },
	})
	o.addFlags(a, cmd)
	return cmd
}

func (a *app) runHNSGraph(ctx context.Context, o *hnsOptions) error {
	if err := o.complete(); err != nil {
		return err
	}
	if isTerminal(a.streams.Out) {
		return usagef("the picture is SVG, and stdout is a terminal: write it to a file, as in `swdt hns graph > node.svg`")
	}
	results, err := a.networks(ctx, o, true, func() (*session, error) { return a.oneNode("a picture is of one node") })
	if err != nil {
		return err
	}
	if err := fleet.Failures(results); err != nil {
		return err
	}
	return results[0].Value.Graph(results[0].Name()).SVG(a.streams.Out)
}
