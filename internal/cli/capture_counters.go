package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/inspect/capture"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/criclient"
	"github.com/swdt-dev/swdt/internal/ui"
)

func (a *app) captureCountersCommand() *cobra.Command {
	return forNodes(&cobra.Command{
		Use: "counters [flags]", Short: "Show the counters of the packet monitor and the reasons of drops",
		Long: `Shows the counters of the packet monitor: for each component of the network
stack, the packets in, out and dropped, with the last reason. pktmon counts
while a capture runs. The command starts and ends nothing.

In JSON and YAML, "answer" of each node is the output of pktmon itself.`,
		Example: examples("capture counters", "", "capture counters -o json", "for scripts"),
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			asJSON := !a.inText()
			results, err := a.askNodes(cmd.Context(), func(ctx context.Context, n *node.Node, _ config.Document,
				_ ui.Reporter) (answer criclient.Answer, err error) {
				text, err := capture.Counters(ctx, n.Processes, asJSON)
				if err != nil {
					return answer, err
				}
				if asJSON {
					if answer.JSON = json.RawMessage(strings.TrimPrefix(text, "\ufeff")); !json.Valid(answer.JSON) {
						return answer, fmt.Errorf("pktmon's counters are not JSON: %.200s", text)
					}
				}
				answer.Text = func(w io.Writer) error { return capture.WriteText(w, text) }
				return answer, nil
			})
			if err != nil {
				return err
			}
			return a.printAnswers(results)
		},
	})
}

// askNodes runs ask on every node.
func (a *app) askNodes(ctx context.Context, ask func(context.Context, *node.Node, config.Document,
	ui.Reporter) (criclient.Answer, error)) ([]fleet.Result[criclient.Answer], error) {
	s, err := a.begin()
	if err != nil {
		return nil, err
	}
	s.quiet = true
	return onNodes(ctx, s, ask), nil
}
