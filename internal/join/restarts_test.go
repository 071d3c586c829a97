package join_test

import (
	"strings"
	"testing"
	"testing/synctest"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/format/windowstext"
	"github.com/swdt-dev/swdt/internal/join"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// starts counts how often services were started, by lower-case name.
func (l *lab) starts(before int) map[string]int {
	starts := map[string]int{}
	for _, op := range l.Machine.Operations()[before:] {
		if op.Kind == simulated.OpServiceStart {
			starts[strings.ToLower(op.Target)]++
		}
	}
	return starts
}

// While containerd is down, no pod of the node starts or stops.
func TestANewContainerdAndItsConfigurationTakeOneRestart(t *testing.T) {
	for name, c := range map[string]struct {
		from, to, has string
		change        func(*v1alpha1.Kubernetes)
	}{
		"a wish": {"1.7.12", "1.7.13", "example.com/pause:1",
			func(k *v1alpha1.Kubernetes) { k.Containerd.PauseImage = "example.com/pause:1" }},
		"another generation": {"1.7.12", "2.4.2", "version = 4", nil},
		"another generation and a wish": {"1.7.12", "2.2.0", "example.com/pause:1",
			func(k *v1alpha1.Kubernetes) { k.Containerd.PauseImage = "example.com/pause:1" }},
		"an older generation": {"2.4.2", "1.7.12", "version = 2", nil},
	} {
		subtest(t, name, func(t *testing.T) {
			l := newLab(t)
			l.spec().Containerd.Version = c.from
			l.mustJoin()
			if strings.Contains(l.get(containerdToml), c.has) {
				t.Fatalf("the configuration has %s already", c.has)
			}
			l.spec().Containerd.Version = c.to
			if c.change != nil {
				c.change(l.spec())
			}
			before := len(l.Machine.Operations())
			results := l.mustJoin()
			if starts := l.starts(before); starts["containerd"] != 1 || starts["kubelet"] != 1 {
				t.Errorf("started %v\n%s", starts, table(results))
			}
			if config := l.get(containerdToml); !strings.Contains(config, c.has) {
				t.Errorf("the configuration is\n%s", config)
			}
			if l.isReady().Runtime != "containerd://"+c.to {
				t.Errorf("runs %s", l.isReady().Runtime)
			}
			again, err := l.join()
			nothing(t, again, err)
		})
	}
}

// A dry run lists the change of the configuration and the restart in the step that makes
// them, and not again in later steps.
func TestDryRunReportsAnExchangeOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.mustJoin()
		l.spec().Containerd.Version, l.spec().Containerd.PauseImage = "2.4.2", "example.com/pause:1"
		steps, err := join.Steps(l.Node.Node, l.doc, l.options())
		results, err := l.run(t.Context(), steps, err, true)
		if err != nil {
			t.Fatal(err)
		}
		reported := 0
		for _, r := range results {
			if strings.Contains(r.Change, "config.toml") || strings.Contains(r.Change, "restart containerd") {
				reported++
			}
		}
		if reported != 1 {
			t.Errorf("reported %d times\n%s", reported, table(results))
		}
	})
}

// The configuration is rolled back together with the binary.
func TestANewContainerdThatFailsLeavesTheConfigurationAsItWas(t *testing.T) {
	for _, version := range []string{"1.7.13", "2.4.2"} {
		subtest(t, version, func(t *testing.T) {
			l := newLab(t)
			l.mustJoin()
			before := l.get(containerdToml)
			l.spec().Containerd.Version, l.spec().Containerd.PauseImage = version, "example.com/pause:1"
			l.programs.fault["containerd"] = simulated.CrashAtStart
			if results, err := l.join(); err == nil {
				t.Fatalf("joined with a containerd that crashes\n%s", table(results))
			}
			if l.get(containerdToml) != before {
				t.Errorf("the configuration is\n%s", l.get(containerdToml))
			}
			if l.pid("containerd") == 0 || l.pid("kubelet") == 0 {
				t.Error("a service does not run")
			}
			l.programs.fault["containerd"] = ""
			l.mustJoin()
			if !strings.Contains(l.get(containerdToml), "example.com/pause:1") {
				t.Error("the next join did not bring the configuration")
			}
		})
	}
}

// A join does not replace a configuration that a trace has changed, even if a new
// containerd generates another.
func TestANewContainerdDoesNotTakeATraceAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.mustJoin()
		_, after := l.trace()
		pid := l.pid("containerd")
		l.spec().Containerd.Version = "2.4.2"
		if results, err := l.join(); err == nil || !strings.Contains(err.Error(), "ann@desk") {
			t.Fatalf("%v\n%s", err, table(results))
		}
		if l.get(containerdToml) != after || l.pid("containerd") != pid {
			t.Error("the trace, or containerd's process, is another")
		}
		l.nothingBeside(containerdToml)
	})
}

// A configuration that this containerd cannot read is written anew, even if it has the wanted values.
func TestAConfigurationInAnotherEncoding(t *testing.T) {
	for _, c := range []struct {
		version  string
		encoding windowstext.Encoding
		kept     bool
	}{
		{"1.7.12", windowstext.MarkedUTF8, true}, // containerd 1 skips the mark
		{"2.4.2", windowstext.MarkedUTF8, false},
		{"1.7.12", windowstext.UTF16LE, false},
	} {
		subtest(t, c.version+", "+c.encoding.String(), func(t *testing.T) {
			l := newLab(t)
			l.spec().Containerd.Version = c.version
			l.mustJoin()
			plain := l.get(containerdToml)
			encoded := string(windowstext.Text{Encoding: c.encoding}.Encode(plain))
			l.put(containerdToml, encoded)
			results := l.mustJoin()
			if named := strings.Contains(table(results), c.encoding.String()); named == c.kept {
				t.Errorf("the encoding is named: %v\n%s", named, table(results))
			}
			want := plain
			if c.kept {
				want = encoded
			}
			if got := l.get(containerdToml); got != want {
				t.Errorf("the configuration is %.60q, want %.60q", got, want)
			}
		})
	}
}

// A reset removes the files that the exchange has kept.
func TestAResetAfterAnExchange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.put(containerdToml, "version = 2\n# mine\n")
		before := l.state()
		l.mustJoin()
		l.spec().Containerd.Version = "2.4.2"
		l.mustJoin()
		if l.get(layout.Previous(containerdToml)) == "" {
			t.Fatal("the previous configuration is not kept")
		}
		l.put(containerdToml+".swdt-012345678901", "left by an interrupted join")
		if results, err := l.resetWith(resetAll(l)); err != nil {
			t.Fatalf("%v\n%s", err, table(results))
		}
		l.isAsBefore(before)
	})
}

// nothingBeside checks that a transaction left nothing beside a file.
func (l *lab) nothingBeside(path string) {
	l.t.Helper()
	list, err := l.Node.Node.Files.List(l.t.Context(),
		&agentv1.ListFilesRequest{Path: path[:strings.LastIndex(path, `\`)]})
	if err != nil {
		l.t.Fatal(err)
	}
	for _, entry := range list.GetEntries() {
		if layout.IsLeftover(path, entry.GetPath()) {
			l.t.Errorf("left: %s", entry.GetPath())
		}
	}
}
