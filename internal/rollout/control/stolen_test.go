package control_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/rollout/manifests"
	"github.com/swdt-dev/swdt/internal/wait"
)

// Whoever has stolen the token of a node's program or of the controller can do what that program does, and nothing
// else: each verb of each resource is tried, and writes that differ a little from the program's own.
func TestStolenTokensOnARealAPIServer(t *testing.T) {
	l := newLab(t)
	l.scene()
	node, unbound := l.account("swdt-node", "w0"), l.account("swdt-node", "")
	controller := l.account("swdt-controller", "")
	l.enforced(controller)
	t.Run("node", func(t *testing.T) { l.testRights(t, thief{node, nodeMay(), "w0"}) })
	t.Run("node without a pod", func(t *testing.T) { l.testRights(t, thief{unbound, nodeMay(), ""}) })
	t.Run("controller", func(t *testing.T) { l.testRights(t, thief{controller, controllerMay(), ""}) })
	t.Run("writes", func(t *testing.T) { l.testWrites(t, node, unbound, controller) })
	t.Run("policies", l.testPolicies)
	t.Run("forged orders", func(t *testing.T) { l.testForgedOrders(t, controller) })
}

// mark is the annotation of a node that swdt has cordoned.
const mark = "swdt.dev/cordoned"

// scene makes what the tokens are tried on: w0, w1 that a person has cordoned, w2 that swdt has, l0 with Linux, a
// NodeState for each Windows node, and a pod.
func (l *lab) scene() {
	l.t.Helper()
	create := func(text string) {
		l.t.Helper()
		if err := l.create(l.t.Context(), l.admin, text); err != nil {
			l.t.Fatal(err)
		}
	}
	for name, rest := range map[string]string{
		"w0": "windows, pool: a}, annotations: {theirs: 'yes'}}\nspec: {}",
		"w1": "windows}}\nspec: {unschedulable: true}",
		"w2": "windows}, annotations: {" + mark + ": now}}\nspec: {unschedulable: true}",
		"l0": "linux}}\nspec: {}",
	} {
		create("apiVersion: v1\nkind: Node\nmetadata: {name: " + name + ", labels: {kubernetes.io/os: " + rest)
		if name[0] == 'w' {
			create(nodeState(name, ""))
		}
	}
	create("apiVersion: v1\nkind: Pod\nmetadata: {name: tried, namespace: default}\n" +
		"spec: {containers: [{name: c, image: none}]}")
	l.rollout(fleetv1.NodeRolloutSpec{Content: content(l.t), Paused: true})
}

// content is that of the good rollout.
func content(t *testing.T) fleetv1.Content {
	t.Helper()
	var r fleetv1.NodeRollout
	if err := yaml.Unmarshal([]byte(goodRollout), &r); err != nil {
		t.Fatal(err)
	}
	return r.Spec.Content
}

// nodeState returns a NodeState with further metadata.
func nodeState(name, metadata string) string {
	return "apiVersion: fleet.swdt.dev/v1alpha1\nkind: NodeState\nmetadata: {name: " + name + metadata + "}\n" +
		"spec: {rollout: r, hash: 0123456789abcdef, action: Apply, content: {setup: {enableRDP: true}}}"
}

// create creates an object. Options make the API server try it alone.
func (l *lab) create(ctx context.Context, as *cluster.Cluster, text string, dryRun ...string) error {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		return err
	}
	kind := u.GroupVersionKind()
	resource := kind.GroupVersion().WithResource(map[string]string{"Node": "nodes", "NodeState": "nodestates",
		"Pod": "pods", "Lease": "leases"}[kind.Kind])
	_, err := as.Dynamic().Resource(resource).Namespace(u.GetNamespace()).Create(ctx, u, metav1.CreateOptions{DryRun: dryRun})
	return err
}

// enforced waits until the API server enforces the policies, which it does some time after they were made.
func (l *lab) enforced(controller *rest.Config) {
	l.t.Helper()
	thief, err := cluster.FromConfig(controller)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, writes := range [][]write{nodeWrites(), stateWrites()} {
		first := writes[slices.IndexFunc(writes, func(w write) bool { return w.want == declined })]
		err := wait.Condition{Name: "a policy to decline " + first.what, Interval: 100 * time.Millisecond, Limit: time.Minute,
			Look: func(ctx context.Context) error {
				if got, err := outcomeOf(first.try(ctx, l, thief)); got != declined {
					return errors.Join(errNotYet, err)
				}
				return nil
			}}.Wait(l.t.Context())
		if err != nil {
			l.t.Fatal(err)
		}
	}
}

// write is a write that the API server tries and does not store.
type write struct {
	what string
	want outcome
	try  func(context.Context, *lab, *cluster.Cluster) error
}

