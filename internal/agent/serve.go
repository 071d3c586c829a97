package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/agent/internal/hashcache"
	"github.com/swdt-dev/swdt/internal/agent/pktmon"
	"github.com/swdt-dev/swdt/internal/wire/handshake"
	"github.com/swdt-dev/swdt/internal/wire/packed"
)

const (
	streamWindow     = 8 << 20  // bytes in flight on one call, enough for a fast link with a high latency
	connectionWindow = 16 << 20 // bytes in flight on all calls together
	maxMessage       = 16 << 20
	bufferSize       = 64 << 10

	// handshakeTimeout limits the handshake, and also the start of HTTP/2.
	handshakeTimeout = 60 * time.Second
	// A peer that is silent for pingAfter is pinged. Without pings, sshd keeps the session of a
	// closed laptop for hours, and the session keeps its lock on the node.
	pingAfter   = 20 * time.Second
	pingTimeout = 20 * time.Second
	// endGrace limits how long calls may continue after the stream has ended. A
	// Win32 call that cannot be interrupted must not keep the agent alive.
	endGrace = 10 * time.Second
)

// Serve serves one session on rw and closes it. It returns nil if the other side ended the stream,
// handshake.ErrRefused if the other side is not swdt, and ctx's error if ctx ended first. When
// Serve returns, all calls have returned except those that hang in the operating system.
func Serve(ctx context.Context, m Machine, rw io.ReadWriteCloser) error {
	conn, bridge := newBridge(rw)
	defer bridge.close(ctx)
	defer conn.Close() // runs before bridge.close, so that the bridge has received the last byte
	defer context.AfterFunc(ctx, func() { conn.Close() })()

	if err := shakeHands(conn, m.Hash); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	}
	m = m.inCustody()
	s := newSession(m)
	defer s.end()
	if err := pktmon.Heal(ctx, s.captureMachine()); err != nil {
		s.log.Print(err)
	}
	server := newServer(s)
	listener := newListener(conn)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case <-listener.ended:
	case <-ctx.Done():
	}
	stop(server, s)
	if err := <-served; err != nil && !errors.Is(err, grpc.ErrServerStopped) && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("serve the session: %w", err)
	}
	return ctx.Err()
}

func shakeHands(conn net.Conn, hash string) error {
	if err := conn.SetDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return err
	}
	if err := handshake.Serve(conn, hash); err != nil {
		return err
	}
	// If the other side has disconnected meanwhile, the error is reported when gRPC serves
	// the connection.
	if err := conn.SetDeadline(time.Time{}); !errors.Is(err, io.ErrClosedPipe) {
		return err
	}
	return nil
}

func newServer(s *session) *grpc.Server {
	server := grpc.NewServer(
		grpc.InitialWindowSize(streamWindow),
		grpc.InitialConnWindowSize(connectionWindow),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxSendMsgSize(maxMessage),
		grpc.ReadBufferSize(bufferSize),
		grpc.WriteBufferSize(bufferSize),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.WaitForHandlers(true),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingAfter, Timeout: pingTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
		grpc.UnaryInterceptor(s.unary),
		grpc.StreamInterceptor(s.stream),
		grpc.ChainUnaryInterceptor(redactUnary), // the chained interceptors run inside s.unary and s.stream
		grpc.ChainStreamInterceptor(packed.Server, redactStream),
	)
	cache := hashcache.Load(s.platform.Files)
	agentv1.RegisterMachineServer(server, &machineService{session: s})
	agentv1.RegisterServicesServer(server, &servicesService{session: s})
	agentv1.RegisterRegistryServer(server, &registryService{session: s})
	agentv1.RegisterFilesServer(server, &filesService{session: s, cache: cache})
	agentv1.RegisterSettingsServer(server, &settingsService{session: s})
	agentv1.RegisterProcessesServer(server, &processesService{session: s})
	agentv1.RegisterFeaturesServer(server, &featuresService{session: s})
	agentv1.RegisterFirewallServer(server, &firewallService{session: s})
	agentv1.RegisterNetworkServer(server, &networkService{session: s})
	agentv1.RegisterComputeServer(server, &computeService{session: s})
	agentv1.RegisterSwapServer(server, &swapService{session: s, cache: cache})
	agentv1.RegisterCaptureServer(server, &captureService{session: s})
	return server
}

// stop ends the server and its calls, and waits no longer than endGrace.
func stop(server *grpc.Server, s *session) {
	stopped := make(chan struct{})
	go func() {
		server.Stop()
		close(stopped)
	}()
	timer := time.NewTimer(endGrace)
	defer timer.Stop()
	select {
	case <-stopped:
	case <-timer.C:
		s.log.Printf("calls still run %s after the end of the session; ending without them", endGrace)
	}
}
