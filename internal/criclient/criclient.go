// Package criclient asks a node's container runtime over the Container Runtime
// Interface (runtime.v1) and writes its answers: as the messages they are, in the
// JSON that crictl prints, and as tables for people.
//
//   - criclient.go, way.go, ask.go: the connection, and the questions
//   - json.go: messages as JSON
//   - tables.go: messages as tables
//   - build.go: which Windows runs which image
package criclient

import (
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// largestMessage is the kubelet's limit too.
const largestMessage = 16 << 20

// Client asks one runtime.
type Client struct {
	Runtime runtimev1.RuntimeServiceClient
	Images  runtimev1.ImageServiceClient

	connection *grpc.ClientConn
}

// New gives a client of the runtime that dial reaches. Nothing is contacted yet.
// What ctx has for the node with each call (redaction), dial has too.
func New(ctx context.Context, dial func(context.Context) (net.Conn, error)) (*Client, error) {
	asked, _ := metadata.FromOutgoingContext(ctx)
	way := &way{dial: dial, asked: asked}
	connection, err := grpc.NewClient("passthrough:///runtime",
		grpc.WithTransportCredentials(insecure.NewCredentials()), // SSH is what protects it
		grpc.WithContextDialer(way.connect),
		grpc.WithUnaryInterceptor(way.call),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(largestMessage)),
		grpc.WithDisableServiceConfig(),
	)
	if err != nil {
		return nil, fmt.Errorf("talk to the container runtime: %w", err)
	}
	return &Client{
		Runtime: runtimev1.NewRuntimeServiceClient(connection), Images: runtimev1.NewImageServiceClient(connection),
		connection: connection,
	}, nil
}

// Close ends the connection.
func (c *Client) Close() error { return c.connection.Close() }
