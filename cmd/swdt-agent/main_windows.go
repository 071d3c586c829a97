// swdt-agent is the part of swdt that runs on a Windows node: swdt uploads the agent, starts it
// over SSH and calls its gRPC services over its stdin and stdout. If the SCM starts the same
// program as a one-shot service, the program is the guardian, which finishes a transaction.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	syswindows "golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc"

	"github.com/swdt-dev/swdt/internal/agent"
	"github.com/swdt-dev/swdt/internal/platform/windows"
	"github.com/swdt-dev/swdt/internal/wire/handshake"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

func main() { os.Exit(run(context.Background(), os.Args[1:])) }

func run(ctx context.Context, args []string) int {
	machine, err := thisMachine()
	if err != nil {
		fmt.Fprintln(os.Stderr, "swdt-agent:", err)
		return 1
	}
	if len(args) == 0 || args[0] == handshake.InstallArgument {
		if machine.Hash, err = hashOf(machine.Executable); err != nil {
			fmt.Fprintln(os.Stderr, "swdt-agent: hash this program's own file:", err)
			return 1
		}
		return agent.Main(ctx, machine, args, os.Stdin, os.Stdout, os.Stderr)
	}
	// At a boot, the SCM waits 30 s until a service connects to it, and reading the program's own file from a cold disk
	// takes a part of that. A guardian needs no hash.
	service := &guardian{ctx: ctx, machine: machine, args: args}
	err = svc.Run(layout.GuardianService, service)
	if errors.Is(err, syswindows.ERROR_FAILED_SERVICE_CONTROLLER_CONNECT) {
		// A user or an SSH session started the program, not the SCM.
		return agent.Main(ctx, machine, args, os.Stdin, os.Stdout, os.Stderr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "swdt-agent: run as a service:", err)
		return 1
	}
	return service.exitCode
}

// thisMachine returns the machine without the program's hash.
func thisMachine() (agent.Machine, error) {
	path, err := os.Executable()
	if err != nil {
		return agent.Machine{}, fmt.Errorf("find this program's own file: %w", err)
	}
	return agent.Machine{Platform: windows.New(), Executable: path}, nil
}

func hashOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// guardian runs the agent as a Windows service. The service is in the state Running until
// the agent returns; the controls Stop and PreShutdown end the agent early. SHUTDOWN would come too late: the SCM sends
// it in the order in which services were registered, so the services of a transaction would have ended before.
type guardian struct {
	ctx      context.Context
	machine  agent.Machine
	args     []string
	exitCode int
}

func (g *guardian) Execute(_ []string, requests <-chan svc.ChangeRequest, status chan<- svc.Status) (bool, uint32) {
	const accepts = svc.AcceptStop | svc.AcceptPreShutdown
	ctx, cancel := context.WithCancel(g.ctx)
	defer cancel()
	done := make(chan int, 1)
	go func() {
		// A service's standard streams are not connected.
		done <- agent.Main(ctx, g.machine, g.args, eof{}, io.Discard, os.Stderr)
	}()
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

// eof is a reader without data.
type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }
