package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/swdt-dev/swdt/internal/cluster"
)

// story records the messages of a drain.
type story struct{ steps, infos []string }

func (s *story) Step(format string, args ...any) {
	s.steps = append(s.steps, fmt.Sprintf(format, args...))
}
func (s *story) Info(format string, args ...any) {
	s.infos = append(s.infos, fmt.Sprintf(format, args...))
}
func (s *story) Warn(format string, args ...any) {
	s.infos = append(s.infos, fmt.Sprintf(format, args...))
}

// pod returns a pod of a ReplicaSet on win-1.
func pod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"app": name},
		},
		Spec:   corev1.PodSpec{NodeName: "win-1"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	owned("ReplicaSet", "rs")(p)
	for _, c := range change {
		c(p)
	}
	return p
}

func owned(kind, name string) func(*corev1.Pod) {
	controller := true
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: name, Controller: &controller}}
	}
}

func unmanaged(p *corev1.Pod) { p.OwnerReferences = nil }
func emptyDir(p *corev1.Pod) {
	empty := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	p.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: empty}}
}
func ended(p *corev1.Pod)     { p.Status.Phase = corev1.PodSucceeded }
func mirror(p *corev1.Pod)    { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }
func via(p *corev1.Pod)       { p.Labels = map[string]string{cluster.ViaLabel: p.Name} }
func elsewhere(p *corev1.Pod) { p.Spec.NodeName = "linux-1" }

func budget(name, app string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}}
}

// onEviction answers evictions with verdict. If verdict returns nil, the pod ends 2 s later.
func onEviction(client *fake.Clientset, verdict func(*policyv1.Eviction) error) (asked *[]string) {
	asked = new([]string)
	client.PrependReactor("create", "pods", func(a ktesting.Action) (bool, runtime.Object, error) {
		if a.GetSubresource() != "eviction" {
			return false, nil, nil
		}
		e := a.(ktesting.CreateAction).GetObject().(*policyv1.Eviction)
		*asked = append(*asked, e.Name)
		if err := verdict(e); err != nil {
			return true, nil, err
		}
		time.AfterFunc(2*time.Second, func() {
			_ = client.Tracker().Delete(schema.GroupVersionResource{Version: "v1", Resource: "pods"}, e.Namespace, e.Name)
		})
		return true, nil, nil
	})
	return asked
}

func allowed(*policyv1.Eviction) error { return nil }

func tooMany() error {
	return apierrors.NewTooManyRequests("it would violate the pod's disruption budget", 0)
}

func cordoned(t *testing.T, c *cluster.Cluster) bool {
	t.Helper()
	n, err := c.Node(context.Background(), "win-1")
	if err != nil {
		t.Fatal(err)
	}
	return n.Cordoned
}

