package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/swdt-dev/swdt/internal/capture"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/ui"
)

// streamCaptures writes what the nodes capture to stdout as it comes, and tells of
// it on stderr.
func (a *app) streamCaptures(ctx context.Context, s *session, o *captureOptions, folder string, out io.Writer) (err error) {
	var nodes []string
	for _, doc := range s.documents {
		nodes = append(nodes, doc.Node.Metadata.Name)
	}
	stream, err := capture.NewStream(out, nodes...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stream.Close()) }()
	results := a.captureAll(ctx, s, o, folder, handling{
		begin: func(wanted *capture.Options, names capture.Names) {
			wanted.Fetched = func(r capture.Round) error {
				return stream.Add(capture.Part{Names: names, Export: r.Export}, r.Until)
			}
		},
		end: stream.End,
	})
	return errors.Join(a.tellOfStream(stream, results), fleet.Failures(results))
}

// tellOfStream tells on stderr, since packets are on stdout.
func (a *app) tellOfStream(stream *capture.Stream, results []fleet.Result[nodeCapture]) error {
	report := captureReport{Nodes: []capturedNode{}}
	all := capturedFile{File: stdoutFile}
	for _, result := range results {
		captured := result.Value.result
		one := capturedNode{
			frame: newFrame(result.Name(), resultOK, result.Err), Reason: captured.Reason, Message: missed(captured),
			capturedFile: capturedFile{File: stdoutFile, Count: stream.Count(result.Name())},
		}
		all.Count = all.Plus(one.Count)
		report.Nodes = append(report.Nodes, one)
	}
	if len(results) > 1 {
		report.Merged = &all
	}
	return report.text(ui.NewPage(a.streams.Err, false))
}

// missed is what a file would have and these rounds have not.
func missed(r capture.Result) string {
	if r.Rounds.Closed == 0 {
		return ""
	}
	return fmt.Sprintf("%d rounds; between them nothing was captured, for %s in all: -w FILE has no such gaps",
		r.Rounds.Closed+1, r.Rounds.Missed.Round(time.Millisecond))
}
