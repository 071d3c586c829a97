package push

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/format/wrapper"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/transfer"
	"github.com/swdt-dev/swdt/internal/obtain/blobs"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

const (
	containerdPath = `C:\Program Files\containerd\bin\containerd.exe`
	kubeletPath    = `C:\k\kubelet.exe`
)

func sum(content []byte) string {
	s := sha256.Sum256(content)
	return hex.EncodeToString(s[:])
}

func program(name, version string) []byte {
	return simulated.Binary(simulated.BinarySpec{Name: name, Version: version, Size: 100_000})
}

// bench is a node file with its sources, a node with the real agent, and a
// scripted Swap service on it.
type bench struct {
	t      *testing.T
	folder string
	doc    config.Document
	node   *nodetest.Node
	swap   *fakeSwap
	story  *heard
}

func newBench(t *testing.T, provisioners ...v1alpha1.Provisioner) *bench {
	t.Helper()
	b := &bench{t: t, folder: t.TempDir(), story: &heard{}}
	b.node = nodetest.Start(t, "w1", simulated.Options{Preset: simulated.Minimal})
	b.swap = &fakeSwap{node: b.node, commandLines: map[string]string{}, versions: map[string]string{}}
	b.node.Node.Swap = b.swap
	b.doc = config.Document{File: filepath.Join(b.folder, "swdt.yaml")}
	b.doc.Node.Metadata.Name = "w1"
	b.doc.Node.Spec.Kubernetes.Provisioners = provisioners
	v1alpha1.SetDefaults(&b.doc.Node)
	b.node.Calls()
	return b
}

// twoPrograms returns a bench whose containerd and kubelet both differ from the sources and run as
// services.
func twoPrograms(t *testing.T) *bench {
	b := newBench(t,
		v1alpha1.Provisioner{Name: "containerd", Version: "1.7.12", SourceURL: "containerd.exe",
			Destination: containerdPath},
		v1alpha1.Provisioner{Name: "kubelet", Version: "v1.29.1", SourceURL: "kubelet.exe", Destination: kubeletPath})
	b.installed(containerdPath, "containerd", "1.7.11")
	b.installed(kubeletPath, "kubelet", "v1.29.0")
	b.source("containerd.exe", b.swap.program("containerd", "1.7.12"))
	b.source("kubelet.exe", b.swap.program("kubelet", "v1.29.1"))
	return b
}

func (b *bench) source(name string, content []byte) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.folder, name), content, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// installed puts a program and its running service on the node.
func (b *bench) installed(path, name, version string) {
	b.node.Put(path, b.swap.program(name, version))
	b.swap.commandLines[name] = `"` + path + `" --run`
}

// depot returns a depot whose store is in the cache.
func (b *bench) depot() *transfer.Depot {
	b.t.Helper()
	store, err := blobs.Open(filepath.Join(b.folder, "cache", "blobs"), 0)
	if err != nil {
		b.t.Fatal(err)
	}
	return transfer.NewDepot(store)
}

func (b *bench) work(options Options) *work {
	options.Sources = source.NewSet(source.Options{Cache: filepath.Join(b.folder, "cache")})
	if options.Holder == "" {
		options.Holder = "tester"
	}
	w := newWork(b.node.Node, b.doc, options, b.story)
	w.reconnect = func(ctx context.Context) error {
		err := b.node.Reconnect(ctx)
		b.node.Node.Swap = b.swap
		return err
	}
	return w
}

func (b *bench) push(ctx context.Context, options Options) (NodeResult, error) {
	w := b.work(options)
	return w.finish(w.push(ctx))
}

// leftovers returns the files beside the destinations that a push must not leave there.
func (b *bench) leftovers() []string {
	b.t.Helper()
	var left []string
	for _, p := range b.doc.Node.Spec.Kubernetes.Provisioners {
		left = append(left, leftoversOf(b.node, p.Destination)...)
	}
	return left
}

