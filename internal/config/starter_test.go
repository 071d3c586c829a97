package config

import (
	"strings"
	"testing"
)

// TestStarterForJoining uncomments the example of a join.
func TestStarterForJoining(t *testing.T) {
	_, rest, begins := strings.Cut(string(Starter()), "    # What `swdt join`")
	example, _, ends := strings.Cut(rest, "    # What `swdt kubernetes`")
	if !begins || !ends {
		t.Fatal("the starter has no example of a join")
	}
	uncommented := strings.ReplaceAll(example, "\n    # ", "\n    ")
	text := strings.Replace(string(Starter()), example, uncommented, 1)
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
	_, rest, begins := strings.Cut(string(Starter()), "  # A VM that swdt makes")
	example, _, ends := strings.Cut(rest, "  # What `swdt setup`")
	if !begins || !ends {
		t.Fatal("the starter has no example of a VM")
	}
	_, machine, _ := strings.Cut(example, "  # machine:")
	uncommented := "  machine:" + strings.ReplaceAll(machine, "\n  # ", "\n  ")
	text := strings.Replace(string(Starter()), machine, "\n"+uncommented, 1)
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