func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		daemons := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "ds"}}
		c, client := fakeCluster(node("win-1"), daemons, pod("a"), pod("b"),
			pod("daemon", owned("DaemonSet", "ds")), pod("mirror", mirror), pod("via", via, unmanaged),
			pod("ended", ended, unmanaged, emptyDir), pod("elsewhere", elsewhere, unmanaged))
		grace := 7 * time.Second
		var wrong []string
		terminating := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "b", errors.New("its namespace ends"))
		terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
		refusals := []error{tooMany(), apierrors.NewInternalError(errors.New("two budgets")), terminating}
		asked := onEviction(client, func(e *policyv1.Eviction) error {
			if o := e.DeleteOptions; *o.GracePeriodSeconds != 7 || string(*o.Preconditions.UID) != "uid-"+e.Name {
				wrong = append(wrong, e.Name)
			}
			if e.Name == "b" && len(refusals) > 0 {
				refused := refusals[0]
				refusals = refusals[1:]
				return refused
			}
			return nil
		})
		reports, began := &story{}, time.Now()
		done, err := c.Drain(t.Context(), cluster.Machine{Node: "win-1"}, cluster.DrainOptions{GracePeriod: &grace}, reports)
		if err != nil {
			t.Fatal(err)
		}
		want := []cluster.Pod{{Namespace: "default", Name: "a"}, {Namespace: "default", Name: "b"}}
		if diff := cmp.Diff(cluster.Drained{Cordoned: true, Evicted: want}, done); diff != "" {
			t.Errorf("drained (-want +got):\n%s", diff)
		}
		if !cordoned(t, c) {
			t.Error("the node is not cordoned")
		}
		if len(wrong) > 0 {
			t.Errorf("evictions with wrong options: %v", wrong)
		}
		if !slices.Equal(*asked, []string{"a", "b", "b", "b", "b"}) {
			t.Errorf("asked to evict %v", *asked)
		}
		if took := time.Since(began); took < 17*time.Second || took > 19*time.Second {
			t.Errorf("took %s: three refusals at 5 s each, and 2 s to end", took)
		}
		waiting := "drain node win-1: waiting for pods to end: default/a; to be allowed to: default/b"
		if !slices.Contains(reports.steps, waiting) {
			t.Errorf("reported %q", reports.steps)
		}
		for _, want := range []bool{true, false} {
			if changed, err := c.Uncordon(t.Context(), "win-1"); changed != want || err != nil {
				t.Errorf("Uncordon = %v, %v; wanted %v", changed, err, want)
			}
		}
		if cordoned(t, c) {
			t.Error("it is still cordoned")
		}
	})
}

// A pod that has ended does not delay a drain, even if its object remains.
func TestDrainWaitsForAPodWhoseObjectRemains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, client := fakeCluster(node("win-1"), pod("a"))
		pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
		client.PrependReactor("create", "pods", func(ktesting.Action) (bool, runtime.Object, error) {
			return true, nil, client.Tracker().Update(pods, pod("a", ended), "default")
		})
		done, err := c.Drain(t.Context(), cluster.Machine{Node: "win-1"}, cluster.DrainOptions{}, &story{})
		if err != nil || len(done.Evicted) != 1 {
			t.Errorf("Drain = %+v, %v", done, err)
		}
	})
}

func TestADrainThatABudgetForbids(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, client := fakeCluster(node("win-1"), pod("a"), pod("b"), pod("stuck"), budget("always-two", "b"),
			budget("other", "x"))
		onEviction(client, func(e *policyv1.Eviction) error {
			if e.Name == "b" {
				return tooMany()
			}
			return nil
		})
		client.PrependReactor("create", "pods", func(a ktesting.Action) (bool, runtime.Object, error) {
			object, ok := a.(ktesting.CreateAction).GetObject().(*policyv1.Eviction)
			return ok && object.Name == "stuck", nil, nil // accepted, but without any effect
		})
		began := time.Now()
		done, err := c.Drain(t.Context(), cluster.Machine{Node: "win-1"},
			cluster.DrainOptions{Timeout: 30 * time.Second}, &story{})
		var blocked *cluster.DrainBlockedError
		if !errors.As(err, &blocked) {
			t.Fatalf("Drain = %v, wanted a DrainBlockedError", err)
		}
		if time.Since(began) != 30*time.Second || blocked.After != 30*time.Second {
			t.Errorf("gave up after %s", time.Since(began))
		}
		if done.Cordoned || cordoned(t, c) {
			t.Error("it stays cordoned")
		}
		want := []cluster.BlockedPod{
			{Pod: cluster.Pod{Namespace: "default", Name: "b"}, Budgets: []string{"always-two"}},
			{Pod: cluster.Pod{Namespace: "default", Name: "stuck"}},
		}
		noMessage := cmpopts.IgnoreFields(cluster.BlockedPod{}, "Message")
		if diff := cmp.Diff(want, blocked.Pods, noMessage, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("the pods that are left (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]cluster.Pod{{Namespace: "default", Name: "a"}}, blocked.Evicted); diff != "" {
			t.Errorf("the pods that have gone (-want +got):\n%s", diff)
		}
		if !strings.Contains(err.Error(), "PodDisruptionBudget always-two") {
			t.Errorf("error %v", err)
		}
	})
}