// patch patches a Node or a NodeState.
func patch(what string, want outcome, resource, name, body string, sub ...string) write {
	return write{what, want, func(ctx context.Context, _ *lab, as *cluster.Cluster) error {
		kind := fleetv1.StateResource()
		if resource == "nodes" {
			kind = corev1.SchemeGroupVersion.WithResource(resource)
		}
		_, err := as.Dynamic().Resource(kind).Patch(ctx, name, types.MergePatchType, []byte(body),
			metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, sub...)
		return err
	}}
}

func creation(what string, want outcome, text string) write {
	return write{what, want, func(ctx context.Context, l *lab, as *cluster.Cluster) error {
		return l.create(ctx, as, text, metav1.DryRunAll)
	}}
}

// nodeWrites are a cordon, an uncordon, and what is almost one.
func nodeWrites() []write {
	const cordon = `{"metadata":{"annotations":{"` + mark + `":"now"}},"spec":{"unschedulable":true}}`
	const uncordon = `{"metadata":{"annotations":{"` + mark + `":null}},"spec":{"unschedulable":null}}`
	of := func(what string, want outcome, name, body string) write {
		return patch(what, want, "nodes", name, body)
	}
	return []write{
		of("a cordon", allowed, "w0", cordon),
		of("an uncordon", allowed, "w2", uncordon),
		of("the removal of a mark", allowed, "w2", `{"metadata":{"annotations":{"`+mark+`":null}}}`),
		of("a cordon of a Linux node", declined, "l0", cordon),
		of("a cordon without a mark", declined, "w0", `{"spec":{"unschedulable":true}}`),
		of("an uncordon of a person's cordon", declined, "w1", `{"spec":{"unschedulable":null}}`),
		of("an uncordon with a mark", declined, "w1", `{"metadata":{"annotations":{"`+mark+`":"now"}},"spec":{"unschedulable":null}}`),
		of("a mark of a person's cordon", declined, "w1", `{"metadata":{"annotations":{"`+mark+`":"now"}}}`),
		of("another mark", declined, "w2", `{"metadata":{"annotations":{"`+mark+`":"then"}}}`),
		of("a label", declined, "w0", `{"metadata":{"labels":{"a":"b"}}}`),
		of("another label", declined, "w0", `{"metadata":{"labels":{"pool":"b"}}}`),
		of("a label that makes a Linux node one of Windows", declined, "l0",
			`{"metadata":{"labels":{"kubernetes.io/os":"windows"},"annotations":{"`+mark+`":"now"}},"spec":{"unschedulable":true}}`),
		of("the removal of labels", declined, "w0", `{"metadata":{"labels":null}}`),
		of("an annotation", declined, "w0", `{"metadata":{"annotations":{"a":"b"}}}`),
		of("another annotation", declined, "w0", `{"metadata":{"annotations":{"theirs":"no"}}}`),
		of("the removal of an annotation", declined, "w0", `{"metadata":{"annotations":{"theirs":null}}}`),
		of("a taint", declined, "w0", `{"spec":{"taints":[{"key":"a","effect":"NoExecute"}]}}`),
		of("a cordon with a taint", declined, "w0", `{"metadata":{"annotations":{"`+mark+`":"now"}},`+
			`"spec":{"unschedulable":true,"taints":[{"key":"a","effect":"NoExecute"}]}}`),
		of("a finalizer", declined, "w0", `{"metadata":{"finalizers":["a.example/b"]}}`),
		of("an owner", declined, "w0", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"a","uid":"b"}]}}`),
		of("a provider", declined, "w0", `{"spec":{"providerID":"a://b"}}`),
		patch("a status of a node", refused, "nodes", "w0", `{"status":{"phase":"Running"}}`, "status"),
	}
}

// stateWrites are orders, and what is almost one.
func stateWrites() []write {
	of := func(what string, want outcome, body string) write { return patch(what, want, "nodestates", "w0", body) }
	owner := func(kind, name string) string {
		return ", ownerReferences: [{apiVersion: v1, kind: " + kind + ", name: " + name + ", uid: a}]"
	}
	return []write{
		of("an order", allowed, `{"spec":{"released":true}}`),
		of("an owner of its name", allowed, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"w0","uid":"a"}]}}`),
		creation("a claim", allowed, nodeState("w9", "")),
		creation("a claim with an owner", allowed, nodeState("w9", owner("Node", "w9"))),
		creation("a claim that ends with another node", declined, nodeState("w9", owner("Node", "w0"))),
		creation("a claim that ends with a pod", declined, nodeState("w9", owner("Pod", "w9"))),
		creation("a claim with a label", declined, nodeState("w9", ", labels: {a: b}")),
		creation("a claim that cannot be deleted", declined, nodeState("w9", ", finalizers: [a.example/b]")),
		of("another owner", declined, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"w1","uid":"a"}]}}`),
		of("a label of an order", declined, `{"metadata":{"labels":{"a":"b"}}}`),
		of("an annotation of an order", declined, `{"metadata":{"annotations":{"a":"b"}}}`),
		of("a finalizer of an order", declined, `{"metadata":{"finalizers":["a.example/b"]}}`),
		patch("a report", refused, "nodestates", "w0", `{"status":{"message":"tried"}}`, "status"),
		{"the end of an order", refused, func(ctx context.Context, _ *lab, as *cluster.Cluster) error {
			return as.Dynamic().Resource(fleetv1.StateResource()).Delete(ctx, "w0",
				metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		}},
	}
}

// otherWrites are those of other kinds.
func otherWrites() []write {
	lease := func(name, namespace string) string {
		return "apiVersion: " + coordinationv1.SchemeGroupVersion.String() + "\nkind: Lease\nmetadata: {name: " + name +
			", namespace: " + namespace + "}"
	}
	pod := func(account string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: theirs, namespace: " + manifests.Namespace +
			"}\nspec: {serviceAccountName: " + account + ", containers: [{name: c, image: none}]}"
	}
	return []write{
		{"an eviction", allowed, func(ctx context.Context, _ *lab, as *cluster.Cluster) error {
			return as.Clientset().PolicyV1().Evictions("default").Evict(ctx, &policyv1.Eviction{
				ObjectMeta:    metav1.ObjectMeta{Namespace: "default", Name: "tried"},
				DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}})
		}},
		creation("the lease of the election", allowed, lease("swdt-controller", manifests.Namespace)),
		creation("a lease of a node", refused, lease("theirs", "kube-node-lease")),
		creation("a pod of the nodes' account", refused, pod("swdt-node")),
	}
}

// testWrites tries writes with the token of the controller. An administrator may do what a policy declines, so it is
// the policy that has declined it.
func (l *lab) testWrites(t *testing.T, node, unbound, controller *rest.Config) {
	clusterOf := func(config *rest.Config) *cluster.Cluster {
		c, err := cluster.FromConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	expect := func(who string, as *cluster.Cluster, w write, want outcome) {
		t.Helper()
		if got, err := outcomeOf(w.try(t.Context(), l, as)); got != want {
			t.Errorf("%s, by %s: the outcome is %d, want %d: %v", w.what, who, got, want, err)
		}
	}
	thief := clusterOf(controller)
	for _, w := range append(append(nodeWrites(), stateWrites()...), otherWrites()...) {
		expect("the controller", thief, w, w.want)
		if w.want != refused {
			expect("an administrator", l.admin, w, allowed)
		}
		if w.want != allowed {
			continue
		}
		expect("a program on a node", clusterOf(node), w, refused)
	}
	report := func(name string, want outcome) write {
		return patch("a report", want, "nodestates", name, `{"status":{"message":"tried"}}`, "status")
	}
	expect("a program on a node", clusterOf(node), report("w0", allowed), allowed)
	expect("a program on another node", clusterOf(node), report("w1", declined), declined)
	expect("a token of no pod", clusterOf(unbound), report("w0", declined), declined)
	expect("an administrator", l.admin, report("w1", allowed), allowed)
}

// outcomeOf returns what the API server has done with a write.
func outcomeOf(err error) (outcome, error) {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return allowed, nil
	case apierrors.IsForbidden(err):
		return refused, err
	case errors.As(err, &status) && apierrors.IsInvalid(err) && byPolicy(status.Status().Details):
		return declined, err
	}
	return -1, err // no write of these tests is wrong in another way
}

// testPolicies checks that the API server finds no mistake in the types of the policies.
func (l *lab) testPolicies(t *testing.T) {
	checked := 0
	err := wait.Condition{Name: "the policies to be checked", Interval: 100 * time.Millisecond, Limit: time.Minute,
		Look: func(ctx context.Context) error {
			policies, err := l.client().AdmissionregistrationV1().ValidatingAdmissionPolicies().List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			checked = 0
			for _, p := range policies.Items {
				if p.Status.TypeChecking == nil {
					return errNotYet
				}
				for _, w := range p.Status.TypeChecking.ExpressionWarnings {
					t.Errorf("%s: %s: %s", p.Name, w.FieldRef, w.Warning)
				}
				checked++
			}
			return nil
		}}.Wait(t.Context())
	if err != nil || checked != 3 {
		t.Errorf("%d policies were checked: %v", checked, err)
	}
}
