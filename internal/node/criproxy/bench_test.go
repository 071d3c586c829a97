package criproxy_test

import (
	"context"
	"net"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/cri"
	"github.com/swdt-dev/swdt/internal/wire/cri/measure"
)

// BenchmarkUnary measures a small call, on the node itself and through the proxy. The difference is
// the cost of the relay, including SSH on loopback.
func BenchmarkUnary(b *testing.B) {
	f := start(b, simulated.Node)
	b.Run("on the node", func(b *testing.B) {
		local := f.machine.Process("client")
		conn, err := grpc.NewClient("passthrough:///pipe", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				return local.Network.DialPipe(ctx, cri.DefaultPipe)
			}))
		if err != nil {
			b.Fatal(err)
		}
		defer conn.Close()
		unary(b, runtimev1.NewRuntimeServiceClient(conn))
	})
	b.Run("through the proxy", func(b *testing.B) {
		c, _ := client(b, proxy(b, f.keeper(cri.DefaultPipe)))
		unary(b, c)
	})
}

func unary(b *testing.B, c runtimev1.RuntimeServiceClient) {
	if _, err := version(b.Context(), c); err != nil { // so the connection exists
		b.Fatal(err)
	}
	var took []time.Duration
	for b.Loop() {
		begun := time.Now()
		if _, err := version(b.Context(), c); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "µs/median")
}

// BenchmarkBulk measures the throughput in each direction.
func BenchmarkBulk(b *testing.B) {
	f := start(b, simulated.Minimal)
	pipeServer(b, f, measure.ServeBulk)
	endpoint := proxy(b, f.keeper(cri.DefaultPipe))
	for name, direction := range map[string]measure.Direction{"from the node": measure.FromServer,
		"to the node": measure.ToServer} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(measure.Block)
			if _, err := measure.Bulk(dialSocket(b, endpoint), direction, b.N); err != nil {
				b.Fatal(err)
			}
		})
	}
}
