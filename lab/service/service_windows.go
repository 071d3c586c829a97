package main

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/windows/svc"
)

func asService() (bool, error) { return svc.IsWindowsService() }

func (c *component) service() error {
	path := c.options.logFile
	if path == "" {
		path = `C:\var\log\` + name + `\` + name + `.log`
	}
	if err := c.openLog(path); err != nil {
		return err
	}
	return svc.Run(name, c)
}

// Execute is the service's life as the Service Control Manager sees it.
func (c *component) Execute(_ []string, requests <-chan svc.ChangeRequest, status chan<- svc.Status) (bool, uint32) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
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
			if c.behaviour.hang {
				select {}
			}
			return false, 0
		}
	}
	return false, 0
}
