package trial

import (
	"fmt"

	"github.com/swdt-dev/swdt/internal/proof/suite"
	"github.com/swdt-dev/swdt/internal/ui"
)

// display reports the progress of a run to people.
type display struct {
	r       ui.Reporter
	specs   []suite.Spec
	history history
	run     string // such as "run 2 of 5: "; "" if there is only one
	done    map[string]bool
}

func newDisplay(r ui.Reporter, specs []suite.Spec, h history, run string) *display {
	return &display{r: r, specs: specs, history: h, run: run, done: map[string]bool{}}
}

// show reports a change.
func (d *display) show(p suite.Progress) {
	if p.Ended != "" {
		d.done[p.Ended] = true
		if p.Outcome == suite.Failed {
			d.r.Warn("%sfailed: %s", d.run, p.Ended)
		}
	}
	if p.Current == "" && p.Done < p.Total { // no report between two specs: the next one follows at once
		return
	}
	text := fmt.Sprintf("%s%d of %d specs", d.run, p.Done, p.Total)
	if p.Failed > 0 {
		text += fmt.Sprintf(", %d failed", p.Failed)
	}
	if left, known := d.history.estimate(d.specs, d.done); known && p.Done < p.Total {
		text += ", about " + ui.Seconds(left) + " left"
	}
	if p.Current != "" {
		text += ": " + p.Current
	}
	d.r.Step("%s", text)
}
