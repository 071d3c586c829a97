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

	"github.com/swdt-dev/swdt/internal/agent/internal/scm"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

func TestStartWaitsUntilTheServiceRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSCM(&fakeService{name: "kubelet", state: platform.Stopped, starting: 3 * time.Second})
		status, err := scm.Start(t.Context(), f.platform(), "KUBELET", nil, time.Minute)
		switch {
		case err != nil:
			t.Fatal(err)
		case status.State != platform.Running:
			t.Fatalf("status.State is %v, want %v", status.State, platform.Running)
		case status.PID == 0:
			t.Fatal("status.PID is 0")
		}
	})
}

func TestStartLeavesARunningServiceAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSCM(&fakeService{name: "kubelet", state: platform.Running})
		pid := f.services["kubelet"].process.pid
		status, err := scm.Start(t.Context(), f.platform(), "kubelet", nil, time.Minute)
		switch {
		case err != nil:
			t.Fatal(err)
		case status.PID != pid:
			t.Fatalf("status.PID is %v, want %v", status.PID, pid)
		}
	})
}

func TestStartOfAServiceThatIsJustStopping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSCM(&fakeService{name: "kubelet", state: platform.Running, stopping: time.Second,
			starting: time.Second})
		if err := f.Stop(t.Context(), "kubelet"); err != nil {
			t.Fatal(err)
		}
		switch status, err := scm.Start(t.Context(), f.platform(), "kubelet", nil, time.Minute); {
		case err != nil:
			t.Fatal(err)
		case status.State != platform.Running:
			t.Fatalf("status.State is %v, want %v", status.State, platform.Running)
		}
	})
}

func TestStartReportsHowTheServiceEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSCM(&fakeService{name: "kubelet", state: platform.Stopped, starting: time.Second, failing: true})
		_, err := scm.Start(t.Context(), f.platform(), "kubelet", nil, time.Minute)
		var state *scm.StateError
		switch {
		case !errors.Is(err, fault.ErrStartFailed):
			t.Fatalf("the error is %v, want %v", err, fault.ErrStartFailed)
		case !errors.As(err, &state):
			t.Fatalf("the error is %v, a %T, want a %T", err, err, state)
		case state.Last.ExitCode != 1066:
			t.Fatalf("state.Last.ExitCode is %v, want 1066", state.Last.ExitCode)
		}
		if !strings.Contains(err.Error(), "last seen stopped, exit code 1066") {
			t.Fatalf("the error does not tell: %v", err)
		}
	})
}

func TestStartEndsWithItsContextAndSaysTheLastState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSCM(&fakeService{name: "kubelet", state: platform.Stopped, starting: time.Minute})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := scm.Start(ctx, f.platform(), "kubelet", nil, time.Minute)
		switch {
		case !errors.Is(err, context.DeadlineExceeded):
			t.Fatalf("the error is %v, want %v", err, context.DeadlineExceeded)
		case !strings.Contains(err.Error(), "last seen startPending"):
			t.Fatalf("err.Error() lacks %q:\n%s", "last seen startPending", err.Error())
		}
	})
}

func TestStartDoesNotWaitForAPausedService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSCM(&fakeService{name: "kubelet", state: platform.Paused})
		if _, err := scm.Start(t.Context(), f.platform(), "kubelet", nil, time.Minute); !errors.Is(err, fault.ErrStartFailed) {
			t.Fatalf("the error is %v, want %v", err, fault.ErrStartFailed)
		}
	})
}

func TestStopWaitsForTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSCM(&fakeService{name: "kubelet", state: platform.Running, stopping: time.Second,
			exiting: 5 * time.Second})
		process := f.services["kubelet"].process
		stopped, err := scm.Stop(t.Context(), f.platform(), "kubelet", scm.StopOptions{})
		switch {
		case err != nil:
			t.Fatal(err)
		case !slices.Equal(stopped, []string{"kubelet"}):
			t.Fatalf("stopped is %v, want %v", stopped, []string{"kubelet"})
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
		f := newSCM(&fakeService{name: "TermService", state: platform.Running, shared: true, exiting: time.Hour})
		begun := time.Now()
		if _, err := scm.Stop(t.Context(), f.platform(), "TermService", scm.StopOptions{}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took > time.Minute {
			t.Fatalf("waited %s for svchost", took)
		}
	})
}

func TestStopOfAStoppedServiceIsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSCM(&fakeService{name: "kubelet", state: platform.Stopped})
		stopped, err := scm.Stop(t.Context(), f.platform(), "kubelet", scm.StopOptions{})
		switch {
		case err != nil:
			t.Fatal(err)
		case len(stopped) != 0:
			t.Fatalf("stopped is %v, want it empty", stopped)
		}
	})
}

