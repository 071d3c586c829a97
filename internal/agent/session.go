package agent

import (
	"context"
	"log"
	"runtime/debug"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/swdt-dev/swdt/internal/agent/pktmon"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/rpcerror"
)

// session is the state that the services of one session share.
type session struct {
	machine  Machine
	platform *platform.Platform
	log      *log.Logger

	mu   sync.Mutex
	lock platform.Unlocker // nil: not held

	captured []*pktmon.Hold // captures with packets that this session fetches

	settings sync.Mutex // allows one edit of the hosts file or the environment at a time
}

func newSession(m Machine) *session {
	return &session{machine: m, platform: m.Platform, log: m.logger()}
}

// end releases everything that the session holds.
func (s *session) end() {
	if err := s.unlock(); err != nil {
		s.log.Printf("unlock the node: %v", err)
	}
	for _, hold := range s.captured {
		if err := hold.Forget(); err != nil {
			s.log.Printf("release captured packets: %v", err)
		}
	}
}

// unary and stream wrap every call. They convert errors to statuses that carry
// the kind of error. They also convert a panic in one call to an error of that
// call, so that the session continues.
func (s *session) unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (
	reply any, err error) {
	defer s.recover(info.FullMethod, &err)
	reply, err = handle(ctx, request)
	return reply, rpcerror.ToStatus(err)
}

func (s *session) stream(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo,
	handle grpc.StreamHandler) (err error) {
	defer s.recover(info.FullMethod, &err)
	return rpcerror.ToStatus(handle(server, stream))
}

func (s *session) recover(method string, err *error) {
	if r := recover(); r != nil {
		s.log.Printf("%s panicked: %v\n%s", method, r, debug.Stack())
		*err = status.Errorf(codes.Internal, "swdt-agent has a bug in %s: %v; please report it with the output of -v",
			method, r)
	}
}