func TestADrainThatWouldLosePods(t *testing.T) {
	for name, test := range map[string]struct {
		pod     *corev1.Pod
		options cluster.DrainOptions
	}{
		"unmanaged":           {pod("p", unmanaged), cluster.DrainOptions{Force: true}},
		"of a DaemonSet gone": {pod("p", owned("DaemonSet", "gone")), cluster.DrainOptions{Force: true}},
		"with an emptyDir":    {pod("p", emptyDir), cluster.DrainOptions{DeleteEmptyDir: true}},
		"both of them":        {pod("p", emptyDir, unmanaged), cluster.DrainOptions{DeleteEmptyDir: true, Force: true}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, client := fakeCluster(node("win-1"), test.pod)
				asked := onEviction(client, allowed)
				_, err := c.Drain(t.Context(), cluster.Machine{Node: "win-1"}, cluster.DrainOptions{}, &story{})
				var refused *cluster.DrainRefusedError
				if !errors.As(err, &refused) || len(refused.Pods) != 1 {
					t.Fatalf("Drain = %v, want a DrainRefusedError of one pod", err)
				}
				if len(*asked) != 0 {
					t.Errorf("%d pods were evicted before", len(*asked))
				}
				if slices.ContainsFunc(client.Actions(), func(a ktesting.Action) bool { return a.GetVerb() == "patch" }) {
					t.Error("the node was changed")
				}
				done, err := c.Drain(t.Context(), cluster.Machine{Node: "win-1"}, test.options, &story{})
				if err != nil || len(done.Evicted) != 1 {
					t.Errorf("with %+v: %+v, %v", test.options, done, err)
				}
			})
		})
	}
}

// Drain leaves a cordon of other origin, and takes over that of an interrupted swdt.
func TestDrainKeepsAForeignCordon(t *testing.T) {
	marked := map[string]string{"swdt.dev/cordoned": "2026-11-20T12:00:00Z"}
	wrote := func(fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const mark = `"f:metadata":{"f:annotations":{"f:swdt.dev/cordoned":{}}}`
	for name, test := range map[string]struct {
		annotations map[string]string
		writers     []metav1.ManagedFieldsEntry
		ours        bool
	}{
		"of other origin":         {nil, nil, false},
		"ours, of an earlier run": {marked, nil, true},
		"ours, by its writer": {marked, []metav1.ManagedFieldsEntry{wrote(`{"f:metadata":{}}`),
			wrote(`{` + mark + `,"f:spec":{"f:unschedulable":{}}}`)}, true},
		"kubectl's, after ours": {marked, []metav1.ManagedFieldsEntry{wrote(`{` + mark + `}`), {},
			wrote(`{"f:spec":{"f:unschedulable":{}}}`)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := fakeCluster(node("win-1", func(n *corev1.Node) {
				n.Spec.Unschedulable = true
				n.Annotations, n.ManagedFields = maps.Clone(test.annotations), test.writers
			}))
			ctx := context.Background()
			done, err := c.Drain(ctx, cluster.Machine{Node: "win-1"}, cluster.DrainOptions{}, &story{})
			if err != nil || done.Cordoned != test.ours {
				t.Errorf("Drain = %+v, %v", done, err)
			}
			if changed, err := c.Uncordon(ctx, "win-1"); changed != test.ours || err != nil {
				t.Errorf("Uncordon = %v, %v; want %v", changed, err, test.ours)
			}
			if got := cordoned(t, c); got == test.ours {
				t.Errorf("the node is cordoned: %t, want %t", got, !test.ours)
			}
		})
	}
}

func TestADrainThatIsInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, client := fakeCluster(node("win-1"), pod("a"))
		onEviction(client, func(*policyv1.Eviction) error { return tooMany() })
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Second, cancel)
		began := time.Now()
		_, err := c.Drain(ctx, cluster.Machine{Node: "win-1"}, cluster.DrainOptions{}, &story{})
		if !errors.Is(err, context.Canceled) || time.Since(began) != 10*time.Second {
			t.Errorf("Drain = %v after %s", err, time.Since(began))
		}
		if cordoned(t, c) {
			t.Error("it stays cordoned")
		}
	})
}

