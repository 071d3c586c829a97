package trace_test

import (
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/format/containerdconfig"
	"github.com/swdt-dev/swdt/internal/format/windowstext"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/trace"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

func TestOnThenOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		before := l.state()
		kubelet := l.commandLine("kubelet")

		l.mustOn(options())
		config := l.Get(toml)
		if diff := containerdconfig.Differences([]byte(theirs), config); len(diff) != 1 ||
			diff[0] != `debug.level: "info" → "debug"` {
			t.Errorf("the configuration says %v else", diff)
		}
		if got := l.commandLine("kubelet"); got != kubelet+" --v=4" {
			t.Errorf("kubelet: %s", got)
		}
		if got := l.get(layout.Trace + `\containerd-before`); got != theirs {
			t.Errorf("kept: %q", got)
		}
		for name, s := range l.status() {
			switch {
			case s.State != trace.IsOn:
				t.Errorf("s.State = %v, want %v", s.State, trace.IsOn)
			case s.By != "ann@desk":
				t.Errorf("s.By = %q, want %q", s.By, "ann@desk")
			case s.Since.IsZero():
				t.Errorf("s.Since.IsZero() is wrong; %s: %+v", name, s)
			case s.Before == s.Level:
				t.Errorf("s.Before = %v, want any value but %v; %s: %+v", s.Before, s.Level, name, s)
			}
		}
		results, err := l.on(options())
		nothing(t, results, err)

		l.mustOff(options())
		l.isAsBefore(before)
		if left := l.Machine.Snapshot(layout.Trace); len(left) > 0 {
			t.Errorf("left in swdt's folder: %v", left)
		}
		if s := l.status()["containerd"]; s.State != trace.IsOff || s.Level != "info" {
			t.Errorf("%+v", s)
		}
		results, err = l.off(options())
		nothing(t, results, err)
	})
}

// starts counts how often each service was started.
func (l *lab) starts(command func()) map[string]int {
	l.t.Helper()
	l.Machine.ForgetOperations()
	command()
	counts := map[string]int{}
	for _, op := range l.Machine.Operations() {
		if op.Kind == simulated.OpServiceStart && (op.Target == "containerd" || op.Target == "kubelet") {
			counts[op.Target]++
		}
	}
	return counts
}

// If both services change, each is restarted once, although kubelet stops with containerd.
// If one changes, the other is not restarted unless it must be.
func TestEachServiceIsRestartedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		before := l.state()
		louder := options()
		louder.KubeletVerbosity = "6"
		both := map[string]int{"containerd": 1, "kubelet": 1}
		for _, c := range []struct {
			what    string
			command func()
			want    map[string]int
		}{
			{"on", func() { l.mustOn(options()) }, both},
			{"on again", func() { l.mustOn(options()) }, map[string]int{}},
			{"kubelet louder", func() { l.mustOn(louder) }, map[string]int{"kubelet": 1}},
			{"off", func() { l.mustOff(options()) }, both},
			{"off again", func() { l.mustOff(options()) }, map[string]int{}},
		} {
			if diff := cmp.Diff(c.want, l.starts(c.command)); diff != "" {
				t.Errorf("%s: starts, -want +got:\n%s", c.what, diff)
			}
		}
		l.isAsBefore(before)
	})
}

// If kubelet does not start with its change, containerd keeps its own change.
func TestKubeletFailsAndContainerdKeepsItsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		line := l.commandLine("kubelet")
		var starts atomic.Int32
		l.Machine.OnOperation(func(op simulated.Operation) simulated.Verdict {
			if op.Kind != simulated.OpServiceStart || op.Target != "kubelet" || op.Phase != simulated.Before {
				return simulated.Continue()
			}
			switch starts.Add(1) {
			case 1, 4: // with its change; the other cases are without it
				return simulated.Fail(fault.ErrStartFailed)
			}
			return simulated.Continue()
		})
		results, err := l.on(options())
		var back *trace.RolledBackError
		switch {
		case !errors.As(err, &back):
			t.Fatalf("error = %v (%T), want a %T", err, err, back)
		case back.Service != "kubelet":
			t.Fatalf("back.Service = %q, want %q", back.Service, "kubelet")
		case results[0].State != plan.Changed:
			t.Fatalf("results[0].State = %v, want %v", results[0].State, plan.Changed)
		case results[1].State != plan.Failed:
			t.Fatalf("results[1].State = %v, want %v; %v after %d starts\n%s", results[1].State, plan.Failed, err,
				starts.Load(), table(results))
		}
		switch s := l.status(); {
		case s["containerd"].State != trace.IsOn:
			t.Errorf("s[\"containerd\"].State = %v, want %v", s["containerd"].State, trace.IsOn)
		case s["kubelet"].State != trace.IsOff:
			t.Errorf("s[\"kubelet\"].State = %v, want %v", s["kubelet"].State, trace.IsOff)
		case l.commandLine("kubelet") != line:
			t.Errorf("l.commandLine(\"kubelet\") is wrong; %+v", s)
		}
	})
}

func TestADryRunChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		before := l.state()
		results, err := l.run(t.Context(), trace.On(l.Node.Node, options()), true)
		switch {
		case err != nil:
			t.Errorf("unexpected error: %v", err)
		case results[0].State != plan.Skipped:
			t.Errorf("results[0].State = %v, want %v", results[0].State, plan.Skipped)
		case !strings.Contains(results[0].Change, "log at debug instead of info, restart containerd"):
			t.Errorf("results[0].Change lacks %q:\n%s; %v\n%s", "log at debug instead of info, restart containerd",
				results[0].Change, err, table(results))
		}
		l.isAsBefore(before)
		l.mustOn(options())
		on := l.state()
		results, err = l.run(t.Context(), trace.Off(l.Node.Node, options()), true)
		if err != nil || !strings.Contains(results[1].Change, "log at --v=0") {
			t.Errorf("%v\n%s", err, table(results))
		}
		l.isAsBefore(on)
	})
}

func TestOneServiceAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		before := l.state()
		l.mustOn(options("kubelet"))
		if l.get(toml) != theirs {
			t.Error("containerd's configuration was touched")
		}
		l.mustOn(options("containerd"))
		l.mustOff(options("kubelet"))
		if s := l.status(); s["kubelet"].State != trace.IsOff || s["containerd"].State != trace.IsOn {
			t.Errorf("%+v", s)
		}
		l.mustOff(options())
		l.isAsBefore(before)
	})
}

// A change from one level to another and back ends in the state before it.
func TestAnotherLevel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		before := l.state()
		l.mustOn(options())
		o := options()
		o.ContainerdLevel, o.KubeletVerbosity = "trace", "8"
		l.mustOn(o)
		switch s := l.status(); {
		case s["containerd"].Level != "trace":
			t.Errorf("s[\"containerd\"].Level = %q, want %q", s["containerd"].Level, "trace")
		case s["kubelet"].Level != "--v=8":
			t.Errorf("s[\"kubelet\"].Level = %q, want %q", s["kubelet"].Level, "--v=8")
		case s["containerd"].Before != "info":
			t.Errorf("s[\"containerd\"].Before = %q, want %q; %+v", s["containerd"].Before, "info", s)
		}
		l.mustOff(options())
		l.isAsBefore(before)
	})
}

// The level on the command line takes precedence over that of the configuration.
func TestALevelOnTheCommandLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		line := `"` + simulated.ContainerdPath + `" --run-service --log-file C:\containerd.log --log-level "info" --x`
		l.configure("containerd", line)
		before := l.state()
		l.mustOn(options("containerd"))
		if got := l.commandLine("containerd"); got != strings.Replace(line, `"info"`, "debug", 1) {
			t.Errorf("command line %s", got)
		}
		l.mustOff(options())
		l.isAsBefore(before)
	})
}

func (l *lab) configure(service, commandLine string) {
	l.t.Helper()
	if _, err := l.Services.Configure(l.t.Context(), &agentv1.ServiceConfig{Name: service,
		CommandLine: commandLine}); err != nil {
		l.t.Fatal(err)
	}
}

// A containerd without a configuration gets one, which `off` removes. A containerd without
// a log gets a log file.
func TestWithoutConfigurationAndLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		if err := l.Files.Remove(toml); err != nil {
			t.Fatal(err)
		}
		l.configure("containerd", `"`+simulated.ContainerdPath+`" --run-service`)
		before := l.state()
		l.mustOn(options("containerd"))
		switch s := l.status()["containerd"]; {
		case s.State != trace.IsOn:
			t.Errorf("s.State = %v, want %v", s.State, trace.IsOn)
		case s.LogFile != `C:\var\log\containerd\containerd.log`:
			t.Errorf("s.LogFile = %q, want %q", s.LogFile, `C:\var\log\containerd\containerd.log`)
		case s.Before != "info":
			t.Errorf("s.Before = %q, want %q; %+v", s.Before, "info", s)
		}
		noted := l.get(layout.TraceRecord)
		l.mustOff(options("containerd"))
		l.isAsBefore(before)

		// The state that an `off` leaves if it ends right after its transaction, and then an `on`.
		l.Put(toml, []byte("version = 2\n"))
		l.Put(layout.TraceRecord, []byte(noted))
		l.mustOn(options("containerd"))
		l.mustOff(options("containerd"))
		l.isAsBefore(before)
	})
}

