package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/agent/internal/hashcache"
	"github.com/swdt-dev/swdt/internal/agent/internal/messages"
	"github.com/swdt-dev/swdt/internal/agent/swap"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/word"
)

// swapService exposes package swap over RPC.
type swapService struct {
	agentv1.UnimplementedSwapServer
	*session
	cache *hashcache.Cache
}

func (s *swapService) swapMachine() swap.Machine {
	return swap.Machine{Platform: s.platform, Executable: s.machine.Executable, Hashes: s.cache}
}

// Inspect reads the machine's facts, the journals and the components side by side: the user waits for it.
func (s *swapService) Inspect(ctx context.Context, r *agentv1.InspectRequest) (*agentv1.InspectReply, error) {
	reply := &agentv1.InspectReply{}
	var machine, journals error
	var side sync.WaitGroup
	side.Go(func() {
		var facts platform.Facts
		if facts, machine = s.platform.Machine.Facts(ctx); machine == nil {
			reply.Facts = factsReply(facts)
		}
	})
	side.Go(func() { reply.Transactions, journals = s.transactions(ctx) })
	reply.Components = s.components(ctx, r.GetComponents())
	side.Wait()
	return reply, errors.Join(machine, journals)
}

func (s *swapService) components(ctx context.Context, questions []*agentv1.InspectComponent) (
	states []*agentv1.ComponentState) {
	if len(questions) == 0 {
		return nil
	}
	processes, err := s.platform.Processes.List(ctx)
	if err != nil { // the start times are optional
		s.log.Printf("list processes: %v", err)
	}
	for _, c := range questions {
		state, err := swap.Inspect(ctx, s.platform, s.cache, c, processes)
		if err != nil {
			state.Error = err.Error()
		}
		states = append(states, state)
	}
	return states
}

func (s *swapService) transactions(ctx context.Context) ([]*agentv1.Transaction, error) {
	transactions, err := swap.Transactions(s.platform.Files)
	if err != nil || len(transactions) == 0 {
		return nil, err
	}
	guarded, err := swap.Guarded(ctx, s.platform)
	if err != nil {
		return nil, err
	}
	var all []*agentv1.Transaction
	for _, t := range transactions {
		one := &agentv1.Transaction{
			Id: t.ID, Holder: t.Holder, Begun: messages.Timestamp(t.Begun),
			State:   word.Value[agentv1.SwapState](string(t.State)),
			Guarded: guarded && t.Outcome == nil,
		}
		if t.Outcome != nil {
			one.Outcome = swapOutcome(*t.Outcome)
		}
		all = append(all, one)
	}
	return all, nil
}

func (s *swapService) Run(plan *agentv1.SwapPlan, stream grpc.ServerStreamingServer[agentv1.SwapEvent]) error {
	id, err := swap.Begin(stream.Context(), s.swapMachine(), swapPlan(plan))
	if err != nil {
		return err
	}
	return s.follow(id, stream)
}

func (s *swapService) Resume(_ *agentv1.ResumeRequest, stream grpc.ServerStreamingServer[agentv1.SwapEvent]) error {
	transactions, err := swap.Transactions(s.platform.Files)
	if err != nil {
		return err
	}
	for _, t := range transactions {
		if t.Outcome == nil {
			return s.follow(t.ID, stream)
		}
	}
	return fmt.Errorf("resume: %w: %w", swap.ErrNoTransaction, fault.ErrNotExist)
}

func (s *swapService) follow(id string, stream grpc.ServerStreamingServer[agentv1.SwapEvent]) error {
	var sendErr error
	outcome, err := swap.Follow(stream.Context(), s.swapMachine(), id, func(e swap.Event) {
		sendErr = errors.Join(sendErr, stream.Send(&agentv1.SwapEvent{
			Time: timestamppb.New(e.Time), Transaction: id,
			State: word.Value[agentv1.SwapState](string(e.State)), Component: e.Component, Message: e.Message,
		}))
	})
	if errors.Is(err, swap.ErrNoTransaction) {
		err = fmt.Errorf("%w: %w", err, fault.ErrNotExist)
	}
	if err := errors.Join(err, sendErr); err != nil {
		return err
	}
	return stream.Send(&agentv1.SwapEvent{
		Time: timestamppb.Now(), Transaction: id, State: agentv1.SwapState_SWAP_STATE_DONE,
		Outcome: swapOutcome(outcome),
	})
}

