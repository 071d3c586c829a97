package ability_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/proof/ability"
	"github.com/swdt-dev/swdt/internal/proof/leftover"
	"github.com/swdt-dev/swdt/internal/proof/netprobe"
	"github.com/swdt-dev/swdt/internal/ui"
)

const (
	winIP, podIP, linuxPodIP = "10.0.0.2", "10.244.2.5", "10.244.1.9"
	plainIP, stickyIP        = "10.96.0.10", "10.96.0.11"
	outsidePort              = 30080
)

// world is a cluster in memory: it plays the API server, the scheduler, the kubelets, the programs in the pods and
// the network. Each field below breaks it at one place.
type world struct {
	client *fake.Clientset

	mu        sync.Mutex
	broken    broken
	requests  map[string]int    // by URL: requests so far
	volumes   map[string]string // the file of each claim
	folders   map[string]bool   // the volumes that have a folder of swdt, by their claims
	restarted []string          // the services, and "reboot"
	removed   []string          // namespaces
}

// broken says what is wrong in the world.
type broken struct {
	cpuLimit, memoryLimit bool   // is not enforced
	busy, small           bool   // the node has no CPU time or memory left
	execDies              bool   // the connection breaks during the memory load
	containerDies         bool   // the container of the memory load ends as a whole
	spread, affinity      bool   // Services without or with affinity do it wrong
	seen                  string // the address that servers see instead of the pod's
	nodePort, stranger    bool   // a NodePort does not answer; another machine answers
	reads                 string // the text that each pod reads from its volume
	noStart               string // the prefix of pods that do not start
	lost                  string // what a restart does to the pod idle-1-2: "gone", "new", "again", "ended", "mute"
	restart, lease        bool   // a service does not start again; kubelet does not renew the lease afterwards
	sleeps                bool   // pods do not run again after a reboot
}

func node(name, system string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("node-" + name),
		Labels: map[string]string{corev1.LabelOSStable: system, corev1.LabelArchStable: "amd64"}}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}
	n.Status.NodeInfo.KernelVersion, n.Status.NodeInfo.BootID = "10.0.20348.2849", "1"
	if system == "windows" {
		n.Status.Addresses[0].Address = winIP
	}
	return n
}

func newWorld(b broken, objects ...runtime.Object) *world {
	objects = append(objects, node("lin-1", "linux"), node("win-1", "windows"))
	w := &world{client: fake.NewClientset(objects...), broken: b, requests: map[string]int{}, volumes: map[string]string{},
		folders: map[string]bool{}}
	w.client.PrependReactor("create", "*", w.create)
	w.client.PrependReactor("get", "pods", w.play)
	w.client.PrependReactor("get", "nodes", w.playNode)
	w.client.PrependReactor("get", "leases", w.playLease)
	w.client.PrependReactor("delete", "namespaces", func(a clienttesting.Action) (bool, runtime.Object, error) {
		w.removed = append(w.removed, a.(clienttesting.DeleteAction).GetName())
		return false, nil, nil
	})
	return w
}

// driver returns a StorageClass, and the node with its driver.
func driver(name string, policy corev1.PersistentVolumeReclaimPolicy, registered ...string) []runtime.Object {
	on := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "win-1"}}
	for _, d := range registered {
		on.Spec.Drivers = append(on.Spec.Drivers, storagev1.CSINodeDriver{Name: d, NodeID: "win-1"})
	}
	return []runtime.Object{on, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: name,
		ReclaimPolicy: &policy}}
}

func (w *world) create(action clienttesting.Action) (bool, runtime.Object, error) {
	switch o := action.(clienttesting.CreateAction).GetObject().(type) {
	case *corev1.Namespace:
		o.UID, o.CreationTimestamp = types.UID("uid-of-"+o.Name), metav1.Now()
	case *corev1.Pod:
		o.UID = types.UID("uid-of-" + o.Name)
	case *corev1.Service:
		o.Spec.ClusterIP = map[string]string{"plain": plainIP, "sticky": stickyIP, "outside": "10.96.0.12"}[o.Name]
		if o.Spec.Type == corev1.ServiceTypeNodePort {
			o.Spec.Ports[0].NodePort = outsidePort
		}
	}
	return false, nil, nil
}

