package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/swdt-dev/swdt/internal/capture"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/hns"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

// nodeCapture is what one node gave.
type nodeCapture struct {
	result capture.Result
	part   capture.Part
	log    string // where this Windows makes no pcapng: its own log, here
}

func (a *app) runCapture(ctx context.Context, o *captureOptions) (err error) {
	if o.onStdout && isTerminal(a.streams.Out) {
		return usagef("with -w - the packets are on stdout, which is a terminal: pipe it, as in `swdt capture -w - | wireshark -k -i -`")
	}
	s, err := a.begin()
	if err != nil {
		return err
	}
	if o.named {
		if err := a.findNamed(ctx, s, o); err != nil {
			return err
		}
	}
	staging, err := capture.Stage(o.target())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, staging.Remove()) }()
	folder := staging.Path
	o.wanted.Holder, o.wanted.Stop = captureHolder(), gracefully(ctx)
	ctx, out, stop := packetsTo(ctx, a.streams.Out)
	defer stop()
	if o.onStdout {
		return unwritten(ctx, a.streamCaptures(ctx, s, o, folder, out))
	}
	shown := &packetPrinter{page: ui.NewPage(out, false), several: len(s.documents) > 1}
	if !a.inText() {
		shown.records = a.records(out)
	}
	results := a.captureAll(ctx, s, o, folder, handling{begin: func(wanted *capture.Options, names capture.Names) {
		wanted.Packet = func(p capture.Packet) error { return shown.print(names.Node, names.Of(p)) }
	}})
	if o.wanted.Live {
		return unwritten(ctx, fleet.Failures(results))
	}
	return a.writeStaged(o, staging, results)
}

// handling says what is done with packets that a node gives while it captures.
type handling struct {
	begin func(wanted *capture.Options, names capture.Names)
	end   func(node string) error // whatever came of it; nil: nothing is done
}

// captureAll captures on all nodes at once: none waits for its turn.
func (a *app) captureAll(ctx context.Context, s *session, o *captureOptions, folder string, handle handling) []fleet.Result[nodeCapture] {
	defer s.story.End()
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	return fleet.Run(ctx, s.documents, len(s.documents), func(ctx context.Context, doc config.Document) (captured nodeCapture, err error) {
		r := s.reporter(doc)
		defer ui.Done(r)
		if handle.end != nil {
			defer func() { err = errors.Join(err, handle.end(doc.Node.Metadata.Name)) }()
		}
		n, err := s.connect(ctx, doc, r)
		if err != nil {
			return nodeCapture{}, explain(ctx, err)
		}
		defer closeNode(ctx, n)
		options := o.wanted
		if options.Folder, err = nodeFolder(folder, doc); err != nil {
			return nodeCapture{}, err
		}
		captured, err = captureOn(ctx, n, doc, options, handle, r)
		return captured, explain(ctx, err)
	})
}

// nodeFolder makes the folder of one node's files.
func nodeFolder(folder string, doc config.Document) (string, error) {
	path := filepath.Join(folder, doc.Node.Metadata.Name)
	if err := os.Mkdir(path, 0o700); err != nil {
		return "", fmt.Errorf("make a folder for the capture: %w", err)
	}
	return path, nil
}

// captureOn captures on one node and brings what it captured here.
func captureOn(ctx context.Context, n *node.Node, doc config.Document, o capture.Options, handle handling, r ui.Reporter) (c nodeCapture, err error) {
	c.part.Node, c.part.Names = doc.Node.Metadata.Name, namesAt(ctx, n, doc, r)
	handle.begin(&o, c.part.Names)
	o.Begun = func() {
		if o.For > 0 {
			r.Step("capturing for %s", o.For)
		} else {
			r.Step("capturing; Ctrl-C ends it")
		}
		if o.Live {
			ui.Done(r)
		}
	}
	c.result, err = capture.Run(ctx, n, o)
	for _, warning := range c.result.Warnings {
		r.Warn("%s", warning)
	}
	var lost *node.LostError
	switch {
	case errors.As(err, &lost):
		err = fmt.Errorf("%w; the node ends the capture by itself", err)
		if !o.Live && o.Round == 0 {
			err = fmt.Errorf("%w\n%s", err, fetchLater(n.Name, c.result.ID))
		}
		return c, err
	case err != nil:
		return c, err
	case o.Live, o.Round > 0:
		return c, capture.Forget(ctx, n, c.result.ID)
	}
	return c, c.fetch(ctx, n, o.Folder, r)
}

