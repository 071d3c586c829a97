// Package install watches the unattended installation of Windows in a VM, from power on until the
// VM shuts down by itself, which is the last thing that the first-boot script makes it do. If the
// installation goes wrong, package install gives up with a reason.
//
// Windows Setup reports nothing to the outside. The package concludes the progress from signs that
// every virtualisation shows: resets, bytes read from the CDs and written to the disk, and the marks
// that the first-boot script writes to the serial port.
//
//   - install.go: the stages, and the loop
//   - judge.go: which stage the signs mean, and when to give up
//   - failure.go: why an installation ended without success
package install

import (
	"context"
	"slices"
	"time"

	"github.com/swdt-dev/swdt/internal/localfile/earlier"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/wait"
)

// Stage is a part of an installation.
type Stage string

const (
	Boot   Stage = "boot"   // the firmware starts the CD, which loads Windows Setup
	Copy   Stage = "copy"   // Windows Setup prepares the disk and copies Windows to it
	SetUp  Stage = "set-up" // Windows starts from the disk, and finds its devices
	Script Stage = "script" // the first-boot script works
	End    Stage = "end"    // the script has ended; the VM will shut down
)

// Stages returns all stages in their order.
func Stages() []Stage { return []Stage{Boot, Copy, SetUp, Script, End} }

// title describes the stage for people, such as "copy Windows to the disk".
func (s Stage) title() string {
	return map[Stage]string{
		Boot:   "start Windows Setup from the CD",
		Copy:   "copy Windows to the disk",
		SetUp:  "set up devices and accounts",
		Script: "run the first-boot script",
		End:    "shut down",
	}[s]
}

// Guest is the running VM in which Windows is installed.
type Guest interface {
	// Look observes the VM.
	Look(ctx context.Context) (Signs, error)
	// PressKey presses and releases one key, named as vm.Driver names it.
	PressKey(ctx context.Context, key string) error
}

// Signs are the observations of a VM from the outside.
type Signs struct {
	State   vm.State
	Reason  string // explains Paused and Crashed
	Resets  int    // since power on
	Loaded  int64  // bytes that were read from the CDs since power-on
	Written int64  // bytes that were written to the disk since power-on
	Marks   []Mark // all marks since power on
}

// Mark is a line that the first-boot script has written to the serial port.
type Mark struct {
	Stage   string // the name of the script's stage
	Failed  bool
	Message string
	Last    bool // the script has ended
}

// Options select when Watch gives up.
type Options struct {
	// Slowness multiplies the default limits: 1 with an accelerator, about 10 without. 0 means 1.
	Slowness int
	// Limits replace the default time limits of stages; Slowness does not multiply them. A stage
	// that is not in Limits keeps its default.
	Limits map[Stage]time.Duration
	// Stall replaces the default time for which nothing may be read or written;
	// Slowness does not multiply it. If Stall is 0, each stage keeps its default.
	Stall time.Duration
	// Earlier has the durations of an earlier installation of the same kind; nil if none is known.
	Earlier map[Stage]time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Report is the result of an installation.
type Report struct {
	// Durations has the durations of the stages that have ended.
	Durations map[Stage]time.Duration
	Resets    int
	Marks     []Mark
}

// interval is the pause between two looks at the VM.
const interval = time.Second

// mostBlind is the number of failed looks in a row at which Watch gives up.
const mostBlind = 30

// Watch follows the installation to its end. It returns a *Failure if the installation goes wrong.
// The VM then stays as it is, so that a person can look at its screen.
func Watch(ctx context.Context, guest Guest, options Options, report ui.Reporter) (Report, error) {
	if options.Now == nil {
		options.Now = time.Now
	}
	w := &watcher{guest: guest, options: options, reporter: report, judge: newJudge(options, options.Now())}
	err := w.run(ctx)
	return Report{Durations: w.judge.durations, Resets: w.judge.seen.Resets, Marks: w.judge.seen.Marks}, err
}

type watcher struct {
	guest    Guest
	options  Options
	reporter ui.Reporter
	judge    *judge
	blind    int // number of looks in a row that failed
	marks    int // number of marks that were reported
}

func (w *watcher) run(ctx context.Context) error {
	for stage := Stage(""); ; {
		if w.judge.stage != stage {
			stage = w.judge.stage
			w.reporter.Step("%s%s", stage.title(), w.estimate(stage))
		}
		signs, err := w.look(ctx)
		if err != nil {
			return err
		}
		if signs != nil {
			end, err := w.consider(ctx, *signs)
			if end || err != nil {
				return err
			}
		}
		if err := wait.For(ctx, interval); err != nil {
			return w.judge.failure(Interrupted, context.Cause(ctx))
		}
	}
}

// look observes the VM. It returns nil signs and a nil error if the VM could not be observed this
// time.
func (w *watcher) look(ctx context.Context) (*Signs, error) {
	signs, err := w.guest.Look(ctx)
	switch {
	case err == nil:
		w.blind = 0
		return &signs, nil
	case ctx.Err() != nil:
		return nil, w.judge.failure(Interrupted, context.Cause(ctx))
	}
	if w.blind++; w.blind >= mostBlind {
		return nil, w.judge.failure(Unseen, err)
	}
	return nil, nil
}

// consider acts on signs; end reports that the installation has succeeded.
func (w *watcher) consider(ctx context.Context, signs Signs) (end bool, err error) {
	now := w.options.Now()
	end, failure := w.judge.look(signs, now)
	w.reportMarks(signs.Marks)
	if end || failure != nil {
		return end, orNil(failure)
	}
	if w.judge.wantsKey(now) {
		if err := w.guest.PressKey(ctx, "ret"); err != nil && ctx.Err() == nil {
			w.reporter.Debug("press a key: %v", err)
		}
	}
	return false, nil
}

// reportMarks reports the script's progress.
func (w *watcher) reportMarks(marks []Mark) {
	for ; w.marks < len(marks); w.marks++ {
		mark := marks[w.marks]
		if mark.Message == "" {
			w.reporter.Debug("first-boot script: %s", mark.Stage)
			continue
		}
		w.reporter.Info("first-boot script: %s: %s", mark.Stage, mark.Message)
	}
}

// estimate returns a text that says how long an earlier installation took from this stage to the
// end; "" if that is not known.
func (w *watcher) estimate(stage Stage) string {
	var rest time.Duration
	for _, s := range Stages()[slices.Index(Stages(), stage):] {
		rest += w.options.Earlier[s]
	}
	return earlier.Left(rest)
}

// orNil returns a nil error for a nil *Failure. Without this conversion, the error would be an
// interface that is not nil.
func orNil(failure *Failure) error {
	if failure == nil {
		return nil
	}
	return failure
}
