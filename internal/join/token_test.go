package join_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/swdt-dev/swdt/internal/join"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wait"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// spy records the bootstrap tokens that kubeadm gets, and who may read their files.
type spy struct {
	mu     sync.Mutex
	tokens []string
	access []string
	// after is called when kubeadm is about to start.
	after func() simulated.Verdict
}

func (l *lab) spyOn(after func() simulated.Verdict) *spy {
	s := &spy{after: after}
	token := regexp.MustCompile(`token: ([a-z0-9]{6}\.[a-z0-9]{16})`)
	l.Machine.OnOperation(func(op simulated.Operation) simulated.Verdict {
		if op.Kind != simulated.OpProcessRun || op.Phase != simulated.Before ||
			!strings.HasSuffix(strings.ToLower(op.Target), "kubeadm.exe") {
			return simulated.Continue()
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if found := token.FindStringSubmatch(l.get(layout.JoinConfiguration)); found != nil {
			s.tokens = append(s.tokens, found[1])
			sddl, err := l.Machine.Process("spy").Files.ACL(layout.JoinConfiguration)
			s.access = append(s.access, fmt.Sprint(sddl, err))
		}
		if s.after == nil {
			return simulated.Continue()
		}
		return s.after()
	})
	return s
}

// keptSecret checks that there was a token and that it no longer exists anywhere.
func (s *spy) keptSecret(l *lab, results []plan.StepResult, err error) {
	l.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.tokens) == 0 {
		l.t.Fatal("kubeadm was never given a token")
	}
	for _, access := range s.access {
		if !strings.Contains(access, "D:P") || strings.Count(access, "(A;") != 2 {
			l.t.Errorf("while kubeadm ran the file with the token could be read by others: %s", access)
		}
	}
	for _, token := range s.tokens {
		_, secret, _ := strings.Cut(token, ".")
		places := map[string]string{"the story": l.story.String(), "the results": table(results),
			"the error": fmt.Sprintf("%v %+v %#v", err, err, err)}
		for _, ran := range l.Machine.Commands() {
			places["the command line of "+ran.Path] += strings.Join(ran.Args, " ") + strings.Join(ran.Environment, " ")
		}
		for path := range l.Machine.Snapshot(`C:\`) {
			places[path] = l.get(path)
		}
		for service, commandLine := range l.state().Services {
			places["service "+service] = commandLine
		}
		for place, text := range places {
			if strings.Contains(text, secret) {
				l.t.Errorf("the token is in %s", place)
			}
		}
	}
	l.noToken()
}

func TestTheTokenIsNowhereAfterAJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		s := l.spyOn(nil)
		results := l.mustJoin()
		s.keptSecret(l, results, nil)
	})
}

func TestTheTokenIsNowhereAfterAJoinThatFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.programs.fault["kubeadm"] = simulated.CrashAtStart
		s := l.spyOn(nil)
		results, err := l.join()
		var failed *join.FailedError
		var kubeadm *join.KubeadmError
		switch {
		case !errors.As(err, &failed):
			t.Fatalf("error = %v (%T), want a %T", err, err, failed)
		case failed.Phase != "join":
			t.Fatalf("failed.Phase = %q, want %q", failed.Phase, "join")
		case !errors.As(err, &kubeadm):
			t.Fatalf("error = %v (%T), want a %T", err, err, kubeadm)
		case kubeadm.ExitCode == 0:
			t.Fatalf("kubeadm.ExitCode = 0; got %v\n%s", err, table(results))
		}
		s.keptSecret(l, results, err)
	})
}

func TestTheTokenIsNowhereAfterAJoinThatWasCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		ctx, cancel := context.WithCancel(t.Context())
		s := l.spyOn(func() simulated.Verdict {
			cancel()
			return simulated.Continue()
		})
		steps, err := join.Steps(l.Node.Node, l.doc, l.options())
		results, err := l.run(ctx, steps, err, false)
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v\n%s", err, table(results))
		}
		s.keptSecret(l, results, err)
		l.Machine.OnOperation(nil)
		l.mustJoin()
		l.isReady()
	})
}

// After Ctrl-C swdt ends within a second: deleting the token does not wait for a slow node.
func TestTheTokenOfACancelledJoinIsDeletedBeforeTheNodeIsCleared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		ctx, cancel := context.WithCancel(t.Context())
		running, end := context.WithCancel(t.Context())
		defer end()
		given := regexp.MustCompile(`token: ([a-z0-9]{6})\.`)
		var secret string
		l.Machine.OnOperation(func(op simulated.Operation) simulated.Verdict {
			switch {
			case op.Phase != simulated.Before:
			case op.Kind == simulated.OpProcessRun && strings.HasSuffix(strings.ToLower(op.Target), "kubeadm.exe"):
				secret = "bootstrap-token-" + given.FindStringSubmatch(l.get(layout.JoinConfiguration))[1]
				cancel()
			case op.Kind == simulated.OpRemove && secret != "" && strings.EqualFold(op.Target, layout.JoinConfiguration):
				l.awaitGone(running, secret)
			}
			return simulated.Continue()
		})
		steps, err := join.Steps(l.Node.Node, l.doc, l.options())
		results, err := l.run(ctx, steps, err, false)
		end()
		if !errors.Is(err, context.Canceled) || secret == "" {
			t.Fatalf("got %v\n%s", err, table(results))
		}
		if errors.Is(err, context.DeadlineExceeded) { // the join gave up clearing the node
			t.Errorf("the token is there until the node is cleared: %v", err)
		}
		l.noToken()
	})
}

// awaitGone waits until a Secret of a token is deleted, or ctx ends.
func (l *lab) awaitGone(ctx context.Context, secret string) {
	_ = wait.Condition{Name: "the token's end", Interval: 5 * time.Millisecond, Look: func(context.Context) error {
		if _, there := l.control.Object("secrets", "kube-system", secret); there {
			return errors.New("it is there")
		}
		return nil
	}}.Wait(ctx)
}

// The join uses a token of the node file and does not delete it.
func TestATokenOfTheNodeFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		minted, err := l.cluster.MintToken(t.Context(), tokenFor("somebody"))
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv("TOKEN", minted.Value())
		l.spec().Join.TokenFrom = secretOf("TOKEN")
		s := l.spyOn(nil)
		l.mustJoin()
		if len(s.tokens) != 1 || s.tokens[0] != minted.Value() {
			t.Errorf("kubeadm was given another token")
		}
		if _, there := l.control.Object("secrets", "kube-system", "bootstrap-token-"+minted.ID()); !there {
			t.Error("the token was deleted")
		}
	})
}

// Without access to a cluster, the node file has everything that the join needs.
func TestJoiningWithoutAKubeconfig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		minted, err := l.cluster.MintToken(t.Context(), tokenFor("win1"))
		if err != nil {
			t.Fatal(err)
		}
		l.spec().Join.Token = minted.Value()
		l.spec().Join.DiscoveryTokenCACertHash = l.control.CACertHash()
		l.spec().Join.ControlPlaneEndpoint = l.control.Address()
		known := l.cluster
		l.cluster = nil
		l.mustJoin()
		again, err := l.join()
		nothing(t, again, err)
		l.cluster = known
		time.Sleep(time.Minute) // of the bubble's clock: without the cluster, the join has not awaited kubelet's report
		l.isReady()
	})
}
