package push

import (
	"bytes"
	"strings"
	"testing"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
)

func TestPushOfAComponentWithoutAService(t *testing.T) {
	b := newBench(t, v1alpha1.Provisioner{Name: "tool", SourceURL: "tool.exe", Destination: `C:\new\folder\tool.exe`,
		Args: []string{"x"}})
	b.source("tool.exe", program("tool", "1"))
	result, err := b.push(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := result.Components[0]
	switch {
	case r.Action != ActionCreated:
		t.Errorf("r.Action is %v, want %v", r.Action, ActionCreated)
	case r.Service != nil:
		t.Errorf("r.Service is %v, want nil", r.Service)
	case !strings.Contains(r.Message, "there is no service tool"):
		t.Errorf("r.Message lacks %q:\n%s", "there is no service tool", r.Message)
	}
	switch c := b.swap.plans[0].GetComponents()[0]; {
	case c.GetService() != "":
		t.Errorf(`c.GetService() is %q, want ""`, c.GetService())
	case c.GetCommandLine() != "":
		t.Errorf(`c.GetCommandLine() is %q, want ""`, c.GetCommandLine())
	case c.GetPreviousSha256() != "":
		t.Errorf(`c.GetPreviousSha256() is %q, want ""`, c.GetPreviousSha256())
	}
	if got := b.node.Get(`C:\new\folder\tool.exe`); !bytes.Equal(got, program("tool", "1")) {
		t.Error("the file was not placed")
	}
	// A push never runs an unknown program to learn its version.
	if newComponent(v1alpha1.Provisioner{Name: "tool"}).reportsVersion() {
		t.Error("asks a stranger for its version")
	}
}

// refused checks that a push is refused, with a text, and changes nothing.
func (b *bench) refused(options Options, texts ...string) {
	b.t.Helper()
	_, err := b.push(b.t.Context(), options)
	if !is[*ProgramError](err) {
		b.t.Errorf("want a ProgramError: %v", err)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			b.t.Errorf("the error lacks %q: %v", text, err)
		}
	}
	if len(b.swap.plans) > 0 || len(b.leftovers()) > 0 {
		b.t.Errorf("plans %v, leftovers %v", b.swap.plans, b.leftovers())
	}
}

// With a misspelt name, a push would place the file of a running service and restart nothing.
func TestAFileThatAServiceOfAnotherNameRuns(t *testing.T) {
	b := twoPrograms(t)
	kubelet := &b.doc.Node.Spec.Kubernetes.Provisioners[1]
	kubelet.Name = "kublet"
	b.swap.answer = func(s *agentv1.ComponentState) {
		if s.GetName() == "kublet" && s.GetService() == nil {
			s.RunBy = []string{"kubelet"}
		}
	}
	b.refused(Options{}, "kublet: service kubelet runs "+kubeletPath, "no service kublet", "name: kubelet", "service: none")
	s, err := b.status()
	if err != nil || s.Components[1].Message != "service kubelet runs this file; did you mean name: kubelet?" {
		t.Errorf("status: %+v, %v", s.Components[1], err)
	}
	kubelet.Service = "kubelet" // the name may be any, if the node file names the service
	if result, err := b.push(t.Context(), Options{}); err != nil || result.Components[1].Action != ActionReplaced {
		t.Errorf("%+v, %v", result.Components[1], err)
	}
	if c := b.swap.plans[0].GetComponents()[1]; c.GetService() != "kubelet" || c.GetHealth().GetHttpGet() == "" {
		t.Errorf("the part of the transaction: %v", c)
	}
}

