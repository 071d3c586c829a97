package control_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/rollout"
	"github.com/swdt-dev/swdt/internal/rollout/manage"
	"github.com/swdt-dev/swdt/internal/rollout/manifests"
	"github.com/swdt-dev/swdt/internal/testing/fleettest"
	"github.com/swdt-dev/swdt/internal/wait"
)

// gates are two nodes on a real API server, and what keeps a rollout from them.
type gates struct {
	*lab
	all   []*fleettest.Machine
	depot *fleettest.FileServer
	spec  fleetv1.NodeRolloutSpec
}

// A field that the node would refuse, and a budget that keeps a pod, keep a rollout from a node. When the cause is gone,
// the rollout goes on.
func TestGatesOnARealAPIServer(t *testing.T) {
	g := &gates{lab: newLab(t), all: fleettest.Machines(t, 2), depot: fleettest.NewFileServer(t, map[string][]byte{})}
	g.nodes("w0", "w1")
	cache := t.TempDir()
	for _, m := range g.all {
		g.program(m, cache)
	}
	g.controller()
	g.spec.Health = fleetv1.NodeHealth{Settle: "100ms"}
	t.Run("a wrong field", g.wrongField)
	t.Run("a budget", g.budget)
	t.Run("a rollback that a budget keeps", g.keptRollback)
	t.Run("a watch that is refused", g.refusedWatch)
}

// build makes a kubelet of this version the content.
func (g *gates) build(version string) []byte {
	binary := fleettest.Kubelet(version, "")
	g.depot.Add(version+".exe", binary)
	g.spec.Content = g.depot.Content(version + ".exe")
	return binary
}

// run checks which kubelet both machines run.
func (g *gates) run(t *testing.T, kubelet []byte, when string) {
	t.Helper()
	for _, m := range g.all {
		if !m.Runs(kubelet) {
			t.Errorf("%s runs another kubelet %s", m.Name, when)
		}
	}
}

