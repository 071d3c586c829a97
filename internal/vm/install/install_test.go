package install_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/install"
)

const gib = 1 << 30

// guest plays an installation: what can be seen of it is a function of the time since
// power on.
type guest struct {
	on    time.Time
	signs func(at time.Duration) install.Signs
	blind func(at time.Duration) error
	keys  []time.Duration
}

func (g *guest) at() time.Duration { return time.Since(g.on) }

func (g *guest) Look(context.Context) (install.Signs, error) {
	if g.blind != nil {
		if err := g.blind(g.at()); err != nil {
			return install.Signs{}, err
		}
	}
	signs := g.signs(g.at())
	if signs.State == "" {
		signs.State = vm.Running
	}
	return signs, nil
}

func (g *guest) PressKey(_ context.Context, key string) error {
	if key != "ret" {
		return errors.New("an unexpected key: " + key)
	}
	g.keys = append(g.keys, g.at())
	return nil
}

// healthy is an installation that takes 20 minutes, and then shuts down.
func healthy(at time.Duration) install.Signs {
	minute := int(at / time.Minute)
	var signs install.Signs
	if minute >= 1 {
		signs.Written = int64(at/(30*time.Second)) * gib
	}
	if minute >= 8 {
		signs.Resets = 1
	}
	if minute >= 12 {
		signs.Resets = 2
	}
	if minute >= 15 {
		signs.Marks = append(signs.Marks, install.Mark{Stage: "keys"})
	}
	if minute >= 18 {
		signs.Marks = append(signs.Marks, install.Mark{Stage: "end", Last: true})
	}
	if minute >= 20 {
		signs.State = vm.Stopped
	}
	return signs
}

func watch(t *testing.T, g *guest, options install.Options) (install.Report, error) {
	t.Helper()
	g.on = time.Now()
	return install.Watch(t.Context(), g, options, ui.Discard{})
}

func TestAnInstallationSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &guest{signs: healthy}
		report, err := watch(t, g, install.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for stage, d := range report.Durations {
			report.Durations[stage] = d.Round(time.Minute)
		}
		want := map[install.Stage]time.Duration{
			install.Boot: time.Minute, install.Copy: 7 * time.Minute, install.SetUp: 7 * time.Minute,
			install.Script: 3 * time.Minute, install.End: 2 * time.Minute,
		}
		if diff := cmp.Diff(want, report.Durations); diff != "" {
			t.Errorf("durations (-want +got):\n%s", diff)
		}
		if last := g.keys[len(g.keys)-1]; len(g.keys) < 5 || last >= time.Minute {
			t.Errorf("keys were pressed at %v: want at least five, all before Setup writes to the disk", g.keys)
		}
	})
}

// A key that is pressed once Setup runs would answer its question.
func TestKeysEndWithTheLoadOfSetup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &guest{signs: func(at time.Duration) install.Signs {
			return install.Signs{Loaded: int64(at/time.Second) << 26} // 64 MiB a second
		}}
		_, _ = watch(t, g, install.Options{Slowness: 10})
		if len(g.keys) == 0 || g.keys[len(g.keys)-1] > 4*time.Second {
			t.Errorf("keys were pressed at %v, and 200 MiB were loaded after 4 seconds", g.keys)
		}
	})
}

// frozen is healthy up to a moment, and unchanged after it.
func frozen(from time.Duration) func(time.Duration) install.Signs {
	return func(at time.Duration) install.Signs { return healthy(min(at, from)) }
}