// No service has the component's name, and one has a similar name.
func TestAServiceOfASimilarName(t *testing.T) {
	for _, c := range []struct {
		name, destination string
		refused           bool
	}{
		{"kublet", `C:\new\kubelet.exe`, true},
		{"kubelte", `C:\new\k.exe`, true},
		{"containrd", `C:\new\c.exe`, true},
		{"mine", `C:\new\kubelet.exe`, false},    // a copy
		{"kubectl", `C:\new\kubectl.exe`, false}, // a program of its own
		{"crictl", `C:\new\crictl.exe`, false},
		{"win-bridge", `C:\new\win-bridge.exe`, false},
	} {
		b := newBench(t, v1alpha1.Provisioner{Name: c.name, SourceURL: "p.exe", Destination: c.destination})
		b.source("p.exe", program("p", "v1"))
		b.swap.answer = func(s *agentv1.ComponentState) { s.Services = []string{"kubelet", "containerd"} }
		if c.refused {
			b.refused(Options{}, "no service "+c.name, "service: none")
			b.doc.Node.Spec.Kubernetes.Provisioners[0].Service = "none"
		} else {
			b.refused(Options{Strict: true}, "no service "+c.name, "service: none")
			b.doc.Node.Spec.Kubernetes.Provisioners[0].Service = "nnone" // whoever names a service has one
			b.refused(Options{}, "no service nnone")
			b.doc.Node.Spec.Kubernetes.Provisioners[0].Service = ""
		}
		result, err := b.push(t.Context(), Options{})
		if err != nil || result.Components[0].Action != ActionCreated ||
			!strings.Contains(result.Components[0].Message, "the file is placed and nothing is restarted") {
			t.Errorf("%s: %+v, %v", c.name, result.Components[0], err)
		}
	}
}

// A service runs another file than the one at the destination, so tests after a push would test the
// old binary.
func TestAServiceThatRunsAnotherFile(t *testing.T) {
	const other = `C:\elsewhere\kubelet.exe`
	for _, line := range []string{other + " --run", `C:\k\kube-log-runner.exe -log-file=x ` + other, `cmd /c "` + other + ` > x"`} {
		b := twoPrograms(t)
		b.node.Put(other, b.swap.program("kubelet", "v1.28.7"))
		b.swap.commandLines["kubelet"] = line
		for _, options := range []Options{{}, {Force: true}, {DryRun: true}, {Only: []string{"kubelet"}}} {
			b.refused(options, "service kubelet runs "+other, "destination is "+kubeletPath, "set destination: "+other)
		}
		s, err := b.status()
		if err != nil {
			t.Fatal(err)
		}
		c := s.Components[1]
		switch {
		case c.Drift != DriftDestination:
			t.Errorf("drift %q", c.Drift)
		case c.Version != "v1.28.7" || c.SHA256 != sum(b.node.Get(other)) || c.Runs != other:
			t.Errorf("version and hash are not those of the file that runs: %+v", c)
		case !strings.Contains(c.Message, other):
			t.Errorf("message %q", c.Message)
		}
	}
}

// A script starts the program, so swdt does not know whether a restart runs the new file.
func TestAServiceOfAnUnknownProgram(t *testing.T) {
	b := twoPrograms(t)
	b.swap.commandLines["kubelet"] = `C:\Windows\powershell.exe -File C:\k\Start.ps1`
	b.refused(Options{}, `the script C:\k\Start.ps1 starts its program`, "service: kubelet", "service: none")
	if s, err := b.status(); err != nil || s.Components[1].Drift != DriftUnknown {
		t.Errorf("status: %+v, %v", s.Components[1], err)
	}
	// Its process shows which file the script starts.
	b.swap.answer = func(s *agentv1.ComponentState) {
		if s.GetName() == "kubelet" {
			s.Running = &agentv1.Image{Path: kubeletPath, Destination: true}
		}
	}
	if _, err := b.push(t.Context(), Options{DryRun: true}); err != nil {
		t.Error(err)
	}
	b.swap.answer = nil
	b.doc.Node.Spec.Kubernetes.Provisioners[1].Service = "kubelet" // the user knows
	if result, err := b.push(t.Context(), Options{}); err != nil || result.Components[1].Action != ActionReplaced {
		t.Errorf("%+v, %v", result.Components[1], err)
	}
}

