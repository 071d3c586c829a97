package sandbox

import (
	"context"
	"log/slog"
	"time"

	"github.com/swdt-dev/swdt/internal/controlplane"
)

// clusterFolder is the control plane's state within a sandbox's folder.
const clusterFolder = "cluster"

// clusterEndLimit bounds the end of a control plane, whose processes are killed.
const clusterEndLimit = 10 * time.Second

// checkCluster says early what a control plane lacks on this machine.
func checkCluster() error {
	binaries, err := controlplane.DefaultBinaries()
	if err != nil {
		return err
	}
	return controlplane.Check(binaries)
}

// startCluster starts a real control plane for a sandbox's node to join.
func startCluster(ctx context.Context, f folder, name string, log *slog.Logger) (*controlplane.ControlPlane, error) {
	binaries, err := controlplane.DefaultBinaries()
	if err != nil {
		return nil, err
	}
	log.Info("starting a control plane", "programs", binaries)
	cluster, err := controlplane.Start(ctx, controlplane.Options{
		Binaries: binaries, State: f.file(clusterFolder), Name: name,
	})
	if err != nil {
		return nil, err
	}
	log.Info("the control plane is ready", "server", cluster.Server(), "logs", cluster.Logs())
	go func() {
		select {
		case <-cluster.Died():
			log.Error("the control plane has ended", "err", cluster.Err())
		case <-ctx.Done():
		}
	}()
	return cluster, nil
}

func stopCluster(cluster *controlplane.ControlPlane, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), clusterEndLimit)
	defer cancel()
	if err := cluster.Stop(ctx); err != nil {
		log.Error("end the control plane", "err", err)
	}
}
