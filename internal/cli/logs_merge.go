package cli

import (
	"context"
	"errors"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/logs"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

// mergeLogs reads all nodes side by side, all of them at once: one that waited for
// its turn would hold the others' lines up.
func (a *app) mergeLogs(ctx context.Context, s *session, options logs.Options, o *logsOptions, sink logs.Sink) error {
	defer s.story.End()
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	merger := logs.NewMerger(options.Follow, sink)
	inputs := map[string]*logs.Input{}
	for _, document := range s.documents {
		inputs[document.Node.Metadata.Name] = merger.Begin()
	}
	reading := make(chan []fleet.Result[struct{}], 1)
	go func() {
		reading <- fleet.Run(ctx, s.documents, len(s.documents), func(ctx context.Context, document config.Document) (struct{}, error) {
			in := inputs[document.Node.Metadata.Name]
			err := s.nodeLogs(ctx, document, options, o, merger, in)
			in.Close(ctx)
			return struct{}{}, explain(ctx, err)
		})
	}()
	err := merger.Run(ctx)
	if err != nil {
		cancel() // a stdout that is gone, or the end of ctx, which the readers say
	}
	results := <-reading
	if err != nil && !errors.Is(err, context.Canceled) {
		return explain(ctx, err)
	}
	return fleet.Failures(results)
}

// nodeLogs reads one node's logs, by the way that was asked for.
func (s *session) nodeLogs(ctx context.Context, document config.Document, options logs.Options, o *logsOptions, merger *logs.Merger, in *logs.Input) error {
	r := s.reporter(document)
	defer ui.Done(r)
	if o.via == viaAPI {
		return s.logsByAPI(ctx, document, options, o, merger, in, r)
	}
	n, err := s.connect(ctx, document, r)
	var unreachable *node.UnreachableError
	if errors.As(err, &unreachable) && o.via == viaAuto && o.cluster.named() && !options.Follow {
		r.Warn("SSH: %v; asking the API server instead", err)
		return s.logsByAPI(ctx, document, options, o, merger, in, r)
	}
	if err != nil {
		return err
	}
	defer closeNode(ctx, n)
	ui.Done(r)
	return logs.Show(ctx, n, options, merger, in, r)
}

func (s *session) logsByAPI(ctx context.Context, document config.Document, options logs.Options, o *logsOptions, merger *logs.Merger, in *logs.Input, r ui.Reporter) error {
	cluster, err := o.cluster.open()
	if err != nil {
		return err
	}
	return logs.ShowByAPI(ctx, cluster, node.LikelyObjectName(document.Node), options, merger, in, r)
}