func TestFailures(t *testing.T) {
	for name, test := range map[string]struct {
		signs   func(at time.Duration) install.Signs
		blind   func(at time.Duration) error
		options install.Options
		cause   install.Cause
		stage   install.Stage
		within  time.Duration // of power on
	}{
		"the CD does not boot": {
			signs: func(time.Duration) install.Signs { return install.Signs{} },
			cause: install.NotBooted, stage: install.Boot, within: 6 * time.Minute,
		},
		"Setup asks for the edition": {
			signs: func(at time.Duration) install.Signs {
				if at < time.Minute {
					return install.Signs{}
				}
				return install.Signs{Written: 1 << 20}
			},
			cause: install.SetupStopped, stage: install.Copy, within: 7 * time.Minute,
		},
		"Setup sees no disk": {
			signs: func(at time.Duration) install.Signs {
				return install.Signs{Loaded: min(int64(at/time.Second), 40) << 24}
			},
			cause: install.SetupStopped, stage: install.Boot, within: 6 * time.Minute,
		},
		"Setup sees no disk, with an own limit": {
			signs: func(at time.Duration) install.Signs {
				return install.Signs{Loaded: min(int64(at/time.Second), 40) << 24}
			},
			options: install.Options{Slowness: 10, Stall: time.Minute},
			cause:   install.SetupStopped, stage: install.Boot, within: 102 * time.Second,
		},
		"the CD does not boot, with an own limit": {
			signs:   func(at time.Duration) install.Signs { return install.Signs{} },
			options: install.Options{Slowness: 10, Limits: map[install.Stage]time.Duration{install.Boot: time.Minute}},
			cause:   install.NotBooted, stage: install.Boot, within: 62 * time.Second,
		},
		"the copy hangs": {
			signs: frozen(5 * time.Minute), cause: install.Hung, stage: install.Copy, within: 11 * time.Minute,
		},
		"Windows hangs behind its logo": {
			signs: frozen(10 * time.Minute), cause: install.Hung, stage: install.SetUp, within: 27 * time.Minute,
		},
		"Windows starts again and again": {
			signs: func(at time.Duration) install.Signs {
				signs := healthy(min(at, 10*time.Minute))
				signs.Resets += int(max(0, at-10*time.Minute) / (30 * time.Second))
				return signs
			},
			cause: install.RebootLoop, stage: install.SetUp, within: 17 * time.Minute,
		},
		"the CD starts again and again": {
			signs: func(at time.Duration) install.Signs {
				return install.Signs{Resets: int(at / (20 * time.Second))}
			},
			cause: install.RebootLoop, stage: install.Boot, within: 5 * time.Minute,
		},
		"the script fails": {
			signs: func(at time.Duration) install.Signs {
				signs := healthy(at)
				if len(signs.Marks) > 0 {
					signs.Marks = append(signs.Marks, install.Mark{Stage: "openssh", Failed: true, Message: "the MSI is damaged"})
				}
				return signs
			},
			cause: install.ScriptFailed, stage: install.Script, within: 16 * time.Minute,
		},
		"Windows does not shut down": {
			signs: frozen(19 * time.Minute), cause: install.TooSlow, stage: install.End, within: 29 * time.Minute,
		},
		"the VM ends early": {
			signs: func(at time.Duration) install.Signs {
				if at > 3*time.Minute {
					return install.Signs{State: vm.Crashed, Reason: "QEMU died"}
				}
				return healthy(at)
			},
			cause: install.Ended, stage: install.Boot, within: 4 * time.Minute,
		},
		"your disk is full": {
			signs: func(at time.Duration) install.Signs {
				signs := healthy(at)
				if at > 3*time.Minute {
					signs.State, signs.Reason = vm.Paused, "no space on your disk"
				}
				return signs
			},
			cause: install.Halted, stage: install.Copy, within: 4 * time.Minute,
		},
		"the disk is written for ever": {
			signs: func(at time.Duration) install.Signs { return install.Signs{Written: int64(at)} },
			cause: install.TooSlow, stage: install.Copy, within: 42 * time.Minute,
		},
		"the monitor goes silent": {
			signs: healthy,
			blind: func(at time.Duration) error {
				if at > 2*time.Minute {
					return errors.New("no answer")
				}
				return nil
			},
			cause: install.Unseen, stage: install.Copy, within: 3 * time.Minute,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := &guest{signs: test.signs, blind: test.blind}
				_, err := watch(t, g, test.options)
				var failure *install.Failure
				if !errors.As(err, &failure) {
					t.Fatalf("got %v, not a Failure", err)
				}
				t.Log(failure, "→", failure.Remedy())
				if failure.Cause != test.cause {
					t.Errorf("cause %s, want %s", failure.Cause, test.cause)
				}
				if failure.Stage != test.stage && test.cause != install.Ended {
					t.Errorf("stage %s, want %s", failure.Stage, test.stage)
				}
				if at := g.at(); at > test.within {
					t.Errorf("it took %s to give up, want at most %s", at, test.within)
				}
				if failure.Remedy() == "" {
					t.Error("the failure has no remedy")
				}
			})
		})
	}
}

// TestSlowMachinesGetTime: without an accelerator everything takes ten times as long.
func TestSlowMachinesGetTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(at time.Duration) install.Signs { return healthy(at / 10) }
		g := &guest{signs: slow}
		if _, err := watch(t, g, install.Options{Slowness: 10}); err != nil {
			t.Error(err)
		}
		if _, err := watch(t, &guest{signs: slow}, install.Options{}); err == nil {
			t.Error("a VM that is ten times slower than its limits succeeded")
		}
	})
}

// TestABriefSilenceIsForgiven: QEMU's monitor may be busy for seconds.
func TestABriefSilenceIsForgiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &guest{signs: healthy, blind: func(at time.Duration) error {
			if int(at/time.Second)%60 < 20 {
				return errors.New("busy")
			}
			return nil
		}}
		if _, err := watch(t, g, install.Options{}); err != nil {
			t.Error(err)
		}
	})
}

func TestAnInterruptionNamesTheStage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		_, err := install.Watch(ctx, &guest{on: time.Now(), signs: healthy}, install.Options{}, ui.Discard{})
		var failure *install.Failure
		if !errors.As(err, &failure) {
			t.Fatalf("error %v, want a Failure", err)
		}
		if failure.Cause != install.Interrupted || failure.Stage != install.Copy {
			t.Errorf("cause %v at stage %v, want %v at %v", failure.Cause, failure.Stage, install.Interrupted, install.Copy)
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v does not wrap the context's cause", err)
		}
	})
}
