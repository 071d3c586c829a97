package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/transfer"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/captureplan"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// Export is a node's capture on your machine. An empty file name means that there are no
// packets of that kind.
type Export struct {
	Packets string // a pcapng file of the packets that were not dropped
	Drops   string // a pcapng file of the dropped packets
	// Sightings have the information about each packet in pktmon's text, in the order of
	// that text.
	Sightings Sightings
	// Log is pktmon's own log. Only Log is set if the node's pktmon cannot convert to pcapng.
	Log string
}

// Fetch asks the node to convert a capture to pcapng, and downloads the result into a local
// folder. If the node's pktmon cannot convert to pcapng, Fetch downloads pktmon's own log.
func Fetch(ctx context.Context, n *node.Node, captured Result, folder string, r ui.Reporter) (Export, error) {
	log := captureplan.LogFile(captured.ID)
	if _, err := n.Files.Stat(ctx, &agentv1.StatRequest{Path: log}); errors.Is(err, fault.ErrNotExist) {
		return Export{}, &FailedError{Reason: "the node has no log of the capture: " + captured.Reason}
	}
	if !captured.Exportable {
		local := filepath.Join(folder, captured.ID+".etl")
		_, err := transfer.Download(ctx, n, log, local, r)
		return Export{Log: local}, err
	}
	return exporter{n, captured.dialect, r}.export(ctx, log, folder+string(filepath.Separator))
}

// Forget removes the files of a capture from the node.
func Forget(ctx context.Context, n *node.Node, id string) error {
	e := exporter{node: n}
	return errors.Join(e.forget(ctx, captureplan.LogFile(id)), e.remove(ctx, captureplan.TextFile(id)))
}

// exporter converts logs on a node.
type exporter struct {
	node     *node.Node
	dialect  Dialect
	reporter ui.Reporter
}

// The node writes the converted files beside the log. The name of a converted file is the name of
// the log, a dot, and one of these texts.
const (
	packetsFile = "packets.pcapng"
	dropsFile   = "drops.pcapng"
	textFile    = "txt"
)

// export converts a log to pcapng and downloads it; the names of the local files begin with
// prefix. It runs pktmon for the packets that were not dropped, and for the dropped packets. If
// there are packets, it also runs pktmon for the text, which has the reasons of drops and the
// components.
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

// pcapng converts the log to one file and downloads that file. It returns the name "" if
// there are no packets.
func (e exporter) pcapng(ctx context.Context, log, name, prefix string, more ...string) (string, error) {
	remote, local := log+"."+name, prefix+name
	if _, err := output(ctx, e.node.Processes, append([]string{e.dialect.ToPcap, log, "--out", remote},
		more...)...); err != nil {
		return "", err
	}
	_, err := transfer.Download(ctx, e.node, remote, local, e.reporter)
	if errors.Is(err, fault.ErrNotExist) { // without packets, pktmon may write no file
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

// sightings reads the sightings in the text at path. The node sends only the lines with
// information about packets, not the lines that print the packets themselves.
func sightings(ctx context.Context, files agentv1.FilesClient, path string) (Sightings, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := files.Tail(ctx, &agentv1.TailRequest{Path: path, Lines: -1, Contains: [][]byte{[]byte(aboutMark)}})
	if err != nil {
		return Sightings{}, fmt.Errorf("read pktmon's text about the packets: %w", err)
	}
	var lines sightingLines
	for {
		reply, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return lines.Sightings, nil
		}
		if err != nil {
			return Sightings{}, fmt.Errorf("read pktmon's text about the packets: %w", err)
		}
		if err := lines.add(reply.GetData()); err != nil {
			return Sightings{}, fmt.Errorf("read pktmon's text about the packets: %w", err)
		}
	}
}

// forget removes a log and the files converted from it.
func (e exporter) forget(ctx context.Context, log string) error {
	var errs []error
	for _, name := range []string{packetsFile, dropsFile, textFile} {
		errs = append(errs, e.remove(ctx, log+"."+name))
	}
	return errors.Join(append(errs, e.remove(ctx, log))...)
}

func (e exporter) remove(ctx context.Context, path string) error {
	_, err := e.node.Files.Remove(ctx, &agentv1.RemoveRequest{Path: path})
	if err != nil && !errors.Is(err, fault.ErrNotExist) {
		return fmt.Errorf("remove the capture from the node: %w", err)
	}
	return nil
}
