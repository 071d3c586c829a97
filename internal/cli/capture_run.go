package cli

import (
	"context"
	"errors"
	"io"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/inspect/capture"
	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/interrupt"
)

func (a *app) runCapture(ctx context.Context, o *captureOptions) (err error) {
	if o.onStdout && isTerminal(a.streams.Out) {
		return usagef("with -w - the packets are on stdout, which is a terminal: pipe it, as in " +
			"`swdt capture -w - | wireshark -k -i -`")
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
	o.wanted.Holder, o.wanted.Stop = captureHolder(), interrupt.Gracefully(ctx)
	ctx, out, stop := capture.ToStdout(ctx, a.streams.Out)
	defer stop()
	if o.onStdout {
		return capture.Unwritten(ctx, a.streamCaptures(ctx, s, o, folder, out))
	}
	shown := &capture.Printer{Page: ui.NewPage(out, false), Several: len(s.documents) > 1}
	if !a.inText() {
		records := a.records(out)
		shown.Record = func(r capture.Record) error { return records.write(r) }
	}
	results := a.captureAll(ctx, s, o,
		folder, capture.Handling{Begin: func(wanted *capture.Options, names capture.Names) {
			wanted.Packet = func(p capture.Packet) error { return shown.Print(names.Node, names.Of(p)) }
		}})
	if o.wanted.Live {
		return capture.Unwritten(ctx, fleet.Failures(results))
	}
	return a.writeStaged(o, staging, results)
}

// captureAll captures on all nodes at the same time: no node waits for another.
func (a *app) captureAll(ctx context.Context, s *session, o *captureOptions, folder string,
	handle capture.Handling) []fleet.Result[capture.NodeCapture] {
	defer s.story.End()
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	return fleet.Run(ctx, s.documents, len(s.documents),
		func(ctx context.Context, doc config.Document) (captured capture.NodeCapture, err error) {
			r := s.reporter(doc)
			defer ui.Done(r)
			if handle.End != nil {
				defer func() { err = errors.Join(err, handle.End(doc.Node.Metadata.Name)) }()
			}
			n, err := s.connect(ctx, doc, r)
			if err != nil {
				return capture.NodeCapture{}, explain(ctx, err)
			}
			defer n.Leave(ctx)
			captured, err = capture.On(ctx, n, doc, o.wanted, handle, folder, r)
			return captured, explain(ctx, err)
		})
}

// streamCaptures writes the captured packets to stdout as they arrive, and reports
// on stderr.
func (a *app) streamCaptures(ctx context.Context, s *session, o *captureOptions, folder string,
	out io.Writer) (err error) {
	var nodes []string
	for _, doc := range s.documents {
		nodes = append(nodes, doc.Node.Metadata.Name)
	}
	stream, err := capture.NewStream(out, nodes...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stream.Close()) }()
	results := a.captureAll(ctx, s, o, folder, capture.Handling{
		Begin: func(wanted *capture.Options, names capture.Names) {
			wanted.Fetched = func(r capture.Round) error {
				return stream.Add(capture.Part{Names: names, Export: r.Export}, r.Until)
			}
		},
		End: stream.End,
	})
	report := capture.ReportStream(stream, results)
	return errors.Join(report.WriteText(ui.NewPage(a.streams.Err, false)), fleet.Failures(results))
}

// writeStaged writes the captures to their files, and prints the files' names.
func (a *app) writeStaged(o *captureOptions, staging *localfile.Staging,
	results []fleet.Result[capture.NodeCapture]) error {
	report, err := capture.Write(o.file, staging, results)
	return errors.Join(err, a.print(report, report.WriteText), fleet.Failures(results))
}

// findNamed adds the addresses of the pods and Services that flags name to o.wanted.
func (a *app) findNamed(ctx context.Context, s *session, o *captureOptions) error {
	bounded, cancel := a.global.bounded(ctx)
	known, err := a.askCluster(bounded, &o.cluster, s.story.Node(""))
	cancel()
	if err != nil {
		return err
	}
	named := capture.Named{Pods: o.pods, Services: o.services}
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document,
		r ui.Reporter) (capture.Found, error) {
		return named.Look(ctx, n, doc, known, r)
	})
	if err := fleet.Failures(results); err != nil {
		return err
	}
	var found []capture.Found
	for _, result := range results {
		found = append(found, result.Value)
	}
	addresses, err := named.Addresses(known, found)
	o.wanted.Addresses = append(o.wanted.Addresses, addresses...)
	return err
}
