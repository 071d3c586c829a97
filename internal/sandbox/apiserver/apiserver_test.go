package apiserver_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/swdt-dev/swdt/internal/sandbox/apiserver"
)

func TestObjectsLiveAndEnd(t *testing.T) {
	f := start(t, apiserver.Options{})
	maps := f.client.CoreV1().ConfigMaps("default")
	made, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "a-"},
		Data: map[string]string{"x": "1"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case !strings.HasPrefix(made.Name, "a-"):
		t.Errorf("made.Name does not begin with %q:\n%s", "a-", made.Name)
	case made.UID == "":
		t.Error("made.UID is empty")
	case made.ResourceVersion == "":
		t.Error("made.ResourceVersion is empty")
	case made.CreationTimestamp.IsZero():
		t.Error("made.CreationTimestamp.IsZero() is true, want false")
	}
	if _, err := maps.Create(t.Context(), made, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("a second one: %v", err)
	}
	stale := made.DeepCopy()
	made.Data["x"] = "2"
	if made, err = maps.Update(t.Context(), made, metav1.UpdateOptions{}); err != nil || made.Data["x"] != "2" {
		t.Errorf("update: %v %v", made.Data, err)
	}
	if _, err := maps.Update(t.Context(), stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("an update of what has changed: %v", err)
	}
	list, err := maps.List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + made.Name})
	if err != nil || len(list.Items) != 1 {
		t.Errorf("list: %d, %v", len(list.Items), err)
	}
	if err := maps.Delete(t.Context(), made.Name,
		metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("other")}); !apierrors.IsConflict(err) {
		t.Errorf("delete of another: %v", err)
	}
	if err := maps.Delete(t.Context(), made.Name, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := maps.Get(t.Context(), made.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("get after delete: %v", err)
	}
	if _, err := f.client.CoreV1().ConfigMaps("nowhere").Create(t.Context(), stale,
		metav1.CreateOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("create in a namespace that is not there: %v", err)
	}
}

func TestPatches(t *testing.T) {
	f := start(t, apiserver.Options{})
	f.plant(t, "apiVersion: v1\nkind: Node\nmetadata: {name: node-n, labels: {a: '1', b: '2'}}\nspec: {taints: [{key: "+
		"x, effect: NoSchedule}]}\nstatus: {phase: old}")
	nodes := f.client.CoreV1().Nodes()
	for _, test := range []struct {
		kind  types.PatchType
		patch string
		right func(*corev1.Node) bool
	}{
		{types.MergePatchType, `{"metadata":{"labels":{"a":null,"c":"3"}}}`, func(n *corev1.Node) bool {
			return n.Labels["c"] == "3" && n.Labels["a"] == "" && n.Labels["b"] == "2"
		}},
		{types.StrategicMergePatchType, `{"spec":{"taints":[{"key":"y","effect":"NoExecute"}]}}`,
			func(n *corev1.Node) bool {
				return hasTaint(n, "y")
			}},
		{types.JSONPatchType, `[{"op":"add","path":"/spec/unschedulable","value":true}]`, func(n *corev1.Node) bool {
			return n.Spec.Unschedulable
		}},
		{types.MergePatchType, `{"status":{"phase":"new"}}`, func(n *corev1.Node) bool {
			return n.Status.Phase == "old"
		}},
	} {
		n, err := nodes.Patch(t.Context(), "node-n", test.kind, []byte(test.patch), metav1.PatchOptions{})
		if err != nil {
			t.Errorf("%s: %v", test.patch, err)
		} else if !test.right(n) {
			t.Errorf("%s: %+v", test.patch, n)
		}
	}
	n, err := nodes.Patch(t.Context(), "node-n", types.MergePatchType,
		[]byte(`{"spec":{"podCIDR":"x"},"status":{"phase":"new"}}`), metav1.PatchOptions{}, "status")
	switch {
	case err != nil:
		t.Errorf("a patch of the status: %v", err)
	case n.Status.Phase != "new":
		t.Errorf("a patch of the status: n.Status.Phase is %q, want %q", n.Status.Phase, "new")
	case n.Spec.PodCIDR != "":
		t.Errorf(`a patch of the status: n.Spec.PodCIDR is %q, want ""`, n.Spec.PodCIDR)
	}
	if n, err = nodes.Get(t.Context(), "node-n", metav1.GetOptions{}); err != nil ||
		!hasTaint(n, "node.kubernetes.io/unschedulable") {
		t.Errorf("a node that is not schedulable has the taints %v (%v)", n.Spec.Taints, err)
	}
	// conditions are merged by their type
	two := `{"status":{"conditions":[{"type":"Ready","status":"True"},{"type":"DiskPressure","status":"False"}]}}`
	one := `{"status":{"conditions":[{"type":"DiskPressure","status":"True"}]}}`
	for _, patch := range []string{two, one} {
		if n, err = nodes.Patch(t.Context(), "node-n", types.StrategicMergePatchType, []byte(patch),
			metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
	}
	if len(n.Status.Conditions) != 2 {
		t.Errorf("conditions %+v", n.Status.Conditions)
	}
}

func TestADryRunStoresNothing(t *testing.T) {
	f := start(t, apiserver.Options{})
	f.plant(t, "apiVersion: v1\nkind: Node\nmetadata: {name: node-n, labels: {a: '1'}}")
	nodes := f.client.CoreV1().Nodes()
	dry := metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: "test"}
	for _, kind := range []types.PatchType{types.MergePatchType, types.ApplyPatchType} {
		patch := `{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-n","labels":{"a":"2"}}}`
		n, err := nodes.Patch(t.Context(), "node-n", kind, []byte(patch), dry)
		if err != nil || n.Labels["a"] != "2" {
			t.Errorf("%s: labels %v, %v", kind, n.Labels, err)
		}
		if n, err = nodes.Get(t.Context(), "node-n", metav1.GetOptions{}); err != nil || n.Labels["a"] != "1" {
			t.Errorf("%s stored labels %v, %v", kind, n.Labels, err)
		}
	}
	patch := `{"apiVersion":"v1","kind":"Node","metadata":{"name":"other"}}`
	n, err := nodes.Patch(t.Context(), "other", types.ApplyPatchType, []byte(patch), dry)
	if err != nil || n.Name != "other" {
		t.Errorf("%+v, %v", n, err)
	}
	if _, err := nodes.Get(t.Context(), "other", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a dry run created a Node: %v", err)
	}
}

