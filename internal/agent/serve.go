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
	"github.com/swdt-dev/swdt/internal/handshake"
	"github.com/swdt-dev/swdt/internal/hashcache"
	"github.com/swdt-dev/swdt/internal/packed"
	"github.com/swdt-dev/swdt/internal/pktmon"
)

const (
	streamWindow     = 8 << 20  // bytes in flight on one call: a fast link with a long way
	connectionWindow = 16 << 20 // and on all calls together
	maxMessage       = 16 << 20
	bufferSize       = 64 << 10

	// handshakeTimeout also bounds the beginning of HTTP/2.
	handshakeTimeout = 60 * time.Second
	// A peer that is silent for pingAfter is asked for a sign of life. sshd by
	// itself keeps the session of a laptop that was shut for hours, and with it
	// the lock on the node.
	pingAfter   = 20 * time.Second
	pingTimeout = 20 * time.Second
	// endGrace is how long calls may take to end after the stream has. A Win32
	// call that cannot be interrupted must not keep the agent alive.
	endGrace = 10 * time.Second
)

// Serve serves one session on rw and closes it. It returns nil when the other
// side ended the stream, handshake.ErrRefused where that was not swdt, and ctx's
// error when ctx ended first. Every call is over by then, unless it hung in the
// operating system.
func Serve(ctx context.Context, m Machine, rw io.ReadWriteCloser) error {
	conn, bridge := newBridge(rw)
	defer bridge.close(ctx)
	defer conn.Close() // first, so that the bridge knows what is the last byte
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
	// Where the other side has left meanwhile, that is what serving it tells.
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
		grpc.ChainUnaryInterceptor(redactUnary), // within the two above
		grpc.ChainStreamInterceptor(packed.Server, redactStream),
	)
	cache := hashcache.Load(s.host.Files)
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

// stop ends the server and its calls, waiting no longer than endGrace.
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
		s.log.Printf("calls still run %s after the end of the session; leaving them", endGrace)
	}
}
