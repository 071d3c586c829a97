package hang

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/format/goroutines"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// shim is a shim to ask: its place in the processes of the dump, and its namespace in containerd.
type shim struct {
	at        int
	namespace string
}

// The sources of goroutines.
const (
	byEvent    = "event"
	byShimdiag = "shimdiag"
	byPprof    = "pprof"
	byFile     = "file"
)

var errNotAsked = errors.New("not asked: the time for the dump was over")

// containerd reads the goroutines of containerd.
func (g *gathering) containerd(ctx context.Context, at int) {
	dump, err := g.stacks(ctx, &agentv1.StacksRequest{Pid: g.dump.Processes[at].PID})
	if errors.Is(err, fault.ErrNotExist) {
		err = errors.New("it has no event for its goroutines")
	}
	g.took(at, byEvent, dump, err)
}

// shim reads the goroutines of a shim.
func (g *gathering) shim(ctx context.Context, s shim) {
	p := g.dump.Processes[s.at]
	dump, err := g.stacks(ctx, &agentv1.StacksRequest{Pid: p.PID, Namespace: s.namespace, Id: p.ID})
	if errors.Is(err, fault.ErrNotExist) {
		err = errors.New("it has no pipe for its goroutines")
	}
	g.took(s.at, byShimdiag, dump, err)
}

// kubelet reads the goroutines of kubelet through the API server.
func (g *gathering) kubelet(ctx context.Context, at int) {
	if g.options.Kubelet == nil {
		g.fail(at, byPprof, errors.New("not asked: kubelet serves its goroutines through the API server alone; set --kubeconfig"))
		return
	}
	body, err := g.options.Kubelet(ctx)
	if err != nil {
		g.fail(at, byPprof, err)
		return
	}
	defer body.Close()
	dump, err := goroutines.Parse(body)
	g.took(at, byPprof, dump, err)
}

// kubeProxy reads the goroutines of kube-proxy from the node itself.
func (g *gathering) kubeProxy(ctx context.Context, at int) {
	url, err := url.Parse(g.options.MetricsURL)
	if err != nil {
		g.fail(at, byPprof, err)
		return
	}
	url.Path, url.RawQuery = "/debug/pprof/goroutine", "debug=2"
	reply, err := g.node.Network.HTTPGet(ctx, &agentv1.HTTPGetRequest{Url: url.String()})
	switch {
	case err != nil:
	case reply.GetStatus() == http.StatusNotFound || reply.GetStatus() == http.StatusForbidden:
		err = errors.New("its profiling is off: set enableProfiling in its configuration")
	case reply.GetStatus() != http.StatusOK:
		err = fmt.Errorf("it answers with status %d", reply.GetStatus())
	}
	if err != nil {
		g.fail(at, byPprof, err)
		return
	}
	dump, err := parse(reply.GetBody())
	const mostBody = 1 << 20 // the agent's limit
	dump.Cut = dump.Cut || len(reply.GetBody()) >= mostBody
	g.took(at, byPprof, dump, err)
}

// stacks reads the goroutines that the agent gets.
func (g *gathering) stacks(ctx context.Context, request *agentv1.StacksRequest) (goroutines.Dump, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the stream of a node that sends without end
	stream, err := g.node.Processes.Stacks(ctx, request)
	if err != nil {
		return goroutines.Dump{}, err
	}
	var text []byte
	cut := false
	for len(text) <= goroutines.MostBytes {
		reply, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return goroutines.Dump{}, err
		}
		if len(reply.GetData()) == 0 && !reply.GetCut() {
			return goroutines.Dump{}, errors.New("the node's answer is empty")
		}
		text, cut = append(text, reply.GetData()...), cut || reply.GetCut()
	}
	dump, err := parse(text)
	dump.Cut = dump.Cut || cut
	return dump, err
}

// took sets the goroutines of a process, or why there are none.
func (g *gathering) took(at int, source string, dump goroutines.Dump, err error) {
	if err == nil && len(dump.Goroutines) == 0 {
		err = errors.New("its answer has no goroutines")
	}
	if err != nil {
		g.fail(at, source, err)
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dump.Processes[at].Source = source
	g.dump.Processes[at].take(dump)
}

// fail sets why the goroutines of a process are missing.
func (g *gathering) fail(at int, source string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := &g.dump.Processes[at]
	p.Source, p.Error = source, clean(err.Error())
	p.Silent = p.Kind == Shim && errors.Is(err, fault.ErrSilent)
}