func hasTaint(n *corev1.Node, key string) bool {
	for _, taint := range n.Spec.Taints {
		if taint.Key == key {
			return true
		}
	}
	return false
}

func TestWatchTellsOfWhatMatches(t *testing.T) {
	f := start(t, apiserver.Options{})
	maps := f.client.CoreV1().ConfigMaps("default")
	list, err := maps.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion,
		LabelSelector: "on-it=yes"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	label := func(value string) {
		t.Helper()
		if _, err := maps.Patch(t.Context(), "m", types.MergePatchType,
			[]byte(`{"metadata":{"labels":{"on-it":"`+value+`"}}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	f.plant(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}")
	label("yes")
	f.plant(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m, labels: {on-it: 'yes', more: x}}")
	label("no")
	for _, wanted := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
		if event := <-w.ResultChan(); event.Type != wanted {
			t.Errorf("%s, wanted %s: %+v", event.Type, wanted, event.Object)
		}
	}
}

// Informers begin with a watch that lists all objects, if the server supports it.
func TestInformer(t *testing.T) {
	f := start(t, apiserver.Options{})
	f.plant(t, "apiVersion: v1\nkind: Node\nmetadata: {name: one}")
	factory := informers.NewSharedInformerFactory(f.client, 0)
	nodes := factory.Core().V1().Nodes()
	informer := nodes.Informer()
	stop := make(chan struct{})
	factory.Start(stop)
	defer factory.Shutdown()
	defer close(stop)
	if !cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
		t.Fatal("it never was in step")
	}
	f.plant(t, "apiVersion: v1\nkind: Node\nmetadata: {name: two}")
	await(t, "both nodes", func() bool { return len(informer.GetStore().ListKeys()) == 2 })
	f.RemoveOwned("nodes", "", "one")
	await(t, "one node", func() bool { return len(informer.GetStore().ListKeys()) == 1 })
}

func TestCustomResourcesAreFoundAndRead(t *testing.T) {
	f := start(t, apiserver.Options{})
	installations := schema.GroupVersionResource{Group: "operator.tigera.io", Version: "v1", Resource: "installations"}
	if _, err := f.dynamic.Resource(installations).Get(t.Context(), "default",
		metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a resource that is not there: %v", err)
	}
	for _, r := range apiserver.Calico() {
		f.AddResource(r)
	}
	f.plant(t, "apiVersion: operator.tigera.io/v1\nkind: Installation\nmetadata: {name: default}\nspec: "+
		"{calicoNetwork: {bgp: Disabled, windowsDataplane: HNS}}")
	o, err := f.dynamic.Resource(installations).Get(t.Context(), "default", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if bgp, _, _ := unstructured.NestedString(o.Object, "spec", "calicoNetwork", "bgp"); bgp != "Disabled" {
		t.Errorf("read %v", o.Object)
	}
	_, lists, err := f.client.Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, list := range lists {
		for _, r := range list.APIResources {
			found[list.GroupVersion+"/"+r.Name] = true
		}
	}
	for _, wanted := range []string{"v1/nodes", "v1/pods/eviction", "policy/v1/poddisruptionbudgets",
		"operator.tigera.io/v1/installations"} {
		if !found[wanted] {
			t.Errorf("discovery does not find %s", wanted)
		}
	}
	version, err := f.client.Discovery().ServerVersion()
	switch {
	case err != nil:
		t.Error(err)
	case version.GitVersion != apiserver.DefaultVersion:
		t.Errorf("version.GitVersion is %v, want %v", version.GitVersion, apiserver.DefaultVersion)
	case version.Minor != "36":
		t.Errorf("version.Minor is %q, want %q", version.Minor, "36")
	}
}

func TestFaults(t *testing.T) {
	f := start(t, apiserver.Options{Version: "v1.30.1"})
	f.OnRequest(func(r apiserver.Request) apiserver.Verdict {
		switch {
		case r.Resource == "secrets" && r.Verb == "create":
			return apiserver.Forbid()
		case r.Resource == "nodes":
			return apiserver.Verdict{Status: http.StatusServiceUnavailable, Message: "out"}
		case r.Resource == "pods":
			return apiserver.Verdict{Drop: true}
		}
		return apiserver.Verdict{}
	})
	_, err := f.client.CoreV1().Secrets("default").Create(t.Context(), tokenSecret("a", "b", time.Now()),
		metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(),
		`User "kubernetes-admin" cannot create resource "secrets"`) {
		t.Errorf("secrets: %v", err)
	}
	if _, err := f.client.CoreV1().Nodes().List(t.Context(),
		metav1.ListOptions{}); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("nodes: %v", err)
	}
	_, err = f.client.CoreV1().Pods("default").Get(t.Context(), "p", metav1.GetOptions{})
	if status := apierrors.APIStatus(nil); err == nil || errors.As(err, &status) {
		t.Errorf("pods: %v", err)
	}
	f.OnRequest(nil)
	if f.SetVersion("v1.20.0"); serverVersion(t, f) != "v1.20.0" {
		t.Error("the version is not what it was set to")
	}
	f.SetClock(time.Hour)
	when, err := http.ParseTime(header(t, f).Get("Date"))
	if ahead := time.Until(when); err != nil || ahead < 50*time.Minute {
		t.Errorf("its clock is %s ahead (%v)", ahead, err)
	}
}

func serverVersion(t *testing.T, f *fixture) string {
	t.Helper()
	v, err := f.client.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	return v.GitVersion
}

func header(t *testing.T, f *fixture) http.Header {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.Server()+"/version", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := f.http.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	return answer.Header
}

func TestEvictionRespectsBudgets(t *testing.T) {
	f := start(t, apiserver.Options{})
	f.plant(t, `
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: v1
kind: Pod
metadata: {name: a, labels: {app: web}}
spec: {nodeName: node-n}
---
apiVersion: v1
kind: Pod
metadata: {name: b, labels: {app: web}}
`)
	pods := f.client.CoreV1().Pods("default")
	evict := func(name string) error {
		return pods.EvictV1(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name,
			Namespace: "default"}})
	}
	if err := evict("a"); err != nil {
		t.Fatal(err)
	}
	if _, err := pods.Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the evicted pod: %v", err)
	}
	err := evict("b")
	if !apierrors.IsTooManyRequests(err) || !apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) {
		t.Errorf("the last pod of its budget: %v", err)
	}
	if err := f.client.PolicyV1().PodDisruptionBudgets("default").Delete(t.Context(), "web",
		metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := evict("b"); err != nil {
		t.Errorf("without a budget: %v", err)
	}
}

// A deleted pod first gets a time of deletion, and is removed when its grace is over. If that is soon, a watch may
// see the removal alone, so the first pod has a long grace, which another request ends.
func TestAPodLivesOutItsGrace(t *testing.T) {
	for _, c := range []struct {
		grace time.Duration
		ended bool // a second request ends the grace
	}{{time.Hour, true}, {10 * time.Millisecond, false}} {
		f := start(t, apiserver.Options{PodGrace: c.grace})
		f.plant(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {nodeName: node-n}")
		pods := f.client.CoreV1().Pods("default")
		w, err := pods.Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
		seen := []watch.EventType{(<-w.ResultChan()).Type}
		if err := pods.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		for seen[len(seen)-1] != watch.Deleted {
			event := <-w.ResultChan()
			pod, ok := event.Object.(*corev1.Pod)
			if !ok {
				t.Fatalf("event %s has a %T, not a pod", event.Type, event.Object)
			}
			seen = append(seen, event.Type)
			if event.Type != watch.Modified {
				continue
			}
			if pod.DeletionTimestamp == nil {
				t.Error("a modified pod has no time of deletion")
			}
			if c.ended {
				if err := pods.Delete(t.Context(), "a", *metav1.NewDeleteOptions(0)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if want := []watch.EventType{watch.Added, watch.Modified, watch.Deleted}; c.ended && !slices.Equal(seen, want) {
			t.Errorf("events %v, want %v", seen, want)
		}
	}
}

func TestOwnedObjectsAreDeletedWithTheirOwner(t *testing.T) {
	f := start(t, apiserver.Options{})
	f.plant(t, "apiVersion: v1\nkind: Node\nmetadata: {name: node-n}")
	n, err := f.client.CoreV1().Nodes().Get(t.Context(), "node-n", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f.plant(t, "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: node-n, namespace: kube-node-lease, "+
		"ownerReferences: [{apiVersion: v1, kind: Node, name: node-n, uid: "+string(n.UID)+"}]}")
	if err := f.client.CoreV1().Nodes().Delete(t.Context(), "node-n", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, there := f.Object("leases.coordination.k8s.io", "kube-node-lease", "node-n"); there {
		t.Error("the node's lease is still there")
	}
}
