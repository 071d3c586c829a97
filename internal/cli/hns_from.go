package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/inspect/hns"
)

// maxDump bounds the size of a file with HNS objects, in bytes.
const maxDump = 256 << 20

// networks reads the networks of nodes or, with --dump, of a file. open opens the session with the nodes.
func (a *app) networks(ctx context.Context, o *hnsOptions, owners bool,
	open func() (*session, error)) ([]fleet.Result[hns.View], error) {
	if o.from != "" {
		return a.networksFrom(ctx, o, owners)
	}
	s, err := open()
	if err != nil {
		return nil, err
	}
	s.quiet = true
	look, err := a.networkLook(ctx, s, o, owners)
	if err != nil {
		return nil, err
	}
	return onNodes(ctx, s, look), nil
}

// networksFrom reads the networks of a saved dump. It contacts no node; a cluster, if the flags name one, names the
// owners.
func (a *app) networksFrom(ctx context.Context, o *hnsOptions, owners bool) ([]fleet.Result[hns.View], error) {
	if len(a.global.nodes) > 0 || a.global.selector != "" {
		return nil, usagef("--dump reads a file and asks no node: leave -n and --selector out")
	}
	file, err := a.dumpFile(o.from)
	if err != nil {
		return nil, &exitError{code: exitUsage, err: err}
	}
	state, err := hns.ReadFile(file)
	if err != nil {
		return nil, &exitError{code: exitUsage, err: fmt.Errorf("read %s: %w", o.from, err)}
	}
	view := hns.View{State: state.Select(o.filter), All: state}
	if owners {
		ctx, cancel := a.global.bounded(ctx)
		defer cancel()
		story := a.newStory()
		view.Known, err = a.askCluster(ctx, &o.cluster, story.Node(""))
		story.End()
		if err != nil {
			return nil, err
		}
	}
	var document config.Document
	document.Node.Metadata.Name = filepath.Base(o.from)
	return []fleet.Result[hns.View]{{Document: document, Value: view}}, nil
}

func (a *app) dumpFile(path string) ([]byte, error) {
	in := a.streams.In
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("read the dump: %w", err)
		}
		defer file.Close()
		in = file
	}
	text, err := io.ReadAll(io.LimitReader(in, maxDump+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", path, err)
	case len(text) > maxDump:
		return nil, fmt.Errorf("%s has more than %d bytes; is it a dump of the Host Network Service?", path, maxDump)
	}
	return text, nil
}
