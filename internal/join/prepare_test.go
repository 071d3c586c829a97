package join_test

import (
	"strings"
	"testing"
	"testing/synctest"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/join"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// A prepared machine belongs to no cluster and has no node's name; its clone then joins.
func TestPrepareThenJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.spec().Join.NodeName, l.spec().Join.NodeIP = "of-one-node", "10.0.0.7"
		l.Machine.SetAdapters(ethernet("10.0.0.7/24"))
		l.spec().Join.ControlPlaneAlias = &v1alpha1.ControlPlaneAlias{Name: "cp.example", IP: "10.0.0.1"}
		prepare := func() ([]string, string) {
			t.Helper()
			steps, err := join.Prepare(l.Node.Node, l.doc, join.Options{Artifacts: l.programs, Sources: l.programs.sources, Holder: "tester"})
			results, err := l.run(t.Context(), steps, err, false)
			if err != nil {
				t.Fatalf("%v\n%s", err, table(results))
			}
			return changed(results), table(results)
		}
		if names, all := prepare(); len(names) != 9 {
			t.Errorf("%d steps changed something, want 9:\n%s", len(names), all)
		}
		kubelet, err := l.Services.Get(t.Context(), &agentv1.GetServiceRequest{Name: "kubelet"})
		if err != nil {
			t.Fatal(err)
		}
		line := kubelet.GetConfig().GetCommandLine()
		if strings.Contains(line, "hostname-override") || strings.Contains(line, "10.0.0.7") {
			t.Errorf("the command line is of one node: %s", line)
		}
		if hosts := l.get(`C:\Windows\System32\drivers\etc\hosts`); strings.Contains(hosts, "cp.example") {
			t.Errorf("the hosts file names a control plane: %s", hosts)
		}
		if image, err := join.PauseImage(t.Context(), l.Node.Node); err != nil || image != "registry.k8s.io/pause:3.8" {
			t.Errorf("pause image %q, %v", image, err)
		}
		for _, path := range join.Identity() {
			if text := l.get(path); text != "" {
				t.Errorf("%s exists: %s", path, text)
			}
		}
		if names, all := prepare(); len(names) != 0 {
			t.Errorf("the second run changed something:\n%s", all)
		}
		// Without swdt's record, as on a clone of the image.
		_, err = l.Node.Node.Files.Remove(t.Context(), &agentv1.RemoveRequest{Path: layout.JoinRecord})
		if err != nil {
			t.Fatal(err)
		}
		l.spec().Join.NodeName = ""
		l.mustJoin()
		l.isReady()
	})
}