func leftoversOf(n *nodetest.Node, destination string) []string {
	entries, err := n.Files.List(destination[:strings.LastIndex(destination, `\`)])
	if err != nil {
		return nil
	}
	var left []string
	for _, entry := range entries {
		if layout.IsLeftover(destination, entry.Path) {
			left = append(left, entry.Path)
		}
	}
	return left
}

// unlocked checks that another session can take the node's lock.
func (b *bench) unlocked() {
	b.t.Helper()
	b.node.Settle()
	lock, err := b.node.Files.Lock(layout.LockFile, []byte("test"))
	if err != nil {
		b.t.Errorf("the node is still locked: %v", err)
		return
	}
	if err := lock.Unlock(); err != nil {
		b.t.Error(err)
	}
}

// heard records the reports of a push.
type heard struct {
	ui.Discard
	mutex    sync.Mutex
	warnings []string
	steps    []string
	infos    []string
	sent     func(n int64)
}

func (h *heard) Warn(format string, args ...any) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.warnings = append(h.warnings, fmt.Sprintf(format, args...))
}

func (h *heard) Step(format string, args ...any) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.steps = append(h.steps, fmt.Sprintf(format, args...))
}

func (h *heard) Info(format string, args ...any) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.infos = append(h.infos, fmt.Sprintf(format, args...))
}

func (h *heard) Transfer(string, int64) ui.Progress { return &heardProgress{h} }

type heardProgress struct{ *heard }

func (p *heardProgress) Add(n int64) {
	if p.sent != nil {
		p.sent(n)
	}
}
func (p *heardProgress) End() {}

// fakeSwap imitates the node's transactions on the machine's real files.
type fakeSwap struct {
	node         *nodetest.Node
	commandLines map[string]string // of the existing services
	versions     map[string]string // the programs' reported versions, by hash
	architecture string
	now          time.Time // the node's clock

	transactions []*agentv1.Transaction
	inspections  int
	resumed      int
	plans        []*agentv1.SwapPlan
	acknowledged []string
	past         []*agentv1.PastTransaction
	unrecorded   string // the answer of Acknowledge

	outcome  *agentv1.SwapOutcome                              // of the next transaction; nil: committed
	carried  *agentv1.SwapOutcome                              // of the last transaction
	refuse   error                                             // the error of Run, which then does not begin
	onRun    func()                                            // when Run has begun
	cutAfter int                                               // events, then the connection is lost; 0: never
	answer   func(*agentv1.ComponentState)                     // changes the reply of Inspect
	then     func(plan *agentv1.SwapPlan) *agentv1.Transaction // the unfinished one after a cut; nil: none
}

func (f *fakeSwap) program(name, version string) []byte {
	content := program(name, version)
	f.versions[sum(content)] = version
	return content
}

func (f *fakeSwap) Inspect(ctx context.Context, in *agentv1.InspectRequest, _ ...grpc.CallOption) (
	*agentv1.InspectReply, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	f.inspections++
	reply := &agentv1.InspectReply{
		Facts: &agentv1.FactsReply{Product: "Windows Server 2022", Build: "20348.2849", Architecture: "amd64",
			Uptime: durationpb.New(3 * time.Hour), Time: timestamppb.New(f.now)},
		Transactions: f.transactions,
	}
	if f.architecture != "" {
		reply.Facts.Architecture = f.architecture
	}
	for _, c := range in.GetComponents() {
		reply.Components = append(reply.Components, f.state(c))
	}
	return reply, nil
}

func (f *fakeSwap) state(c *agentv1.InspectComponent) *agentv1.ComponentState {
	s := &agentv1.ComponentState{Name: c.GetName(),
		Leftovers: leftoversOf(f.node, c.GetDestination())}
	if content := f.node.Get(c.GetDestination()); content != nil {
		s.Exists, s.Sha256, s.Size = true, sum(content), int64(len(content))
		if c.GetAskVersion() {
			s.Version = f.versions[s.Sha256]
		}
	}
	if previous := f.node.Get(layout.Previous(c.GetDestination())); previous != nil {
		s.PreviousSha256 = sum(previous)
		s.PreviousVersion = f.versions[s.PreviousSha256]
	}
	if line, ok := f.commandLines[c.GetService()]; ok {
		s.Service = running(c.GetService(), 100)
		s.ServiceConfig = &agentv1.ServiceConfig{CommandLine: line}
		f.runs(s, c.GetDestination(), line)
	}
	if f.answer != nil {
		f.answer(s)
	}
	return s
}

// noMachine is a machine without nssm's settings and variables.
type noMachine struct{}

func (noMachine) Parameter(string, string) (string, bool) { return "", false }
func (noMachine) Texts(string, string) []string           { return nil }
func (noMachine) Exists(string) bool                      { return false }
func (noMachine) Variable(string) (string, bool)          { return "", false }
func (noMachine) ReadFile(string) ([]byte, bool)          { return nil, false }

// runs answers which program a service with this command line runs.
func (f *fakeSwap) runs(s *agentv1.ComponentState, destination, line string) {
	command := wrapper.Look(s.GetService().GetName(), line, noMachine{})
	s.Program = &agentv1.ServiceProgram{CommandLine: command.Line, Wrappers: command.Wrappers, Unknown: command.Unknown}
	if path := command.Program(); path != "" {
		s.Starts = &agentv1.Image{Path: path, Destination: samePath(path, destination)}
		if !s.Starts.Destination {
			s.Starts.Sha256 = sum(f.node.Get(path))
			s.Starts.Version = f.versions[s.Starts.Sha256]
		}
		s.Running = s.Starts
	}
}

func running(name string, pid uint32) *agentv1.ServiceStatus {
	return &agentv1.ServiceStatus{Name: name, State: agentv1.ServiceState_SERVICE_STATE_RUNNING, Pid: pid}
}

func (f *fakeSwap) Run(ctx context.Context, plan *agentv1.SwapPlan, _ ...grpc.CallOption) (
	grpc.ServerStreamingClient[agentv1.SwapEvent], error) {
	if f.refuse != nil {
		return nil, f.refuse
	}
	f.plans = append(f.plans, proto.Clone(plan).(*agentv1.SwapPlan))
	for _, c := range plan.GetComponents() {
		if c.GetStaged() == "" {
			continue
		}
		if staged := f.node.Get(c.GetStaged()); sum(staged) != c.GetSha256() {
			return nil, fmt.Errorf("%s is not staged: %d bytes", c.GetName(), len(staged))
		}
	}
	if f.onRun != nil {
		f.onRun()
		f.onRun = nil
	}
	t := &agentv1.Transaction{Id: "t1", Holder: plan.GetHolder(), Begun: timestamppb.Now(), Guarded: true}
	before := proto.Clone(plan).(*agentv1.SwapPlan)
	events := []*agentv1.SwapEvent{
		{Transaction: "t1", State: agentv1.SwapState_SWAP_STATE_STOPPING, Component: "kubelet"},
		{Transaction: "t1", State: agentv1.SwapState_SWAP_STATE_STARTING, Component: "kubelet"},
		{Transaction: "t1", State: agentv1.SwapState_SWAP_STATE_DONE, Outcome: f.carryOut(plan)},
	}
	t.Outcome = events[2].Outcome
	f.carried = t.Outcome
	f.past = append(f.past, pastOf(int32(len(f.past)+1), before, t.Outcome))
	if f.cutAfter > 0 && f.then != nil {
		t = f.then(plan)
	}
	f.transactions = nil
	if t != nil {
		f.transactions = []*agentv1.Transaction{t}
	}
	stream := &eventStream{ctx: ctx, events: events}
	if f.cutAfter > 0 {
		stream.events, f.cutAfter = events[:f.cutAfter-1], 0
		stream.end = &node.LostError{Node: "w1", Err: errors.New("connection reset")}
		f.node.Cut()
	}
	return stream, nil
}

// carryOut carries out the plan on the machine's files.
func (f *fakeSwap) carryOut(plan *agentv1.SwapPlan) *agentv1.SwapOutcome {
	if f.outcome != nil {
		return f.outcome
	}
	outcome := &agentv1.SwapOutcome{Result: agentv1.SwapResult_SWAP_RESULT_COMMITTED,
		Down: durationpb.New(600 * time.Millisecond)}
	for i, c := range plan.GetComponents() {
		o := &agentv1.ComponentOutcome{Name: c.GetName(), Action: agentv1.SwapAction_SWAP_ACTION_RESTARTED}
		if c.GetStaged() != "" {
			o.Action = agentv1.SwapAction_SWAP_ACTION_CREATED
			content, old := f.node.Get(c.GetStaged()), f.node.Get(c.GetDestination())
			if err := f.node.Files.Remove(c.GetStaged()); err != nil {
				panic(err)
			}
			if old != nil {
				o.Action = agentv1.SwapAction_SWAP_ACTION_REPLACED
				f.node.Put(layout.Previous(c.GetDestination()), old)
			}
			f.node.Put(c.GetDestination(), content)
			if c.GetAskVersion() {
				o.Version = f.versions[sum(content)]
			}
		}
		if c.GetService() != "" {
			o.Service = running(c.GetService(), uint32(200+i))
			o.Down, o.Healthy = durationpb.New(600*time.Millisecond), durationpb.New(1800*time.Millisecond)
			if c.GetCommandLine() != "" {
				f.commandLines[c.GetService()] = c.GetCommandLine()
			}
		}
		outcome.Components = append(outcome.Components, o)
	}
	return outcome
}

func (f *fakeSwap) Resume(ctx context.Context, _ *agentv1.ResumeRequest, _ ...grpc.CallOption) (
	grpc.ServerStreamingClient[agentv1.SwapEvent], error) {
	f.resumed++
	i := slices.IndexFunc(f.transactions, func(t *agentv1.Transaction) bool { return t.GetOutcome() == nil })
	if i < 0 {
		return nil, fault.ErrNotExist
	}
	t := f.transactions[i]
	t.Outcome = f.outcome
	if t.Outcome == nil {
		t.Outcome = f.carried
	}
	if t.Outcome == nil { // of another session's transaction
		t.Outcome = &agentv1.SwapOutcome{Result: agentv1.SwapResult_SWAP_RESULT_COMMITTED}
	}
	return &eventStream{ctx: ctx, events: []*agentv1.SwapEvent{
		{Transaction: t.GetId(), State: agentv1.SwapState_SWAP_STATE_RESUMED},
		{Transaction: t.GetId(), State: agentv1.SwapState_SWAP_STATE_DONE, Outcome: t.Outcome},
	}}, nil
}

func (f *fakeSwap) Acknowledge(_ context.Context, in *agentv1.AcknowledgeRequest, _ ...grpc.CallOption) (
	*agentv1.AcknowledgeReply, error) {
	f.acknowledged = append(f.acknowledged, in.GetId())
	f.transactions = slices.DeleteFunc(slices.Clone(f.transactions), func(t *agentv1.Transaction) bool {
		return t.GetId() == in.GetId()
	})
	return &agentv1.AcknowledgeReply{Unrecorded: f.unrecorded}, nil
}

func (f *fakeSwap) History(context.Context, *agentv1.HistoryRequest, ...grpc.CallOption) (*agentv1.HistoryReply, error) {
	return &agentv1.HistoryReply{Transactions: f.past}, nil
}

// pastOf returns the row that a node writes about a transaction.
func pastOf(number int32, plan *agentv1.SwapPlan, outcome *agentv1.SwapOutcome) *agentv1.PastTransaction {
	row := &agentv1.PastTransaction{Number: number, Id: fmt.Sprintf("t%d", number), Holder: plan.GetHolder(),
		Begun: timestamppb.Now(), Ended: timestamppb.Now(), Result: outcome.GetResult(), Message: outcome.GetMessage(),
		FailedComponent: outcome.GetFailedComponent()}
	for i, c := range plan.GetComponents() {
		part := &agentv1.PastComponent{Name: c.GetName(), Destination: c.GetDestination(), Service: c.GetService(),
			Brought: c.GetStaged() != "", Sha256: c.GetSha256(), PreviousSha256: c.GetPreviousSha256(),
			PreviousVersion: c.GetPreviousVersion()}
		if c.GetStaged() == "" {
			part.Sha256 = c.GetPreviousSha256()
		}
		if i < len(outcome.GetComponents()) {
			part.Action = outcome.GetComponents()[i].GetAction()
		}
		row.Components = append(row.Components, part)
	}
	return row
}

// eventStream is a stream of events.
type eventStream struct {
	grpc.ClientStream
	ctx    context.Context
	events []*agentv1.SwapEvent
	end    error
}

func (e *eventStream) Recv() (*agentv1.SwapEvent, error) {
	switch {
	case e.ctx.Err() != nil:
		return nil, e.ctx.Err()
	case len(e.events) > 0:
		event := e.events[0]
		e.events = e.events[1:]
		return event, nil
	case e.end != nil:
		return nil, e.end
	}
	return nil, io.EOF
}
