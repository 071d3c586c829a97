package guard_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/swdt-dev/swdt/internal/agent/internal/guard"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

const service = "swdt-test"

// lab is a simulated machine with an agent that is a guardian and works until the test ends it.
type lab struct {
	*simulated.Machine
	guard.Guardian
	end     chan struct{} // lets one guardian end
	removes bool          // it removes itself
}

// inLab runs a test on a machine with its own clock.
func inLab(t *testing.T, test func(t *testing.T, l *lab)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		agent := simulated.Binary(simulated.BinarySpec{Name: "swdt-agent"})
		digest := sha256.Sum256(agent)
		sum := hex.EncodeToString(digest[:])
		l := &lab{end: make(chan struct{}), removes: true}
		l.Machine = simulated.New(simulated.Options{Agent: &simulated.Agent{Hash: sum, Main: l.work}})
		t.Cleanup(l.Machine.Close)
		l.Guardian = guard.Guardian{
			Services: l.Process("session").Services, Service: service, DisplayName: "test", Guards: "the test",
			Executable: layout.Agent(sum), Argument: "test", Poll: 20 * time.Millisecond,
		}
		l.WriteFile(l.Executable, agent)
		test(t, l)
	})
}

func (l *lab) work(ctx context.Context, p *platform.Platform, _ string, args []string, _ io.Reader, _,
	_ io.Writer) int {
	if len(args) != 2 || args[0] != "test" {
		return 2
	}
	select {
	case <-l.end:
	case <-ctx.Done():
		return 1
	}
	if !l.removes {
		return 0
	}
	own := l.Guardian
	own.Services = p.Services
	if own.Remove(ctx) != nil {
		return 1
	}
	return 0
}

func never() bool { return false }

func (l *lab) mustStart(t *testing.T) {
	t.Helper()
	if err := l.Start(t.Context(), "one", never); err != nil {
		t.Fatal(err)
	}
}

func (l *lab) isRegistered(t *testing.T) bool {
	t.Helper()
	_, err := l.Services.Status(t.Context(), service)
	if err != nil && !errors.Is(err, fault.ErrNoService) {
		t.Fatal(err)
	}
	return err == nil
}

func (l *lab) isRunning(t *testing.T) bool {
	t.Helper()
	atWork, err := l.Running(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return atWork
}

// fails makes the first operations of a kind fail, as many as times.
func (l *lab) fails(kind simulated.Kind, phase simulated.Phase, times int) {
	l.OnOperation(func(op simulated.Operation) simulated.Verdict {
		if op.Kind != kind || op.Phase != phase || op.Target != service || times == 0 {
			return simulated.Continue()
		}
		times--
		return simulated.Fail(fault.ErrPermission)
	})
}

func TestAGuardianFromItsBeginningToItsEnd(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		if l.isRunning(t) {
			t.Error("at work before it was started")
		}
		l.mustStart(t)
		config, err := l.Services.Config(t.Context(), service)
		switch {
		case err != nil:
			t.Error(err)
		case config.CommandLine != `"`+l.Executable+`" test one`:
			t.Errorf("config.CommandLine is %v, want %v", config.CommandLine, `"`+l.Executable+`" test one`)
		case config.StartType != platform.StartAuto:
			t.Errorf("config.StartType is %v, want %v", config.StartType, platform.StartAuto)
		}
		if !l.isRunning(t) {
			t.Error("not at work")
		}
		l.end <- struct{}{}
		if err := l.AwaitRemoved(t.Context()); err != nil || l.isRegistered(t) {
			t.Errorf("not removed: %v", err)
		}
	})
}

