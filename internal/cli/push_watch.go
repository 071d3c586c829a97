package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/push/build"
	"github.com/swdt-dev/swdt/internal/push/live"
	"github.com/swdt-dev/swdt/internal/push/watch"
)

// runWatch pushes whenever a source changes, until Ctrl-C or q.
func (a *app) runWatch(ctx context.Context, s *session, options push.Options, builds *build.Set, then *then) error {
	if a.global.dryRun {
		return usagef("--watch and --dry-run: choose one; `push --dry-run` shows what a push would do now")
	}
	s.quiet = true
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer s.story.End()

	w, err := live.New(s.documents, live.Options{Push: options, Builds: builds, Parallel: a.global.parallel,
		Reporter: s.reporter, After: then.after(s)})
	if errors.Is(err, live.ErrNothingToWatch) {
		return usagef("--watch: %v", err)
	}
	if err != nil {
		return err
	}
	narrator := a.newNarrator(s, len(w.Remotes))
	var commands chan watch.Command
	keys := a.newKeys(s, w.Remotes, stop)
	defer keys.end()
	if keys != nil {
		s.options.Prompt = keys.early(s.options.Prompt)
		narrator.Help, narrator.AllTried = keyHelp, keys.begin(ctx)
		commands = keys.commands
	}
	return explain(ctx, then.ended(w.Run(ctx, s.options, commands, narrator.Report, s.story.Node(""))))
}

// newNarrator returns the printer of a watch's events.
func (a *app) newNarrator(s *session, nodes int) *live.Narrator {
	return &live.Narrator{
		Story: s.story, Events: a.global.logs == "json", Several: len(s.documents) > 1, Nodes: nodes,
		ShowBuild: func(err error) { a.showOutput(s, err) },
		Print: func(result push.NodeResult, lines []string) {
			if !a.inText() {
				_ = a.records(a.streams.Out).write(result) // if stdout is closed, there is no place to report the error
				return
			}
			page := a.page()
			for _, line := range lines {
				fmt.Fprintln(page, line)
			}
		},
	}
}
