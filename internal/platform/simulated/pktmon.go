package simulated

import (
	"context"

	pktmon "github.com/swdt-dev/swdt/internal/platform/imitation/pktmonexe"
	vfpctrl "github.com/swdt-dev/swdt/internal/platform/imitation/vfpctrlexe"
)

// pktmonMain imitates pktmon.exe, the packet monitor.
func pktmonMain(ctx context.Context, p *Process) int {
	return pktmon.Main(ctx, p.Platform, p.Args, p.Stdout)
}

// vfpctrlMain imitates vfpctrl.exe, the tool of the virtual filtering platform.
func vfpctrlMain(ctx context.Context, p *Process) int {
	return vfpctrl.Main(ctx, p.Platform, p.Args, p.Stdout)
}
