package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/capture"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/criclient"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

func (a *app) captureCountersCommand() *cobra.Command {
	return forNodes(&cobra.Command{
		Use: "counters [flags]", Short: "What the packet monitor has counted, and why packets were dropped",
		Long: `Shows the packet monitor's counters: at each component of the network stack, how
many packets went in and out and how many were dropped, with the last reason. They
count while somebody captures; nothing is begun or ended.

In JSON and YAML, "answer" of each node is what pktmon says itself.`,
		Example: examples("capture counters", "", "capture counters -o json", "for scripts"),
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			asJSON := !a.inText()
			results, err := a.askNodes(cmd.Context(), func(ctx context.Context, n *node.Node, _ config.Document, _ ui.Reporter) (answer criclient.Answer, err error) {
				text, err := capture.Counters(ctx, n.Processes, asJSON)
				if err != nil {
					return answer, err
				}
				if asJSON {
					if answer.JSON = json.RawMessage(strings.TrimPrefix(text, "\ufeff")); !json.Valid(answer.JSON) {
						return answer, fmt.Errorf("pktmon's counters are not JSON: %.200s", text)
					}
				}
				answer.Text = func(w io.Writer) error { return writeText(w, text) }
				return answer, nil
			})
			if err != nil {
				return err
			}
			return a.printAnswers(results)
		},
	})
}

func writeText(w io.Writer, text string) error {
	_, err := io.WriteString(w, strings.ReplaceAll(text, "\r\n", "\n"))
	return err
}

// askNodes asks every node.
func (a *app) askNodes(ctx context.Context, ask func(context.Context, *node.Node, config.Document, ui.Reporter) (criclient.Answer, error)) ([]fleet.Result[criclient.Answer], error) {
	s, err := a.begin()
	if err != nil {
		return nil, err
	}
	s.quiet = true
	return onNodes(ctx, s, ask), nil
}