func TestSpansOfContainerd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		before := l.state()
		o := options("containerd")
		o.OTLP = "http://collector:4318"
		l.mustOn(o)
		if got := containerdconfig.Text(l.Get(toml), "plugins", "io.containerd.tracing.processor.v1.otlp",
			"endpoint"); got != o.OTLP {
			t.Errorf("endpoint %q", got)
		}
		if s := l.status()["containerd"]; s.OTLP != o.OTLP {
			t.Errorf("%+v", s)
		}
		l.mustOff(options())
		l.isAsBefore(before)
	})
}

// In containerd 2 the configuration has no place for the endpoint any more.
func TestSpansOfContainerd2AreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.program(simulated.BinarySpec{Name: "containerd", Version: "2.0.0"})
		o := options("containerd")
		o.OTLP = "http://collector:4318"
		if results, err := l.on(o); err == nil || !strings.Contains(err.Error(), "OTEL_EXPORTER_OTLP_ENDPOINT") {
			t.Errorf("%v\n%s", err, table(results))
		}
	})
}

// program replaces containerd and starts it.
func (l *lab) program(spec simulated.BinarySpec) {
	l.t.Helper()
	ctx := l.t.Context()
	if _, err := l.Services.Stop(ctx, &agentv1.StopServiceRequest{Name: "containerd"}); err != nil {
		l.t.Fatal(err)
	}
	l.Machine.WriteFile(simulated.ContainerdPath, simulated.Binary(spec))
	for _, name := range []string{"containerd", "kubelet"} {
		if _, err := l.Services.Start(ctx, &agentv1.StartServiceRequest{Name: name}); err != nil {
			l.t.Fatal(err)
		}
	}
}

// on --force takes the present state as the one to restore.
// If kubelet does not start with the change, or a configuration is invalid, the previous
// state is restored, and the error has the cause.
func TestFailedChangeIsRolledBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.Machine.WriteFile(simulated.KubeletPath, nil) // not a valid program
		l.Machine.WriteFile(simulated.KubeletPath,
			simulated.Binary(simulated.BinarySpec{Name: "kubelet", Version: "v1.28.4", Fault: simulated.CrashAtStart}))
		before := l.state()
		results, err := l.on(options("kubelet"))
		var back *trace.RolledBackError
		var exit *push.RolledBackError
		switch {
		case !errors.As(err, &back):
			t.Fatalf("error = %v (%T), want a %T", err, err, back)
		case !errors.As(err, &exit):
			t.Fatalf("error = %v (%T), want a %T", err, err, exit)
		case !strings.Contains(err.Error(), "crash at start"):
			t.Fatalf("err.Error() lacks %q:\n%s; %v\n%s", "crash at start", err.Error(), err, table(results))
		}
		after := l.state()
		before["running"], after["running"] = "", "" // it cannot be started again
		for key, value := range before {
			if after[key] != value {
				t.Errorf("%s: %s, was %s", key, after[key], value)
			}
		}
		if s := l.status()["kubelet"]; s.State != trace.IsOff {
			t.Errorf("%+v", s)
		}
	})
}

func TestAConfigurationThatIsBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.Machine.WriteFile(toml, []byte("version = = 2"))
		before := l.state()
		if results, err := l.on(options()); err == nil || !strings.Contains(err.Error(), "containerd's configuration") {
			t.Fatalf("%v\n%s", err, table(results))
		}
		l.isAsBefore(before)
	})
}

// containerd 1 skips a byte order mark, and containerd 2 does not: after `off`, it would not start.
func TestAConfigurationInAnotherEncoding(t *testing.T) {
	for _, c := range []struct {
		version, config string
		encoding        windowstext.Encoding // of the error; UTF8 if there is none
	}{
		{"1.7.12", "\ufeffversion = 2\r\n", windowstext.UTF8},
		{"2.2.0", "\ufeffversion = 3\r\n", windowstext.MarkedUTF8}, // containerd/containerd#11940
		{"1.7.12", string(windowstext.Text{Encoding: windowstext.UTF16LE}.Encode("version = 2\r\n")), windowstext.UTF16LE},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := newLab(t)
			l.program(simulated.BinarySpec{Name: "containerd", Version: c.version})
			l.Machine.WriteFile(toml, []byte(c.config))
			before := l.state()
			results, err := l.on(options())
			refused, ok := errors.AsType[*windowstext.Error](err)
			switch {
			case ok != (c.encoding != windowstext.UTF8), ok && refused.Encoding != c.encoding:
				t.Errorf("%s, %q: %v\n%s", c.version, c.config, err, table(results))
			case !ok:
				l.mustOff(options())
			}
			l.isAsBefore(before)
		})
	}
}

func TestAServiceThatIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.remove("kubelet")
		results := l.mustOn(options())
		if results[1].Message != "there is no such service" || results[0].State != plan.Changed {
			t.Errorf("\n%s", table(results))
		}
		if results, err := l.on(options("kubelet")); !errors.Is(err, fault.ErrNoService) {
			t.Errorf("%v\n%s", err, table(results))
		}
		l.remove("containerd")
		if s := l.status()["containerd"]; s.State != trace.NoService {
			t.Errorf("%+v", s)
		}
		l.mustOff(options()) // the rest can be restored
		if got := l.get(toml); got != theirs {
			t.Errorf("%q", got)
		}
	})
}

