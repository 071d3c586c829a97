package hang

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// Only the agent knows that a shim accepted the question. Any other deadline may be that of a slow connection.
func TestOnlyTheAgentCallsAShimSilent(t *testing.T) {
	for _, c := range []struct {
		err   error
		waits int
	}{
		{context.DeadlineExceeded, 0}, {errNotAsked, 0}, {fmt.Errorf("%w: %w", fault.ErrSilent, context.DeadlineExceeded), 1},
	} {
		g := &gathering{dump: Node{Processes: []Process{{Kind: Shim, PID: 8}}}}
		g.fail(0, byShimdiag, c.err)
		g.dump.Analyse()
		if n := g.dump; len(n.Waits) != c.waits || c.waits == 0 && (strings.Contains(n.Remedy, "hcs kill") || len(n.Unread) == 0) {
			t.Errorf("%v: %s; %q", c.err, n.Verdict, n.Remedy)
		}
	}
}
