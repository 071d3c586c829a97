package agent

import (
	"context"

	"google.golang.org/grpc"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
)

// registerSwap adds the swap service to a session's server.
func registerSwap(server grpc.ServiceRegistrar, m Machine) {
	agentv1.RegisterSwapServer(server, agentv1.UnimplementedSwapServer{})
}

// guard brings the transaction with this id to its end and returns the exit code.
func guard(ctx context.Context, m Machine, id string) int {
	m.logger().Printf("transaction %s: not yet", id)
	return exitFailed
}
