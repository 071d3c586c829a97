package install

import (
	"time"

	"github.com/swdt-dev/swdt/internal/vm"
)

const (
	// keyPresses is how often Return is pressed, once a second, for the CD's prompt, which waits
	// for five seconds; Slowness multiplies it. On a busy machine, it may take long until the prompt
	// appears.
	keyPresses = 30
	// loaded is a number of bytes. If this many bytes were read from the CDs, Setup runs, since it
	// begins by loading boot.wim, which is larger on every medium. The boot loader alone reads far
	// less.
	loaded = 200 << 20
	// prepared is a number of bytes. If this many bytes were written to the disk, Setup is copying
	// Windows, since it writes less for partitions and empty file systems.
	prepared = 256 << 20
	// mostResets is how often the VM may be reset before the script's first mark. Three to five
	// resets are usual.
	mostResets = 10
)

// limit returns how long a stage may take with an accelerator. Users report five to
// thirty minutes for the whole installation.
func (s Stage) limit() time.Duration {
	return map[Stage]time.Duration{
		Boot: 5 * time.Minute, Copy: 40 * time.Minute, SetUp: 40 * time.Minute,
		Script: 30 * time.Minute, End: 10 * time.Minute,
	}[s]
}

// stall returns for how long nothing may be read or written in a stage.
func (s Stage) stall() time.Duration {
	if s == Copy {
		return 5 * time.Minute
	}
	return 15 * time.Minute // Windows prepares devices for minutes
}

// judge concludes the stage from signs. It only decides: its caller observes the VM and
// acts.
type judge struct {
	options   Options
	stage     Stage
	entered   time.Time // when the stage began
	moved     time.Time // when a sign last changed, or the stage began
	pressed   int
	lastPress time.Time
	seen      Signs
	durations map[Stage]time.Duration
}

func newJudge(options Options, now time.Time) *judge {
	options.Slowness = max(options.Slowness, 1)
	return &judge{options: options, stage: Boot, entered: now, moved: now, durations: map[Stage]time.Duration{}}
}

// look updates the stage from new signs. end reports that the installation has succeeded.
func (j *judge) look(signs Signs, now time.Time) (end bool, failure *Failure) {
	if signs.Written != j.seen.Written || signs.Loaded != j.seen.Loaded ||
		signs.Resets != j.seen.Resets || len(signs.Marks) != len(j.seen.Marks) {
		j.moved = now
	}
	j.seen = signs
	for next := j.next(); next != j.stage; next = j.next() {
		j.enter(next, now)
	}
	if signs.State == vm.Stopped && j.stage == End {
		j.enter("", now)
		return true, nil
	}
	return false, j.complaint(now)
}

// next returns the stage that the signs mean. It never returns a stage before the present one.
func (j *judge) next() Stage {
	marks := j.seen.Marks
	switch {
	case len(marks) > 0 && marks[len(marks)-1].Last:
		return End
	case j.stage == End:
		return End
	case len(marks) > 0 || j.stage == Script:
		return Script
	case j.stage == Copy && j.seen.Resets > 0 && j.seen.Written >= prepared, j.stage == SetUp:
		return SetUp
	case j.seen.Written > 0 || j.stage == Copy:
		return Copy
	}
	return Boot
}

func (j *judge) enter(stage Stage, now time.Time) {
	if j.stage != "" {
		j.durations[j.stage] = now.Sub(j.entered)
	}
	if stage == "" { // the installation has ended
		return
	}
	j.stage, j.entered, j.moved = stage, now, now
}

// wantsKey reports whether it is time to press a key at the CD's prompt: only before
// the first sign of Setup, since a later key would answer a question of Setup.
func (j *judge) wantsKey(now time.Time) bool {
	if j.stage != Boot || j.seen.Resets > 0 || j.seen.Loaded >= loaded || j.pressed >= keyPresses*j.options.Slowness {
		return false
	}
	if now.Sub(j.lastPress) < time.Second {
		return false
	}
	j.pressed++
	j.lastPress = now
	return true
}

// complaint returns the reason to give up the installation, or nil if there is none.
func (j *judge) complaint(now time.Time) *Failure {
	switch {
	case j.seen.State == vm.Crashed, j.seen.State == vm.Stopped, j.seen.State == vm.Absent:
		return j.failureAt(Ended, nil, now)
	case j.seen.State == vm.Paused:
		return j.failureAt(Halted, nil, now)
	case j.scriptFailed():
		return j.failureAt(ScriptFailed, nil, now)
	case j.seen.Resets > mostResets && len(j.seen.Marks) == 0:
		return j.failureAt(RebootLoop, nil, now)
	case now.Sub(j.entered) > j.limit():
		return j.failureAt(j.late(), nil, now)
	case j.stage != End && now.Sub(j.moved) > j.stall():
		return j.failureAt(j.stalled(), nil, now)
	}
	return nil
}

// limit returns how long the present stage may take.
func (j *judge) limit() time.Duration {
	if own, ok := j.options.Limits[j.stage]; ok {
		return own
	}
	return time.Duration(j.options.Slowness) * j.stage.limit()
}

// stall returns for how long nothing may be read or written in the present stage.
func (j *judge) stall() time.Duration {
	if j.options.Stall > 0 {
		return j.options.Stall
	}
	return time.Duration(j.options.Slowness) * j.stage.stall()
}

func (j *judge) scriptFailed() bool {
	for _, mark := range j.seen.Marks {
		if mark.Failed {
			return true
		}
	}
	return false
}

// late returns the cause of the failure of a stage that has taken longer than its limit.
func (j *judge) late() Cause {
	if j.stage == Boot {
		return j.notCopied()
	}
	return TooSlow
}

// notCopied returns the cause of the failure if Setup has not written to the disk.
func (j *judge) notCopied() Cause {
	if j.seen.Loaded >= loaded {
		return SetupStopped
	}
	return NotBooted
}

// stalled returns the cause of the failure if nothing is read or written.
func (j *judge) stalled() Cause {
	switch {
	case j.stage == Boot:
		return j.notCopied()
	case j.stage == Copy && j.seen.Written < prepared && j.seen.Resets == 0:
		return SetupStopped
	}
	return Hung
}

func (j *judge) failure(cause Cause, err error) *Failure {
	return j.failureAt(cause, err, j.options.Now())
}

func (j *judge) failureAt(cause Cause, err error, now time.Time) *Failure {
	return &Failure{Cause: cause, Stage: j.stage, After: now.Sub(j.entered), Signs: j.seen, Err: err}
}
