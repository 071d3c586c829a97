package cli

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/portforward"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// rdpPort is the port of Remote Desktop.
const rdpPort = 3389

func (a *app) rdpCommand() *cobra.Command {
	return forNodes(&cobra.Command{
		Use:   "rdp [LOCAL]",
		Short: "Forward a port of this machine to Remote Desktop of a node",
		Long: `Forwards a port of 127.0.0.1 of this machine to the node's Remote Desktop, as
"swdt forward" does, and prints the command of a client, until Ctrl-C. LOCAL is the
port here; without it, swdt takes a free one. Remote Desktop is on if the node file
has spec.setup.enableRDP: true and "swdt setup" has run.`,
		Example:           examples("rdp", "", "rdp 13389 --to win-1", ""),
		Args:              arguments(cobra.MaximumNArgs(1)),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			local := strings.Join(args, "")
			if number, err := strconv.ParseUint(local, 10, 16); local != "" && (err != nil || number == 0) {
				return usagef("%q is no port: write the number of a port of this machine, such as 13389, or leave it out for a "+
					"free one", local)
			}
			err := a.runForward(cmd.Context(), []string{fmt.Sprintf("%s:%d", local, rdpPort)}, answersRDP, writeRDP)
			if busy, is := errors.AsType[*portforward.LocalPortError](err); is {
				return fmt.Errorf("%w; name another port of this machine, or none for a free one", busy.Err)
			}
			return err
		},
	})
}

// answersRDP returns an error if nothing listens at the node's port of Remote Desktop.
func answersRDP(ctx context.Context, n *node.Node) error {
	conn, err := n.DialPort(ctx, netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), rdpPort))
	if errors.Is(err, fault.ErrNotExist) {
		return fmt.Errorf("connect to Remote Desktop: it is off on the node; set enableRDP: true in spec.setup of the node file "+
			"and run %s", remedy.Command("setup"))
	}
	if err != nil {
		return fmt.Errorf("connect to Remote Desktop: %w", err)
	}
	return conn.Close()
}

// writeRDP writes the address, and the command of the client that this machine's system usually has: Windows' own, or
// FreeRDP.
func writeRDP(p *ui.Page, r portforward.Report) error {
	if err := r.WriteText(p); err != nil {
		return err
	}
	client := "xfreerdp /v:%s"
	if runtime.GOOS == "windows" {
		client = "mstsc /v:%s"
	}
	_, err := fmt.Fprintf(p, "  "+client+"\n", r.Nodes[0].Ports[0].Local)
	return err
}
