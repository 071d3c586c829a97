package config

import (
	"bytes"
	"strings"
	"testing"
)

// TestStarterIsShort shows that a new user can read the starter on one screen, and change every field of it.
func TestStarterIsShort(t *testing.T) {
	if lines := bytes.Count(Starter(), []byte("\n")); lines > 40 {
		t.Errorf("the starter has %d lines, want 40 at most", lines)
	}
	text := uncomment(string(Starter()))
	documents, err := Load([]string{Stdin}, strings.NewReader(strings.Replace(text, "privateKey:", "# privateKey:", 1)))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if spec := documents[0].Node.Spec; spec.Credentials.PasswordFrom == nil || len(spec.Setup.ChocoPackages) != 2 {
		t.Errorf("the starter lacks passwordFrom or packages: %+v", spec)
	}
}

// TestStarterForJoining uncomments the example of a join.
func TestStarterForJoining(t *testing.T) {
	_, rest, begins := strings.Cut(string(FullStarter()), "    # What `swdt join`")
	example, _, ends := strings.Cut(rest, "    # What `swdt push`")
	if !begins || !ends {
		t.Fatal("the starter has no example of a join")
	}
	uncommented := strings.ReplaceAll(example, "\n    # ", "\n    ")
	text := strings.Replace(string(FullStarter()), example, uncommented, 1)
	documents, err := Load([]string{Stdin}, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	k := documents[0].Node.Spec.Kubernetes
	switch {
	case k.Version == "":
		t.Error("k.Version is empty")
	case k.Containerd.Config == "":
		t.Error("k.Containerd.Config is empty")
	case len(k.Kubelet.ConfigPatch) == 0:
		t.Errorf("len(k.Kubelet.ConfigPatch) = 0: %+v", k.Kubelet.ConfigPatch)
	case k.Join.ControlPlaneAlias == nil:
		t.Errorf("k.Join.ControlPlaneAlias is nil; the example lacks something: %+v", k)
	}
}

// TestStarterForAVM uncomments the example of a VM and leaves the hostname out.
func TestStarterForAVM(t *testing.T) {
	_, rest, begins := strings.Cut(string(FullStarter()), "  # A VM that swdt makes")
	example, _, ends := strings.Cut(rest, "  # What `swdt setup`")
	if !begins || !ends {
		t.Fatal("the starter has no example of a VM")
	}
	_, machine, _ := strings.Cut(example, "  # machine:")
	uncommented := "  machine:" + strings.ReplaceAll(machine, "\n  # ", "\n  ")
	text := strings.Replace(string(FullStarter()), machine, "\n"+uncommented, 1)
	text = strings.Replace(text, "    hostname: ", "    # hostname: ", 1)
	documents, err := Load([]string{Stdin}, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	m := documents[0].Node.Spec.Machine
	switch {
	case m == nil:
		t.Error("m is nil")
	case m.Memory != 8<<30:
		t.Errorf("m.Memory = %v, want %v", m.Memory, 8<<30)
	case m.Image.Disk == "":
		t.Error("m.Image.Disk is empty")
	case m.Network.Ports[0].Guest != 3389:
		t.Errorf("m.Network.Ports[0].Guest = %v, want 3389; the example lacks something: %+v",
			m.Network.Ports[0].Guest, m)
	}
}
