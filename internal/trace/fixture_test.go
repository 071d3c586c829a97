package trace_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
	"github.com/swdt-dev/swdt/internal/trace"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

const (
	toml = `C:\Program Files\containerd\config.toml`
	// theirs is a configuration that a user wrote by hand: comments, an unusual order,
	// Windows line ends, none at the end of the last line.
	theirs = "# ours, do not touch\r\nversion = 2\r\n\r\n[plugins.\"io.containerd.grpc.v1.cri\".cni]\r\n  conf_dir = " +
		"'C:\\\\etc'  # net\r\n[debug]\r\n  level='info'"
)

// lab is a node with containerd and kubelet.
type lab struct {
	*nodetest.Node
	t *testing.T
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{Node: nodetest.Start(t, "win1", simulated.Options{}), t: t}
	l.Machine.WriteFile(toml, []byte(theirs))
	return l
}

func options(services ...string) trace.Options {
	short := v1alpha1.Health{
		Settle: &v1alpha1.Duration{Duration: time.Millisecond}, Timeout: &v1alpha1.Duration{Duration: 3 * time.Second},
		StopTimeout: &v1alpha1.Duration{Duration: 5 * time.Second},
	}
	o := trace.Options{Services: services, Holder: "ann@desk"}
	for _, name := range []string{"containerd", "kubelet"} {
		health, usual := short, v1alpha1.DefaultHealth(name)
		health.CRIPipe, health.HTTPGet = usual.CRIPipe, usual.HTTPGet
		o.Spec.Provisioners = append(o.Spec.Provisioners, v1alpha1.Provisioner{Name: name, Health: &health})
	}
	return o
}

// run does the same as the command.
func (l *lab) run(ctx context.Context, steps []plan.Step, dryRun bool) ([]plan.StepResult, error) {
	if err := push.Settle(ctx, l.Node.Node, push.Options{Holder: "ann@desk", DryRun: dryRun}, ui.Discard{}); err != nil {
		return nil, err
	}
	return plan.Run(ctx, steps, plan.Options{Machine: l.Node.Node, DryRun: dryRun, Holder: "ann@desk"}, ui.Discard{})
}

func (l *lab) on(o trace.Options) ([]plan.StepResult, error) {
	return l.run(l.t.Context(), trace.On(l.Node.Node, o), false)
}

func (l *lab) off(o trace.Options) ([]plan.StepResult, error) {
	return l.run(l.t.Context(), trace.Off(l.Node.Node, o), false)
}

func (l *lab) mustOn(o trace.Options) []plan.StepResult {
	l.t.Helper()
	results, err := l.on(o)
	if err != nil {
		l.t.Fatalf("on: %v\n%s", err, table(results))
	}
	return results
}

func (l *lab) mustOff(o trace.Options) []plan.StepResult {
	l.t.Helper()
	results, err := l.off(o)
	if err != nil {
		l.t.Fatalf("off: %v\n%s", err, table(results))
	}
	return results
}

func (l *lab) commandLine(service string) string {
	l.t.Helper()
	reply, err := l.Services.Get(l.t.Context(), &agentv1.GetServiceRequest{Name: service})
	if err != nil {
		l.t.Fatal(err)
	}
	return reply.GetConfig().GetCommandLine()
}

// state returns everything that tracing could change: files by their hash, command lines,
// and the running services.
func (l *lab) state() map[string]string {
	l.t.Helper()
	state := map[string]string{}
	for path, sum := range l.Machine.Snapshot(`C:\`) {
		if !ofSwdt(path) && !l.orphan(path) {
			state[path] = sum
		}
	}
	for _, service := range []string{"containerd", "kubelet", "kube-proxy"} {
		state[service] = l.commandLine(service)
	}
	state["running"] = strings.Join(l.Machine.RunningServices(), " ")
	return state
}

// orphan reports a file that an interrupted command left in swdt's own folder without
// recording it: the next `on` overwrites it.
func (l *lab) orphan(path string) bool {
	inFolder := strings.HasPrefix(strings.ToLower(path), strings.ToLower(layout.Trace)+`\`)
	_, err := l.Machine.ReadFile(layout.TraceRecord)
	return inFolder && (strings.HasSuffix(path, ".swdt-new") || errors.Is(err, fault.ErrNotExist))
}

// ofSwdt reports a file that every command may leave: logs of services, swdt's own
// hashes, history and locks.
func ofSwdt(path string) bool {
	path = strings.ToLower(path)
	return strings.HasPrefix(path, `c:\var\log\`) || path == `c:\containerd.log` ||
		strings.HasPrefix(path, `c:\programdata\swdt\history.`) || path == `c:\programdata\swdt\hashes.json` || path == `c:\programdata\swdt\lock` ||
		strings.HasPrefix(path, `c:\programdata\swdt\agent\`)
}

func (l *lab) isAsBefore(before map[string]string) {
	l.t.Helper()
	if diff := cmp.Diff(before, l.state()); diff != "" {
		l.t.Errorf("not as before, -before +now:\n%s", diff)
	}
}

// status returns the status of the services by name.
func (l *lab) status() map[string]trace.ServiceStatus {
	l.t.Helper()
	all, err := trace.Status(l.t.Context(), l.Node.Node)
	if err != nil {
		l.t.Fatal(err)
	}
	byName := map[string]trace.ServiceStatus{}
	for _, s := range all {
		byName[s.Name] = s
	}
	return maps.Clone(byName)
}

func (l *lab) get(path string) string { return string(l.Get(path)) }

func table(results []plan.StepResult) string {
	var b strings.Builder
	for _, r := range results {
		fmt.Fprintf(&b, "%-12s %-10s %s | %s\n", r.Name, r.State, r.Change, r.Message)
	}
	return b.String()
}

// nothing fails the test if a step found something to do.
func nothing(t *testing.T, results []plan.StepResult, err error) {
	t.Helper()
	for _, r := range results {
		if r.State != plan.OK {
			err = fmt.Errorf("%s is %s", r.Name, r.State)
		}
	}
	if err != nil {
		t.Fatalf("there was something to do: %v\n%s", err, table(results))
	}
}

func writeFile(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
