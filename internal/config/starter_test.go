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
	if k.Version == "" || k.Containerd.Config == "" || len(k.Kubelet.ConfigPatch) == 0 || k.Join.ControlPlaneAlias == nil {
		t.Errorf("the example lacks something: %+v", k)
	}
}
