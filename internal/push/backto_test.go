package push

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node/transfer"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// pushVersion pushes a build of kubelet and of containerd.
func (b *bench) pushVersions(depot *transfer.Depot, kubelet, containerd string) {
	b.t.Helper()
	b.source("kubelet.exe", b.swap.program("kubelet", kubelet))
	b.source("containerd.exe", b.swap.program("containerd", containerd))
	for i := range b.doc.Node.Spec.Kubernetes.Provisioners {
		b.doc.Node.Spec.Kubernetes.Provisioners[i].Version = ""
	}
	if _, err := b.push(b.t.Context(), Options{Depot: depot, Holder: "ann@laptop, swdt push, process 7, since 10:00:00"}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) rollbackTo(number int, depot *transfer.Depot, names ...string) (NodeResult, error) {
	w := b.work(Options{Depot: depot})
	to := Target{Number: number, Names: names}
	if depot != nil {
		to.Keeper = depot
	}
	return w.finish(w.rollbackTo(b.t.Context(), to))
}

func (b *bench) history(keeper Keeper, names ...string) []PastPush {
	b.t.Helper()
	all, err := History(b.t.Context(), b.node.Node, b.doc, names, keeper)
	if err != nil {
		b.t.Fatal(err)
	}
	return all
}

// Of three pushes, the node keeps the files of two, and the cache those of the first.
func TestHistoryNamesWhatIsKept(t *testing.T) {
	b := twoPrograms(t)
	depot := b.depot()
	b.pushVersions(depot, "v1.29.1", "1.7.12")
	b.pushVersions(nil, "v1.29.2", "1.7.12")
	b.pushVersions(nil, "v1.29.3", "1.7.12")
	b.pushVersions(nil, "v1.29.4", "1.7.12")

	all := b.history(depot, "kubelet")
	var kept []Kept
	for _, p := range all {
		kept = append(kept, p.Components[0].Kept)
	}
	if want := []Kept{KeptInCache, KeptNowhere, KeptOnNode, KeptPresent}; !slices.Equal(kept, want) {
		t.Errorf("kept are %q, want %q", kept, want)
	}
	first := all[0]
	if c := first.Components[0]; first.Number != 1 || first.By != "ann@laptop" || first.Command != "push" ||
		first.Result != "committed" || len(first.Components) != 1 || c.Version.Before != "v1.29.0" || c.Action != "replaced" ||
		all[1].Components[0].Version.Before != "v1.29.1" || c.Version.After != "v1.29.1" {
		t.Errorf("the first push is %+v", first)
	}
	if all := b.history(nil, "containerd"); len(all) != 1 || all[0].Components[0].Kept != KeptPresent {
		t.Errorf("containerd's pushes are %+v", all)
	}
}

// A row that a disk error or an older agent has damaged is left out by the agent. Your machine would refuse the whole reply.
func TestADamagedRowHidesNoOther(t *testing.T) {
	n := nodetest.Start(t, "w1", simulated.Options{Preset: simulated.Minimal})
	row := func(number int, component string) string {
		return fmt.Sprintf(`{"number":%d,"id":"20260102-030405-%08d","result":"committed","components":[{%s}]}`+"\n", number,
			number, component)
	}
	n.Put(layout.History, []byte(row(1, `"name":"a","destination":"C:\\k\\a.exe"`)+row(2, "")+
		row(3, `"name":"a","destination":"C:\\k\\a.exe","sha256":"c180"`)+row(4, `"name":"b","destination":"C:\\k\\b.exe"`)))
	all, err := History(t.Context(), n.Node, config.Document{}, nil, nil)
	if err != nil || len(all) != 2 || all[0].Number != 1 || all[1].Number != 4 {
		t.Errorf("the history is %+v, %v", all, err)
	}
}

// A rollback takes one file from the node and one from the cache, in one transaction, and the file that is there already
// stays.
func TestRollbackToTakesFilesFromWhereTheyAreKept(t *testing.T) {
	b := twoPrograms(t)
	depot := b.depot()
	b.pushVersions(depot, "v1.29.1", "1.7.12")
	b.pushVersions(depot, "v1.29.2", "1.7.12")
	b.pushVersions(depot, "v1.29.3", "1.7.13")

	result, err := b.rollbackTo(1, depot)
	if err != nil {
		t.Fatal(err)
	}
	plan := b.swap.plans[len(b.swap.plans)-1]
	switch {
	case result.Result != Changed || len(plan.GetComponents()) != 2:
		t.Errorf("%+v, by %v", result, plan)
	case sum(b.node.Get(kubeletPath)) != sum(program("kubelet", "v1.29.1")):
		t.Error("kubelet is not that of the first push")
	case sum(b.node.Get(containerdPath)) != sum(program("containerd", "1.7.12")):
		t.Error("containerd is not that of the first push")
	case result.Components[1].Version.After != "v1.29.1" || result.Components[1].PreviousSHA256 == "":
		t.Errorf("kubelet's result is %+v", result.Components[1])
	case len(b.leftovers()) > 0:
		t.Errorf("left behind: %v", b.leftovers())
	}
	b.unlocked()

	runs := len(b.swap.plans)
	if result, err := b.rollbackTo(1, depot); err != nil || result.Result != Unchanged || len(b.swap.plans) != runs {
		t.Errorf("the second rollback to the same push: %+v, %v", result, err)
	}
}

func TestRollbackToChangesNothingIfAFileIsNotKept(t *testing.T) {
	b := twoPrograms(t)
	depot := b.depot()
	b.pushVersions(depot, "v1.29.1", "1.7.12")
	b.pushVersions(nil, "v1.29.2", "1.7.12")
	b.pushVersions(nil, "v1.29.3", "1.7.12")
	b.pushVersions(nil, "v1.29.4", "1.7.12")
	runs := len(b.swap.plans)

	_, err := b.rollbackTo(2, depot, "kubelet")
	var target *TargetError
	if !errors.As(err, &target) || len(b.swap.plans) != runs {
		t.Fatalf("the error is %v, after %d transactions", err, len(b.swap.plans)-runs)
	}
	for _, want := range []string{"kubelet: the file of push 2 (", "kept are that of push 4 (", ", present) and that of push 3 (",
		", on the node) and that of push 1 (", ", in the cache)", "`swdt push kubelet=FILE`"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q:\n%v", want, err)
		}
	}
	if _, err := b.rollbackTo(3, depot); err != nil {
		t.Errorf("to the push before the last: %v", err)
	}
}

