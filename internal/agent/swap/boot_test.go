package swap_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/swdt-dev/swdt/internal/agent/swap"
	"github.com/swdt-dev/swdt/internal/format/access"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// cutOnce cuts the power when the guardian has recorded a state for the first time.
func (r *run) cutOnce(state string) {
	var cut atomic.Bool
	r.OnOperation(func(op simulated.Operation) simulated.Verdict {
		recorded := op.Service == layout.GuardianService && op.Phase == simulated.After && op.Kind == simulated.OpSync &&
			strings.Contains(string(r.journal()), `"`+state+`"`)
		if !recorded || !cut.CompareAndSwap(false, true) {
			return simulated.Continue()
		}
		return simulated.PowerCut()
	})
}

// journal returns the text of the only journal; nil: none.
func (r *run) journal() []byte {
	files := r.Spawn("look.exe").Platform.Files
	entries, err := files.List(layout.Journals)
	if err != nil || len(entries) == 0 {
		return nil
	}
	f, err := files.Open(entries[0].Path)
	if err != nil {
		return nil
	}
	defer f.Close()
	text, _ := io.ReadAll(f)
	return text
}

// secondBoot reports whether the machine has booted twice.
func (r *run) secondBoot() bool {
	facts, err := r.Spawn("look.exe").Platform.Machine.Facts(context.Background())
	return err == nil && facts.BootID == "2"
}

// A backup that lets no other program read the journal, at the boot after a power cut, delays the guardian and ends
// nothing.
func TestABackupReadsTheJournalAtTheBoot(t *testing.T) {
	for _, d := range []time.Duration{20 * time.Second, 80 * time.Second} { // the second is longer than the patience
		t.Run(d.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { backUpAtTheBoot(t, d) })
		})
	}
}

func backUpAtTheBoot(t *testing.T, d time.Duration) {
	r := newRun(t, "")
	r.cutOnce("swapped")
	var held atomic.Bool
	r.Interleave(func(op simulated.Operation) {
		boots := op.Service == layout.GuardianService && strings.HasSuffix(op.Target, ".jsonl") && r.secondBoot()
		if !boots || !held.CompareAndSwap(false, true) {
			return
		}
		h, err := r.Spawn("backup.exe").Hold(op.Target, access.ReadData, true)
		if err != nil {
			t.Error(err)
			return
		}
		time.AfterFunc(d, func() { _ = h.Close() })
	})
	r.transact()
	eventually(t, "half a minute is over", minute())
	eventually(t, "another half minute is over", minute())
	r.healed(t)
	r.checkNode(t, "without any contact")
	if !held.Load() {
		t.Fatal("no guardian opened the journal after the boot")
	}
	r.contact(t)
	if results := r.results(); !slices.Equal(results, []swap.Result{swap.Committed}) {
		t.Errorf("the push ended with %v (%+v)", results, r.told)
	}
	r.check(t, "after the next contact")
}

// factless is a computer that does not report its facts.
type factless struct{ platform.Machine }

func (factless) Facts(context.Context) (platform.Facts, error) {
	return platform.Facts{}, errors.New("the registry is being loaded")
}

// A guardian that continues a finished swap needs no facts of the machine.
func TestASwapIsNotUndoneForAFact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRun(t, "")
		r.Register(simulated.AgentProgram(simulated.Agent{Hash: r.hashAt(t, r.agent), Main: func(ctx context.Context,
			p *platform.Platform, executable string, args []string, in io.Reader, out, errs io.Writer) int {
			if r.secondBoot() {
				p.Machine = factless{p.Machine}
			}
			return guardianMain(ctx, p, executable, args, in, out, errs)
		}}))
		r.cutOnce("swapped")
		r.transact()
		r.healed(t)
		r.contact(t)
		if results := r.results(); !slices.Equal(results, []swap.Result{swap.Committed}) {
			t.Errorf("the push ended with %v (%+v)", results, r.told)
		}
	})
}