// fetch brings what was captured here, and removes it from the node.
func (c *nodeCapture) fetch(ctx context.Context, n *node.Node, folder string, r ui.Reporter) (err error) {
	c.part.Export, err = capture.Fetch(ctx, n, c.result, folder, r)
	var failed *capture.FailedError
	if errors.As(err, &failed) { // there is no log
		return err
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, fetchLater(n.Name, c.result.ID))
	}
	c.log = c.part.Export.Log
	return capture.Forget(ctx, n, c.result.ID)
}

// namesAt say whose packets are, as far as the node's runtime, Host Network Service
// and pktmon tell. Who captures packets may well do so because one does not.
func namesAt(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) capture.Names {
	known := podsOf(ctx, n, doc, r)
	names := capture.Names{Node: doc.Node.Metadata.Name, Pods: capture.ByAddress(known.Here)}
	var err error
	if names.Components, err = capture.Components(ctx, n.Processes); err != nil {
		r.Debug("packets are not named by where they were seen: %v", err)
	}
	state, err := hns.Read(ctx, n.Compute)
	if err != nil {
		r.Debug("packets are not named by pods' adapters: %v", err)
	}
	capture.Own(names.Components, state, known)
	return names
}

// podsOf are the node's pods, as far as its runtime tells.
func podsOf(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) (known hns.Known) {
	err := withRuntime(ctx, n, doc, r, func(runtime runtimev1.RuntimeServiceClient) (err error) {
		known.Here, err = hns.Pods(ctx, runtime)
		return err
	})
	if err != nil {
		r.Debug("what is pods' is not known: %v", err)
	}
	known.Runtime = err == nil
	return known
}

// findNamed finds the addresses of the pods and Services that flags name, which may
// be of any node: their packets are wanted on all.
func (a *app) findNamed(ctx context.Context, s *session, o *captureOptions) error {
	bounded, cancel := a.global.bounded(ctx)
	known, err := a.askCluster(bounded, &o.cluster, s.story.Node(""))
	cancel()
	if err != nil {
		return err
	}
	type look struct {
		pods  []hns.Pod
		state hns.State
	}
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) (found look, err error) {
		if len(o.services) > 0 {
			if found.state, err = hns.Read(ctx, n.Compute); err != nil {
				r.Warn("endpoints of Services are not captured: %v", err)
			}
		}
		if len(o.pods) == 0 {
			return found, nil
		}
		err = withRuntime(ctx, n, doc, r, func(runtime runtimev1.RuntimeServiceClient) (err error) {
			found.pods, err = hns.Pods(ctx, runtime)
			return err
		})
		if err != nil && known.Cluster { // which knows them all
			r.Debug("%v", err)
			err = nil
		}
		return found, err
	})
	if err := fleet.Failures(results); err != nil {
		return err
	}
	var states []hns.State
	for _, result := range results {
		known.Here = append(known.Here, result.Value.pods...)
		states = append(states, result.Value.state)
	}
	pods, err := capture.PodAddresses(known, o.pods)
	if err != nil {
		return err
	}
	services, err := capture.ServiceAddresses(known, states, o.services)
	o.also(append(pods, services...))
	return err
}

// packetPrinter prints packets of several nodes, one a line.
type packetPrinter struct {
	mu      sync.Mutex
	page    *ui.Page
	records *records // nil: text
	several bool
}

// packetRecord is a packet for tools.
type packetRecord struct {
	Node string `json:"node"`
	capture.Packet
}

func (p *packetPrinter) print(node string, packet capture.Packet) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.records != nil {
		return p.records.write(packetRecord{node, packet})
	}
	line := packet.String()
	if p.several {
		line = node + "  " + line
	}
	_, err := fmt.Fprintln(p.page, line)
	return err
}
