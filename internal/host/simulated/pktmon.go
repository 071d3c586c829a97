package simulated

import (
	"context"

	pktmon "github.com/swdt-dev/swdt/internal/pktmon/imitation"
	vfpctrl "github.com/swdt-dev/swdt/internal/vfp/imitation"
)

// pktmonMain is pktmon.exe, the packet monitor.
func pktmonMain(ctx context.Context, p *Process) int {
	return pktmon.Main(ctx, p.Host, p.Args, p.Stdout)
}

// vfpctrlMain is vfpctrl.exe, the tool of the virtual filtering platform.
func vfpctrlMain(ctx context.Context, p *Process) int {
	return vfpctrl.Main(ctx, p.Host, p.Args, p.Stdout)
}
