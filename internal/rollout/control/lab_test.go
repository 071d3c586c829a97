package control_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/rollout/control"
	"github.com/swdt-dev/swdt/internal/rollout/installation"
	"github.com/swdt-dev/swdt/internal/rollout/manifests"
	"github.com/swdt-dev/swdt/internal/rollout/onnode"
	"github.com/swdt-dev/swdt/internal/sandbox/controlplane"
	"github.com/swdt-dev/swdt/internal/sandbox/controlplane/controlplanetest"
	"github.com/swdt-dev/swdt/internal/testing/fleettest"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wait"
)

// lab is a real control plane with the fleet's objects.
type lab struct {
	t      *testing.T
	plane  *controlplane.ControlPlane
	config *rest.Config
	admin  *cluster.Cluster
	limit  time.Duration // of a rollout
	// restarted receives the names of nodes whose kubelet has started again.
	restarted chan string
}

// newLab starts a control plane, which records the requests of the fleet's two accounts, and installs the fleet.
func newLab(t *testing.T) *lab {
	t.Helper()
	l := startLab(t, controlplane.Options{Audit: []string{controllerUser, programUser}})
	l.install()
	return l
}

func startLab(t *testing.T, o controlplane.Options) *lab {
	t.Helper()
	l := &lab{t: t, limit: 5 * time.Minute, restarted: make(chan string, 10_000)}
	l.plane = controlplanetest.Start(t, o)
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	var err error
	if l.config, err = clientcmd.BuildConfigFromFlags("", l.plane.Kubeconfig()); err != nil {
		t.Fatal(err)
	}
	l.config.QPS = -1
	if l.admin, err = cluster.FromConfig(l.config); err != nil {
		t.Fatal(err)
	}
	return l
}

// The users of the controller and of the programs on the nodes.
const (
	controllerUser = "system:serviceaccount:" + manifests.Namespace + ":swdt-controller"
	programUser    = "system:serviceaccount:" + manifests.Namespace + ":swdt-node"
)

// install installs the fleet's objects, and checks that a second run has nothing to do.
func (l *lab) install() {
	l.t.Helper()
	for _, dry := range []bool{true, false} {
		if _, err := installation.Run(l.t.Context(), l.admin, installation.Options{DryRun: dry}, ui.Discard{}); err != nil {
			l.t.Fatalf("install (dry run: %t): %v", dry, err)
		}
	}
	steps, err := installation.Run(l.t.Context(), l.admin, installation.Options{}, ui.Discard{})
	if err != nil {
		l.t.Fatal(err)
	}
	for _, s := range steps {
		if s.State != "ok" {
			l.t.Errorf("the second installation: %s is %s: %s", s.Name, s.State, s.Change)
		}
	}
}

func (l *lab) client() kubernetes.Interface { return l.admin.Clientset() }

// account returns the configuration of a service account's client. With a node, the token is that of a
// pod on the node.
func (l *lab) account(name, node string) *rest.Config {
	l.t.Helper()
	request := &authenticationv1.TokenRequest{}
	if node != "" {
		request.Spec.BoundObjectRef = l.pod(name, node)
	}
	token, err := l.client().CoreV1().ServiceAccounts(manifests.Namespace).CreateToken(l.t.Context(), name, request,
		metav1.CreateOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(l.config)
	config.BearerToken, config.QPS = token.Status.Token, -1
	return config
}

// pod makes a pod of the account on the node, which no kubelet starts.
func (l *lab) pod(account, node string) *authenticationv1.BoundObjectReference {
	l.t.Helper()
	name := "program-on-" + node
	pod, err := l.client().CoreV1().Pods(manifests.Namespace).Create(l.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name,
			Labels: map[string]string{cluster.ViaLabel: name}}, // so that a drain leaves it
		Spec: corev1.PodSpec{NodeName: node, ServiceAccountName: account,
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers:  []corev1.Container{{Name: "c", Image: "none"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	return &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}
}

// nodes makes Windows nodes, renews their leases and keeps them Ready until the test ends.
func (l *lab) nodes(names ...string) {
	l.t.Helper()
	err := forEach(l.t.Context(), names, func(ctx context.Context, name string) error {
		now := metav1.Now()
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/os": "windows"}}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue,
			Reason: "KubeletReady", LastHeartbeatTime: now, LastTransitionTime: now}}
		if _, err := l.client().CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{}); err != nil {
			return err
		}
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: corev1.NamespaceNodeLease}}
		_, err := l.client().CoordinationV1().Leases(lease.Namespace).Create(ctx, lease, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
	l.background(func(ctx context.Context) { l.kubelets(ctx, names) })
}

// kubelets stands for the kubelets: it renews leases, every second or, if there are many, often enough for the
// control plane, and at the start of a kubelet. It reports nodes as Ready that the control plane takes for lost,
// as it does on a busy machine. A request that fails is repeated in the next round.
func (l *lab) kubelets(ctx context.Context, names []string) {
	interval := time.Second
	if len(names) > 100 {
		interval = 15 * time.Second
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		_ = forEach(ctx, names, func(ctx context.Context, name string) error {
			l.renewLease(ctx, name)
			return nil
		})
		if nodes, err := l.client().CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"}); err == nil {
			_ = forEach(ctx, nodes.Items, func(ctx context.Context, n corev1.Node) error {
				_ = l.readyAgain(ctx, n)
				return nil
			})
		}
		for waiting := true; waiting; {
			select {
			case name := <-l.restarted:
				l.renewLease(ctx, name)
			case <-tick.C:
				waiting = false
			case <-ctx.Done():
				return
			}
		}
	}
}

