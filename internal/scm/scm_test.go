package scm_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/scm"
)

func TestStartWaitsUntilTheServiceRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSCM(&fakeService{name: "kubelet", state: host.Stopped, starting: 3 * time.Second})
		status, err := scm.Start(t.Context(), f.host(), "KUBELET", nil)
		if err != nil || status.State != host.Running || status.PID == 0 {
			t.Fatalf("got %+v, %v", status, err)
		}
	})
}

func TestStartLeavesARunningServiceAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSCM(&fakeService{name: "kubelet", state: host.Running})
		pid := f.services["kubelet"].process.pid
		status, err := scm.Start(t.Context(), f.host(), "kubelet", nil)
		if err != nil || status.PID != pid {
			t.Fatalf("got %+v, %v", status, err)
		}
	})
}

func TestStartOfAServiceThatIsJustStopping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSCM(&fakeService{name: "kubelet", state: host.Running, stopping: time.Second, starting: time.Second})
		if err := f.Stop(t.Context(), "kubelet"); err != nil {
			t.Fatal(err)
		}
		if status, err := scm.Start(t.Context(), f.host(), "kubelet", nil); err != nil || status.State != host.Running {
			t.Fatalf("got %+v, %v", status, err)
		}
	})
}

func TestStartReportsHowTheServiceEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSCM(&fakeService{name: "kubelet", state: host.Stopped, starting: time.Second, failing: true})
		_, err := scm.Start(t.Context(), f.host(), "kubelet", nil)
		var state *scm.StateError
		if !errors.Is(err, host.ErrStartFailed) || !errors.As(err, &state) || state.Last.ExitCode != 1066 {
			t.Fatalf("got %v", err)
		}
		if !strings.Contains(err.Error(), "last seen stopped, exit code 1066") {
			t.Fatalf("the error does not tell: %v", err)
		}
	})
}

func TestStartEndsWithItsContextAndSaysTheLastState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSCM(&fakeService{name: "kubelet", state: host.Stopped, starting: time.Minute})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := scm.Start(ctx, f.host(), "kubelet", nil)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "last seen startPending") {
			t.Fatalf("got %v", err)
		}
	})
}

func TestStartDoesNotWaitForAPausedService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSCM(&fakeService{name: "kubelet", state: host.Paused})
		if _, err := scm.Start(t.Context(), f.host(), "kubelet", nil); !errors.Is(err, host.ErrStartFailed) {
			t.Fatalf("got %v", err)
		}
	})
}

func TestStopWaitsForTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSCM(&fakeService{name: "kubelet", state: host.Running, stopping: time.Second, exiting: 5 * time.Second})
		process := f.services["kubelet"].process
		stopped, err := scm.Stop(t.Context(), f.host(), "kubelet", scm.StopOptions{})
		if err != nil || !slices.Equal(stopped, []string{"kubelet"}) {
			t.Fatalf("got %v, %v", stopped, err)
		}
		select {
		case <-process.gone:
		default:
			t.Fatal("the process is still there")
		}
	})
}

func TestStopDoesNotWaitForASharedProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSCM(&fakeService{name: "TermService", state: host.Running, shared: true, exiting: time.Hour})
		begun := time.Now()
		if _, err := scm.Stop(t.Context(), f.host(), "TermService", scm.StopOptions{}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took > time.Minute {
			t.Fatalf("waited %s for svchost", took)
		}
	})
}

func TestStopOfAStoppedServiceIsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSCM(&fakeService{name: "kubelet", state: host.Stopped})
		stopped, err := scm.Stop(t.Context(), f.host(), "kubelet", scm.StopOptions{})
		if err != nil || len(stopped) != 0 {
			t.Fatalf("got %v, %v", stopped, err)
		}
	})
}