func TestStopOfAServiceThatIsJustStarting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSCM(&fakeService{name: "kubelet", state: platform.Stopped, starting: 2 * time.Second})
		if err := f.Start(t.Context(), "kubelet"); err != nil {
			t.Fatal(err)
		}
		stopped, err := scm.Stop(t.Context(), f.platform(), "kubelet", scm.StopOptions{})
		switch {
		case err != nil:
			t.Fatal(err)
		case !slices.Equal(stopped, []string{"kubelet"}):
			t.Fatalf("stopped is %v, want %v", stopped, []string{"kubelet"})
		}
	})
}

// A service that the SCM is about to restart is start pending and has no
// process yet: Stop must end the future process.
func TestStopKillsAStubbornServiceThatHadNoProcessYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSCM(&fakeService{name: "kubelet", state: platform.Stopped, launching: time.Second, stubborn: true})
		if err := f.Start(t.Context(), "kubelet"); err != nil {
			t.Fatal(err)
		}
		stopped, err := scm.Stop(t.Context(), f.platform(), "kubelet",
			scm.StopOptions{Timeout: 5 * time.Second, Kill: true})
		switch {
		case err != nil:
			t.Fatal(err)
		case !slices.Equal(stopped, []string{"kubelet"}):
			t.Fatalf("stopped is %v, want %v", stopped, []string{"kubelet"})
		}
	})
}

func TestStopOfAMissingService(t *testing.T) {
	if _, err := scm.Stop(t.Context(), newSCM().platform(), "kubelet", scm.StopOptions{}); !errors.Is(err,
		fault.ErrNoService) {
		t.Fatalf("the error is %v, want %v", err, fault.ErrNoService)
	}
}

func TestStopOneRefusesWhileDependentsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSCM(&fakeService{name: "containerd", state: platform.Running},
			&fakeService{name: "kubelet", state: platform.Running, needs: []string{"containerd"}})
		if _, err := scm.StopOne(t.Context(), f.platform(), "containerd", scm.StopOptions{}); !errors.Is(err,
			fault.ErrDependents) {
			t.Fatalf("the error is %v, want %v", err, fault.ErrDependents)
		}
	})
}

func TestStopGivesUpOnAStubbornService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSCM(&fakeService{name: "kubelet", state: platform.Running, stubborn: true})
		_, err := scm.Stop(t.Context(), f.platform(), "kubelet", scm.StopOptions{Timeout: 5 * time.Second})
		switch {
		case !errors.Is(err, context.DeadlineExceeded):
			t.Fatalf("the error is %v, want %v", err, context.DeadlineExceeded)
		case !strings.Contains(err.Error(), "last seen stopPending"):
			t.Fatalf("err.Error() lacks %q:\n%s", "last seen stopPending", err.Error())
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
				s.state = platform.Running
				f := newSCM(&s)
				process := s.process
				stopped, err := scm.Stop(t.Context(), f.platform(), s.name,
					scm.StopOptions{Timeout: 5 * time.Second, Kill: true})
				switch {
				case err != nil:
					t.Fatal(err)
				case !slices.Equal(stopped, []string{s.name}):
					t.Fatalf("stopped is %v, want %v", stopped, []string{s.name})
				case s.state != platform.Stopped:
					t.Fatalf("s.state is %v, want %v", s.state, platform.Stopped)
				}
				if err := process.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			})
		})
	}
}

func TestStopNeverKills(t *testing.T) {
	for _, s := range []fakeService{
		{name: "shared", shared: true},
		{name: "protected", protected: true},
		{name: "restarts Windows", reboots: true},
	} {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s.state, s.stubborn = platform.Running, true
				f := newSCM(&s)
				_, err := scm.Stop(t.Context(), f.platform(), s.name, scm.StopOptions{Timeout: time.Second, Kill: true})
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("the error is %v, want %v", err, context.DeadlineExceeded)
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
		f := newSCM(&fakeService{name: "containerd", state: platform.Running, stubborn: true},
			&fakeService{name: "kubelet", state: platform.Running, needs: []string{"containerd"}})
		stopped, err := scm.Stop(t.Context(), f.platform(), "containerd", scm.StopOptions{Timeout: time.Second})
		switch {
		case err == nil:
			t.Fatal("no error, want one")
		case !slices.Equal(stopped, []string{"kubelet"}):
			t.Fatalf("stopped is %v, want %v", stopped, []string{"kubelet"})
		}
	})
}

func TestRunningDependentsInACircle(t *testing.T) {
	f := newSCM(&fakeService{name: "a", state: platform.Running, needs: []string{"B"}},
		&fakeService{name: "b", state: platform.Running, needs: []string{"a"}})
	names, err := scm.RunningDependents(t.Context(), f.platform(), "A")
	switch {
	case err != nil:
		t.Fatal(err)
	case !slices.Equal(names, []string{"b"}):
		t.Fatalf("names is %v, want %v", names, []string{"b"})
	}
}

