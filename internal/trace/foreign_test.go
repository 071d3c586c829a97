package trace_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/trace"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/layout"
	"github.com/swdt-dev/swdt/internal/wire/tracerecord"
)

func TestForeignChangeIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		before := l.state()
		l.mustOn(options())
		edited := strings.Replace(l.get(toml), "'debug'", "'warn'", 1)
		l.Machine.WriteFile(toml, []byte(edited))

		for _, command := range []func(trace.Options) ([]plan.StepResult, error){l.off, l.on} {
			results, err := command(options())
			var changed *trace.ChangedError
			switch {
			case !errors.As(err, &changed):
				t.Fatalf("error = %v (%T), want a %T", err, err, changed)
			case changed.Service != "containerd":
				t.Fatalf("changed.Service = %q, want %q", changed.Service, "containerd")
			case !strings.Contains(err.Error(), `debug.level: "debug" → "warn"`):
				t.Fatalf("err.Error() lacks %q:\n%s; %v\n%s", `debug.level: "debug" → "warn"`, err.Error(), err,
					table(results))
			}
		}
		if s := l.status()["containerd"]; s.State != trace.Changed || len(s.Differences) != 1 {
			t.Errorf("%+v", s)
		}
		if l.get(toml) != edited {
			t.Error("it was lost")
		}
		o := options()
		o.Force = true
		l.mustOff(o)
		if got := l.get(layout.Previous(toml)); got != edited {
			t.Errorf("the edited file is not beside: %q", got)
		}
		if err := l.Files.Remove(layout.Previous(toml)); err != nil {
			t.Fatal(err)
		}
		l.isAsBefore(before)
	})
}

func TestForeignChangeIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.mustOn(options("containerd"))
		edited := "version = 2\n[debug]\nlevel = 'warn'\n"
		l.Machine.WriteFile(toml, []byte(edited))
		o := options("containerd")
		o.Force = true
		l.mustOn(o)
		l.mustOff(options())
		if got := l.get(toml); got != edited {
			t.Errorf("came back: %q", got)
		}
	})
}

func TestAPushInBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.mustOn(options())
		on := l.state()
		doc := document(t)
		result, err := push.Push(t.Context(), l.Node.Node, doc, push.Options{}, ui.Discard{})
		if err != nil || result.Result != push.Changed {
			t.Fatalf("%+v, %v", result, err)
		}
		for _, key := range []string{toml, "containerd", "kubelet", "running"} {
			if now := l.state(); now[key] != on[key] {
				t.Errorf("%s: %s, was %s", key, now[key], on[key])
			}
		}
		l.mustOff(options())
		if got := l.get(toml); got != theirs {
			t.Errorf("%q", got)
		}
	})
}

func TestAPushOfArgumentsInBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		plain := l.commandLine("kubelet")
		l.mustOn(options())
		before := l.state()
		doc := document(t)
		kubelet := filepath.Join(filepath.Dir(doc.File), "kubelet.exe")
		writeFile(t, kubelet, l.Get(simulated.KubeletPath))
		p := v1alpha1.Provisioner{Name: "kubelet", SourceURL: kubelet, Destination: simulated.KubeletPath,
			Args: commandline.Split(plain)[1:]}
		doc.Node.Spec.Kubernetes.Provisioners = []v1alpha1.Provisioner{p}
		v1alpha1.SetDefaults(&doc.Node)
		if result, err := push.Push(t.Context(), l.Node.Node, doc, push.Options{}, ui.Discard{}); err != nil ||
			result.Result != push.Unchanged {
			t.Errorf("%+v, %v", result, err)
		}
		doc.Node.Spec.Kubernetes.Provisioners[0].Args = []string{"--windows-service"}
		_, err := push.Push(t.Context(), l.Node.Node, doc, push.Options{}, ui.Discard{})
		var on *tracerecord.OnError
		switch {
		case !errors.As(err, &on):
			t.Errorf("error = %v (%T), want a %T", err, err, on)
		case on.Service != "kubelet":
			t.Errorf("on.Service = %q, want %q", on.Service, "kubelet")
		case on.By != "ann@desk":
			t.Errorf("on.By = %q, want %q; %v", on.By, "ann@desk", err)
		}
		l.isAsBefore(before)
	})
}