func (l *lab) remove(service string) {
	l.t.Helper()
	if _, err := l.Services.Stop(l.t.Context(), &agentv1.StopServiceRequest{Name: service}); err != nil {
		l.t.Fatal(err)
	}
	if _, err := l.Services.Delete(l.t.Context(), &agentv1.DeleteServiceRequest{Name: service}); err != nil {
		l.t.Fatal(err)
	}
}

// If another program starts the kubelet, trace does not guess its command line.
func TestAKubeletBehindAScript(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.configure("kubelet", `C:\nssm.exe`)
		if results, err := l.on(options("kubelet")); err == nil || !strings.Contains(err.Error(), "native service") {
			t.Errorf("%v\n%s", err, table(results))
		}
	})
}

// nssm starts containerd with a configuration of its own (Siemens-Healthineers/K2s#2376): trace changes that
// one, and no other.
func TestAContainerdBehindNSSM(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		const config = `C:\k2s\containerd\config.toml`
		l.Put(config, []byte("version = 2\n"))
		l.Put(`C:\nssm.exe`, simulated.Binary(simulated.BinarySpec{Name: "nssm"}))
		l.configure("containerd", `C:\nssm.exe`)
		set := func(name, value string) {
			_, err := l.Registry.Set(t.Context(), &agentv1.RegistrySetRequest{
				Key:   `HKLM\SYSTEM\CurrentControlSet\Services\containerd\Parameters`,
				Value: &agentv1.RegistryValue{Name: name, Type: "REG_SZ", String_: value}})
			if err != nil {
				t.Fatal(err)
			}
		}
		if _, err := l.on(options("containerd")); err == nil {
			t.Error("a containerd whose program is unknown is traced")
		}
		set("Application", simulated.ContainerdPath)
		set("AppParameters", "--config "+config+" --log-level info")
		if _, err := l.on(options("containerd")); err == nil || !strings.Contains(err.Error(), "--log-level") {
			t.Errorf("a level that only nssm's settings have: %v", err)
		}
		set("AppParameters", "--config "+config)
		before := string(l.Get(`C:\Program Files\containerd\config.toml`))
		l.mustOn(options("containerd"))
		if !strings.Contains(string(l.Get(config)), `level = 'debug'`) {
			t.Errorf("the configuration of nssm's containerd: %s", l.Get(config))
		}
		if string(l.Get(`C:\Program Files\containerd\config.toml`)) != before {
			t.Error("another configuration was changed")
		}
		l.mustOff(options("containerd"))
		if got := string(l.Get(config)); got != "version = 2\n" {
			t.Errorf("after off: %s", got)
		}
	})
}

// A push during a trace changes the binary and nothing of the trace.
// A push that changes a command line would lose the trace, so it returns an error. If the
// command line without the trace is as wanted, the push has nothing to do.
// For a caller that stops the services anyway, off does not restart them. The state that
// an interruption of such an off leaves is restored, too.
func TestOffWithoutARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		before := l.state()
		l.mustOn(options())
		pids := l.Machine.ServiceStates()
		o := options()
		o.NoRestart = true
		l.mustOff(o)
		l.isAsBefore(before)
		for _, name := range []string{"containerd", "kubelet"} {
			if now := l.Machine.ServiceStates()[name]; now.PID != pids[name].PID {
				t.Errorf("%s was restarted", name)
			}
		}

		l.configure("containerd", `"`+simulated.ContainerdPath+`" --run-service --log-level info`)
		before = l.state()
		l.mustOn(options("containerd"))
		// simulates an interruption here
		l.configure("containerd", `"`+simulated.ContainerdPath+`" --run-service --log-level info`)
		l.mustOff(o)
		l.isAsBefore(before)
	})
}

// document returns a document with a new containerd to push.
func document(t *testing.T) config.Document {
	t.Helper()
	folder := t.TempDir()
	writeFile(t, filepath.Join(folder, "containerd.exe"),
		simulated.Binary(simulated.BinarySpec{Name: "containerd", Version: "1.7.12"}))
	doc := config.Document{File: filepath.Join(folder, "swdt.yaml")}
	doc.Node.Metadata.Name = "win1"
	health := options().Spec.Provisioners[0].Health
	doc.Node.Spec.Kubernetes.Provisioners = []v1alpha1.Provisioner{
		{Name: "containerd", SourceURL: "containerd.exe", Destination: simulated.ContainerdPath, Health: health},
	}
	v1alpha1.SetDefaults(&doc.Node)
	return doc
}
