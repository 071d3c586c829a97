package node_test

import (
	"context"
	"fmt"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
	"github.com/swdt-dev/swdt/internal/wire/rpcerror"
)

type fakeMachine struct {
	agentv1.UnimplementedMachineServer
	n *fakeNode
}

func (m fakeMachine) Facts(context.Context, *agentv1.FactsRequest) (*agentv1.FactsReply, error) {
	m.n.mu.Lock()
	defer m.n.mu.Unlock()
	return &agentv1.FactsReply{BootId: m.n.bootID}, nil
}

// Lock waits for the end of the call, Reboot fails.
func (m fakeMachine) Lock(ctx context.Context, _ *agentv1.LockRequest) (*agentv1.LockReply, error) {
	m.n.hang()
	<-ctx.Done()
	return nil, ctx.Err()
}

func (m fakeMachine) Reboot(context.Context, *agentv1.RebootRequest) (*agentv1.RebootReply, error) {
	return nil, rpcerror.ToStatus(fmt.Errorf("reboot: %w", fault.ErrPermission))
}

type fakeFiles struct {
	agentv1.UnimplementedFilesServer
	n *fakeNode
}

func (f fakeFiles) List(_ context.Context, r *agentv1.ListFilesRequest) (*agentv1.ListFilesReply, error) {
	entries, err := f.n.files.ReadDir(slashed(r.GetPath()))
	if err != nil {
		return nil, rpcerror.ToStatus(err)
	}
	reply := &agentv1.ListFilesReply{}
	for _, e := range entries {
		reply.Entries = append(reply.Entries, &agentv1.FileInfo{Path: r.GetPath() + `\` + e.Name(), Folder: e.IsDir()})
	}
	return reply, nil
}

func (f fakeFiles) Remove(_ context.Context, r *agentv1.RemoveRequest) (*agentv1.RemoveReply, error) {
	f.n.mu.Lock()
	defer f.n.mu.Unlock()
	f.n.removed = append(f.n.removed, r.GetPath())
	return &agentv1.RemoveReply{}, nil
}

// Read sends one chunk and then waits for the end of the call.
func (f fakeFiles) Read(_ *agentv1.ReadRequest, s agentv1.Files_ReadServer) error {
	if err := s.Send(&agentv1.ReadReply{Data: []byte("first")}); err != nil {
		return err
	}
	<-s.Context().Done()
	return s.Context().Err()
}

type fakeServices struct {
	agentv1.UnimplementedServicesServer
	n *fakeNode
}

func (s fakeServices) Get(_ context.Context, r *agentv1.GetServiceRequest) (*agentv1.ServiceReply, error) {
	line := map[string]string{layout.GuardianService: s.n.guardian, layout.CaptureService: s.n.capture}[r.GetName()]
	if line == "" {
		return nil, rpcerror.ToStatus(fmt.Errorf("get: %w", fault.ErrNoService))
	}
	return &agentv1.ServiceReply{Config: &agentv1.ServiceConfig{CommandLine: line}}, nil
}
