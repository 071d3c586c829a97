package selftest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/agentbin"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/word"
)

// Options are the options of a run.
type Options struct {
	Agent          agentbin.Agent
	Swdt           string // the version of swdt, for the report
	Only, Skip     []string
	ChangeSettings bool
	AllowReboot    bool
}

// Check returns an error if Only or Skip has a name that no claim has.
func (o Options) Check() error {
	for _, id := range slices.Concat(o.Only, o.Skip) {
		if !slices.ContainsFunc(Claims(), func(c Claim) bool { return c.ID == id }) {
			return fmt.Errorf("there is no claim %q; `swdt selftest --list` lists them", id)
		}
	}
	return nil
}

// notInOnly is the reason for all claims that are not in Only.
const notInOnly = "not in --only"

// refusal returns why the user did not ask for a claim, or "".
func (o Options) refusal(c Claim) string {
	switch {
	case len(o.Only) > 0 && !slices.Contains(o.Only, c.ID):
		return notInOnly
	case slices.Contains(o.Skip, c.ID):
		return "in --skip"
	case c.Grade == Settings && !o.ChangeSettings:
		return "needs --change-settings"
	case c.Grade == Reboots && !o.AllowReboot:
		return "needs --allow-reboot"
	}
	return ""
}

// endedBefore is the reason for all claims that a run could not try to their end.
const endedBefore = "the run ended before"

const (
	claimLimit = 5 * time.Minute // without the time of a restart
	sweepLimit = 2 * time.Minute
)

// FailedError reports that at least one claim failed. The report has the reasons.
type FailedError struct{ Failed int }

func (e *FailedError) Error() string { return fmt.Sprintf("%d claims failed", e.Failed) }

// Run tries the claims on a node, and removes what they made, also if ctx ends. The error is a
// *FailedError if claims failed. With any other error the run ended early, or has left something on the node; the
// report has the claims so far.
func Run(ctx context.Context, n *node.Node, document config.Document, o Options, r ui.Reporter) (Report, error) {
	scratch, err := localfile.Scratch()
	if err != nil {
		return Report{}, err
	}
	defer scratch.Remove()
	t := &trial{node: n, document: document, agent: o.Agent, folder: scratch.Path, reporter: r, builds: map[string]build{}}
	system, names, err := look(ctx, t)
	if err != nil {
		return Report{}, err
	}
	t.real = system.Kind == kindWindows
	if err := removeEarlier(ctx, t); err != nil {
		return Report{}, err
	}
	report := Report{Format: format, Swdt: o.Swdt, Taken: time.Now().UTC().Truncate(time.Second), System: system}
	cut := runClaims(ctx, t, o, &report)
	cleaned := t.cleanUp(ctx)
	if cleaned != nil {
		report.CleanUp = cleaned.Error()
	}
	report.redact(names)
	report.complete()
	if err := errors.Join(cut, cleaned); err != nil {
		return report, err
	}
	return report, report.Failure()
}

// removeEarlier removes what a run that was killed has left. The node may still work on a push of that run.
func removeEarlier(ctx context.Context, t *trial) error {
	if err := t.settled(ctx); err != nil {
		return err
	}
	found, err := sweep(ctx, t.node, sweepOrder(Claims()))
	if len(found) > 0 {
		t.reporter.Warn("removed what an earlier run has left: %s", strings.Join(found, ", "))
	}
	if err != nil {
		return fmt.Errorf("remove what an earlier run has left: %w", err)
	}
	return nil
}

// runClaims tries each claim that the user asked for. It returns an error only if ctx ended or the node is lost.
func runClaims(ctx context.Context, t *trial, o Options, report *Report) (cut error) {
	for _, c := range Claims() {
		result := newResult(c)
		switch reason := o.refusal(c); {
		case reason != "":
			result.Outcome, result.Reason = NotRun, reason
		case cut != nil:
			result.Outcome, result.Reason = NotRun, endedBefore
		default:
			t.reporter.Step("%s", c.Title)
			cut = t.tryClaim(ctx, c, &result)
		}
		report.Claims = append(report.Claims, result)
	}
	return cut
}

func (t *trial) tryClaim(ctx context.Context, c Claim, result *Result) error {
	begin := time.Now()
	if err := t.ready(ctx); err != nil {
		result.Outcome, result.Reason = NotRun, endedBefore
		return err
	}
	t.answers = nil
	limit := claimLimit
	if c.Grade == Reboots {
		limit += rebootLimit
	}
	bounded, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done within %s", limit))
	defer cancel()
	err := c.try(bounded, t)
	result.Seconds = time.Since(begin).Seconds()
	result.Answers = t.answers
	var not *impossibleError
	switch {
	case err == nil:
		result.Outcome = Passed
	case ctx.Err() != nil:
		result.Outcome, result.Reason = NotRun, endedBefore
		return context.Cause(ctx)
	case errors.As(err, &not):
		result.Outcome, result.Reason = Impossible, not.reason
	default:
		result.Outcome, result.Reason = Failed, err.Error()
		t.reporter.Warn("%s: %v", c.ID, err)
	}
	return nil
}

// cleanUp removes what the claims made, also if ctx has ended.
func (t *trial) cleanUp(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	if err := t.awaitRestart(ctx); err != nil {
		return fmt.Errorf("remove what the claims made: %w; the next `swdt selftest` removes it", err)
	}
	ctx, cancel := context.WithTimeout(ctx, sweepLimit)
	defer cancel()
	if err := t.settled(ctx); err != nil {
		return fmt.Errorf("remove what the claims made: %w; the next `swdt selftest` removes it", err)
	}
	_, err := sweep(ctx, t.node, sweepOrder(Claims()))
	if err != nil {
		return fmt.Errorf("remove what the claims made: %w; the next `swdt selftest` removes it", err)
	}
	_, err = t.node.Machine.Unlock(ctx, &agentv1.UnlockRequest{})
	return err
}

// look describes the node, and returns the names that must not be in the report.
func look(ctx context.Context, t *trial) (System, []string, error) {
	facts, err := t.node.Machine.Facts(ctx, &agentv1.FactsRequest{})
	if err != nil {
		return System{}, nil, err
	}
	s := System{Kind: word.Of(facts.GetSimulated()), Product: facts.GetProduct(), Build: facts.GetBuild(),
		Architecture: facts.GetArchitecture(), Way: "ssh", OpenSSH: openSSH(t.node.ServerVersion())}
	if facts.GetSimulated() == agentv1.Simulation_SIMULATION_NONE {
		s.Kind = kindWindows
	}
	credentials := t.document.Node.Spec.Credentials
	if credentials.Kubernetes != nil {
		s.Way = "kubernetes"
	}
	host, _, err := net.SplitHostPort(credentials.Hostname)
	if err != nil {
		host = credentials.Hostname
	}
	machine, _ := os.Hostname()
	return s, append(t.node.Names(), facts.GetHostname(), t.document.Node.Metadata.Name, credentials.Username, host,
		machine, t.folder), nil
}

// openSSH returns the version in the banner of an SSH server, which may have a comment behind it; "" if the server
// is none of OpenSSH.
func openSSH(banner string) string {
	version, _, _ := strings.Cut(strings.TrimPrefix(banner, "SSH-2.0-"), " ")
	if !strings.HasPrefix(version, "OpenSSH_") {
		return ""
	}
	return version
}
