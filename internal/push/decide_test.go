package push

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
)

func TestWhereThereIsNoService(t *testing.T) {
	b := newBench(t, v1alpha1.Provisioner{Name: "tool", SourceURL: "tool.exe", Destination: `C:\new\folder\tool.exe`,
		Args: []string{"x"}})
	b.source("tool.exe", program("tool", "1"))
	result, err := b.push(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := result.Components[0]
	if r.Action != ActionCreated || r.Service != nil || !strings.Contains(r.Message, "there is no service tool") {
		t.Errorf("%+v", r)
	}
	if c := b.swap.plans[0].GetComponents()[0]; c.GetService() != "" || c.GetCommandLine() != "" ||
		c.GetPreviousSha256() != "" {
		t.Errorf("plan %v", c)
	}
	if got := b.node.Get(`C:\new\folder\tool.exe`); !bytes.Equal(got, program("tool", "1")) {
		t.Error("the file was not placed")
	}
	// A push never runs an unknown program to learn its version.
	if args := newComponent(v1alpha1.Provisioner{Name: "tool"}).versionArgs(); args != nil {
		t.Errorf("asks a stranger for %v", args)
	}
}

// With a misspelt name, a push would place the file of a running service and restart nothing.
func TestAFileThatAServiceOfAnotherNameRuns(t *testing.T) {
	b := twoPrograms(t)
	b.doc.Node.Spec.Kubernetes.Provisioners[1].Name = "kublet"
	b.swap.answer = func(s *agentv1.ComponentState) {
		if s.GetName() == "kublet" {
			s.RunBy = []string{"kubelet"}
		}
	}
	const hint = "service kubelet runs this file; did you mean name: kubelet?"
	for _, when := range []string{"when it is placed", "when it was placed before"} {
		result, err := b.push(t.Context(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if r := result.Components[1]; !strings.Contains(r.Message, hint) ||
			!slices.Contains(b.story.warnings, "kublet: "+hint) {
			t.Errorf("%s: %+v", when, r)
		}
	}
	s, err := b.status()
	if err != nil || s.Components[1].Message != hint {
		t.Errorf("status: %+v, %v", s.Components[1], err)
	}
}

func TestAnOlderProcessIsRestarted(t *testing.T) {
	b := twoPrograms(t)
	if _, err := b.push(t.Context(), Options{}); err != nil {
		t.Fatal(err)
	}
	b.swap.answer = func(s *agentv1.ComponentState) { s.Outdated = s.GetName() == "kubelet" }
	result, err := b.push(t.Context(), Options{})
	if err != nil || result.Result != Changed {
		t.Fatalf("%+v, %v", result, err)
	}
	if r := result.Components[1]; r.Action != ActionRestarted || !strings.Contains(r.Message, "older than the file") {
		t.Errorf("%+v", r)
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
	if r.Action != ActionSkipped || !strings.Contains(r.Message, "overwrite is false") || r.SHA256 != r.PreviousSHA256 {
		t.Errorf("%+v", r)
	}
	b.whole(t, nil, true)
}

func TestOnly(t *testing.T) {
	b := twoPrograms(t)
	result, err := b.push(t.Context(), Options{Only: []string{"Containerd"}})
	if err != nil || len(result.Components) != 1 || result.Components[0].Name != "containerd" {
		t.Fatalf("%+v, %v", result, err)
	}
	b.whole(t, nil, true)
	_, err = b.push(t.Context(), Options{Only: []string{"kublet"}})
	if !is[*UnknownComponentError](err) || !strings.Contains(err.Error(), "it has containerd, kubelet") {
		t.Fatalf("got %v", err)
	}
}

func TestForceRestartsWithoutSending(t *testing.T) {
	b := twoPrograms(t)
	if _, err := b.push(t.Context(), Options{}); err != nil {
		t.Fatal(err)
	}
	result, err := b.push(t.Context(), Options{Force: true, Only: []string{"kubelet"}})
	if err != nil || result.Result != Changed || result.Components[0].Action != ActionRestarted ||
		result.Components[0].moved() {
		t.Fatalf("%+v, %v", result, err)
	}
	if c := b.swap.plans[1].GetComponents()[0]; c.GetStaged() != "" || c.GetSha256() != "" ||
		c.GetService() != "kubelet" {
		t.Errorf("plan %v", c)
	}
}

func TestAServiceThatRunsAnotherFileIsToldOf(t *testing.T) {
	b := twoPrograms(t)
	b.swap.commandLines["kubelet"] = `C:\elsewhere\kubelet.exe --run`
	result, err := b.push(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	const want = `the service kubelet runs C:\elsewhere\kubelet.exe, not this file`
	if got := result.Components[1].Message; !strings.Contains(got, want) || result.Components[0].Message != "" {
		t.Errorf("kubelet: %q, containerd: %q", got, result.Components[0].Message)
	}
	status, err := Status(t.Context(), b.node.Node, b.doc, StatusOptions{}, b.story)
	if err != nil || !strings.Contains(status.Components[1].Message, want) {
		t.Errorf("status: %+v, %v", status.Components, err)
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
	if err != nil || result.Components[1].Action != ActionRestarted || result.Components[0].Action != ActionUnchanged {
		t.Fatalf("%+v, %v", result, err)
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
	if err != nil || result.Result != Changed || !result.DryRun || result.Components[0].Action != ActionReplaced {
		t.Fatalf("%+v, %v", result, err)
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
	if err != nil || !strings.Contains(result.Components[1].Message, want) || len(b.story.warnings) != 1 {
		t.Fatalf("%+v, %v, %v", result.Components[1], b.story.warnings, err)
	}
}

func TestStrictRefusesAnUnexpectedVersionBeforeTheStop(t *testing.T) {
	b := twoPrograms(t)
	b.doc.Node.Spec.Kubernetes.Provisioners[1].Version = "1.30.0"
	result, err := b.push(t.Context(), Options{Strict: true})
	if !is[*VersionError](err) || result.Components[1].Action != ActionFailed ||
		result.Components[0].Action != ActionUnchanged {
		t.Fatalf("%+v, %v", result, err)
	}
	b.whole(t, err, false)
	// The same applies to a binary that is already in place.
	b.doc.Node.Spec.Kubernetes.Provisioners[1].Version = "1.29.1"
	if _, err := b.push(t.Context(), Options{Strict: true}); err != nil {
		t.Fatal(err)
	}
	b.doc.Node.Spec.Kubernetes.Provisioners[1].Version = "1.30.0"
	if _, err := b.push(t.Context(), Options{Strict: true}); !is[*VersionError](err) {
		t.Fatalf("got %v", err)
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
			t.Errorf("%s, %s: %v", c.wanted, c.got, got)
		}
	}
}
