package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/internal/push/build"
	"github.com/swdt-dev/swdt/internal/ui"
)

// buildOnce runs all builds before swdt contacts any node.
func (a *app) buildOnce(ctx context.Context, s *session, builds *build.Set) error {
	if len(builds.All) == 0 {
		return usagef("--build: no provisioner says how it is built; add build: with dir and command to it")
	}
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	err := builds.Run(ctx, a.global.dryRun, s.story.Node(""))
	a.showOutput(s, err)
	return explain(ctx, err)
}

// showOutput prints the output of a failed build with its colours, which are safe
// because the build ran on this machine.
func (a *app) showOutput(s *session, err error) {
	var failed *build.FailedError
	if !errors.As(err, &failed) || strings.TrimSpace(failed.Output) == "" {
		return
	}
	if a.global.logs == "json" {
		return // the JSON event already contains the output
	}
	s.story.Suspend(func() { fmt.Fprintln(ui.Raw(a.streams.Err), strings.TrimRight(failed.Output, "\n")) })
}