func TestAFailureToStart(t *testing.T) {
	for name, c := range map[string]struct {
		kind  simulated.Kind
		phase simulated.Phase
		ran   bool // the result of the caller's hasRun
		fails bool
	}{
		"not registered":                  {simulated.OpServiceCreate, simulated.Before, false, true},
		"registered all the same":         {simulated.OpServiceCreate, simulated.After, false, true},
		"not registered, by one that ran": {simulated.OpServiceCreate, simulated.Before, true, true},
		"not started":                     {simulated.OpServiceStart, simulated.Before, false, true},
		"started all the same":            {simulated.OpServiceStart, simulated.After, false, false},
		"not at work, but it was":         {simulated.OpServiceStart, simulated.Before, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(t *testing.T, l *lab) {
				l.fails(c.kind, c.phase, 1)
				err := l.Start(t.Context(), "one", func() bool { return c.ran })
				switch failed := errors.Is(err, fault.ErrPermission); {
				case failed != c.fails:
					t.Errorf("failed is %v, want %v", failed, c.fails)
				case failed != (err != nil):
					t.Errorf("failed is %v, want %v", failed, (err != nil))
				}
				if c.fails && l.isRegistered(t) {
					t.Error("what did not start is registered")
				}
			})
		})
	}
}

// A registration that cannot be removed at once must not stay: at the next boot the SCM would start it.
func TestAFailureToStartIsClearedAwayAfterFurtherFailures(t *testing.T) {
	for _, kind := range []simulated.Kind{simulated.OpServiceCreate, simulated.OpServiceStart} {
		t.Run(string(kind), func(t *testing.T) {
			inLab(t, func(t *testing.T, l *lab) {
				failed, kept := false, 3
				l.OnOperation(func(op simulated.Operation) simulated.Verdict {
					switch {
					case op.Target != service:
					case op.Kind == simulated.OpServiceCreate && kind == op.Kind &&
						op.Phase == simulated.After && !failed,
						op.Kind == simulated.OpServiceStart && kind == op.Kind &&
							op.Phase == simulated.Before && !failed:
						failed = true
						return simulated.Fail(fault.ErrPermission)
					case op.Kind == simulated.OpServiceDelete && op.Phase == simulated.Before && kept > 0:
						kept--
						return simulated.Fail(fault.ErrInUse)
					}
					return simulated.Continue()
				})
				if err := l.Start(t.Context(), "one", never); !errors.Is(err, fault.ErrPermission) ||
					l.isRegistered(t) {
					t.Errorf("registered: %v, %v", l.isRegistered(t), err)
				}
			})
		})
	}
}