// play lets the scheduler and the kubelets work, at each look at a pod.
func (w *world) play(action clienttesting.Action) (bool, runtime.Object, error) {
	name := action.(clienttesting.GetAction).GetName()
	live, err := w.client.Tracker().Get(action.GetResource(), action.GetNamespace(), name)
	if err != nil {
		return true, nil, err
	}
	p := live.(*corev1.Pod).DeepCopy()
	w.mu.Lock()
	defer w.mu.Unlock()
	terms := p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	p.Spec.NodeName, p.Status.PodIP = terms[0].MatchFields[0].Values[0], linuxPodIP
	if p.Spec.NodeName != "lin-1" {
		p.Status.PodIP = podIP
	}
	c := corev1.ContainerStatus{Name: "agnhost", ContainerID: "containerd://" + name,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}}
	switch {
	case w.broken.noStart != "" && strings.HasPrefix(name, w.broken.noStart):
		c.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "InvalidImageName"}}
	case w.broken.containerDies && strings.HasPrefix(name, "limited") && w.requests["fill "+name] > 1:
		c.State = ended
	case strings.Contains(name, "idle-1-2") && len(w.restarted) > 0:
		if w.broken.lost == "gone" {
			return true, nil, apierrors.NewNotFound(action.GetResource().GroupResource(), name)
		}
		w.lose(p, &c, ended)
	case strings.HasPrefix(name, "survivor") && slices.Contains(w.restarted, "reboot") && !w.broken.sleeps:
		c.ContainerID, c.RestartCount = c.ContainerID+"-2", 1
	}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{c}
	return true, p, nil
}

// lose changes a pod as a restart does that loses it.
func (w *world) lose(p *corev1.Pod, c *corev1.ContainerStatus, ended corev1.ContainerState) {
	switch w.broken.lost {
	case "new":
		p.UID = "another"
	case "again":
		c.ContainerID, c.RestartCount = "containerd://again", 1
	case "ended":
		c.State = ended
	}
}

func (w *world) playNode(action clienttesting.Action) (bool, runtime.Object, error) {
	live, err := w.client.Tracker().Get(action.GetResource(), "", action.(clienttesting.GetAction).GetName())
	if err != nil {
		return true, nil, err
	}
	n := live.(*corev1.Node).DeepCopy()
	w.mu.Lock()
	defer w.mu.Unlock()
	if slices.Contains(w.restarted, "reboot") {
		n.Status.NodeInfo.BootID = "2"
	}
	return true, n, nil
}

func (w *world) playLease(clienttesting.Action) (bool, runtime.Object, error) {
	now := metav1.NowMicro()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken.lease && len(w.restarted) > 0 {
		now = metav1.NewMicroTime(time.Unix(1, 0))
	}
	return true, &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &now}}, nil
}

