//go:build windows

// Command lab-snapshotter keeps the files of images and containers for containerd under Wine,
// which lacks the layers of Windows that containerd's own snapshotter uses. It is a service that
// serves a proxy snapshotter and a proxy differ on a pipe (containerd/containerd, docs/PLUGINS.md, proxy plugins).
//
//	lab-snapshotter --register    registers the service
//	lab-snapshotter --run         runs it
//
// It supports images of one layer. The digest of the uncompressed layer is also containerd's
// name for the image's files (their chain ID), so the snapshotter finds an uncompressed layer in
// containerd's content store and unpacks it. So a differ has nothing to do, and containerd 1.6,
// which does not support proxy differs, may use any differ. The proxy differ unpacks a compressed layer.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	diffapi "github.com/containerd/containerd/api/services/diff/v1"
	snapshotsapi "github.com/containerd/containerd/api/services/snapshots/v1"
	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/mgr"
	"google.golang.org/grpc"

	"github.com/swdt-dev/swdt/lab/pods/pipe"
)

const (
	serviceName = "lab-snapshotter"
	address     = `\\.\pipe\lab-snapshotter`
	// root is containerd's folder for a snapshotter called lab. containerd reports it to the
	// kubelet as the folder of images.
	root    = `C:\ProgramData\containerd\root\io.containerd.snapshotter.v1.lab`
	content = `C:\ProgramData\containerd\root\io.containerd.content.v1.content`
)

func main() {
	register := flag.Bool("register", false, "make the service")
	run := flag.Bool("run", false, "be the service")
	flag.Parse()
	var err error
	switch {
	case *register:
		err = makeService()
	case *run:
		err = svc.Run(serviceName, service{})
	default:
		err = errors.New("usage: lab-snapshotter --register|--run")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab-snapshotter:", err)
		os.Exit(1)
	}
}

func makeService() error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	manager, err := mgr.Connect()
	if err != nil {
		return fmt.Errorf("ask for the services: %w", err)
	}
	defer manager.Disconnect()
	made, err := manager.CreateService(serviceName, exe, mgr.Config{StartType: mgr.StartAutomatic}, "--run")
	if err != nil {
		return fmt.Errorf("make the service %s: %w", serviceName, err)
	}
	return made.Close()
}

// service runs the snapshotter for the Service Control Manager.
type service struct{}

func (service) Execute(_ []string, requests <-chan svc.ChangeRequest, status chan<- svc.Status) (bool, uint32) {
	status <- svc.Status{State: svc.StartPending}
	server, err := serve()
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab-snapshotter:", err)
		return true, 1
	}
	defer server.Stop()
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

func serve() (*grpc.Server, error) {
	snapshots, err := openSnapshotter(root, content)
	if err != nil {
		return nil, err
	}
	listener, err := pipe.Listen(address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	server := grpc.NewServer()
	snapshotsapi.RegisterSnapshotsServer(server, snapshots)
	diffapi.RegisterDiffServer(server, differ{store: snapshots.store})
	go func() {
		if err := server.Serve(listener); err != nil {
			fmt.Fprintln(os.Stderr, "lab-snapshotter:", err)
			os.Exit(1)
		}
	}()
	return server, nil
}
