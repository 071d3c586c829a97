package join_test

import (
	"errors"
	"testing"
	"testing/synctest"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/wire/layout"
	"github.com/swdt-dev/swdt/internal/wire/tracerecord"
)

const (
	containerdToml = `C:\Program Files\containerd\config.toml`
	keptToml       = layout.Trace + `\containerd-before`
)

// trace changes the machine as `swdt trace on` does, but restarts nothing.
func (l *lab) trace() (before, after string) {
	l.t.Helper()
	before = l.get(containerdToml)
	after = "# traced\n" + before + "\n[traced]\n"
	kubelet := l.commandLineOf("kubelet")
	r := tracerecord.Record{Services: map[string]tracerecord.Service{
		"containerd": {On: true, By: "ann@desk", CommandLine: tracerecord.Change{Before: l.commandLineOf("containerd"),
			After: l.commandLineOf("containerd")},
			Config: &tracerecord.File{Path: containerdToml, Kept: keptToml, Change: tracerecord.Change{
				Before: tracerecord.Sum([]byte(before), true), After: tracerecord.Sum([]byte(after), true)}}},
		"kubelet": {On: true, By: "ann@desk", CommandLine: tracerecord.Change{Before: kubelet,
			After: kubelet + " --v=4"}},
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

// A join without any other change leaves the trace on.
func TestAJoinLeavesATraceOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.mustJoin()
		_, after := l.trace()
		kubelet := l.commandLineOf("kubelet")
		results, err := l.join()
		nothing(t, results, err)
		if l.get(containerdToml) != after || l.commandLineOf("kubelet") != kubelet {
			t.Error("the trace is lost")
		}
		// A join that changes something else leaves the trace on, too.
		l.configure(&agentv1.ServiceConfig{Name: "kubelet", StartType: agentv1.StartType_START_TYPE_MANUAL})
		l.mustJoin()
		if l.commandLineOf("kubelet") != kubelet {
			t.Errorf("the trace is lost: %s", l.commandLineOf("kubelet"))
		}
	})
}

// A join that would change something traced returns an error before it changes anything.
func TestAJoinThatWouldLoseATraceIsRefused(t *testing.T) {
	for name, change := range map[string]func(l *lab){
		"configuration": func(l *lab) { l.spec().Containerd.PauseImage = "registry.example/pause:9" },
		"flags":         func(l *lab) { l.spec().Kubelet.ExtraArgs = map[string]string{"max-pods": "7"} },
	} {
		subtest(t, name, func(t *testing.T) {
			l := newLab(t)
			l.mustJoin()
			_, after := l.trace()
			kubelet := l.commandLineOf("kubelet")
			change(l)
			results, err := l.join()
			var on *tracerecord.OnError
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
