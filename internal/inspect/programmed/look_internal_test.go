package programmed

import (
	"testing"

	"github.com/swdt-dev/swdt/internal/inspect/kubeproxy"
)

// TestOnlyWhatHoldsStillCounts checks that a difference counts only if two looks have it, and its Service did not change
// between them.
func TestOnlyWhatHoldsStillCounts(t *testing.T) {
	look := func(version string, findings ...kubeproxy.Finding) view {
		return view{Snapshot: &Snapshot{versions: map[string]string{"shop/web": version}}, Report: kubeproxy.Report{Findings: findings}}
	}
	missing := kubeproxy.Finding{Kind: kubeproxy.Missing, Service: "shop/web", At: "10.96.0.20:80/tcp"}
	other := kubeproxy.Finding{Kind: kubeproxy.Missing, Service: "shop/web", At: "10.96.0.20:80/tcp", Lacks: []string{"10.244.1.1"}}
	stale := kubeproxy.Finding{Kind: kubeproxy.StaleRemote, ID: "E1"}
	for name, c := range map[string]struct {
		before, now     view
		confirmed, open int
	}{
		"the first look":               {view{}, look(" 1 7", missing, stale), 0, 2},
		"found twice":                  {look(" 1 7", missing, stale), look(" 1 7", missing, stale), 2, 0},
		"programmed meanwhile":         {look(" 1 7", missing, stale), look(" 1 7", stale), 1, 0},
		"the Service changed":          {look(" 1 7", missing), look(" 1 8", missing), 0, 1},
		"the backends changed":         {look(" 1 7", missing), look(" 1 7", other), 0, 1},
		"another Service is new":       {look(" 1 7", stale), look(" 1 7", stale, missing), 1, 1},
		"no difference, and then none": {look(" 1 7"), look(" 1 7"), 0, 0},
	} {
		confirmed, open := c.now.since(c.before)
		if len(confirmed) != c.confirmed || len(open) != c.open {
			t.Errorf("%s: %d confirmed and %d open, want %d and %d", name, len(confirmed), len(open), c.confirmed, c.open)
		}
	}
}
