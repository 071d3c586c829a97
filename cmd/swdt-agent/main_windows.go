// swdt-agent is the part of swdt that runs on a Windows node: swdt uploads the agent, starts it
// over SSH and calls its gRPC services over its stdin and stdout. If the SCM starts the same
// program as a one-shot service, the program is the guardian, which finishes a transaction.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	syswindows "golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc"

	"github.com/swdt-dev/swdt/internal/agent"
	"github.com/swdt-dev/swdt/internal/platform/windows"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

func main() {
	path, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, "swdt-agent: find this program's own file:", err)
		os.Exit(1)
	}
	// An agent that was put into a job that forbids this works as well: only a child of a killed agent could stay.
	_ = windows.EndChildrenWithThisProcess()
	machine := agent.Machine{Platform: windows.New(), Executable: path}
	os.Exit(agent.Program(context.Background(), machine, os.Args[1:], asService, os.Stdin, os.Stdout, os.Stderr))
}

func asService(ctx context.Context, work func(context.Context) int) (code int, started bool, err error) {
	service := &guardian{ctx: ctx, work: work}
	err = svc.Run(layout.GuardianService, service)
	if errors.Is(err, syswindows.ERROR_FAILED_SERVICE_CONTROLLER_CONNECT) {
		return 0, false, nil
	}
	return service.exitCode, err == nil, err
}

// guardian is the agent as a Windows service. The service is in the state Running until
// its work is done; the controls Stop and PreShutdown end the agent early. SHUTDOWN would come too late: the SCM sends
// it in the order in which services were registered, so the services of a transaction would have ended before.
type guardian struct {
	ctx      context.Context
	work     func(context.Context) int
	exitCode int
}

func (g *guardian) Execute(_ []string, requests <-chan svc.ChangeRequest, status chan<- svc.Status) (bool, uint32) {
	const accepts = svc.AcceptStop | svc.AcceptPreShutdown
	ctx, cancel := context.WithCancel(g.ctx)
	defer cancel()
	done := make(chan int, 1)
	go func() { done <- g.work(ctx) }()
	current := svc.Status{State: svc.Running, Accepts: accepts}
	status <- current
	asked := false
	for {
		select {
		case g.exitCode = <-done:
			if asked { // a failure would make the SCM start the service again
				return false, 0
			}
			// A code other than 0 is the agent's own exit code, not a Windows error code.
			return g.exitCode != 0, uint32(g.exitCode)
		case request := <-requests:
			switch request.Cmd {
			case svc.Interrogate:
				status <- current
			case svc.Stop, svc.PreShutdown:
				asked = true
				current = svc.Status{State: svc.StopPending}
				status <- current
				cancel()
			}
		}
	}
}