func TestStopOfAServiceThatIsJustStarting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSCM(&fakeService{name: "kubelet", state: host.Stopped, starting: 2 * time.Second})
		if err := f.Start(t.Context(), "kubelet"); err != nil {
			t.Fatal(err)
		}
		stopped, err := scm.Stop(t.Context(), f.host(), "kubelet", scm.StopOptions{})
		if err != nil || !slices.Equal(stopped, []string{"kubelet"}) {
			t.Fatalf("got %v, %v", stopped, err)
		}
	})
}

// A service that the SCM is about to restart is start pending and has no process
// yet: it is the process to come that has to end.
func TestStopKillsAStubbornServiceThatHadNoProcessYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSCM(&fakeService{name: "kubelet", state: host.Stopped, launching: time.Second, stubborn: true})
		if err := f.Start(t.Context(), "kubelet"); err != nil {
			t.Fatal(err)
		}
		stopped, err := scm.Stop(t.Context(), f.host(), "kubelet", scm.StopOptions{Timeout: 5 * time.Second, Kill: true})
		if err != nil || !slices.Equal(stopped, []string{"kubelet"}) {
			t.Fatalf("got %v, %v", stopped, err)
		}
	})
}

func TestStopOfAMissingService(t *testing.T) {
	if _, err := scm.Stop(t.Context(), newSCM().host(), "kubelet", scm.StopOptions{}); !errors.Is(err, host.ErrNoService) {
		t.Fatalf("got %v", err)
	}
}

func TestStopOneRefusesWhileDependentsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSCM(&fakeService{name: "containerd", state: host.Running},
			&fakeService{name: "kubelet", state: host.Running, needs: []string{"containerd"}})
		if _, err := scm.StopOne(t.Context(), f.host(), "containerd", scm.StopOptions{}); !errors.Is(err, host.ErrDependents) {
			t.Fatalf("got %v", err)
		}
	})
}

func TestStopGivesUpOnAStubbornService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSCM(&fakeService{name: "kubelet", state: host.Running, stubborn: true})
		_, err := scm.Stop(t.Context(), f.host(), "kubelet", scm.StopOptions{Timeout: 5 * time.Second})
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "last seen stopPending") {
			t.Fatalf("got %v", err)
		}
	})
}

func TestStopKillsAStubbornServiceOnRequest(t *testing.T) {
	for _, s := range []fakeService{
		{name: "hangs on stop", stubborn: true},
		{name: "is restarted by its recovery", stubborn: true, restarts: true},
		{name: "stops but never exits", exiting: time.Hour},
	} {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s.state = host.Running
				f := newSCM(&s)
				process := s.process
				stopped, err := scm.Stop(t.Context(), f.host(), s.name, scm.StopOptions{Timeout: 5 * time.Second, Kill: true})
				if err != nil || !slices.Equal(stopped, []string{s.name}) || s.state != host.Stopped {
					t.Fatalf("got %v, %v, state %s", stopped, err, s.state)
				}
				if err := process.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			})
		})
	}
}

func TestStopNeverKillsASharedOrProtectedProcess(t *testing.T) {
	for _, s := range []fakeService{{name: "shared", shared: true}, {name: "protected", protected: true}} {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s.state, s.stubborn = host.Running, true
				f := newSCM(&s)
				_, err := scm.Stop(t.Context(), f.host(), s.name, scm.StopOptions{Timeout: time.Second, Kill: true})
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("got %v", err)
				}
				if s.process == nil {
					t.Fatal("killed it")
				}
			})
		})
	}
}

func TestStopTellsWhatItStoppedBesideTheError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSCM(&fakeService{name: "containerd", state: host.Running, stubborn: true},
			&fakeService{name: "kubelet", state: host.Running, needs: []string{"containerd"}})
		stopped, err := scm.Stop(t.Context(), f.host(), "containerd", scm.StopOptions{Timeout: time.Second})
		if err == nil || !slices.Equal(stopped, []string{"kubelet"}) {
			t.Fatalf("got %v, %v", stopped, err)
		}
	})
}