func TestDrainsThatEndAtOnce(t *testing.T) {
	t.Run("no such node", func(t *testing.T) {
		c, _ := fakeCluster()
		done, err := c.Drain(context.Background(), cluster.Machine{Node: "win-1"}, cluster.DrainOptions{}, &story{})
		if err != nil || done.Cordoned {
			t.Errorf("Drain = %+v, %v", done, err)
		}
		if changed, err := c.Uncordon(context.Background(), "win-1"); err != nil || changed {
			t.Errorf("Uncordon = %v, %v", changed, err)
		}
	})
	t.Run("no permission", func(t *testing.T) {
		c, client := fakeCluster(node("win-1"), pod("a"))
		onEviction(client, func(*policyv1.Eviction) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("no"))
		})
		_, err := c.Drain(context.Background(), cluster.Machine{Node: "win-1"}, cluster.DrainOptions{}, &story{})
		var forbidden *cluster.ForbiddenError
		if !errors.As(err, &forbidden) {
			t.Fatalf("Drain = %v, want a ForbiddenError", err)
		}
		if got, want := forbidden.Missing.String(), "create pods --subresource=eviction -n default"; got != want {
			t.Errorf("the right that is missing is %q, want %q", got, want)
		}
		if cordoned(t, c) {
			t.Error("it stays cordoned")
		}
	})
}

// The API server stops answering during a drain: the error reports a cordon only if Drain made it.
func TestAFailedDrainReportsItsOwnCordonOnly(t *testing.T) {
	for _, foreign := range []bool{true, false} {
		c, client := fakeCluster(node("win-1", func(n *corev1.Node) { n.Spec.Unschedulable = foreign }), pod("a"))
		down := errors.New("the API server is down")
		asked := onEviction(client, func(*policyv1.Eviction) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", down)
		})
		client.PrependReactor("get", "nodes", func(ktesting.Action) (bool, runtime.Object, error) {
			return len(*asked) > 0, nil, down
		})
		_, err := c.Drain(context.Background(), cluster.Machine{Node: "win-1"}, cluster.DrainOptions{}, &story{})
		if stays, ok := errors.AsType[*cluster.CordonedError](err); err == nil || ok == foreign {
			t.Errorf("another program's cordon: %t; Drain = %v, with %v", foreign, err, stays)
		}
	}
}

// The Node is another machine of the same name: neither Drain nor WhileDrained touches it.
func TestAnotherMachinesNodeIsNotDrained(t *testing.T) {
	for name, test := range map[string]struct {
		machine, object string
		refused         bool
	}{
		"another machine":       {"1111", "2222", true},
		"the same":              {"ab-1111", "AB-1111", false},
		"the machine is silent": {"", "2222", false},
		"the cluster is silent": {"1111", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				identity := func(n *corev1.Node) { n.Status.NodeInfo.SystemUUID = test.object }
				c, client := fakeCluster(node("win-1", identity), pod("a"))
				asked := onEviction(client, allowed)
				machine, changed := cluster.Machine{Node: "win-1", UUID: test.machine}, false
				err := cluster.WhileDrained(t.Context(), c, machine, cluster.DrainOptions{}, &story{}, func(context.Context) error {
					changed = true
					return nil
				})
				var other *cluster.OtherMachineError
				if errors.As(err, &other) != test.refused || (err != nil) != test.refused {
					t.Errorf("WhileDrained = %v, want an OtherMachineError: %t", err, test.refused)
				}
				if changed == test.refused {
					t.Errorf("the change was made: %t", changed)
				}
				if evicted := len(*asked) > 0; evicted == test.refused {
					t.Errorf("pods were evicted: %t", evicted)
				}
				patched := slices.ContainsFunc(client.Actions(), func(a ktesting.Action) bool { return a.GetVerb() == "patch" })
				if patched == test.refused {
					t.Errorf("the Node was changed: %t", patched)
				}
			})
		})
	}
}
