package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/agent/pktmon"
	"github.com/swdt-dev/swdt/internal/wire/captureplan"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// captureService exposes package pktmon over RPC.
type captureService struct {
	agentv1.UnimplementedCaptureServer
	*session
}

func (s *session) captureMachine() pktmon.Machine {
	return pktmon.Machine{Platform: s.platform, Executable: s.machine.Executable}
}

func (s *captureService) Run(stream grpc.BidiStreamingServer[agentv1.PipeRequest, agentv1.PipeReply]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	var plan captureplan.Plan
	if err := json.Unmarshal(first.GetData(), &plan); err != nil {
		return fmt.Errorf("read the capture's plan: %w", err)
	}
	if plan.Fetch {
		return s.keep(stream, plan.ID)
	}
	hold, err := pktmon.Begin(stream.Context(), s.captureMachine(), plan)
	if errors.Is(err, pktmon.ErrBusy) {
		return fmt.Errorf("%w: %w", err, fault.ErrInUse)
	}
	if err != nil {
		return err
	}
	release := func() {
		if err := hold.Release(); err != nil {
			s.log.Printf("release a capture: %v", err)
		}
	}
	defer release()
	s.mu.Lock()
	// The packets are held until the session ends, since other calls of the session fetch them.
	s.captured = append(s.captured, hold)
	s.mu.Unlock()
	go func() {
		defer release()
		for silent := time.AfterFunc(captureplan.MaxSilence, release); ; silent.Reset(captureplan.MaxSilence) {
			if _, err := stream.Recv(); err != nil {
				silent.Stop()
				return
			}
		}
	}()
	return pktmon.Follow(stream.Context(), s.captureMachine(), plan.ID, func(e captureplan.Event) error {
		data, err := json.Marshal(e)
		if err != nil {
			return err
		}
		return stream.Send(&agentv1.PipeReply{Data: data})
	})
}

// keep holds the packets of an earlier capture until the caller has fetched
// them.
func (s *captureService) keep(stream grpc.BidiStreamingServer[agentv1.PipeRequest, agentv1.PipeReply],
	id string) error {
	kept, err := pktmon.Keep(s.platform.Files, id)
	if err != nil {
		return err
	}
	err = stream.Send(&agentv1.PipeReply{})
	if err == nil {
		<-stream.Context().Done()
	}
	return errors.Join(err, kept.Unlock())
}

// guardCapture runs the agent as the guardian of a capture; it returns the exit
// code.
func guardCapture(ctx context.Context, m Machine, id string) int {
	if err := pktmon.Guard(ctx, pktmon.Machine{Platform: m.Platform, Executable: m.Executable}, id); err != nil {
		m.logger().Printf("capture %s: %v", id, err)
		return exitFailed
	}
	return exitDone
}
