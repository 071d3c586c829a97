package agent

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/layout"
	"github.com/swdt-dev/swdt/internal/wire/word"
)

type machineService struct {
	agentv1.UnimplementedMachineServer
	*session
}

func (s *machineService) Facts(ctx context.Context, _ *agentv1.FactsRequest) (*agentv1.FactsReply, error) {
	facts, err := s.platform.Machine.Facts(ctx)
	if err != nil {
		return nil, err
	}
	return factsReply(facts), nil
}

func factsReply(f platform.Facts) *agentv1.FactsReply {
	return &agentv1.FactsReply{
		Hostname:        f.Hostname,
		Product:         f.Product,
		Build:           f.Build,
		Architecture:    f.Architecture,
		BootId:          f.BootID,
		Uptime:          durationpb.New(f.Uptime),
		Cpus:            int32(f.CPUs),
		MemoryBytes:     f.Memory,
		MemoryFreeBytes: f.MemoryFree,
		SystemDrive:     f.SystemDrive,
		DiskFreeBytes:   f.DiskFree,
		PendingReboot:   f.PendingReboot,
		Elevated:        f.Elevated,
		Simulated:       word.Value[agentv1.Simulation](f.Simulated),
		Time:            timestamppb.New(f.Time),
		Virtualization:  f.Virtualization,
	}
}

func (s *machineService) Reboot(ctx context.Context, request *agentv1.RebootRequest) (*agentv1.RebootReply, error) {
	if err := s.platform.Machine.Reboot(ctx, request.GetReason()); err != nil {
		return nil, err
	}
	return &agentv1.RebootReply{}, nil
}

// maxHolder limits a holder's description of itself, in bytes.
const maxHolder = 4 << 10

func (s *machineService) Lock(_ context.Context, request *agentv1.LockRequest) (*agentv1.LockReply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock != nil {
		return &agentv1.LockReply{}, nil // this session holds the lock already
	}
	holder := request.GetHolder()
	lock, err := s.platform.Files.Lock(layout.LockFile, []byte(holder[:min(len(holder), maxHolder)]))
	if err != nil {
		return nil, fmt.Errorf("lock the node: %w", err)
	}
	s.lock = lock
	return &agentv1.LockReply{}, nil
}

func (s *machineService) Unlock(context.Context, *agentv1.UnlockRequest) (*agentv1.UnlockReply, error) {
	if err := s.unlock(); err != nil {
		return nil, fmt.Errorf("unlock the node: %w", err)
	}
	return &agentv1.UnlockReply{}, nil
}

// unlock releases the session's lock, if it holds one. A lock that could not be released stays the session's, whose
// end tries again.
func (s *session) unlock() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock == nil {
		return nil
	}
	if err := s.lock.Unlock(); err != nil {
		return err
	}
	s.lock = nil
	return nil
}
