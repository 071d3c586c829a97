package netpol_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/proof/leftover"
	"github.com/swdt-dev/swdt/internal/proof/netpol"
	"github.com/swdt-dev/swdt/internal/proof/netprobe"
	"github.com/swdt-dev/swdt/internal/proof/policy"
	"github.com/swdt-dev/swdt/internal/sandbox/hostprocess"
	"github.com/swdt-dev/swdt/internal/testing/gobuild"
)

// world is a cluster in memory with a pod network: pods have addresses of loopback, the probes are real
// processes, and an imitation of a CNI enforces the policies that are in the API server. An attempt
// that a pod must not make goes to the black hole: an address that refuses it at once or, after dig, never answers.
type world struct {
	t       *testing.T
	client  *fake.Clientset
	folder  string
	probe   []byte
	network byte // the second byte of the pods' addresses

	mu        sync.Mutex
	addresses map[string]netip.Addr // by NAMESPACE/POD of the cluster
	deleted   []string
	routed    int            // the number of rounds that pods have begun
	made      map[string]int // routed when a policy was made, by NAMESPACE/NAME
	bindAfter int            // the number of rounds after which a policy binds
	// wrong decides on cells against the policies, while there are any. Pods have the names of the model.
	wrong   func(from, to, port string) (passes, decided bool)
	looked  func() // is called once, when all pods run
	once    sync.Once
	shields bool // nodes have a firewall
	strict  bool // connections for which policies are undefined do not pass
	// firewall has the addresses of nodes that reject all connections.
	firewall []netip.Addr
	short    map[string]string // names of the model, by NAMESPACE/POD of the cluster
	alter    func(line []byte) []byte
	// rounds has the rounds that swdt has asked each pod for, by the name of the model, if it is not nil. A round then
	// has as much time as it needs.
	rounds map[string][]round
}

// round is a round that swdt asks a pod for.
type round struct {
	Timeout time.Duration
	Targets int
}

func node(name, system string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("node-" + name),
		Labels: map[string]string{corev1.LabelOSStable: system, corev1.LabelArchStable: "amd64"}}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}

// newWorld returns a cluster with a Linux and a Windows node. network is a number of the test.
func newWorld(t *testing.T, network byte) *world {
	t.Helper()
	w := &world{t: t, client: fake.NewClientset(node("lin-1", "linux"), node("win-1", "windows")), folder: t.TempDir(),
		network: network, addresses: map[string]netip.Addr{}, made: map[string]int{}, short: map[string]string{}}
	w.client.PrependReactor("create", "*", w.create)
	w.client.PrependReactor("delete", "namespaces", func(a clienttesting.Action) (bool, runtime.Object, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.deleted = append(w.deleted, a.(clienttesting.DeleteAction).GetName())
		return false, nil, nil
	})
	w.client.PrependReactor("get", "pods", w.play)
	return w
}