// valid returns the condition Valid of the rollout.
func (g *gates) valid(t *testing.T) metav1.Condition {
	t.Helper()
	u, err := g.admin.Dynamic().Resource(fleetv1.RolloutResource()).Get(t.Context(), "r", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var r fleetv1.NodeRollout
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &r); err != nil {
		t.Fatal(err)
	}
	if c := meta.FindStatusCondition(r.Status.Conditions, fleetv1.Valid); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func (g *gates) state(t *testing.T, node string) (s fleetv1.NodeState) {
	t.Helper()
	u, err := g.admin.Dynamic().Resource(fleetv1.StateResource()).Get(t.Context(), node, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// wrongField has fields that the schema allows and a node refuses.
func (g *gates) wrongField(t *testing.T) {
	wanted := g.build("v1.37.2")
	for field, spoil := range map[string]func(*fleetv1.NodeRolloutSpec){
		"spec.content.setup.firewall[0].ports": func(s *fleetv1.NodeRolloutSpec) {
			s.Content.Setup = &fleetv1.Setup{Firewall: []fleetv1.FirewallRule{{Name: "tried", Ports: "many"}}}
		},
		"spec.content.setup.hosts[0].address": func(s *fleetv1.NodeRolloutSpec) {
			s.Content.Setup = &fleetv1.Setup{Hosts: []fleetv1.HostsEntry{{Address: "1.2.3", Names: []string{"a.example"}}}}
		},
		"spec.window.timeZone": func(s *fleetv1.NodeRolloutSpec) {
			s.Window = &fleetv1.Window{Start: "00:00", End: "23:59", TimeZone: "Europe/Nowhere"}
		},
	} {
		spec := *g.spec.DeepCopy()
		spoil(&spec)
		g.rollout(spec)
		g.settle(rollout.StateStopped)
		if c := g.valid(t); c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, field+": ") {
			t.Errorf("%s: the condition is %+v", field, c)
		}
	}
	states, err := g.admin.Dynamic().Resource(fleetv1.StateResource()).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(states.Items) > 0 {
		t.Errorf("%d nodes were claimed: %v", len(states.Items), err)
	}
	g.rollout(g.spec)
	g.settle(rollout.StateComplete)
	g.run(t, wanted, "after the correction")
	if c := g.valid(t); c.Status != metav1.ConditionTrue {
		t.Errorf("the condition of a correct rollout is %+v", c)
	}
}

// budget has a pod on w0 that a PodDisruptionBudget keeps. The drain waits, or gives up and names both.
func (g *gates) budget(t *testing.T) {
	g.keep(t, "keeper", "at-least-one")
	before, err := g.all[0].Machine.ReadFile(simulated.KubeletPath)
	if err != nil {
		t.Fatal(err)
	}
	g.build("v1.37.3")
	g.spec.Drain = &fleetv1.Drain{Timeout: "1s", GracePeriod: "0s", Force: true}
	g.rollout(g.spec)
	if s := g.settle(rollout.StateStopped); s.Failed != 1 {
		t.Errorf("the status is %+v", s)
	}
	reason := g.state(t, "w0").Spec.Reason
	t.Log(reason)
	for _, name := range []string{manifests.Namespace + "/keeper", "at-least-one"} {
		if !strings.Contains(reason, name) {
			t.Errorf("the reason does not name %s: %s", name, reason)
		}
	}
	g.run(t, before, "after a drain that gave up")
	g.unschedulable([]string{"w0", "w1"})

	wanted := g.build("v1.37.4")
	_, skip := g.requests(controllerUser, 0)
	g.spec.Drain.Timeout = "1h"
	g.rollout(g.spec)
	g.asked(t, skip, 2)
	g.run(t, before, "while a budget keeps its pod")
	err = g.client().PolicyV1().PodDisruptionBudgets(manifests.Namespace).Delete(t.Context(), "at-least-one",
		metav1.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	g.settle(rollout.StateComplete)
	g.run(t, wanted, "without the budget")
	g.spec.Drain = nil
}

// keptRollback has a pod on w0 that a PodDisruptionBudget keeps from a rollback. A second one, without the budget,
// takes w0 back, too.
func (g *gates) keptRollback(t *testing.T) {
	before, err := g.all[0].Machine.ReadFile(simulated.KubeletPath)
	if err != nil {
		t.Fatal(err)
	}
	wanted := g.build("v1.37.4-kept")
	g.rollout(g.spec)
	g.settle(rollout.StateComplete)
	g.keep(t, "second-keeper", "second-budget")
	g.spec.Drain = &fleetv1.Drain{Timeout: "1s", GracePeriod: "0s", Force: true}
	g.rollout(g.spec)
	g.settle(rollout.StateComplete)
	s := g.order(manage.RollBack, rollout.StateRolledBack)
	if s.Failed != 1 || s.RolledBack != 1 || !g.all[0].Runs(wanted) || !g.all[1].Runs(before) {
		t.Errorf("with the budget, the status is %+v", s)
	}
	err = g.client().PolicyV1().PodDisruptionBudgets(manifests.Namespace).Delete(t.Context(), "second-budget",
		metav1.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if s := g.order(manage.RollBack, rollout.StateRolledBack); s.Failed != 0 || s.RolledBack != 2 {
		t.Errorf("without the budget, the status is %+v", s)
	}
	g.run(t, before, "after the second rollback")
	g.unschedulable([]string{"w0", "w1"})
	g.order(manage.Resume, rollout.StateStopped)
	g.spec.Drain = nil
}

// asked waits until the controller has requested this number of evictions after the first skipped records.
func (g *gates) asked(t *testing.T, skip, count int) {
	t.Helper()
	err := wait.Condition{Name: "requests of evictions", Interval: 100 * time.Millisecond, Limit: g.limit,
		Look: func(context.Context) error {
			if made, _ := g.requests(controllerUser, skip); made.kinds["create pods/eviction"] < count {
				return errNotYet
			}
			return nil
		}}.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
}

// keep makes a running pod on w0, and a budget that lets no such pod be evicted.
func (g *gates) keep(t *testing.T, pod, budget string) {
	t.Helper()
	label := map[string]string{"app": pod}
	pods := g.client().CoreV1().Pods(manifests.Namespace)
	p, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: pod, Labels: label},
		Spec: corev1.PodSpec{NodeName: "w0", ServiceAccountName: "swdt-node",
			Containers: []corev1.Container{{Name: "c", Image: "none"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.Status.Phase = corev1.PodRunning // the eviction of a pod that does not run is always allowed
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if _, err := pods.UpdateStatus(t.Context(), p, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	one := intstr.FromInt32(1)
	_, err = g.client().PolicyV1().PodDisruptionBudgets(manifests.Namespace).Create(t.Context(),
		&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: budget},
			Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: label}},
		}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// refusedWatch takes the right to read rollouts from a user who watches one: the watch ends with that reason,
// when the API server has cut the connection that was allowed before.
func (g *gates) refusedWatch(t *testing.T) {
	roles := g.client().RbacV1()
	_, err := roles.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "watcher"},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{fleetv1.Group}, Resources: []string{"*"},
			Verbs: []string{"get", "list", "watch"}}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = g.client().CoreV1().ServiceAccounts(manifests.Namespace).Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "watcher"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = roles.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "watcher"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "watcher"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "watcher", Namespace: manifests.Namespace}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	watcher, err := cluster.FromConfig(g.account("watcher", ""))
	if err != nil {
		t.Fatal(err)
	}
	g.build("v1.37.6")
	g.spec.Canary = []fleetv1.CanaryStep{{Nodes: intstr.FromInt32(1), Pause: "100h"}}
	g.rollout(g.spec)
	g.settle(rollout.StateWaiting)
	seen, ended := make(chan struct{}, 100), make(chan error, 1)
	g.background(func(ctx context.Context) {
		_, err := manage.Watch(ctx, watcher, manage.WatchOptions{Lost: func(error) {},
			See: func(manage.Report) error { seen <- struct{}{}; return nil }})
		ended <- err
	})
	for range 2 { // the second report comes from the watch itself
		<-seen
	}
	if err := roles.ClusterRoleBindings().Delete(t.Context(), "watcher", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := g.plane.RestartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	err = <-ended
	if forbidden, ok := errors.AsType[*cluster.ForbiddenError](err); !ok || forbidden.Missing.Verb != "watch" {
		t.Errorf("the watch ended with %v", err)
	}
}
