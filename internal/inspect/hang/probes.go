package hang

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/format/goroutines"
	"github.com/swdt-dev/swdt/internal/inspect/logs"
	"github.com/swdt-dev/swdt/internal/node/criclient"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// probeLimit is the deadline of each probe.
const probeLimit = 5 * time.Second

// The names of the probes.
const (
	probeSCM = "SCM"
	probeHCS = "HCS"
	probeHNS = "HNS"
	probeCRI = "containerd"
)

// probe asks one question, and records whether there was an answer in time. An error is an answer. A node that lacks the
// service has no such probe.
func (g *gathering) probe(ctx context.Context, name string, ask func(context.Context) error) {
	limited, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	began := time.Now()
	err := ask(limited)
	p := Probe{Name: name, Answers: true, Seconds: time.Since(began).Round(time.Millisecond).Seconds()}
	var silent *criclient.SilentError
	switch {
	case errors.Is(err, fault.ErrNotSupported) || errors.Is(err, fault.ErrNotExist):
		return
	case limited.Err() != nil || errors.As(err, &silent) || errors.Is(err, context.DeadlineExceeded):
		p.Answers = false
	case err != nil:
		p.Error = clean(err.Error())
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dump.Probes = append(g.dump.Probes, p)
}

// askServices returns the PIDs of the services that a dump shows, from the SCM.
func (g *gathering) askServices(ctx context.Context) map[string]uint32 {
	pids := map[string]uint32{}
	g.probe(ctx, probeSCM, func(ctx context.Context) error {
		for _, name := range []string{"vmcompute", "hns"} {
			reply, err := g.node.Services.Get(ctx, &agentv1.GetServiceRequest{Name: name})
			switch {
			case errors.Is(err, fault.ErrNoService):
			case err != nil:
				return err
			default:
				pids[name] = reply.GetStatus().GetPid()
			}
		}
		return nil
	})
	return pids
}

func (g *gathering) probeHCS(ctx context.Context) {
	g.probe(ctx, probeHCS, func(ctx context.Context) error { return g.list(ctx, agentv1.ComputeKind_COMPUTE_KIND_SYSTEMS) })
}

func (g *gathering) probeHNS(ctx context.Context) {
	g.probe(ctx, probeHNS, func(ctx context.Context) error { return g.list(ctx, agentv1.ComputeKind_COMPUTE_KIND_NETWORKS) })
}

func (g *gathering) list(ctx context.Context, kind agentv1.ComputeKind) error {
	_, err := g.node.Compute.Objects(ctx, &agentv1.ComputeRequest{Kind: kind})
	return err
}

// askRuntime asks containerd for its version, and for the names of the pods.
func (g *gathering) askRuntime(ctx context.Context) {
	g.probe(ctx, probeCRI, func(ctx context.Context) error {
		client, err := criclient.Open(ctx, g.node, g.options.Pipe, criclient.Options{DialNow: true, Limit: probeLimit})
		if err != nil {
			return err
		}
		defer client.Close() // an error is harmless, since nothing was written
		version, err := client.Runtime.Version(ctx, &runtimev1.VersionRequest{})
		if err != nil {
			return err
		}
		g.setVersion(Containerd, version.GetRuntimeVersion())
		sandboxes, err := client.Runtime.ListPodSandbox(ctx, &runtimev1.ListPodSandboxRequest{})
		if err != nil {
			return err
		}
		containers, err := client.Runtime.ListContainers(ctx, &runtimev1.ListContainersRequest{})
		g.learn(sandboxes.GetItems(), containers.GetContainers())
		return err
	})
}

func (g *gathering) setVersion(kind Kind, version string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range g.dump.Processes {
		if g.dump.Processes[i].Kind == kind {
			g.dump.Processes[i].Version = clean(version)
		}
	}
}

// learn remembers the pods of sandboxes and containers.
func (g *gathering) learn(sandboxes []*runtimev1.PodSandbox, containers []*runtimev1.Container) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range sandboxes {
		g.known[s.GetId()] = clean(s.GetMetadata().GetNamespace() + "/" + s.GetMetadata().GetName())
	}
	for _, c := range containers {
		if pod := g.known[c.GetPodSandboxId()]; pod != "" {
			g.known[c.GetId()] = pod
		}
	}
}

// logEnd is the part of containerd's log that is read, in bytes from its end.
const logEnd = 4 << 20

// readLog sets the calls that containerd's log shows as unanswered.
func (g *gathering) readLog(ctx context.Context) {
	found, err := logs.Find(ctx, g.node, []string{"containerd"})
	if err != nil {
		g.problem("containerd's log is not known, so calls have no pod: %v", err)
		return
	}
	found = slices.DeleteFunc(found, func(f logs.Found) bool {
		return !f.Exists || f.Rotated || strings.HasSuffix(strings.ToLower(f.Path), `\panic.log`)
	})
	if len(found) == 0 {
		g.problem("containerd has no log in a file, so calls have no pod")
		return
	}
	newest := slices.MaxFunc(found, func(a, b logs.Found) int { return a.Modified.Compare(b.Modified) })
	text, err := g.end(ctx, newest)
	if err != nil {
		g.problem("containerd's log cannot be read, so calls have no pod: %v", err)
		return
	}
	g.readCallsIn(text)
}

// end returns the end of a log.
func (g *gathering) end(ctx context.Context, file logs.Found) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the stream of a log that grows faster than it is read
	stream, err := g.node.Files.Read(ctx, &agentv1.ReadRequest{Path: file.Path, Offset: max(0, file.Size-logEnd)})
	if err != nil {
		return nil, err
	}
	var text []byte
	for len(text) <= 2*logEnd {
		reply, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return text, nil
		}
		if err != nil {
			return nil, err
		}
		text = append(text, reply.GetData()...)
	}
	return text, nil
}

func (g *gathering) readCallsIn(text []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dump.Calls, _ = readCalls(bytes.NewReader(text), g.known, g.now) // a bytes.Reader returns no error
}

// problem records what is missing.
func (g *gathering) problem(format string, args ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dump.Problems = append(g.dump.Problems, clean(fmt.Sprintf(format, args...)))
}

func parse(text []byte) (goroutines.Dump, error) { return goroutines.Parse(bytes.NewReader(text)) }
