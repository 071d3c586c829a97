package live

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/push/build"
	"github.com/swdt-dev/swdt/internal/push/watch"
	"github.com/swdt-dev/swdt/internal/ui"
)

func nodeWith(file, name string, provisioners ...v1alpha1.Provisioner) config.Document {
	doc := config.Document{File: file, Node: v1alpha1.Node{Metadata: v1alpha1.Metadata{Name: name}}}
	doc.Node.Spec.Kubernetes.Provisioners = provisioners
	return doc
}

func newWatch(t *testing.T, documents []config.Document, only ...string) (*Watch, error) {
	t.Helper()
	builds, err := build.NewSet(documents, only)
	if err != nil {
		t.Fatal(err)
	}
	return New(documents, Options{
		Push: push.Options{Only: only}, Builds: builds, Parallel: 1,
		Reporter: func(config.Document) ui.Reporter { return ui.Discard{} },
	})
}

// Nodes share a file, and provisioners share a build, so one change causes one build and one check
// of the file.
func TestNodesShareFilesAndBuilds(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "swdt.yaml")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	made := &v1alpha1.Build{Dir: "src", Command: v1alpha1.Command{Shell: "make"}}
	provisioners := []v1alpha1.Provisioner{
		{Name: "kubelet", SourceURL: "kubelet.exe", Destination: `C:\k\kubelet.exe`, Build: made},
		{Name: "kube-proxy", SourceURL: "kube-proxy.exe", Destination: `C:\k\kube-proxy.exe`, Build: made},
		{Name: "containerd", SourceURL: "https://example.com/containerd.exe", Destination: `C:\k\containerd.exe`},
	}
	documents := []config.Document{
		nodeWith(file, "win-1", provisioners...), nodeWith(file, "win-2", provisioners...),
		nodeWith(file, "win-3", provisioners[2]),
	}
	w, err := newWatch(t, documents, "kubelet", "Kube-Proxy")
	if err != nil {
		t.Fatal(err)
	}
	var paths, targets []string
	for _, b := range w.plan.Binaries {
		paths = append(paths, filepath.Base(b.Path))
		switch {
		case b.Build == nil:
			t.Error("b.Build is nil")
		case b.Build != w.plan.Binaries[0].Build:
			t.Errorf("b.Build is %v, want %v", b.Build, w.plan.Binaries[0].Build)
		case b.Build.Name != "kubelet, kube-proxy":
			t.Errorf("b.Build.Name is %q, want %q", b.Build.Name, "kubelet, kube-proxy")
		}
	}
	for _, target := range w.plan.Targets {
		targets = append(targets, fmt.Sprintf("%s %d", target.Name, len(target.Components)))
	}
	if diff := cmp.Diff([]string{"kubelet.exe", "kube-proxy.exe"}, paths); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"win-1 2", "win-2 2"}, targets); diff != "" {
		t.Errorf("nodes and their components (-want +got):\n%s", diff)
	}
	if _, err := newWatch(t, documents, "containerd"); !errors.Is(err, ErrNothingToWatch) {
		t.Errorf("a watch of downloads alone: %v", err)
	}
}

func TestRetry(t *testing.T) {
	tests := map[string]struct {
		err   error
		retry bool
	}{
		"a broken connection":   {errors.New("connection reset"), true},
		"a lost node":           {&node.LostError{}, true},
		"rolled back":           {&push.RolledBackError{Outcome: &agentv1.SwapOutcome{}}, false},
		"another version":       {&push.VersionError{}, false},
		"a program not run":     {&push.ProgramError{}, false},
		"overwrite: false":      {&push.ProtectedError{}, false},
		"no such component":     {&push.UnknownComponentError{}, false},
		"no executable":         {&source.NotExecutableError{}, false},
		"another processor":     {&source.MachineError{}, false},
		"another hash, wrapped": {fmt.Errorf("kubelet: %w", &source.HashMismatchError{}), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := (&Remote{}).Retry(test.err); got != test.retry {
				t.Errorf("Retry = %t, want %t", got, test.retry)
			}
		})
	}
}

// The same failure of further tries is reported only once, until the node has been reached again. The failure of
// another build is reported in any case.
func TestNarratorReportsAFailureOnce(t *testing.T) {
	var stderr bytes.Buffer
	settled, printed := 0, 0
	n := &Narrator{
		Story: ui.NewStory(&stderr, ui.StoryOptions{}), Several: true, Nodes: 1,
		Print:    func(push.NodeResult, []string) { printed++ },
		AllTried: func() { settled++ },
	}
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	fails := watch.Event{Time: at, Kind: watch.Failed, Node: "win", Err: errors.New("win: no route"),
		Retry: time.Second}
	mistake := watch.Event{Time: at, Kind: watch.Failed, Node: "win", Err: errors.New("win: no executable")}
	for _, e := range []watch.Event{
		fails, fails, {Time: at, Kind: watch.Connected, Node: "win"},
		{Time: at, Kind: watch.Pushed, Node: "win", Result: Result{}}, fails, mistake, mistake,
	} {
		n.Report(e)
	}
	n.Story.End()
	const line = "12:00:00 win failed: no route; trying again\n"
	const built = "12:00:00 win failed: no executable\n"
	if diff := cmp.Diff(line+line+built+built, stderr.String()); diff != "" {
		t.Errorf("stderr (-want +got):\n%s", diff)
	}
	if settled != 1 || printed != 1 {
		t.Errorf("AllTried was called %d times and Print %d times, want once each", settled, printed)
	}
}
