package main

import "golang.org/x/sys/windows/svc"

func run() error { return svc.Run("tiny", service{}) }

type service struct{}

// Execute runs the service for the Service Control Manager.
func (service) Execute(_ []string, requests <-chan svc.ChangeRequest, status chan<- svc.Status) (bool, uint32) {
	running := svc.Status{State: svc.Running, Accepts: svc.AcceptStop | svc.AcceptShutdown}
	status <- running
	for request := range requests {
		switch request.Cmd {
		case svc.Interrogate:
			status <- running
		case svc.Stop, svc.Shutdown:
			status <- svc.Status{State: svc.StopPending}
			return false, 0
		}
	}
	return false, 0
}
