package install

import (
	"fmt"
	"strings"
	"time"
)

// Cause is the reason why an installation ended without success.
type Cause string

const (
	NotBooted    Cause = "not-booted"    // Windows Setup never started
	SetupStopped Cause = "setup-stopped" // Windows Setup waits, and has copied nothing
	Hung         Cause = "hung"          // nothing is read or written
	RebootLoop   Cause = "reboot-loop"   // the VM resets again and again
	ScriptFailed Cause = "script-failed" // the first-boot script reported an error
	Ended        Cause = "ended"         // the VM ended before the installation was complete
	Halted       Cause = "halted"        // the VM was paused, for example by a panic or a full disk
	TooSlow      Cause = "too-slow"      // the stage takes longer than its limit, although the VM works
	Unseen       Cause = "unseen"        // the VM's monitor does not answer
	Interrupted  Cause = "interrupted"   // by the user
)

// Failure is an installation that did not succeed.
type Failure struct {
	Cause Cause
	Stage Stage
	After time.Duration // since the stage began
	Signs Signs         // the last signs
	Err   error         // the underlying error; nil if the signs alone are the reason
}

func (f *Failure) Error() string {
	text := fmt.Sprintf("install Windows: %s, after %s: %s", f.Stage.title(), f.After.Round(time.Second), f.what())
	if f.Err != nil {
		text += ": " + f.Err.Error()
	}
	return text
}

func (f *Failure) Unwrap() error { return f.Err }

// what returns a description of the failure in words.
func (f *Failure) what() string {
	switch f.Cause {
	case NotBooted:
		return "the CD did not start Windows Setup"
	case SetupStopped:
		return "Windows Setup runs, but copies nothing: it waits for an answer"
	case Hung:
		return "nothing is read from the CDs or written to the disk"
	case RebootLoop:
		return fmt.Sprintf("the VM was reset %d times before the first logon", f.Signs.Resets)
	case ScriptFailed:
		return "the first-boot script failed at " + f.failedMark()
	case Ended:
		return withReason("the VM ended", f.Signs.Reason)
	case Halted:
		return withReason("the VM was paused", f.Signs.Reason)
	case TooSlow:
		return "the stage continues, but takes longer than its limit"
	case Unseen:
		return "the VM does not answer its monitor"
	case Interrupted:
		return "interrupted"
	}
	return string(f.Cause)
}

// Remedy returns what the user can do about the failure; "" if nothing.
func (f *Failure) Remedy() string {
	switch f.Cause {
	case NotBooted:
		return "check that the file is a bootable Windows ISO with `swdt vm image inspect`, and look at the screenshot"
	case SetupStopped:
		return "the screenshot shows the question; usual reasons: the edition is not on the ISO " +
			"(compare with `swdt vm image inspect`), Setup sees no disk (set diskBus: sata, or name a virtio-win ISO " +
			"in image.drivers), or it did not find the answer file"
	case Hung:
		return "look at the screenshot; usual reasons are less memory than 4Gi, and an accelerator that does not work " +
			"(`swdt vm check`)"
	case RebootLoop:
		return "look at the screenshot; try diskBus: sata and adapter: e1000e, which need no drivers"
	case ScriptFailed:
		return "the serial log has all that the script reported; mend the file that it names, and create the VM again"
	case Ended, Unseen:
		return "the VM's log has what its process printed last"
	case Halted:
		return "free space on your disk if it is full; else look at the screenshot"
	case TooSlow:
		return "use a machine with hardware acceleration (`swdt vm check`)"
	}
	return ""
}

func (f *Failure) failedMark() string {
	for _, mark := range f.Signs.Marks {
		if mark.Failed {
			return strings.TrimSuffix(mark.Stage+": "+mark.Message, ": ")
		}
	}
	return "an unknown place"
}

func withReason(text, reason string) string {
	if reason == "" {
		return text
	}
	return text + ": " + reason
}