// buildProbe returns the real probe.
func buildProbe(t *testing.T) []byte {
	t.Helper()
	program, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// built builds the real probe, once.
var built = sync.OnceValues(func() ([]byte, error) {
	folder, err := os.MkdirTemp("", "swdt-netpol-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "swdt-probe")
	program := gobuild.Program{Package: "github.com/swdt-dev/swdt/cmd/swdt-probe"}
	if err := program.Write(context.Background(), path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

func (w *world) create(action clienttesting.Action) (bool, runtime.Object, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch o := action.(clienttesting.CreateAction).GetObject().(type) {
	case *corev1.Namespace:
		o.UID, o.CreationTimestamp = types.UID("uid-of-"+o.Name), metav1.Now()
		o.Labels[corev1.LabelMetadataName] = o.Name
	case *corev1.Pod:
		if err := startsOnWindows(o); err != nil { // the kubelet would report it, and the wait end
			return true, nil, err
		}
		address := netip.AddrFrom4([4]byte{127, w.network, 0, byte(len(w.addresses) + 1)})
		w.addresses[o.Namespace+"/"+o.Name] = address
		if o.Spec.HostNetwork && w.shields {
			w.firewall = append(w.firewall, address)
		}
	case *networkingv1.NetworkPolicy:
		w.made[o.Namespace+"/"+o.Name] = w.routed
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
	p.Spec.NodeName = nodeOf(*p)
	p.Status.PodIP = w.addresses[p.Namespace+"/"+p.Name].String()
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	return true, p, nil
}

// nodeOf returns the node of a pod, by its affinity.
func nodeOf(p corev1.Pod) string {
	terms := p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	return terms[0].MatchFields[0].Values[0]
}

// Stream runs the real command, with the pod's folder in place of /swdt, and filters its input.
func (w *world) Stream(ctx context.Context, pod cluster.Pod, _ string, command []string, s cluster.ExecStreams) (int,
	error) {
	folder := filepath.Join(w.folder, pod.Namespace, pod.Name)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return 0, err
	}
	command, err := w.inHostProcess(pod, command, filepath.Join(folder, "swdt-probe"))
	if err != nil {
		return 1, err
	}
	program := strings.TrimSuffix(path.Base(strings.ReplaceAll(command[0], `\`, "/")), ".exe")
	local := exec.CommandContext(ctx, filepath.Join(folder, "swdt-probe"))
	local.Stdin, local.Stdout, local.WaitDelay = s.In, s.Out, time.Second
	if program == "curl" {
		at, err := url.Parse(command[len(command)-1])
		if err != nil || !slices.Contains([]string{"/swdt/swdt-probe", "/C:/swdt/swdt-probe.exe"}, at.Path) {
			return 0, fmt.Errorf("curl writes to %v: %v", at, err)
		}
		return 0, w.curl(ctx, command, filepath.Join(folder, "swdt-probe"), s)
	}
	in, filtered := io.Pipe()
	local.Stdin = in
	go func() { _ = filtered.CloseWithError(w.enforce(pod, s.In, filtered)) }()
	if w.alter != nil {
		out, altered := io.Pipe()
		local.Stdout = altered
		go func() { _ = out.CloseWithError(alterLines(out, s.Out, w.alter)) }()
	}
	defer context.AfterFunc(ctx, func() { in.Close() })()
	err = local.Run()
	_ = in.Close()
	return 0, err
}

// isHostProcess reports whether a pod has a HostProcess container.
func isHostProcess(p *corev1.Pod) bool {
	options := p.Spec.SecurityContext.WindowsOptions
	return options != nil && options.HostProcess != nil && *options.HostProcess
}

// startsOnWindows returns an error if a HostProcess container does not start on each Windows. The image is agnhost.
func startsOnWindows(p *corev1.Pod) error {
	if !isHostProcess(p) {
		return nil
	}
	image := hostprocess.Image{Entrypoint: []string{"/agnhost"}, Files: []string{"agnhost"}}
	for _, windows := range hostprocess.All() {
		if _, err := windows.Start(image, p.Spec.Containers[0], nil); err != nil {
			return err
		}
	}
	return nil
}

// inHostProcess returns a command of a HostProcess pod as the other pods have it, if it works on each Windows: the probe
// must be at its place, and the copy must go there.
func (w *world) inHostProcess(at cluster.Pod, command []string, probe string) ([]string, error) {
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	live, err := w.client.Tracker().Get(pods, at.Namespace, at.Name)
	if err != nil {
		return nil, err
	}
	p := live.(*corev1.Pod)
	if !isHostProcess(p) {
		return command, nil
	}
	c := p.Spec.Containers[0]
	volumes := map[string][]string{}
	if _, err := os.Stat(probe); err == nil {
		volumes[c.VolumeMounts[0].Name] = []string{"swdt-probe.exe"}
	}
	for _, windows := range hostprocess.All() {
		started, err := windows.Exec(hostprocess.Image{}, c, volumes, command...)
		if err != nil {
			return nil, err
		}
		if to := command[len(command)-1]; strings.HasPrefix(to, "file:") &&
			started.Arguments[len(started.Arguments)-1] != "file:///"+strings.TrimSuffix(started.Root, `\`)+"/swdt/swdt-probe.exe" {
			return nil, fmt.Errorf("curl writes to %s, where the container has no volume", started.Arguments[len(started.Arguments)-1])
		}
	}
	last := len(command) - 1
	if strings.HasPrefix(command[last], "file:") {
		return append(slices.Clone(command[:last]), "file:///C:/swdt/swdt-probe.exe"), nil
	}
	return command, nil
}

// curl writes the input into a file, by the real curl if this machine has it.
func (w *world) curl(ctx context.Context, command []string, file string, s cluster.ExecStreams) error {
	if _, err := exec.LookPath("curl"); err != nil {
		text, err := io.ReadAll(s.In)
		return errors.Join(err, os.WriteFile(file, text, 0o700))
	}
	local := exec.CommandContext(ctx, "curl", append(slices.Clone(command[1:len(command)-1]), "file://"+file)...)
	local.Stdin, local.Stdout, local.Stderr = s.In, s.Err, s.Err
	err := local.Run()
	if err == nil && strings.HasSuffix(command[0], ".exe") { // Windows has no such mode
		err = os.Chmod(file, 0o700)
	}
	return err
}

func alterLines(from io.Reader, to io.Writer, alter func([]byte) []byte) error {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return err
		}
		if _, err := to.Write(alter(line)); err != nil {
			return err
		}
	}
}

// enforce passes the requests of a pod's probe on. It is the CNI: attempts that the policies deny go to
// the black hole.
func (w *world) enforce(pod cluster.Pod, from io.Reader, to io.Writer) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, netprobe.MaxLine)
	for lines.Scan() {
		var request netprobe.Request
		if err := json.Unmarshal(lines.Bytes(), &request); err != nil {
			return err
		}
		if request.Serve != nil {
			w.mu.Lock()
			w.short[pod.Namespace+"/"+pod.Name] = request.Serve.Name
			w.mu.Unlock()
		}
		if request.Round != nil {
			w.count(pod, request.Round)
			if err := w.route(pod, request.Round.Targets); err != nil {
				return err
			}
		}
		text, err := json.Marshal(request)
		if err != nil {
			return err
		}
		if _, err := to.Write(append(text, '\n')); err != nil {
			return err
		}
	}
	return lines.Err()
}

// count notes a round, and lets it take longer.
func (w *world) count(pod cluster.Pod, r *netprobe.Round) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rounds == nil {
		return
	}
	name := w.short[pod.Namespace+"/"+pod.Name]
	w.rounds[name] = append(w.rounds[name], round{time.Duration(r.TimeoutMS) * time.Millisecond, len(r.Targets)})
	r.TimeoutMS = netprobe.MaxTimeout.Milliseconds()
}

// route replaces the addresses of targets that the pod must not reach.
func (w *world) route(pod cluster.Pod, targets []netprobe.Target) error {
	set, any, err := w.policies()
	if err != nil {
		return err
	}
	pods, err := w.pods()
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	own := w.addresses[pod.Namespace+"/"+pod.Name]
	for i := range targets {
		t := &targets[i]
		to := pods[netip.MustParseAddr(t.Address)]
		verdict := set.Decide(policy.Connection{From: pods[own], To: to, Port: t.Number,
			Protocol: corev1.Protocol(t.Protocol)})
		passes := verdict.Allowed() || verdict.Undefined() && !w.strict
		if w.wrong != nil && any {
			port := fmt.Sprintf("%s/%d", t.Protocol, t.Number)
			if decision, ok := w.wrong(w.short[pod.Namespace+"/"+pod.Name], t.Name, port); ok {
				passes = decision
			}
		}
		if !passes || slices.Contains(w.firewall, to.Address) {
			t.Address = w.hole().String()
		}
	}
	return nil
}

// policies returns the policies that are bound, and reports whether there are any.
func (w *world) policies() (*policy.Set, bool, error) {
	list, err := w.client.NetworkingV1().NetworkPolicies("").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return nil, false, err
	}
	w.mu.Lock()
	w.routed++
	bound := slices.DeleteFunc(list.Items, func(p networkingv1.NetworkPolicy) bool {
		return w.routed-w.made[p.Namespace+"/"+p.Name] <= w.bindAfter
	})
	w.mu.Unlock()
	if w.looked != nil {
		w.once.Do(w.looked)
	}
	set, err := policy.New(bound)
	return set, len(bound) > 0, err
}

// pods returns the pods of the API server, by address.
func (w *world) pods() (map[netip.Addr]policy.Pod, error) {
	list, err := w.client.CoreV1().Pods("").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	all := map[netip.Addr]policy.Pod{}
	for _, p := range list.Items {
		n, err := w.client.CoreV1().Namespaces().Get(context.Background(), p.Namespace, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		w.mu.Lock()
		end := policy.Pod{Namespace: p.Namespace, Name: p.Name, Labels: p.Labels, NamespaceLabels: n.Labels,
			Address: w.addresses[p.Namespace+"/"+p.Name], Host: p.Spec.HostNetwork, Node: nodeOf(p)}
		w.mu.Unlock()
		for _, c := range p.Spec.Containers[0].Ports {
			end.Ports = append(end.Ports, policy.Port{Name: c.Name, Number: c.ContainerPort, Protocol: c.Protocol})
		}
		all[end.Address] = end
	}
	return all, nil
}

func (w *world) hole() netip.Addr { return netip.AddrFrom4([4]byte{127, w.network, 255, 254}) }

// dig makes the black hole: sockets that receive and never answer.
func (w *world) dig(ports ...int) {
	w.t.Helper()
	for _, port := range ports {
		at := netip.AddrPortFrom(w.hole(), uint16(port))
		packets, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() { packets.Close() })
		w.digTCP(at)
	}
}

func (w *world) cluster() *cluster.Cluster { return cluster.FromClients("https://api", w.client, nil) }

// wrongSettle is the time that cells may be wrong in tests in which some are wrong until it is over.
const wrongSettle = 5 * time.Second

// run measures with the longest times: a right network needs few of them, however slow the machine is.
func (w *world) run(ctx context.Context, o netpol.Options) (netpol.Report, error) {
	records, err := leftover.Open(filepath.Join(w.folder, "records"))
	if err != nil {
		w.t.Fatal(err)
	}
	o.Records, o.Execs = records, w
	if o.Program == nil {
		o.Program = func(string, string) ([]byte, error) { return w.probe, nil }
	}
	if o.Settle == 0 {
		o.Settle = time.Minute
	}
	if o.ProbeTimeout == 0 {
		o.ProbeTimeout = netprobe.MaxTimeout
	}
	return netpol.Run(ctx, w.cluster(), o)
}

// nothingIsLeft fails the test if a namespace or a record of a run is left.
func (w *world) nothingIsLeft(t *testing.T) {
	t.Helper()
	left, err := w.client.CoreV1().Namespaces().List(context.Background(), metav1.ListOptions{})
	if err != nil || len(left.Items) > 0 {
		t.Errorf("%d namespaces are left: %v", len(left.Items), err)
	}
	records, err := os.ReadDir(filepath.Join(w.folder, "records"))
	if err != nil && !errors.Is(err, os.ErrNotExist) || len(records) > 0 {
		t.Errorf("records are left: %v, %v", records, err)
	}
}