func (l *lab) renewLease(ctx context.Context, node string) {
	patch := fmt.Appendf(nil, `{"spec":{"renewTime":%q}}`, time.Now().UTC().Format(metav1.RFC3339Micro))
	_, _ = l.client().CoordinationV1().Leases(corev1.NamespaceNodeLease).Patch(ctx, node,
		types.MergePatchType, patch, metav1.PatchOptions{})
}

// readyAgain reports a node as Ready, as its kubelet does, if it is not.
func (l *lab) readyAgain(ctx context.Context, n corev1.Node) error {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return nil
		}
	}
	now := time.Now().UTC().Format(time.RFC3339)
	status := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady",`+
		`"lastHeartbeatTime":%q,"lastTransitionTime":%q}]}}`, now, now)
	_, err := l.client().CoreV1().Nodes().Patch(ctx, n.Name, types.StrategicMergePatchType, status,
		metav1.PatchOptions{}, "status")
	return err
}

// forEach calls f for each item, some at a time.
func forEach[T any](ctx context.Context, items []T, f func(context.Context, T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for _, item := range items {
		group.Go(func() error { return f(ctx, item) })
	}
	return group.Wait()
}

// background runs f until the test ends, or until the returned function is called.
func (l *lab) background(f func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { f(ctx) })
	stop = func() { cancel(); running.Wait() }
	l.t.Cleanup(stop)
	return stop
}

// controller runs the controller with the rights of its account.
func (l *lab) controller() (stop func()) {
	config := l.account("swdt-controller", "")
	return l.background(func(ctx context.Context) {
		err := control.Run(ctx, config, control.Options{Metrics: "0", Probes: "0"})
		if err != nil && ctx.Err() == nil {
			l.t.Errorf("the controller: %v", err)
		}
	})
}

// rollout writes the spec of the rollout r.
func (l *lab) rollout(spec fleetv1.NodeRolloutSpec) {
	l.t.Helper()
	l.rolloutNamed("r", spec)
}

func (l *lab) rolloutNamed(name string, spec fleetv1.NodeRolloutSpec) {
	l.t.Helper()
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&fleetv1.NodeRollout{
		TypeMeta:   metav1.TypeMeta{APIVersion: fleetv1.GroupVersion().String(), Kind: "NodeRollout"},
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec,
	})
	if err != nil {
		l.t.Fatal(err)
	}
	delete(object, "status")
	_, err = l.admin.Dynamic().Resource(fleetv1.RolloutResource()).Apply(l.t.Context(), name,
		&unstructured.Unstructured{Object: object}, metav1.ApplyOptions{FieldManager: "test", Force: true})
	if err != nil {
		l.t.Fatal(err)
	}
}

// settle waits until the rollout is in the state, for its present spec, and no node works.
func (l *lab) settle(state string) fleetv1.NodeRolloutStatus {
	l.t.Helper()
	var last fleetv1.NodeRollout
	err := wait.Condition{
		Name: "the rollout to be " + state, Interval: 100 * time.Millisecond, Limit: l.limit,
		Look: func(ctx context.Context) error {
			u, err := l.admin.Dynamic().Resource(fleetv1.RolloutResource()).Get(ctx, "r", metav1.GetOptions{})
			if err != nil {
				return err
			}
			last = fleetv1.NodeRollout{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &last); err != nil {
				return wait.Stop(err)
			}
			if s := last.Status; s.State != state || s.Working > 0 || s.ObservedGeneration != last.Generation {
				return errNotYet
			}
			return nil
		},
	}.Wait(l.t.Context())
	if err != nil {
		l.t.Fatalf("%v: %+v", err, last.Status)
	}
	return last.Status
}

// program runs the program of the fleet on a simulated machine, with the token of a pod on its node.
func (l *lab) program(m *fleettest.Machine, cache string) {
	c, err := cluster.FromConfig(l.account("swdt-node", m.Name))
	if err != nil {
		l.t.Fatal(err)
	}
	l.background(func(ctx context.Context) {
		if err := runProgram(ctx, m, c.Dynamic(), cache); !errors.Is(err, context.Canceled) {
			l.t.Errorf("the program on %s: %v", m.Name, err)
		}
	})
}

// runProgram runs the program of the fleet on a simulated machine until ctx ends.
func runProgram(ctx context.Context, m *fleettest.Machine, client dynamic.Interface, cache string) error {
	return onnode.Run(ctx, onnode.Options{Node: m.Name, Client: client, Retry: 100 * time.Millisecond,
		Sources: source.NewSet(source.Options{Cache: cache}), Local: m.Local, Open: m.Open})
}

var errNotYet = errors.New("not yet")
