package netprobe

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"time"
)

// Run obeys the requests on in until it ends, and writes the answers to out. The error is nil if in
// ended, and otherwise why a message could not be read or written.
func Run(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &probe{}
	defer p.close()
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 64<<10), MaxLine)
	answers := json.NewEncoder(out)
	for lines.Scan() {
		var request Request
		reply := Reply{}
		if err := json.Unmarshal(lines.Bytes(), &request); err != nil {
			reply.Error = "read the request: " + err.Error()
		} else {
			reply = p.obey(ctx, request)
		}
		reply.Version = Version
		if err := answers.Encode(reply); err != nil {
			return fmt.Errorf("write the answer: %w", err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read a request: %w", err)
	}
	return nil
}

// probe is a running probe.
type probe struct {
	serving Serve
	source  netip.Addr
	servers []io.Closer
	running sync.WaitGroup
	filled  [][]byte // the memory of loads
}

func (p *probe) close() {
	for _, s := range p.servers {
		_ = s.Close()
	}
	p.running.Wait()
}

func (p *probe) obey(ctx context.Context, r Request) Reply {
	var reply Reply
	var err error
	switch {
	case r.Serve != nil:
		reply.Served, err = p.serve(*r.Serve)
	case r.Round != nil:
		reply.Results, err = p.round(ctx, *r.Round)
	case r.Load != nil:
		var loaded Loaded
		loaded, err = p.load(ctx, *r.Load)
		reply.Loaded = &loaded
	default:
		err = errors.New("the request is empty")
	}
	if err != nil {
		reply.Error = err.Error()
	}
	return reply
}

// serve starts the servers. It is obeyed once.
func (p *probe) serve(s Serve) ([]Served, error) {
	address, err := netip.ParseAddr(s.Address)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the pod's address: %w", err)
	case p.source.IsValid():
		return nil, errors.New("the pod is served already")
	case len(s.Name) == 0 || len(s.Name) > MaxName:
		return nil, fmt.Errorf("the pod's name has %d bytes", len(s.Name))
	case len(s.Ports) > MaxTargets:
		return nil, fmt.Errorf("%d ports are too many", len(s.Ports))
	}
	p.source, p.serving = address, s
	states := make([]Served, len(s.Ports))
	for i, port := range s.Ports {
		server, err := p.listen(port)
		if err != nil {
			states[i] = Served{Error: err.Error(), Unsupported: errors.Is(err, errors.ErrUnsupported)}
			continue
		}
		p.servers = append(p.servers, server)
	}
	return states, nil
}

// round makes an attempt for each target, all at the same time.
func (p *probe) round(ctx context.Context, r Round) ([]Result, error) {
	timeout := time.Duration(r.TimeoutMS) * time.Millisecond
	switch {
	case !p.source.IsValid():
		return nil, errors.New("the pod is not served yet")
	case timeout <= 0 || timeout > MaxTimeout:
		return nil, fmt.Errorf("the timeout is %s", timeout)
	case len(r.Targets) > MaxTargets:
		return nil, fmt.Errorf("%d targets are too many", len(r.Targets))
	}
	results := make([]Result, len(r.Targets))
	var attempts sync.WaitGroup
	for i, target := range r.Targets {
		attempts.Go(func() { results[i] = p.attempt(ctx, target, timeout) })
	}
	attempts.Wait()
	return results, nil
}