func TestRunningDependentsInACircle(t *testing.T) {
	f := newSCM(&fakeService{name: "a", state: host.Running, needs: []string{"B"}},
		&fakeService{name: "b", state: host.Running, needs: []string{"a"}})
	names, err := scm.RunningDependents(t.Context(), f.host(), "A")
	if err != nil || !slices.Equal(names, []string{"b"}) {
		t.Fatalf("got %v, %v", names, err)
	}
}

func TestRunningDependentsSeesThroughAStoppedService(t *testing.T) {
	f := newSCM(&fakeService{name: "a", state: host.Running},
		&fakeService{name: "b", state: host.Stopped, needs: []string{"a"}},
		&fakeService{name: "c", state: host.Running, needs: []string{"b"}})
	names, err := scm.RunningDependents(t.Context(), f.host(), "a")
	if err != nil || !slices.Equal(names, []string{"c"}) {
		t.Fatalf("got %v, %v", names, err)
	}
}

// On any graph of services without circles, Stop obeys Windows (which refuses to
// stop what others need), ends all that it must and nothing else.
func TestStopOnAnyGraph(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		services := drawServices(rt)
		target := services[rapid.IntRange(0, len(services)-1).Draw(rt, "target")]
		must := affected(services, target.name)
		if err := inBubble(t, func(ctx context.Context) error { return stopAndCheck(ctx, services, target.name, must) }); err != nil {
			rt.Fatal(err)
		}
	})
}

// drawServices lets each service need any of those before it: diamonds, chains
// and islands.
func drawServices(rt *rapid.T) []*fakeService {
	n := rapid.IntRange(1, 9).Draw(rt, "services")
	var services []*fakeService
	delay := rapid.SampledFrom([]time.Duration{0, time.Millisecond, time.Second})
	for i := range n {
		s := &fakeService{
			name: fmt.Sprint("s", i), state: host.Running,
			stopping: delay.Draw(rt, "stopping"), exiting: delay.Draw(rt, "exiting"),
		}
		for j := range i {
			if rapid.Bool().Draw(rt, "needs") {
				s.needs = append(s.needs, services[j].name)
			}
		}
		if rapid.IntRange(0, 4).Draw(rt, "stopped") == 0 {
			s.state = host.Stopped
		}
		services = append(services, s)
	}
	return services
}

// affected names what is running and depends on target, and target itself.
func affected(services []*fakeService, target string) map[string]bool {
	reached, running := map[string]bool{target: true}, map[string]bool{}
	for _, s := range services { // needs point backwards, so one pass does
		if slices.ContainsFunc(s.needs, func(n string) bool { return reached[n] }) {
			reached[s.name] = true
		}
		if reached[s.name] && s.state != host.Stopped {
			running[s.name] = true
		}
	}
	return running
}

func stopAndCheck(ctx context.Context, services []*fakeService, target string, must map[string]bool) error {
	f := newSCM(services...)
	processes := map[string]*fakeProcess{}
	for _, s := range services {
		processes[s.name] = s.process
	}
	stopped, err := scm.Stop(ctx, f.host(), target, scm.StopOptions{})
	if err != nil {
		return err
	}
	if len(stopped) != len(must) {
		return fmt.Errorf("stopped %v, wanted %v", stopped, must)
	}
	for i, name := range stopped {
		if !must[name] || slices.Contains(stopped[:i], name) {
			return fmt.Errorf("stopped %v, wanted each of %v once", stopped, must)
		}
		select {
		case <-processes[name].gone:
		default:
			return fmt.Errorf("%s's process is still there", name)
		}
	}
	for _, s := range services {
		if !must[s.name] && processes[s.name] != s.process {
			return fmt.Errorf("%s was touched", s.name)
		}
	}
	return nil
}

// inBubble runs f with a clock of its own.
func inBubble(t *testing.T, f func(context.Context) error) (err error) {
	synctest.Test(t, func(t *testing.T) { err = f(t.Context()) })
	return err
}
