package trial

import (
	"context"

	"github.com/swdt-dev/swdt/internal/proof/evidence"
	"github.com/swdt-dev/swdt/internal/proof/suite"
)

// recorder records a run; its zero value records nothing.
type recorder struct{ *evidence.Recorder }

// take takes in the progress of the run.
func (r recorder) take(p suite.Progress) {
	if r.Recorder != nil && p.Ended != "" {
		r.Ended(p.Outcome == suite.Passed)
	}
}

// beginEvidence begins to record the run whose output is in a file. endEvidence ends that, also after ctx of
// the command has ended, since the specs then clean up.
func (t *trial) beginEvidence(output string) (recorder, error) {
	if t.Evidence == nil {
		return recorder{}, nil
	}
	r, err := evidence.Record(context.Background(), t.c, func() (string, error) { return suite.RunID(output) })
	return recorder{r}, err
}

// interrupted is the state of a spec that the end of the command has ended.
const interrupted = "interrupted"

// endEvidence writes the evidence of the specs that failed in a run by themselves.
func (t *trial) endEvidence(ctx context.Context, r recorder, run int, report suite.Report) error {
	if r.Recorder == nil {
		return nil
	}
	r.Stop()
	var failed []suite.Result
	for _, result := range report.Results {
		if result.Outcome == suite.Failed && (ctx.Err() == nil || result.State != interrupted) {
			failed = append(failed, result)
		}
	}
	bundles, err := r.Write(ctx, t.report.Folder, run, failed, *t.Evidence, t.Reporter)
	t.bundles = append(t.bundles, bundles)
	return err
}