// The service kubelet runs kube-log-runner.exe, which runs kubelet.exe.
func TestAFileThatTheServiceOfAnotherComponentRuns(t *testing.T) {
	const logRunner = `C:\k\kube-log-runner.exe`
	for _, c := range []struct {
		name, destination string
		alone             bool // the document has no component kubelet
		refused           bool
	}{
		{"kube-log-runner", logRunner, false, false},
		{"kube-log-runner", logRunner, true, false},
		{"nssm", `C:\k\nssm.exe`, false, false},
		{"nssm", `C:\k\nssm.exe`, true, true},
	} {
		b := twoPrograms(t)
		p := v1alpha1.Provisioner{Name: c.name, SourceURL: c.name + ".exe", Destination: c.destination}
		of := &b.doc.Node.Spec.Kubernetes.Provisioners
		if *of = append(*of, p); c.alone {
			*of = (*of)[2:]
		}
		v1alpha1.SetDefaults(&b.doc.Node)
		b.source(c.name+".exe", program(c.name, "v1"))
		b.swap.answer = func(s *agentv1.ComponentState) {
			if s.GetName() == c.name {
				s.RunBy = []string{"kubelet"}
			}
		}
		if c.refused {
			b.refused(Options{DryRun: true}, "service kubelet runs "+c.destination)
			continue
		}
		result, err := b.push(t.Context(), Options{DryRun: true})
		if err != nil {
			t.Fatal(err)
		}
		const next = "service kubelet runs this file, and uses the new one from its next start"
		if got := result.Components[len(result.Components)-1].Message; !strings.Contains(got, next) {
			t.Errorf("%s, alone %v: %q", c.name, c.alone, got)
		}
	}
}

// A stopped service gets the new file, and stays stopped unless the user wants it started.
func TestAStoppedService(t *testing.T) {
	b := twoPrograms(t)
	b.swap.answer = func(s *agentv1.ComponentState) {
		if s.GetName() == "kubelet" {
			s.Service.State, s.Service.Pid, s.Running = agentv1.ServiceState_SERVICE_STATE_STOPPED, 0, nil
		}
	}
	if _, err := b.push(t.Context(), Options{Strict: true}); err == nil || !strings.Contains(err.Error(), "--start") || is[*ProgramError](err) {
		t.Errorf("strict: %v", err)
	}
	if len(b.swap.plans) > 0 {
		t.Error("strict changed the node")
	}
	result, err := b.push(t.Context(), Options{})
	if err != nil || result.Components[1].Action != ActionReplaced ||
		!strings.Contains(result.Components[1].Message, "stays stopped: `swdt push kubelet --start` starts it") {
		t.Errorf("%+v, %v", result.Components[1], err)
	}
	if _, err := b.node.Node.Services.Create(t.Context(), &agentv1.ServiceConfig{Name: "kubelet", CommandLine: kubeletPath}); err != nil {
		t.Fatal(err)
	}
	if result, err = b.push(t.Context(), Options{Start: true, Strict: true}); err != nil {
		t.Fatal(err)
	}
	if c := result.Components[1]; c.Service.State != "running" || result.Result != Changed || !strings.Contains(c.Message, "was stopped before") {
		t.Errorf("%+v, %+v", c, c.Service)
	}
}

func TestAnOlderProcessIsRestarted(t *testing.T) {
	b := twoPrograms(t)
	if _, err := b.push(t.Context(), Options{}); err != nil {
		t.Fatal(err)
	}
	b.swap.answer = func(s *agentv1.ComponentState) { s.Outdated = s.GetName() == "kubelet" }
	result, err := b.push(t.Context(), Options{})
	switch {
	case err != nil:
		t.Fatal(err)
	case result.Result != Changed:
		t.Fatalf("result.Result is %v, want %v", result.Result, Changed)
	}
	switch r := result.Components[1]; {
	case r.Action != ActionRestarted:
		t.Errorf("r.Action is %v, want %v", r.Action, ActionRestarted)
	case !strings.Contains(r.Message, "older than the file"):
		t.Errorf("r.Message lacks %q:\n%s", "older than the file", r.Message)
	}
	no := false
	b.source("kubelet.exe", program("kubelet", "v1.31.0"))
	b.doc.Node.Spec.Kubernetes.Provisioners[1].Overwrite = &no
	if result, err = b.push(t.Context(), Options{}); err != nil {
		t.Fatal(err)
	}
	if r := result.Components[1]; r.Action != ActionSkipped || !strings.Contains(r.Message, "not restarted either") {
		t.Errorf("what may not be touched is not restarted, and the result says so: %+v", r)
	}
}