// Exec plays curl in the containers.
func (w *world) Exec(_ context.Context, pod cluster.Pod, _ string, _ int, command ...string) (cluster.ExecResult,
	error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := command[len(command)-1]
	switch {
	case at == "--version" && w.broken.lost == "mute" && strings.Contains(pod.Name, "idle-1-2"):
		return cluster.ExecResult{}, errors.New("the kubelet has forgotten the container")
	case at == "--version":
		return cluster.ExecResult{Stdout: "curl 8"}, nil
	case slices.Equal(command[:2], []string{"cmd.exe", "/c"}) && command[2] == "mkdir" && strings.HasPrefix(at, `C:\data\`):
		w.folders[claimOf(pod)] = true
		return cluster.ExecResult{}, nil
	case strings.HasPrefix(at, "file:"):
		text := w.volumes[claimOf(pod)]
		if w.broken.reads != "" {
			text = w.broken.reads
		}
		return cluster.ExecResult{Stdout: text}, nil
	}
	body := w.answer(pod, at)
	if body == "" {
		return cluster.ExecResult{Code: 7, Stdout: "\n000 0.0", Stderr: "curl: (7) refused"}, nil
	}
	return cluster.ExecResult{Stdout: body + "\n200 0.000021"}, nil
}

// answer returns the answer of a server; "" if there is none.
func (w *world) answer(from cluster.Pod, text string) string {
	at, err := url.Parse(text)
	if err != nil {
		return ""
	}
	w.requests[text]++
	turn := w.requests[text]
	switch {
	case at.Path == "/clientip" && w.broken.seen != "":
		return w.broken.seen
	case at.Path == "/clientip":
		return podIP + ":50123"
	case w.broken.stranger:
		return "router"
	case at.Host == fmt.Sprintf("%s:%d", winIP, outsidePort):
		if w.broken.nodePort || !strings.HasPrefix(from.Name, "backend-") {
			return ""
		}
		return "backend-1"
	case at.Host == plainIP+":80" && !w.broken.spread, at.Host == stickyIP+":80" && w.broken.affinity:
		return fmt.Sprintf("backend-%d", turn%2+1)
	case at.Host == plainIP+":80", at.Host == stickyIP+":80":
		return "backend-1"
	}
	return ""
}

// PodLog plays the kubelets' logs.
func (w *world) PodLog(context.Context, cluster.Pod, string, int64, int64) (string, error) {
	return "", nil
}

// Stream plays the copy of the probe, the probe itself, and the copy of data onto a volume.
func (w *world) Stream(ctx context.Context, pod cluster.Pod, _ string, command []string, s cluster.ExecStreams) (int,
	error) {
	if at := command[len(command)-1]; strings.HasPrefix(at, "file:") {
		text, err := io.ReadAll(s.In)
		switch {
		case at == "file:///C:/data/swdt.txt":
			// ContainerUser may make folders at the root of a volume, and files only in those
			// (kubernetes/kubernetes#131341, kubernetes-csi/csi-proxy#382).
			fmt.Fprintln(s.Err, "curl: (23) Failure writing output to destination: Access is denied.")
			return 23, err
		case strings.HasPrefix(at, "file:///C:/data/"):
			w.mu.Lock()
			defer w.mu.Unlock()
			if !w.folders[claimOf(pod)] {
				fmt.Fprintln(s.Err, "curl: (37) Could not open file")
				return 37, err
			}
			w.volumes[claimOf(pod)] = string(text)
		}
		return 0, err
	}
	if command[0] != `C:\swdt\swdt-probe.exe` {
		return 0, fmt.Errorf("%q is no program of a pod", command)
	}
	return w.probe(ctx, pod, s)
}

// probe plays swdt-probe, until its input or ctx ends.
func (w *world) probe(ctx context.Context, pod cluster.Pod, s cluster.ExecStreams) (int, error) {
	lines, ended := make(chan []byte), make(chan struct{})
	defer close(ended)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(s.In); in.Scan(); {
			select {
			case lines <- slices.Clone(in.Bytes()):
			case <-ended:
				return
			}
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case line, ok := <-lines:
			if !ok {
				return 0, nil
			}
			var request netprobe.Request
			if err := json.Unmarshal(line, &request); err != nil || request.Load == nil {
				return 0, fmt.Errorf("%s: %v", line, err)
			}
			reply, code, err := w.load(ctx, pod, *request.Load)
			if code != 0 || err != nil {
				return code, err
			}
			if err := json.NewEncoder(s.Out).Encode(netprobe.Reply{Version: netprobe.Version, Loaded: &reply}); err != nil {
				return 0, err
			}
		}
	}
}

// load plays a load of the probe.
func (w *world) load(ctx context.Context, pod cluster.Pod, l netprobe.Load) (got netprobe.Loaded, code int, err error) {
	w.mu.Lock()
	limited := strings.HasPrefix(pod.Name, "limited")
	cores := float64(l.Threads)
	switch {
	case w.broken.busy:
		cores = 0.1
	case limited && !w.broken.cpuLimit:
		cores = 0.21
	}
	if l.Bytes > 0 {
		w.requests["fill "+pod.Name]++
	}
	much := l.Bytes > 256<<20
	refuses := much && (limited && !w.broken.memoryLimit || w.broken.small)
	dies := much && (w.broken.execDies || w.broken.containerDies && limited)
	w.mu.Unlock()
	switch {
	case dies:
		return got, 0, errors.New("the connection to the kubelet broke")
	case refuses:
		return got, 2, nil
	}
	select {
	case <-time.After(time.Duration(l.MS) * time.Millisecond):
	case <-ctx.Done():
	}
	return netprobe.Loaded{CPUMS: int64(cores * float64(l.MS)), WallMS: l.MS, Bytes: l.Bytes}, 0, nil
}

// claimOf returns the claim that a pod mounts, by the pod's name.
func claimOf(pod cluster.Pod) string { return pod.Name[:strings.LastIndex(pod.Name, "-")] }

// machine plays the way to the node.
type machine struct{ w *world }

func (m machine) Restart(_ context.Context, service string) error { return m.take(service) }
func (m machine) Reboot(context.Context) error                    { return m.take("reboot") }
func (m machine) Close()                                          {}

func (m machine) take(what string) error {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	if m.w.broken.restart {
		return errors.New("the service kubelet ended with exit code 1067")
	}
	m.w.restarted = append(m.w.restarted, what)
	return nil
}

// run runs probes, and returns RESULT or RESULT: MESSAGE of each on win-1.
func (w *world) run(ctx context.Context, t *testing.T, change func(*ability.Options),
	probes ...string) map[string]string {
	t.Helper()
	records, err := leftover.Open(filepath.Join(t.TempDir(), "records"))
	if err != nil {
		t.Fatal(err)
	}
	o := ability.Options{Probes: probes, Records: records, Access: w, Wait: time.Minute,
		Program: func(string, string) ([]byte, error) { return []byte("MZ"), nil },
		Machine: func(context.Context, cluster.Node, ui.Reporter) (ability.Machine, error) { return machine{w}, nil }}
	if change != nil {
		change(&o)
	}
	results, err := ability.Run(ctx, cluster.FromClients("https://api", w.client, nil), o)
	if err != nil {
		t.Error(err)
	}
	all := map[string]string{}
	for _, r := range results {
		if all[r.Probe] = r.Result; r.Message != "" {
			all[r.Probe] += ": " + r.Message
		}
		if r.Node != "win-1" || r.Build == "" {
			t.Errorf("%+v", r)
		}
	}
	if left, err := w.client.CoreV1().Namespaces().List(context.Background(), metav1.ListOptions{}); err != nil ||
		len(left.Items) > 0 || len(w.removed) != 1 {
		t.Errorf("namespaces are left: %v, %v; removed %q", left, err, w.removed)
	}
	return all
}