func TestRunningDependentsSeesThroughAStoppedService(t *testing.T) {
	f := newSCM(&fakeService{name: "a", state: platform.Running},
		&fakeService{name: "b", state: platform.Stopped, needs: []string{"a"}},
		&fakeService{name: "c", state: platform.Running, needs: []string{"b"}})
	names, err := scm.RunningDependents(t.Context(), f.platform(), "a")
	switch {
	case err != nil:
		t.Fatal(err)
	case !slices.Equal(names, []string{"c"}):
		t.Fatalf("names is %v, want %v", names, []string{"c"})
	}
}

// On any graph of services without circles, Stop follows Windows' rules (a
// service that others need cannot be stopped), ends every service that it must
// and no other.
func TestStopOnAnyGraph(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		services := drawServices(rt)
		target := services[rapid.IntRange(0, len(services)-1).Draw(rt, "target")]
		must := affected(services, target.name)
		if err := inBubble(t, func(ctx context.Context) error {
			return stopAndCheck(ctx, services, target.name, must)
		}); err != nil {
			rt.Fatal(err)
		}
	})
}

// drawServices returns services that may each depend on any of the earlier ones, in diamonds,
// chains and islands.
func drawServices(rt *rapid.T) []*fakeService {
	n := rapid.IntRange(1, 9).Draw(rt, "services")
	var services []*fakeService
	delay := rapid.SampledFrom([]time.Duration{0, time.Millisecond, time.Second})
	for i := range n {
		s := &fakeService{
			name: fmt.Sprint("s", i), state: platform.Running,
			stopping: delay.Draw(rt, "stopping"), exiting: delay.Draw(rt, "exiting"),
		}
		for j := range i {
			if rapid.Bool().Draw(rt, "needs") {
				s.needs = append(s.needs, services[j].name)
			}
		}
		if rapid.IntRange(0, 4).Draw(rt, "stopped") == 0 {
			s.state = platform.Stopped
		}
		services = append(services, s)
	}
	return services
}

// affected returns target and the running services that depend on it.
func affected(services []*fakeService, target string) map[string]bool {
	reached, running := map[string]bool{target: true}, map[string]bool{}
	for _, s := range services { // needs refer to earlier services, so one pass suffices
		if slices.ContainsFunc(s.needs, func(n string) bool { return reached[n] }) {
			reached[s.name] = true
		}
		if reached[s.name] && s.state != platform.Stopped {
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
	stopped, err := scm.Stop(ctx, f.platform(), target, scm.StopOptions{})
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

// inBubble runs f with its own clock.
func inBubble(t *testing.T, f func(context.Context) error) (err error) {
	synctest.Test(t, func(t *testing.T) { err = f(t.Context()) })
	return err
}

// The SCM delivers one control at a time. A service that did not get its control is not hung.
func TestStopWhileTheSCMWaitsForAnotherService(t *testing.T) {
	for _, busy := range []time.Duration{20 * time.Second, 50 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			f := newSCM(&fakeService{name: "kubelet", state: platform.Running, stopping: 3 * time.Second})
			f.busy = time.Now().Add(busy)
			killed := false
			process := f.services["kubelet"].process
			kill := process.kill
			process.kill = func() { killed = true; kill() }

			_, err := scm.StopOne(t.Context(), f.platform(), "kubelet", scm.StopOptions{Timeout: 5 * time.Second, Kill: true})

			if err != nil || killed {
				t.Errorf("busy for %v: %v, killed: %v", busy, err, killed)
			}
		})
	}
}

// A start that the SCM does not deliver is asked for again, and its timeout begins with the start.
func TestStartWhileTheSCMWaitsForAnotherService(t *testing.T) {
	for _, busy := range []time.Duration{20 * time.Second, 50 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			f := newSCM(&fakeService{name: "kubelet", state: platform.Stopped, starting: 3 * time.Second})
			f.busy = time.Now().Add(busy)

			status, err := scm.Start(t.Context(), f.platform(), "kubelet", nil, time.Minute)

			if err != nil || status.State != platform.Running {
				t.Errorf("busy for %v: %v, it is %s", busy, err, status.State)
			}
		})
	}
}

func TestStopKillsAServiceThatHangsInItsHandler(t *testing.T) {
	for _, timeout := range []time.Duration{5 * time.Second, 2 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			f := newSCM(&fakeService{name: "kubelet", state: platform.Running, hung: true})
			if _, err := scm.StopOne(t.Context(), f.platform(), "kubelet", scm.StopOptions{Timeout: timeout}); !errors.Is(
				err, fault.ErrNotDelivered) {
				t.Errorf("%v: the error is %v, want %v", timeout, err, fault.ErrNotDelivered)
			}
			_, err := scm.StopOne(t.Context(), f.platform(), "kubelet", scm.StopOptions{Timeout: timeout, Kill: true})
			if s := f.services["kubelet"]; err != nil || s.state != platform.Stopped {
				t.Errorf("%v: %v, and it is %s", timeout, err, s.state)
			}
		})
	}
}