// The cache may have been damaged since: then its file is not kept, and is not sent.
func TestRollbackToDoesNotBelieveADamagedCache(t *testing.T) {
	b := twoPrograms(t)
	depot := b.depot()
	b.pushVersions(depot, "v1.29.1", "1.7.12")
	b.pushVersions(nil, "v1.29.2", "1.7.12")
	b.pushVersions(nil, "v1.29.3", "1.7.12")
	blob := filepath.Join(b.folder, "cache", "blobs", sum(program("kubelet", "v1.29.1")))
	if err := os.WriteFile(blob, []byte("MZ something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	var target *TargetError
	if _, err := b.rollbackTo(1, depot, "kubelet"); !errors.As(err, &target) {
		t.Errorf("the error is %v", err)
	}
}

func TestRollbackToRefusesWhatIsNoPush(t *testing.T) {
	b := twoPrograms(t)
	b.pushVersions(nil, "v1.29.1", "1.7.12")
	if _, err := b.restart("kubelet"); err != nil {
		t.Fatal(err)
	}
	b.swap.outcome = &agentv1.SwapOutcome{Result: agentv1.SwapResult_SWAP_RESULT_ROLLED_BACK, Message: "it crashes",
		FailedComponent: "kubelet"}
	if _, err := b.rollback("kubelet"); err == nil {
		t.Fatal("the rollback did not fail")
	}
	b.swap.outcome = nil
	for number, want := range map[int]string{
		2: "push 2 brought no file, but restarted services",
		3: "push 3 ended as rolled back, so its files did not stay",
		4: "the node's history has no push 4; it has 1 to 3",
	} {
		if _, err := b.rollbackTo(number, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("to push %d: %v, want %s", number, err, want)
		}
	}
	if _, err := b.rollbackTo(1, nil, "kube-proxy"); err == nil || !strings.Contains(err.Error(), "push 1 brought no kube-proxy") {
		t.Errorf("a component that push 1 has not: %v", err)
	}
	b.swap.past = nil
	if _, err := b.rollbackTo(1, nil); err == nil || !strings.Contains(err.Error(), "has no push") {
		t.Errorf("without a history: %v", err)
	}
}

// pushWithConfiguration pushes containerd with a configuration.
func (b *bench) pushWithConfiguration(version, before, after string) {
	b.t.Helper()
	b.source("containerd.exe", b.swap.program("containerd", version))
	for i := range b.doc.Node.Spec.Kubernetes.Provisioners {
		b.doc.Node.Spec.Kubernetes.Provisioners[i].Version = ""
	}
	w := b.work(Options{Force: true})
	w.options.Companions = func(context.Context, map[string]string) ([]Companion, error) {
		return []Companion{{Destination: configPath, Before: []byte(before), After: []byte(after)}}, nil
	}
	if _, err := w.finish(w.push(b.t.Context())); err != nil {
		b.t.Fatal(err)
	}
}

// The history has containerd's configuration with its binary, so both return, and the service restarts for a
// configuration alone.
func TestRollbackToPutsSettingsBackWithTheirProgram(t *testing.T) {
	b := containerdAlone(t)
	b.pushWithConfiguration("1.7.12", "version = 2\n", "version = 3\n")
	b.pushWithConfiguration("1.7.12", "version = 3\n", "version = 4\n")

	if _, err := b.rollbackTo(1, nil); err != nil {
		t.Fatal(err)
	}
	parts := b.swap.plans[len(b.swap.plans)-1].GetComponents()
	if got := string(b.node.Get(configPath)); got != "version = 3\n" || len(parts) != 2 || parts[0].GetStaged() != "" {
		t.Errorf("the configuration is %q, by %v", got, parts)
	}
}

// The node keeps one previous configuration, and the cache none. `swdt push` cannot bring it, so the error names the
// binaries that went with it.
func TestAConfigurationThatIsNotKept(t *testing.T) {
	b := containerdAlone(t)
	b.pushVersions(nil, "v1.29.1", "1.7.13")
	b.pushWithConfiguration("1.7.12", "version = 2\n", "version = 3\n")
	b.pushWithConfiguration("1.7.13", "version = 3\n", "version = 4\n")
	b.pushWithConfiguration("1.7.12", "version = 4\n", "version = 5\n")

	_, err := b.rollbackTo(2, nil)
	const want = "put a copy of yours in its place, or return without it: `swdt rollback containerd --to-push 2`"
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "=FILE") {
		t.Errorf("the error is %v, want %s", err, want)
	}
	if _, err := b.rollbackTo(2, nil, "containerd"); err != nil {
		t.Errorf("the remedy: %v", err)
	}
}

// containerdAlone returns a bench whose node file has containerd alone, with a configuration on the node.
func containerdAlone(t *testing.T) *bench {
	b := twoPrograms(t)
	b.node.Put(configPath, []byte("version = 2\n"))
	b.doc.Node.Spec.Kubernetes.Provisioners = slices.DeleteFunc(b.doc.Node.Spec.Kubernetes.Provisioners,
		func(p v1alpha1.Provisioner) bool { return p.Name != "containerd" })
	return b
}

func TestAPushThatTheHistoryLacksIsReported(t *testing.T) {
	b := twoPrograms(t)
	b.swap.unrecorded = "the disk is full"
	b.pushVersions(nil, "v1.29.1", "1.7.12")
	if len(b.story.warnings) != 1 || !strings.Contains(b.story.warnings[0], "the node's history lacks transaction t1: the disk is full") {
		t.Errorf("the warnings are %q", b.story.warnings)
	}
}
