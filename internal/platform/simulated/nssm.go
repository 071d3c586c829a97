package simulated

import (
	"context"
	"fmt"

	"github.com/swdt-dev/swdt/internal/format/commandline"
)

// nssmMain imitates nssm as a service: it runs the program of the service's key Parameters, which
// knows nothing of the SCM, and ends with it. The real nssm restarts it. https://nssm.cc/usage
func nssmMain(ctx context.Context, p *Process) int {
	if p.Service == nil {
		fmt.Fprintln(p.Stdout, "NSSM: The non-sucking service manager")
		return 1
	}
	key := `HKLM\SYSTEM\CurrentControlSet\Services\` + p.Service.Name + `\Parameters`
	program, err := p.Platform.Registry.Get(key, "Application")
	if err != nil {
		return 1
	}
	parameters, _ := p.Platform.Registry.Get(key, "AppParameters") // a program may have none
	return p.RunService(ctx, func(ctx context.Context) int {
		child, err := p.p.m.execute(ctx, execution{
			path: program.String, args: commandline.Split("x " + parameters.String)[1:], parent: p.p,
			stdout: p.Stdout, stderr: p.Stderr,
		})
		if err != nil {
			return 1
		}
		select {
		case <-child.ctx.Done():
			return 1
		case <-ctx.Done():
			child.kill(exitKilled)
			return 0
		}
	})
}