func TestOverwriteFalse(t *testing.T) {
	b := twoPrograms(t)
	no := false
	b.doc.Node.Spec.Kubernetes.Provisioners[1].Overwrite = &no
	result, err := b.push(t.Context(), Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	r := result.Components[1]
	switch {
	case r.Action != ActionSkipped:
		t.Errorf("r.Action is %v, want %v", r.Action, ActionSkipped)
	case !strings.Contains(r.Message, "overwrite is false"):
		t.Errorf("r.Message lacks %q:\n%s", "overwrite is false", r.Message)
	case r.SHA256 != r.PreviousSHA256:
		t.Errorf("r.SHA256 is %v, want %v", r.SHA256, r.PreviousSHA256)
	}
	b.whole(t, nil, true)
}

func TestOnly(t *testing.T) {
	b := twoPrograms(t)
	result, err := b.push(t.Context(), Options{Only: []string{"Containerd"}})
	switch {
	case err != nil:
		t.Fatal(err)
	case len(result.Components) != 1:
		t.Fatalf("result.Components has %d elements, want 1: %v", len(result.Components), result.Components)
	case result.Components[0].Name != "containerd":
		t.Fatalf("result.Components[0].Name is %q, want %q", result.Components[0].Name, "containerd")
	}
	b.whole(t, nil, true)
	_, err = b.push(t.Context(), Options{Only: []string{"kublet"}})
	switch {
	case !is[*UnknownComponentError](err):
		t.Fatal("is[*UnknownComponentError](err) is false, want true")
	case !strings.Contains(err.Error(), "it has containerd, kubelet"):
		t.Fatalf("err.Error() lacks %q:\n%s", "it has containerd, kubelet", err.Error())
	}
}

func TestForceRestartsWithoutSending(t *testing.T) {
	b := twoPrograms(t)
	if _, err := b.push(t.Context(), Options{}); err != nil {
		t.Fatal(err)
	}
	result, err := b.push(t.Context(), Options{Force: true, Only: []string{"kubelet"}})
	switch {
	case err != nil:
		t.Fatal(err)
	case result.Result != Changed:
		t.Fatalf("result.Result is %v, want %v", result.Result, Changed)
	case result.Components[0].Action != ActionRestarted:
		t.Fatalf("result.Components[0].Action is %v, want %v", result.Components[0].Action, ActionRestarted)
	case result.Components[0].moved():
		t.Fatal("result.Components[0].moved() is true, want false")
	}
	switch c := b.swap.plans[1].GetComponents()[0]; {
	case c.GetStaged() != "":
		t.Errorf(`c.GetStaged() is %q, want ""`, c.GetStaged())
	case c.GetSha256() != "":
		t.Errorf(`c.GetSha256() is %q, want ""`, c.GetSha256())
	case c.GetService() != "kubelet":
		t.Errorf("c.GetService() is %q, want %q", c.GetService(), "kubelet")
	}
}

func TestADependencyThatIsNotThereIsToldOf(t *testing.T) {
	b := twoPrograms(t)
	b.doc.Node.Spec.Kubernetes.Provisioners[1].DependsOn = []string{"Containerd", "containrd"}
	result, err := b.push(t.Context(), Options{DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	const want = "dependsOn names containrd, but the node has no such service"
	if got := result.Components[1].Message; !strings.HasPrefix(got, want) || strings.Count(got, "dependsOn") != 1 {
		t.Errorf("kubelet: %q", got)
	}
	if len(b.story.warnings) != 1 || !strings.Contains(b.story.warnings[0], want) {
		t.Errorf("warnings %q", b.story.warnings)
	}
}

func TestArgsChangeTheServicesCommandLine(t *testing.T) {
	b := twoPrograms(t)
	if _, err := b.push(t.Context(), Options{}); err != nil {
		t.Fatal(err)
	}
	b.doc.Node.Spec.Kubernetes.Provisioners[1].Args = []string{"--v=4", "--name", "a b"}
	result, err := b.push(t.Context(), Options{})
	switch {
	case err != nil:
		t.Fatal(err)
	case result.Components[1].Action != ActionRestarted:
		t.Fatalf("result.Components[1].Action is %v, want %v", result.Components[1].Action, ActionRestarted)
	case result.Components[0].Action != ActionUnchanged:
		t.Fatalf("result.Components[0].Action is %v, want %v", result.Components[0].Action, ActionUnchanged)
	}
	if got := b.swap.plans[1].GetComponents()[0].GetCommandLine(); got != `"`+kubeletPath+`" --v=4 --name "a b"` {
		t.Errorf("command line %s", got)
	}
	if result, err := b.push(t.Context(), Options{}); err != nil || result.Result != Unchanged {
		t.Errorf("once more: %+v, %v", result, err)
	}
}

func TestDryRun(t *testing.T) {
	b := twoPrograms(t)
	result, err := b.push(t.Context(), Options{DryRun: true})
	switch {
	case err != nil:
		t.Fatal(err)
	case result.Result != Changed:
		t.Fatalf("result.Result is %v, want %v", result.Result, Changed)
	case !result.DryRun:
		t.Fatal("result.DryRun is false, want true")
	case result.Components[0].Action != ActionReplaced:
		t.Fatalf("result.Components[0].Action is %v, want %v", result.Components[0].Action, ActionReplaced)
	}
	if calls := b.node.Calls(); len(calls) != 0 {
		t.Errorf("a dry run made %v", calls)
	}
	b.whole(t, nil, false)
}

func TestAnUnexpectedVersionIsAWarning(t *testing.T) {
	b := twoPrograms(t)
	b.doc.Node.Spec.Kubernetes.Provisioners[1].Version = "1.30.0"
	result, err := b.push(t.Context(), Options{})
	want := "the binary reports v1.29.1, but the node file wants version 1.30.0"
	switch {
	case err != nil:
		t.Fatal(err)
	case !strings.Contains(result.Components[1].Message, want):
		t.Fatalf("result.Components[1].Message lacks %q:\n%s", want, result.Components[1].Message)
	case len(b.story.warnings) != 1:
		t.Fatalf("b.story.warnings has %d elements, want 1: %v", len(b.story.warnings), b.story.warnings)
	}
}

func TestStrictRefusesAnUnexpectedVersionBeforeTheStop(t *testing.T) {
	b := twoPrograms(t)
	b.doc.Node.Spec.Kubernetes.Provisioners[1].Version = "1.30.0"
	result, err := b.push(t.Context(), Options{Strict: true})
	switch {
	case !is[*VersionError](err):
		t.Fatalf("the error is %v, want a *VersionError", err)
	case result.Components[1].Action != ActionFailed:
		t.Fatalf("result.Components[1].Action is %v, want %v", result.Components[1].Action, ActionFailed)
	case result.Components[0].Action != ActionUnchanged:
		t.Fatalf("result.Components[0].Action is %v, want %v", result.Components[0].Action, ActionUnchanged)
	}
	b.whole(t, err, false)
	// The same applies to a binary that is already in place.
	b.doc.Node.Spec.Kubernetes.Provisioners[1].Version = "1.29.1"
	if _, err := b.push(t.Context(), Options{Strict: true}); err != nil {
		t.Fatal(err)
	}
	b.doc.Node.Spec.Kubernetes.Provisioners[1].Version = "1.30.0"
	if _, err := b.push(t.Context(), Options{Strict: true}); !is[*VersionError](err) {
		t.Fatal("is[*VersionError](err) is false, want true")
	}
}

func TestSameVersion(t *testing.T) {
	for _, c := range []struct {
		wanted, got string
		want        bool
	}{
		{"1.29.0", "v1.29.0", true}, {"v1.29.0", "1.29.0", true}, {"1.29.0", "v1.29.0+k3s1", true},
		{"1.29.0+a", "v1.29.0+b", false}, {"1.29.0", "v1.29.01", false}, {"1.29", "v1.29.0", false},
		{"1.29.0", "", false},
	} {
		if got := sameVersion(c.wanted, c.got); got != c.want {
			t.Errorf("got is %v, want %v", got, c.want)
		}
	}
}
