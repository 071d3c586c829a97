package owners

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node/criclient"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// proc returns a process that started the given number of seconds before noon.
func proc(pid, parent uint32, name string, ago int, session uint32) *agentv1.Process {
	return &agentv1.Process{
		Pid: pid, ParentPid: parent, Name: name, Image: `C:\` + name, Session: session,
		Started: timestamppb.New(noon.Add(-time.Duration(ago) * time.Second)),
	}
}

func factsOf(processes ...*agentv1.Process) facts {
	reply := func(at time.Time) sample {
		return newSample(&agentv1.ListProcessesReply{Processes: processes, Taken: timestamppb.New(at)})
	}
	return facts{before: reply(noon.Add(-time.Second)), after: reply(noon), folders: runtimeFolders()}
}

// runs adds a pod with a container and its first process to the runtime's answer.
func (f *facts) runs(container string, pid uint32, ago int) {
	created := noon.Add(-time.Duration(ago) * time.Second).UnixNano()
	pod := "pod-of-" + container
	f.runtime.pods = append(f.runtime.pods, &runtimev1.PodSandbox{
		Id: pod, Metadata: &runtimev1.PodSandboxMetadata{Name: pod, Namespace: "ns"}, CreatedAt: created,
	})
	f.runtime.containers = append(f.runtime.containers, &runtimev1.Container{
		Id: container, PodSandboxId: pod, Metadata: &runtimev1.ContainerMetadata{Name: container}, CreatedAt: created,
		State: runtimev1.ContainerState_CONTAINER_RUNNING,
	})
	if f.runtime.pids == nil {
		f.runtime.pids = map[string]uint32{}
	}
	f.runtime.pids[container] = pid
}

func pidsOf(processes []Process) (all []uint32) {
	for _, p := range processes {
		all = append(all, p.PID)
	}
	return all
}

// A process that got the parent's ID later is younger than the child, and so not its parent.
func TestYoungerParentIsNoParent(t *testing.T) {
	f := factsOf(
		proc(10, 0, "task.exe", 100, 0), proc(20, 10, "child.exe", 90, 0), proc(30, 20, "grandchild.exe", 80, 0),
		proc(40, 10, "older.exe", 200, 0), // its parent 10 has exited, and the id belongs to another process
	)
	f.runs("app", 10, 101)
	table := f.table()
	if got := pidsOf(table.Pods[0].Containers[0].Processes); !slices.Equal(got, []uint32{10, 20, 30}) {
		t.Errorf("got %v", got)
	}
	if got := pidsOf(table.Others); !slices.Equal(got, []uint32{40}) {
		t.Errorf("others %v", got)
	}
}

// Two processes with the same start time that name each other as parent cause no
// endless loop.
func TestParentsInACircle(t *testing.T) {
	f := factsOf(proc(10, 20, "a.exe", 100, 0), proc(20, 10, "b.exe", 100, 0))
	f.runs("app", 10, 101)
	if got := pidsOf(f.table().Pods[0].Containers[0].Processes); !slices.Equal(got, []uint32{10, 20}) {
		t.Errorf("got %v", got)
	}
}

// The processes of a session belong to a container if it has the session for itself.
func TestSessions(t *testing.T) {
	f := factsOf(
		proc(10, 0, "task.exe", 100, 3), proc(11, 0, "smss.exe", 100, 3),
		proc(20, 0, "task.exe", 100, 1), proc(21, 0, "task.exe", 100, 1), proc(22, 0, "explorer.exe", 100, 1),
		proc(30, 0, "task.exe", 100, 0), proc(31, 0, "svchost.exe", 100, 0),
	)
	f.runs("isolated", 10, 101)
	f.runs("shares one", 20, 101)
	f.runs("shares two", 21, 101)
	f.runs("host process", 30, 101)
	got := map[string][]uint32{}
	table := f.table()
	for _, pod := range table.Pods {
		got[pod.Containers[0].Name] = pidsOf(pod.Containers[0].Processes)
	}
	for name, want := range map[string][]uint32{"isolated": {10, 11}, "shares one": {20}, "shares two": {21},
		"host process": {30}} {
		if !slices.Equal(got[name], want) {
			t.Errorf("%s: %v, want %v", name, got[name], want)
		}
	}
	if got := pidsOf(table.Others); !slices.Equal(got, []uint32{22, 31}) {
		t.Errorf("others %v", got)
	}
}

func TestPodsAreInNaturalOrder(t *testing.T) {
	f := factsOf(proc(10, 0, "a.exe", 100, 0), proc(20, 0, "b.exe", 100, 0))
	f.runs("web-10", 10, 101)
	f.runs("web-2", 20, 101)
	switch pods := f.table().Pods; {
	case len(pods) != 2:
		t.Errorf("len(pods) = %v, want 2: %+v", len(pods), pods)
	case pods[0].Name != "pod-of-web-2":
		t.Errorf("pods[0].Name = %q, want %q", pods[0].Name, "pod-of-web-2")
	case pods[1].Name != "pod-of-web-10":
		t.Errorf("pods[1].Name = %q, want %q; %+v", pods[1].Name, "pod-of-web-10", pods)
	}
}

// On the node, another process may have the ID of a process in a virtual machine.
func TestANumberThatIsNotOfThisMachine(t *testing.T) {
	f := factsOf(proc(1234, 0, "lsass.exe", 1000, 0))
	f.runs("hyper-v", 1234, 100)
	table := f.table()
	if c := table.Pods[0].Containers[0]; len(c.Processes) > 0 || c.Task != 1234 {
		t.Errorf("%+v", c)
	}
}

// If the runtime fails after its first answers, these are dropped: they would assign
// processes to pods that are not listed.
func TestPartialRuntimeAnswersAreDropped(t *testing.T) {
	shim := proc(10, 0, "containerd-shim-runhcs-v1.exe", 100, 0)
	shim.CommandLine = "shim -namespace k8s.io -id pod-of-app"
	f := factsOf(shim, proc(20, 0, "app.exe", 100, 0))
	f.runs("app", 20, 100)
	f.runtime.err = &criclient.SilentError{Limit: criclient.AnswerLimit}
	table := f.table()
	switch {
	case len(table.Pods) != 1:
		t.Errorf("len(table.Pods) = %v, want 1: %+v", len(table.Pods), table.Pods)
	case table.Pods[0].State != "unknown":
		t.Errorf("table.Pods[0].State = %q, want %q", table.Pods[0].State, "unknown")
	case !slices.Equal(pidsOf(table.Pods[0].Shims), []uint32{10}):
		t.Errorf("pidsOf(table.Pods[0].Shims) is wrong; pods %+v", table.Pods)
	}
	if got := pidsOf(table.Others); !slices.Equal(got, []uint32{20}) || len(table.Gaps) != 1 {
		t.Errorf("others %v, gaps %q", got, table.Gaps)
	}
}

// Cores are computed from two samples of the same process, and not if another process has
// got its ID.
func TestCores(t *testing.T) {
	f := factsOf(proc(10, 0, "a.exe", 100, 0), proc(20, 0, "b.exe", 100, 0))
	f.before.processes[10] = proc(10, 0, "a.exe", 100, 0)
	f.before.processes[20] = proc(20, 0, "before.exe", 500, 0)
	f.after.processes[10].Cpu = durationpb.New(1500 * time.Millisecond)
	f.after.processes[20].Cpu = durationpb.New(time.Second)
	others := f.table().Others
	switch {
	case others[0].Cores == nil:
		t.Error("others[0].Cores is nil")
	case *others[0].Cores != 1.5:
		t.Errorf("*others[0].Cores = %v, want 1.5", *others[0].Cores)
	case others[0].UptimeSeconds != 100:
		t.Errorf("others[0].UptimeSeconds = %v, want 100", others[0].UptimeSeconds)
	case others[1].Cores != nil:
		t.Errorf("others[1].Cores = %v, want nil; %+v", others[1].Cores, others)
	}
}

func TestFolderOf(t *testing.T) {
	for program, want := range map[string]string{
		`C:\Program Files\containerd\bin\containerd.exe`: `C:\Program Files\containerd\`,
		`D:\k\containerd.exe`:                            `D:\k\`, `C:\containerd.exe`: "",
		`C:\bin\containerd.exe`: "", `containerd.exe`: "",
	} {
		if got := folderOf(program); got != want {
			t.Errorf("%s: %q, want %q", program, got, want)
		}
	}
}

// kubelet names a container's image by its ID, and older runtimes store nothing else.
func TestImageOfAContainer(t *testing.T) {
	f := factsOf(proc(10, 0, "app.exe", 100, 0))
	f.runs("app", 10, 100)
	f.runtime.images = map[string]string{"sha256:1": "example.com/app:1"}
	for _, test := range []struct {
		image *runtimev1.ImageSpec
		want  string
	}{
		{&runtimev1.ImageSpec{Image: "sha256:1"}, "example.com/app:1"},
		{&runtimev1.ImageSpec{Image: "sha256:1", UserSpecifiedImage: "app:latest"}, "app:latest"},
		{&runtimev1.ImageSpec{Image: "sha256:2"}, "sha256:2"}, // the image has been removed
		{&runtimev1.ImageSpec{Image: "example.com/other:1"}, "example.com/other:1"},
	} {
		f.runtime.containers[0].Image = test.image
		if got := f.table().Pods[0].Containers[0].Image; got != test.want {
			t.Errorf("%v is %q, want %q", test.image, got, test.want)
		}
	}
}