func (s *swapService) Acknowledge(ctx context.Context, r *agentv1.AcknowledgeRequest) (
	*agentv1.AcknowledgeReply, error) {
	reply := &agentv1.AcknowledgeReply{}
	err := swap.Acknowledge(ctx, s.platform, r.GetId())
	if unrecorded, ok := errors.AsType[*swap.UnrecordedError](err); ok {
		reply.Unrecorded, err = unrecorded.Err.Error(), nil
	}
	if errors.Is(err, swap.ErrNoTransaction) {
		err = nil // another session acknowledged the transaction first
	}
	return reply, err
}

func (s *swapService) History(ctx context.Context, _ *agentv1.HistoryRequest) (*agentv1.HistoryReply, error) {
	past, err := swap.History(ctx, s.platform.Files)
	if err != nil {
		return nil, err
	}
	reply := &agentv1.HistoryReply{}
	for _, t := range past {
		reply.Transactions = append(reply.Transactions, pastTransaction(t))
	}
	return reply, nil
}

func pastTransaction(t swap.Past) *agentv1.PastTransaction {
	row := &agentv1.PastTransaction{
		Number: int32(t.Number), Id: t.ID, Journal: t.Journal, Holder: t.Holder,
		Begun: messages.Timestamp(t.Begun), Ended: messages.Timestamp(t.Ended),
		Result: word.Value[agentv1.SwapResult](string(t.Result)), Message: t.Message, FailedComponent: t.FailedComponent,
	}
	for _, c := range t.Components {
		row.Components = append(row.Components, &agentv1.PastComponent{
			Name: c.Name, Destination: c.Destination, Service: c.Service,
			Action: word.Value[agentv1.SwapAction](string(c.Action)), Brought: c.Brought, CommandLine: c.CommandLine,
			Sha256: c.SHA256, PreviousSha256: c.PreviousSHA256, PreviousVersion: c.PreviousVersion,
			Version: c.Version,
		})
	}
	return row
}

func swapPlan(p *agentv1.SwapPlan) swap.Plan {
	plan := swap.Plan{Holder: p.GetHolder()}
	for _, c := range p.GetComponents() {
		plan.Components = append(plan.Components, swap.Component{
			Name: c.GetName(), Destination: c.GetDestination(), Staged: c.GetStaged(),
			SHA256: c.GetSha256(), PreviousSHA256: c.GetPreviousSha256(),
			PreviousVersion: c.GetPreviousVersion(),
			Service:         c.GetService(), DependsOn: c.GetDependsOn(),
			CommandLine: c.GetCommandLine(), AskVersion: c.GetAskVersion(),
			Health: swap.Health{
				HTTPGet: c.GetHealth().GetHttpGet(), CRIPipe: c.GetHealth().GetCriPipe(),
				Timeout: c.GetHealth().GetTimeout().AsDuration(),
			},
			Settle:      c.GetSettle().AsDuration(),
			StopTimeout: c.GetStopTimeout().AsDuration(), StartTimeout: c.GetStartTimeout().AsDuration(),
		})
	}
	return plan
}

func swapOutcome(o swap.Outcome) *agentv1.SwapOutcome {
	reply := &agentv1.SwapOutcome{
		Result: word.Value[agentv1.SwapResult](string(o.Result)), Message: o.Message, FailedComponent: o.FailedComponent,
		Down: durationpb.New(o.Down),
	}
	for _, c := range o.Components {
		reply.Components = append(reply.Components, componentOutcome(c))
	}
	return reply
}

func componentOutcome(c swap.ComponentOutcome) *agentv1.ComponentOutcome {
	reply := &agentv1.ComponentOutcome{
		Name: c.Name, Action: word.Value[agentv1.SwapAction](string(c.Action)), Message: c.Message,
		LogLines: c.LogLines, Version: c.Version, Down: durationpb.New(c.Down), Healthy: durationpb.New(c.Healthy),
	}
	if c.Service != nil {
		reply.Service = messages.ServiceStatus(*c.Service, time.Time{})
	}
	return reply
}

// guard runs the agent as the guardian of a transaction; it returns the exit
// code.
func guard(ctx context.Context, m Machine, id string) int {
	if err := swap.Guard(ctx, swap.Machine{Platform: m.Platform, Executable: m.Executable}, id); err != nil {
		m.logger().Printf("transaction %s: %v", id, err)
		return exitFailed
	}
	return exitDone
}
