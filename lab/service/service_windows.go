package main

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc"
)

// service runs the component for the Service Control Manager. It returns errNotService
// if the SCM did not start the process. svc.IsWindowsService would report this before
// svc.Run, but does not work under Wine.
func (c *component) service() error {
	err := svc.Run(name, c)
	if errors.Is(err, windows.ERROR_FAILED_SERVICE_CONTROLLER_CONNECT) {
		return errNotService
	}
	return err
}

// Execute runs the service for the Service Control Manager.
func (c *component) Execute(_ []string, requests <-chan svc.ChangeRequest, status chan<- svc.Status) (bool, uint32) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := c.openLog(); err != nil {
		return true, 1
	}
	wait := c.behaviour.slowStart + 10*time.Second
	status <- svc.Status{State: svc.StartPending, WaitHint: uint32(wait.Milliseconds())}
	if err := c.start(ctx); err != nil {
		os.Exit(1) // a crash, not an orderly stop
	}
	running := svc.Status{State: svc.Running, Accepts: svc.AcceptStop | svc.AcceptShutdown}
	status <- running
	for request := range requests {
		switch request.Cmd {
		case svc.Interrogate:
			status <- running
		case svc.Stop, svc.Shutdown:
			c.logf('I', "server.go", "%q", "Stopping "+name)
			status <- svc.Status{State: svc.StopPending, WaitHint: 30_000}
			if c.behaviour.hangOnStop {
				select {}
			}
			return false, 0
		}
	}
	return false, 0
}

func defaultLog() string { return `C:\var\log\` + name + `\` + name + `.log` }
