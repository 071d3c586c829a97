package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/inspect/stats"
	"github.com/swdt-dev/swdt/internal/inspect/stats/export"
	"github.com/swdt-dev/swdt/internal/inspect/stats/record"
)

// statsServeOptions are the flags of stats serve.
type statsServeOptions struct {
	statsOptions
	listen string
	hosts  []string
}

func (a *app) statsServeCommand() *cobra.Command {
	var o statsServeOptions
	cmd := forNodes(&cobra.Command{
		Use:   "serve [flags]",
		Short: "Serve reported and computed cores to Prometheus",
		Long: `Watches as stats watch does and serves the values at /metrics until Ctrl-C: for
each container the reported and the computed cores, CPU time, memory, limit and
the age of the sample, and counters of verdicts. It listens on loopback by
default: clients of the address can read the names of your pods. It refuses
requests for a host that is no IP address, localhost or --host, so that a web
page in your browser cannot read the values.`,
		Example: examples("stats serve", "", "stats serve --listen 127.0.0.1:9750 --source cri,summary", ""),
		Args:    arguments(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.runStatsServe(cmd.Context(), o) },
	})
	o.addFlags(a, cmd)
	cmd.Flags().StringVar(&o.listen, "listen", "127.0.0.1:9750", "`address` to serve at")
	cmd.Flags().StringSliceVar(&o.hosts, "host", nil, "further host `names` that requests may have")
	return cmd
}

func (a *app) runStatsServe(ctx context.Context, o statsServeOptions) error {
	if err := o.complete(); err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", o.listen)
	if err != nil {
		return usagef("--listen %s: %v", o.listen, err)
	}
	exporter := export.New()
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", export.OnlyHosts(o.hosts, exporter.Handler()))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			stop(err)
		}
	}()
	fmt.Fprintf(a.streams.Out, "http://%s/metrics\n", listener.Addr())
	err = a.observe(ctx, &o.statsOptions, 0, &serving{exporter, stats.NewFollower(o.tolerance)})
	err = errors.Join(err, server.Close())
	<-served
	if cause := context.Cause(ctx); err == nil && cause != nil && !errors.Is(cause, context.Canceled) {
		return fmt.Errorf("serve %s: %w", o.listen, cause)
	}
	return err
}

// serving exposes the observations to Prometheus.
type serving struct {
	exporter *export.Exporter
	follower *stats.Follower
}

func (s *serving) Node(record.NodeFacts) error { return nil }

// Levels implements monitor.Observer. The metrics have no levels.
func (s *serving) Levels(stats.Levels) error { return nil }

func (s *serving) Reading(r stats.Reading) error {
	s.exporter.Add(r, s.follower.Add(r))
	return nil
}
