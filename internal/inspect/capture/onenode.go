package capture

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/inspect/hns"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
)

// NodeCapture is the result of a capture on one node, with its local files.
type NodeCapture struct {
	result Result
	part   Part
	log    string // the local copy of the node's own log, if the node cannot convert to pcapng; else ""
}

// Handling processes the packets of a node while the node captures.
type Handling struct {
	Begin func(wanted *Options, names Names)
	End   func(node string) error // called at the end of the capture, also after an error; nil: not called
}

// nodeFolder makes the folder of one node's files.
func nodeFolder(folder string, doc config.Document) (string, error) {
	path := filepath.Join(folder, doc.Node.Metadata.Name)
	if err := os.Mkdir(path, 0o700); err != nil {
		return "", fmt.Errorf("make a folder for the capture: %w", err)
	}
	return path, nil
}

// On captures packets on one node, and downloads them to a subfolder of folder.
func On(
	ctx context.Context, n *node.Node, doc config.Document, o Options, handle Handling, folder string, r ui.Reporter,
) (c NodeCapture, err error) {
	if o.Folder, err = nodeFolder(folder, doc); err != nil {
		return c, err
	}
	c.part.Node, c.part.Names = doc.Node.Metadata.Name, namesAt(ctx, n, doc, r)
	handle.Begin(&o, c.part.Names)
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
	c.result, err = Run(ctx, n, o)
	for _, warning := range c.result.Warnings {
		r.Warn("%s", warning)
	}
	var lost *node.LostError
	switch {
	case errors.As(err, &lost):
		err = fmt.Errorf("%w; the node ends the capture by itself", err)
		if !o.Live && o.Round == 0 {
			err = fmt.Errorf("%w\n%s", err, fetchLater(c.result.ID))
		}
		return c, err
	case err != nil:
		return c, err
	case o.Live, o.Round > 0:
		return c, Forget(ctx, n, c.result.ID)
	}
	return c, c.fetch(ctx, n, o.Folder, r)
}

// fetch downloads the captured packets, and removes them from the node.
func (c *NodeCapture) fetch(ctx context.Context, n *node.Node, folder string, r ui.Reporter) (err error) {
	c.part.Export, err = Fetch(ctx, n, c.result, folder, r)
	var failed *FailedError
	if errors.As(err, &failed) { // the node has no log to fetch later
		return err
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, fetchLater(c.result.ID))
	}
	c.log = c.part.Export.Log
	return Forget(ctx, n, c.result.ID)
}

// FetchEarlier downloads the packets of an earlier capture, which are still on the node, into a
// subfolder of folder.
func FetchEarlier(ctx context.Context, n *node.Node, doc config.Document, id, folder string,
	r ui.Reporter) (c NodeCapture, err error) {
	if folder, err = nodeFolder(folder, doc); err != nil {
		return c, err
	}
	left, err := FindUnfetched(ctx, n, id)
	if err != nil {
		return c, err
	}
	result, release, err := left.Reserve(ctx, n)
	if err != nil {
		return c, err
	}
	defer release()
	c.result, c.part.Node = result, doc.Node.Metadata.Name
	c.part.Names = namesAt(ctx, n, doc, r)
	return c, c.fetch(ctx, n, folder, r)
}

// namesAt returns the owners of packets, as far as the node's runtime, Host Network Service
// and pktmon answer. Errors are only logged, since people also capture packets to find out
// why one of these does not answer.
func namesAt(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) Names {
	known := KnownPods(ctx, n, doc, r)
	names := Names{Node: doc.Node.Metadata.Name, Pods: ByAddress(known.Here)}
	var err error
	if names.Components, err = Components(ctx, n.Processes); err != nil {
		r.Debug("the components that saw packets are unknown: %v", err)
	}
	state, err := hns.Read(ctx, n.Compute)
	if err != nil {
		r.Debug("the pods' adapters are unknown: %v", err)
	}
	Own(names.Components, state, known)
	return names
}

// KnownPods returns the node's pods if the node's container runtime answers.
func KnownPods(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) (known hns.Known) {
	var err error
	if known.Here, err = hns.PodsOf(ctx, n, doc.RuntimePipe(), r); err != nil {
		r.Debug("the node's pods are unknown: %v", err)
	}
	known.Runtime = err == nil
	return known
}

// fetchLater returns a text that explains how to fetch packets that are still on the node.
func fetchLater(id string) string {
	return fmt.Sprintf("the packets stay on the node for an hour, but not beyond the next capture: %s",
		remedy.Command("capture", "fetch", id, "-w", "FILE"))
}
