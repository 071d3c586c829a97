package join_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/join"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/imitation/criserver"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/sandbox/apiserver"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// machineState is everything that a join could change on a machine.
type machineState struct {
	Files     map[string]string
	Folders   []string
	Services  map[string]string // registrations, with recovery actions and variables
	Ports     string            // the dynamic ones
	Path      string
	Hosts     []string
	Firewall  []string
	Processes []string
}

func (l *lab) state() machineState {
	l.t.Helper()
	ctx := l.t.Context()
	s := machineState{Files: l.Machine.Snapshot(`C:\`), Services: map[string]string{}, Folders: l.folders(`C:\`)}
	services, err := l.Services.List(ctx, &agentv1.ListServicesRequest{})
	if err != nil {
		l.t.Fatal(err)
	}
	for _, service := range services.GetServices() {
		reply, err := l.Services.Get(ctx, &agentv1.GetServiceRequest{Name: service.GetName()})
		if err != nil {
			l.t.Fatal(err)
		}
		variables, err := l.Registry.Get(ctx, &agentv1.RegistryGetRequest{
			Key: `HKLM\SYSTEM\CurrentControlSet\Services\` + service.GetName(), Name: "Environment"})
		if err != nil && !errors.Is(err, fault.ErrNotExist) {
			l.t.Fatal(err)
		}
		s.Services[service.GetName()] = fmt.Sprint(reply.GetConfig(), variables.GetStrings())
	}
	s.Ports = l.dynamicPorts()
	environment, err := l.Settings.GetEnvironment(ctx, &agentv1.GetEnvironmentRequest{})
	if err != nil {
		l.t.Fatal(err)
	}
	for _, v := range environment.GetVariables() {
		if strings.EqualFold(v.GetName(), "path") {
			s.Path = v.GetValue()
		}
	}
	hosts, err := l.Settings.GetHosts(ctx, &agentv1.GetHostsRequest{})
	if err != nil {
		l.t.Fatal(err)
	}
	for _, entry := range hosts.GetEntries() {
		s.Hosts = append(s.Hosts, entry.GetAddress()+" "+entry.GetName())
	}
	rules, err := l.Firewall.List(ctx, &agentv1.ListFirewallRulesRequest{})
	if err != nil {
		l.t.Fatal(err)
	}
	for _, rule := range rules.GetRules() {
		s.Firewall = append(s.Firewall, rule.GetName())
	}
	return s
}

func (l *lab) dynamicPorts() string {
	l.t.Helper()
	var out bytes.Buffer
	_, err := l.Machine.Process("look").Processes.Run(l.t.Context(), platform.Command{Path: "netsh.exe",
		Args: []string{"int", "ipv4", "show", "dynamicport", "tcp"}, Stdout: &out})
	if err != nil {
		l.t.Fatal(err)
	}
	return out.String()
}

func (l *lab) folders(path string) []string {
	l.t.Helper()
	var all []string
	list, err := l.Node.Node.Files.List(l.t.Context(), &agentv1.ListFilesRequest{Path: path})
	if err != nil {
		l.t.Fatal(err)
	}
	for _, entry := range list.GetEntries() {
		if entry.GetFolder() {
			all = append(append(all, entry.GetPath()), l.folders(entry.GetPath())...)
		}
	}
	return all
}

// stays reports whether the documentation lists the path among those that a reset leaves:
// logs, files of the pod network, and swdt's own folder.
func stays(path string) bool {
	for _, folder := range []string{`c:\var\log`, `c:\etc\cni\net.d`, `c:\opt\cni\bin`, `c:\programdata\swdt`} {
		if path = strings.ToLower(path); strings.HasPrefix(path, folder) || strings.HasPrefix(folder, path+`\`) {
			return true
		}
	}
	return false
}

// isAsBefore compares the machine's state, except for the paths that stay.
func (l *lab) isAsBefore(before machineState) {
	l.t.Helper()
	after := l.state()
	before.Files, before.Folders = maps.Clone(before.Files), slices.Clone(before.Folders)
	for _, s := range []*machineState{&before, &after} {
		maps.DeleteFunc(s.Files, func(path, _ string) bool { return stays(path) })
		s.Folders = slices.DeleteFunc(s.Folders, stays)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		l.t.Errorf("the machine before the join and after the reset:\n%s", diff)
	}
	for path := range l.Machine.Snapshot(`C:\ProgramData\swdt`) {
		if strings.Contains(path, "join") {
			l.t.Errorf("left: %s", path)
		}
	}
}

func TestResetIsTheUndoOfJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		before := l.state()
		l.mustJoin()
		results, err := l.resetWith(join.ResetOptions{Cluster: l.cluster, Drain: &cluster.DrainOptions{}, DeleteNode: true})
		if err != nil {
			t.Fatalf("reset: %v\n%s", err, table(results))
		}
		t.Logf("\n%s", table(results))
		l.isAsBefore(before)
		if n, err := l.cluster.Node(t.Context(), "win1"); err != nil || n.Exists {
			t.Errorf("the Node is still there: %+v, %v", n, err)
		}
		again, err := l.resetWith(join.ResetOptions{Cluster: l.cluster, Drain: &cluster.DrainOptions{}, DeleteNode: true})
		nothing(t, again, err)
	})
}

func TestJoinAfterAReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.mustJoin()
		if results, err := l.resetWith(join.ResetOptions{}); err != nil {
			t.Fatalf("reset: %v\n%s", err, table(results))
		}
		l.mustJoin() // with the Node object of the earlier join still there
		l.isReady()
		again, err := l.join()
		nothing(t, again, err)
	})
}

func resetAll(l *lab) join.ResetOptions {
	return join.ResetOptions{Cluster: l.cluster, Drain: &cluster.DrainOptions{}, DeleteNode: true}
}

// Not even an administrator may remove the files of image layers: if a folder cannot be
// removed, the reset undoes everything else, and a later reset completes it.
func TestResetGoesOnWhereAFolderCannotBeRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.mustJoin()
		denied := true
		l.Machine.OnOperation(func(op simulated.Operation) simulated.Verdict {
			if denied && op.Kind == simulated.OpRemove && op.Phase == simulated.Before &&
				strings.EqualFold(op.Target, `C:\var\lib\kubelet`) {
				return simulated.Fail(fault.ErrPermission)
			}
			return simulated.Continue()
		})
		results, err := l.resetWith(join.ResetOptions{})
		if err == nil || !strings.Contains(err.Error(), `C:\var\lib\kubelet`) {
			t.Fatalf("%v\n%s", err, table(results))
		}
		folders := l.folders(`C:\`)
		if slices.Contains(folders, `C:\etc\kubernetes`) || slices.Contains(folders, `C:\k`) {
			t.Error("other folders stayed for its sake")
		}
		denied = false
		results, err = l.resetWith(join.ResetOptions{})
		if diff := cmp.Diff([]string{"folders", "record"}, changed(results)); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		results, err = l.resetWith(join.ResetOptions{})
		nothing(t, results, err)
	})
}

func TestResetReportsFoldersThatStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.put(`C:\ProgramData\containerd\root\layer`, "of an image of another program")
		l.mustJoin()
		l.put(`C:\k\notes.txt`, "of the user")
		kept := map[string]string{}
		results, err := l.resetWith(join.ResetOptions{Kept: func(folder, why string) { kept[folder] = why }})
		if err != nil {
			t.Fatalf("reset: %v\n%s", err, table(results))
		}
		want := map[string]string{
			`C:\ProgramData\containerd`: "it was there before the join, and has the images of pods",
		}
		for _, folder := range []string{`C:\etc\cni\net.d`, `C:\k`, `C:\opt\cni\bin`, `C:\var\log\containerd`, `C:\var\log\kubelet`} {
			want[folder] = "it is not empty"
		}
		if diff := cmp.Diff(want, kept); diff != "" {
			t.Errorf("kept folders (-want +got):\n%s", diff)
		}
		for _, text := range []string{
			`kept, since it is not empty: C:\etc\cni\net.d, C:\k, C:\opt\cni\bin`,
			`kept, since it was there before the join, and has the images of pods: C:\ProgramData\containerd`,
		} {
			if !strings.Contains(table(results), text) {
				t.Errorf("the table has no %q:\n%s", text, table(results))
			}
		}
	})
}

// Only containerd can remove the layers of images, and only while it runs.
func TestResetHasContainerdRemoveItsImages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		control := newControl(t, apiserver.Options{})
		images := []criserver.Image{{ID: "aa", Tag: "example.com/one:1"}, {ID: "bb", Tag: "example.com/two:1"}}
		l := newNodeOf(t, control, "win1", images...)
		l.mustJoin()
		l.put(`C:\ProgramData\containerd\root\layer`, "of an image")
		asked := false
		l.Machine.OnOperation(func(op simulated.Operation) simulated.Verdict {
			if op.Kind == simulated.OpRemove && op.Phase == simulated.Before &&
				strings.EqualFold(op.Target, `C:\ProgramData\containerd`) {
				asked = true
				for _, image := range images {
					if !l.Machine.Removed(image.ID) {
						return simulated.Fail(fault.ErrPermission)
					}
				}
			}
			return simulated.Continue()
		})
		results, err := l.resetWith(join.ResetOptions{})
		if err != nil || !asked {
			t.Fatalf("%v, its folder was to be removed: %v\n%s", err, asked, table(results))
		}
		if !strings.Contains(table(results), "remove all pods and images; stop and remove the service containerd") {
			t.Errorf("the removal of pods and images is not in the plan:\n%s", table(results))
		}
	})
}

// A command that an interrupted join has left, or a pod's shim, may still run a program
// that swdt installed: the reset ends it and removes the program.
func TestResetEndsWhatStillRunsItsPrograms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.mustJoin()
		const program = `C:\Program Files\containerd\bin\containerd.exe`
		runs, ended := make(chan struct{}), make(chan struct{})
		l.Machine.Register(simulated.Program{
			Match: func(image *simulated.Image) bool { return strings.EqualFold(image.Path, program) },
			Main: func(ctx context.Context, _ *simulated.Process) int {
				close(runs)
				<-ctx.Done()
				return 1
			},
		})
		go func() {
			defer close(ended)
			_, _ = l.Machine.Process("somebody").Processes.Run(context.WithoutCancel(t.Context()),
				platform.Command{Path: program, Args: []string{"config", "default"}})
		}()
		<-runs
		results, err := l.resetWith(join.ResetOptions{})
		if err != nil {
			t.Fatalf("%v\n%s", err, table(results))
		}
		<-ended
		if left := l.Machine.Snapshot(`C:\Program Files\containerd`); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
}
