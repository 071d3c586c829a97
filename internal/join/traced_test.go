package join_test

import (
	"errors"
	"testing"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/layout"
	"github.com/swdt-dev/swdt/internal/trace/record"
)

const (
	containerdToml = `C:\Program Files\containerd\config.toml`
	keptToml       = layout.Trace + `\containerd-before`
)

// trace does to the machine what `swdt trace on` does, but for the restarts.
func (l *lab) trace() (before, after string) {
	l.t.Helper()
	before = l.get(containerdToml)
	after = "# traced\n" + before + "\n[traced]\n"
	kubelet := l.commandLineOf("kubelet")
	r := record.Record{Services: map[string]record.Service{
		"containerd": {On: true, By: "ann@desk", CommandLine: record.Change{Before: l.commandLineOf("containerd"), After: l.commandLineOf("containerd")},
			Config: &record.File{Path: containerdToml, Kept: keptToml, Change: record.Change{
				Before: record.Sum([]byte(before), true), After: record.Sum([]byte(after), true)}}},
		"kubelet": {On: true, By: "ann@desk", CommandLine: record.Change{Before: kubelet, After: kubelet + " --v=4"}},
	}}
	content, err := r.Encode()
	if err != nil {
		l.t.Fatal(err)
	}
	l.put(layout.TraceRecord, string(content))
	l.put(keptToml, before)
	l.put(containerdToml, after)
	l.configure(&agentv1.ServiceConfig{Name: "kubelet", CommandLine: kubelet + " --v=4"})
	return before, after
}

// A join that wants nothing else leaves the trace on.
func TestAJoinLeavesATraceOn(t *testing.T) {
	l := newLab(t)
	l.mustJoin()
	_, after := l.trace()
	kubelet := l.commandLineOf("kubelet")
	results, err := l.join()
	nothing(t, results, err)
	if l.get(containerdToml) != after || l.commandLineOf("kubelet") != kubelet {
		t.Error("the trace is lost")
	}
	// A change of something else is made, and leaves it too.
	l.configure(&agentv1.ServiceConfig{Name: "kubelet", StartType: "manual"})
	l.mustJoin()
	if l.commandLineOf("kubelet") != kubelet {
		t.Errorf("the trace is lost: %s", l.commandLineOf("kubelet"))
	}
}

// One that wants to change what is traced says so before it changes anything.
func TestAJoinThatWouldLoseATraceIsRefused(t *testing.T) {
	for name, change := range map[string]func(l *lab){
		"configuration": func(l *lab) { l.spec().Containerd.PauseImage = "registry.example/pause:9" },
		"flags":         func(l *lab) { l.spec().Kubelet.ExtraArgs = map[string]string{"max-pods": "7"} },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.mustJoin()
			_, after := l.trace()
			kubelet := l.commandLineOf("kubelet")
			change(l)
			results, err := l.join()
			var on *record.OnError
			if !errors.As(err, &on) || on.By != "ann@desk" {
				t.Fatalf("%v\n%s", err, table(results))
			}
			if l.get(containerdToml) != after || l.commandLineOf("kubelet") != kubelet {
				t.Error("the trace is lost")
			}
		})
	}
}

func (l *lab) commandLineOf(service string) string {
	l.t.Helper()
	reply, err := l.Services.Get(l.t.Context(), &agentv1.GetServiceRequest{Name: service})
	if err != nil {
		l.t.Fatal(err)
	}
	return reply.GetConfig().GetCommandLine()
}

func (l *lab) configure(c *agentv1.ServiceConfig) {
	l.t.Helper()
	if _, err := l.Services.Configure(l.t.Context(), c); err != nil {
		l.t.Fatal(err)
	}
}