// Two sessions find one guardian dead and heal it: before any operation of one session, the other performs all of its
// own.
func TestTwoHealersDoNotTakeEachOthersRegistrationAway(t *testing.T) {
	const operations = 12
	for _, left := range []bool{false, true} { // the dead guardian's registration exists
		for at := range operations {
			t.Run(fmt.Sprint(left, at), func(t *testing.T) {
				inLab(t, func(t *testing.T, l *lab) {
					if left {
						l.removes = false
						l.mustStart(t)
						l.end <- struct{}{}
						synctest.Wait()
						l.removes = true
					}
					other := l.Guardian
					other.Services = l.Process("other session").Services
					seen, healed := 0, false
					var second error
					l.OnOperation(func(op simulated.Operation) simulated.Verdict {
						if op.Process != "session" || healed {
							return simulated.Continue()
						}
						if seen++; seen > at {
							healed = true
							second = other.Start(t.Context(), "one", never)
						}
						return simulated.Continue()
					})
					first := l.Start(t.Context(), "one", never)
					switch {
					case first != nil:
						t.Errorf("first is %v, want nil", first)
					case second != nil:
						t.Errorf("second is %v, want nil", second)
					case !l.isRunning(t):
						t.Error("l.isRunning(t) is false, want true")
					}
					l.OnOperation(nil)
					l.end <- struct{}{}
					if err := l.AwaitRemoved(t.Context()); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// A guardian that could not start is removed even if its caller's context has ended.
func TestAFailureToStartForACallerWhoIsGone(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		ctx, cancel := context.WithCancel(t.Context())
		l.OnOperation(func(op simulated.Operation) simulated.Verdict {
			if op.Kind != simulated.OpServiceStart || op.Phase != simulated.Before {
				return simulated.Continue()
			}
			cancel()
			return simulated.Fail(fault.ErrPermission)
		})
		if err := l.Start(ctx, "one", never); !errors.Is(err, fault.ErrPermission) || l.isRegistered(t) {
			t.Errorf("registered: %v, %v", l.isRegistered(t), err)
		}
	})
}

func TestAnOlderGuardian(t *testing.T) {
	t.Run("has ended", func(t *testing.T) {
		inLab(t, func(t *testing.T, l *lab) {
			l.removes = false
			l.mustStart(t)
			l.end <- struct{}{}
			synctest.Wait()
			if l.isRunning(t) || !l.isRegistered(t) {
				t.Fatal("it should have ended and be registered")
			}
			l.mustStart(t)
			if !l.isRunning(t) {
				t.Error("the next is not at work")
			}
		})
	})
	t.Run("is waited for", func(t *testing.T) {
		inLab(t, func(t *testing.T, l *lab) {
			l.mustStart(t)
			started := make(chan error)
			go func() { started <- l.Start(t.Context(), "two", never) }()
			if err := l.RemoveEnded(t.Context()); err != nil || !l.isRunning(t) {
				t.Errorf("one at work was removed: %v", err)
			}
			l.end <- struct{}{}
			if err := <-started; err != nil || !l.isRunning(t) {
				t.Errorf("the next is not at work: %v", err)
			}
		})
	})
	t.Run("does not end", func(t *testing.T) {
		inLab(t, func(t *testing.T, l *lab) {
			l.mustStart(t)
			err := l.AwaitRemoved(t.Context())
			switch {
			case !errors.Is(err, context.DeadlineExceeded):
				t.Errorf("the error is %v, want %v", err, context.DeadlineExceeded)
			case !strings.Contains(err.Error(), "running"):
				t.Errorf("err.Error() lacks %q:\n%s", "running", err.Error())
			case !l.isRunning(t):
				t.Error("l.isRunning(t) is false, want true")
			}
		})
	})
}

func TestRemoveEnded(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		if err := l.RemoveEnded(t.Context()); err != nil {
			t.Errorf("none: %v", err)
		}
		l.removes = false
		l.mustStart(t)
		l.end <- struct{}{}
		synctest.Wait()
		if err := l.RemoveEnded(t.Context()); err != nil || l.isRegistered(t) {
			t.Errorf("one that has ended is registered: %v, %v", l.isRegistered(t), err)
		}
	})
}

// Neither temporary failures nor the end of its context keep a guardian registered.
func TestRemoveGoesOn(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.removes = false
		l.mustStart(t)
		l.end <- struct{}{}
		synctest.Wait()
		l.fails(simulated.OpServiceDelete, simulated.Before, 3)
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.Remove(over); err != nil || l.isRegistered(t) {
			t.Errorf("registered: %v, %v", l.isRegistered(t), err)
		}
	})
}

func TestAKilledGuardian(t *testing.T) {
	for name, recovery := range map[string]*platform.Recovery{
		"is started again": {Restarts: []time.Duration{0}, Reset: time.Hour}, "stays where it fell": nil,
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(t *testing.T, l *lab) {
				l.Recovery = recovery
				l.mustStart(t)
				before, err := l.Services.Status(t.Context(), service)
				if err != nil {
					t.Fatal(err)
				}
				process, err := l.Process("taskkill").Processes.Open(before.PID)
				if err != nil {
					t.Fatal(err)
				}
				if err := process.Kill(); err != nil {
					t.Fatal(err)
				}
				<-time.After(time.Minute) // of the machine's clock
				after, err := l.Services.Status(t.Context(), service)
				switch {
				case err != nil:
					t.Error(err)
				case after.PID == before.PID:
					t.Errorf("after.PID is %v, want anything but %v", after.PID, before.PID)
				case (after.State == platform.Running) != (recovery != nil):
					t.Errorf("(after.State == platform.Running) is %v, want %v", (after.State == platform.Running),
						(recovery != nil))
				}
			})
		})
	}
}
