// Package criclient asks a node's container runtime over the Container Runtime
// Interface (runtime.v1). It returns the answers as messages, and writes them in
// crictl's JSON and as tables for people.
//
//   - open.go, criclient.go, way.go: the connection
//   - ask.go: the requests
//   - check.go: bounds on the answers of a runtime, which is not trusted
//   - json.go: messages as JSON
//   - tables.go: messages as tables
//   - pull.go, downloads.go: pulls, and their progress
package criclient

import (
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/swdt-dev/swdt/internal/node/checked"
)

const (
	// largestMessage bounds a message, in bytes. The kubelet has the same limit.
	largestMessage = 16 << 20
	// longestStatus bounds an error's text and details, in bytes.
	longestStatus = 1 << 20
)

// Client asks one container runtime.
type Client struct {
	Runtime runtimev1.RuntimeServiceClient
	Images  runtimev1.ImageServiceClient

	connection *grpc.ClientConn
}

// New returns a client of the runtime that dial reaches. New itself does not dial. dial gets a
// context with ctx's outgoing metadata, which can make the node redact secrets.
func New(ctx context.Context, dial func(context.Context) (net.Conn, error)) (*Client, error) {
	return connect(ctx, dial, answeringWithin(0))
}

func connect(
	ctx context.Context, dial func(context.Context) (net.Conn, error), limit grpc.UnaryClientInterceptor,
) (*Client, error) {
	asked, _ := metadata.FromOutgoingContext(ctx)
	way := &way{dial: dial, asked: asked}
	connection, err := grpc.NewClient("passthrough:///runtime",
		grpc.WithTransportCredentials(insecure.NewCredentials()), // SSH protects the connection
		grpc.WithContextDialer(way.connect),
		grpc.WithChainUnaryInterceptor(limit, way.call, callChecked),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(largestMessage),
			grpc.ForceCodecV2(checked.Codec())),
		grpc.WithMaxHeaderListSize(longestStatus),
		grpc.WithDisableServiceConfig(),
	)
	if err != nil {
		return nil, fmt.Errorf("connect to the container runtime: %w", err)
	}
	return &Client{
		Runtime: runtimev1.NewRuntimeServiceClient(connection), Images: runtimev1.NewImageServiceClient(connection),
		connection: connection,
	}, nil
}

// Close ends the connection.
func (c *Client) Close() error { return c.connection.Close() }
