// swdt-controller runs in a cluster, on Linux, and carries out its NodeRollouts. The manifests
// under deploy/ install it.
package main

import (
	"flag"
	"fmt"
	"log/slog"
	"os"
	_ "time/tzdata" // the image has no time zones

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/swdt-dev/swdt/internal/rollout/control"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "swdt-controller:", err)
		os.Exit(1)
	}
}

func run() error {
	var o control.Options
	flag.StringVar(&o.Namespace, "namespace", os.Getenv("POD_NAMESPACE"), "the namespace of the leader election")
	flag.StringVar(&o.Metrics, "metrics", ":8080", "the address of /metrics; 0: none")
	flag.StringVar(&o.Probes, "probes", ":8081", "the address of /healthz and /readyz; 0: none")
	flag.Parse()
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil)))
	config, err := rest.InClusterConfig()
	if err != nil {
		return fmt.Errorf("find the API server of this pod: %w; deploy/ has the manifest of the pod", err)
	}
	return control.Run(ctrl.SetupSignalHandler(), config, o)
}
