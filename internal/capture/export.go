package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/pktmon"
	"github.com/swdt-dev/swdt/internal/transfer"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Export is a node's capture, here. A file of which the name is empty has no
// packets.
type Export struct {
	Packets string // a pcapng file of the packets that went on
	Drops   string // and one of those that were dropped
	// Sightings are what pktmon's text says of each, in the order of the text.
	Sightings Sightings
	// Log is set in place of the others where the node's Windows makes no pcapng: its
	// log as it is.
	Log string
}

// Fetch has the node make pcapng of a capture and brings that into a local folder.
func Fetch(ctx context.Context, n *node.Node, captured Result, folder string, r ui.Reporter) (Export, error) {
	log := pktmon.LogFile(captured.ID)
	if _, err := n.Files.Stat(ctx, &agentv1.StatRequest{Path: log}); errors.Is(err, host.ErrNotExist) {
		return Export{}, &FailedError{Reason: "the node has no log of them: " + captured.Reason}
	}
	if !captured.Exportable {
		local := filepath.Join(folder, captured.ID+".etl")
		_, err := transfer.Download(ctx, n, log, local, r)
		return Export{Log: local}, err
	}
	return exporter{n, captured.dialect, r}.export(ctx, log, folder+string(filepath.Separator))
}

// Forget removes what a capture left on the node.
func Forget(ctx context.Context, n *node.Node, id string) error {
	e := exporter{node: n}
	return errors.Join(e.forget(ctx, pktmon.LogFile(id)), e.remove(ctx, pktmon.TextFile(id)))
}

// exporter makes other files of logs on a node.
type exporter struct {
	node     *node.Node
	dialect  Dialect
	reporter ui.Reporter
}

// The files that are made of a log, beside it.
const (
	packetsFile = "packets.pcapng"
	dropsFile   = "drops.pcapng"
	textFile    = "txt"
)

// export makes pcapng of a log and brings it here; the names of the local files
// begin with prefix. pktmon leaves dropped packets out, and then why they were, and
// where a packet was seen: so it is asked three times.
func (e exporter) export(ctx context.Context, log, prefix string) (x Export, err error) {
	e.reporter.Step("converting the capture on the node")
	if x.Packets, err = e.pcapng(ctx, log, packetsFile, prefix); err != nil {
		return x, err
	}
	if x.Drops, err = e.pcapng(ctx, log, dropsFile, prefix, "--drop-only"); err != nil {
		return x, err
	}
	if x.Packets == "" && x.Drops == "" {
		return x, nil
	}
	text := log + "." + textFile
	if _, err := output(ctx, e.node.Processes, e.dialect.ToText, log, "--out", text); err != nil {
		return x, err
	}
	x.Sightings, err = sightings(ctx, e.node.Files, text)
	return x, err
}

// pcapng makes one file and brings it here; its name is empty where it has nothing.
func (e exporter) pcapng(ctx context.Context, log, name, prefix string, more ...string) (string, error) {
	remote, local := log+"."+name, prefix+name
	if _, err := output(ctx, e.node.Processes, append([]string{e.dialect.ToPcap, log, "--out", remote}, more...)...); err != nil {
		return "", err
	}
	_, err := transfer.Download(ctx, e.node, remote, local, e.reporter)
	if errors.Is(err, host.ErrNotExist) { // of no packets, it may make no file
		return "", nil
	}
	if err != nil {
		return "", err
	}
	packets, err := packetsIn(local)
	if err != nil || packets > 0 {
		return local, err
	}
	return "", os.Remove(local)
}

// sightings are those of a text; the node sends only the lines about packets, not
// the packets.
func sightings(ctx context.Context, files agentv1.FilesClient, path string) (Sightings, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := files.Tail(ctx, &agentv1.TailRequest{Path: path, Lines: -1, Contains: [][]byte{[]byte(aboutMark)}})
	if err != nil {
		return Sightings{}, fmt.Errorf("read what pktmon says of the packets: %w", err)
	}
	var lines sightingLines
	for {
		reply, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return lines.Sightings, nil
		}
		if err != nil {
			return Sightings{}, fmt.Errorf("read what pktmon says of the packets: %w", err)
		}
		if err := lines.add(reply.GetData()); err != nil {
			return Sightings{}, fmt.Errorf("read what pktmon says of the packets: %w", err)
		}
	}
}

// forget removes a log and what was made of it.
func (e exporter) forget(ctx context.Context, log string) error {
	var errs []error
	for _, name := range []string{packetsFile, dropsFile, textFile} {
		errs = append(errs, e.remove(ctx, log+"."+name))
	}
	return errors.Join(append(errs, e.remove(ctx, log))...)
}

func (e exporter) remove(ctx context.Context, path string) error {
	_, err := e.node.Files.Remove(ctx, &agentv1.RemoveRequest{Path: path})
	if err != nil && !errors.Is(err, host.ErrNotExist) {
		return fmt.Errorf("remove the capture from the node: %w", err)
	}
	return nil
}
