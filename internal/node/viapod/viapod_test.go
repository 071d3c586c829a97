package viapod_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/node/carrier"
	"github.com/swdt-dev/swdt/internal/node/viapod"
	"github.com/swdt-dev/swdt/internal/sandbox/hostprocess"
)

func TestThePodIsWhatARepairNeeds(t *testing.T) {
	w := newWorld(t)
	way := w.way()
	if _, err := way.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	pods := w.pods()
	if len(pods) != 1 {
		t.Fatalf("%d pods", len(pods))
	}
	pod := pods[0]
	yes, no, life, grace, system := true, false, int64(14400), int64(1), `NT AUTHORITY\SYSTEM`
	want := corev1.PodSpec{
		NodeName: "win-1", OS: &corev1.PodOS{Name: corev1.Windows}, HostNetwork: true,
		RestartPolicy: corev1.RestartPolicyNever, PriorityClassName: "system-node-critical",
		ActiveDeadlineSeconds: &life, TerminationGracePeriodSeconds: &grace,
		AutomountServiceAccountToken: &no, EnableServiceLinks: &no,
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		SecurityContext: &corev1.PodSecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{
			HostProcess: &yes, RunAsUserName: &system}},
		Containers: []corev1.Container{{Name: "node", Image: viapod.DefaultImage, ImagePullPolicy: corev1.PullIfNotPresent,
			Command: []string{"cmd.exe", "/d", "/c", "ping.exe", "-n", "14460", "127.0.0.1", ">nul"}}},
	}
	if diff := cmp.Diff(want, pod.Spec); diff != "" {
		t.Error(diff)
	}
	for name, windows := range hostprocess.All() { // also with an image that has no file at all
		p, err := windows.Start(hostprocess.Image{}, pod.Spec.Containers[0], nil)
		if err != nil || p.Program != `C:\Windows\System32\cmd.exe` {
			t.Errorf("%s: the container starts %q, %v", name, p.Program, err)
		}
	}
	wantLabels := map[string]string{"app.kubernetes.io/managed-by": "swdt", "swdt.dev/via": pod.Name}
	if diff := cmp.Diff(wantLabels, pod.Labels); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(pod.Annotations["swdt.dev/owner"], "@") {
		t.Errorf("annotations %v name no owner", pod.Annotations)
	}
	namespace, err := w.client.CoreV1().Namespaces().Get(t.Context(), "swdt-system", metav1.GetOptions{})
	if err != nil || namespace.Labels["pod-security.kubernetes.io/enforce"] != "privileged" {
		t.Errorf("namespace %v, %v", namespace, err)
	}
	way.Leave(t.Context())
	w.nothingIsLeft()
}

func TestAPodThatDoesNotRunSaysWhyAndIsRemoved(t *testing.T) {
	tests := map[string]struct {
		state func(*corev1.Pod)
		final bool
		want  []string
	}{
		"no image": {waiting("ErrImagePull", "not found"), false,
			[]string{"win-1: not running after", "ErrImagePull: not found", "image=…"}},
		"bad image name": {waiting("InvalidImageName", "bad"), true, []string{"InvalidImageName: bad"}},
		"kubelet down":   {func(*corev1.Pod) {}, false, []string{"has not begun to start the pod", "by SSH only"}},
		"refused by the kubelet": {func(p *corev1.Pod) {
			p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "OutOfpods", "too many"
		}, true, []string{"the kubelet refuses the pod: OutOfpods: too many"}},
		"ended": {func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "node", State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{ExitCode: 5, Reason: "Error"}}}}
		}, true, []string{"ended with exit code 5"}},
		"hostile": {waiting("X", strings.Repeat("y\x1b[2J ", 10_000)), false, []string{"…"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.state = test.state
			_, err := w.way().Connect(t.Context())
			if err == nil || carrier.IsRefusal(err) != test.final || len(err.Error()) > 2000 {
				t.Fatalf("refusal %v, want %v: %v", carrier.IsRefusal(err), test.final, err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("lacks %q: %v", want, err)
				}
			}
			w.nothingIsLeft()
		})
	}
}

// A kubelet whose disk is full refuses pods, or cannot pull their image. The error names the disk and the remedy. The
// texts are those of kubelet's eviction manager, and of its condition.
func TestAPodOnAFullDisk(t *testing.T) {
	for name, state := range map[string]func(*corev1.Pod){
		"refused": func(p *corev1.Pod) {
			p.Status.Phase, p.Status.Reason = corev1.PodFailed, "Evicted"
			p.Status.Message = "The node had condition: [DiskPressure]. "
		},
		"no image": waiting("ErrImagePull", "There is not enough space on the disk."),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.state = state
			n, err := w.client.CoreV1().Nodes().Get(t.Context(), "win-1", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeDiskPressure,
				Status: corev1.ConditionTrue, Message: "kubelet has disk pressure"})
			if _, err := w.client.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			_, err = w.way().Connect(t.Context())
			state, ok := errors.AsType[*viapod.NotStartedError](err)
			if !ok || !strings.Contains(state.Cause, "the node's disk is full (DiskPressure: kubelet has disk pressure)") ||
				!strings.Contains(state.Remedy, "free some space on the disk of node win-1") {
				t.Errorf("the error is %v", err)
			}
			w.nothingIsLeft()
		})
	}
}

func TestANodeThatNoPodCanReach(t *testing.T) {
	for name, change := range map[string]func(*corev1.Node){
		"of node win-1 does not report": func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown },
		"name a Windows node":           func(n *corev1.Node) { n.Labels["kubernetes.io/os"] = "linux" },
	} {
		w := newWorld(t)
		n, err := w.client.CoreV1().Nodes().Get(t.Context(), "win-1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		change(n)
		if _, err := w.client.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.way().Connect(t.Context()); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %s", err, name)
		}
		w.nothingIsLeft()
	}
	w := newWorld(t)
	_, err := w.way(func(o *viapod.Options) { o.Node = "other" }).Connect(t.Context())
	var none *cluster.NoNodeError
	if !errors.As(err, &none) || !carrier.IsRefusal(err) {
		t.Errorf("another node: %v", err)
	}
}

// Without the rule for events, the error of a pod that does not start names it.
func TestEventsThatMayNotBeRead(t *testing.T) {
	w := newWorld(t)
	w.state = waiting("InvalidImageName", "bad")
	w.refuse = func(verb, resource string) error {
		if verb+" "+resource == "list events" {
			return forbidden(resource)
		}
		return nil
	}
	_, err := w.way().Connect(t.Context())
	if err == nil || !strings.Contains(err.Error(), "may not list events -n swdt-system") {
		t.Error(err)
	}
	w.nothingIsLeft()
}

// Without any one rule of the role, the error names the rule.
func TestEachRuleIsNeededAndNamed(t *testing.T) {
	for _, p := range viapod.Needs("swdt-system") {
		if p.Resource == "pods/exec" { // the streams' own test is in package sandbox
			continue
		}
		rule := p.Verb + " " + p.Resource
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.missing = rule
			w.refuse = func(verb, resource string) error {
				if verb+" "+resource == rule {
					return forbidden(resource)
				}
				return nil
			}
			way := w.way()
			_, err := way.Connect(t.Context())
			var denied *viapod.DeniedError
			if !errors.As(err, &denied) || denied.Missing.Verb != p.Verb || denied.Missing.Resource != p.Resource {
				t.Fatalf("%v", err)
			}
			for _, want := range []string{p.String(), "--print-rbac"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("lacks %q: %v", want, err)
				}
			}
			w.mu.Lock()
			w.refuse = nil // the test lists pods itself
			w.mu.Unlock()
			w.nothingIsLeft()
		})
	}
}

// The printed role has exactly the rules that the code needs, and events.
func TestThePrintedRole(t *testing.T) {
	text := viapod.Manifest("elsewhere", false)
	for _, want := range []string{"namespace: elsewhere", "resourceNames: [elsewhere]", "enforce: privileged",
		"verbs: [create, get, list, delete]", "resources: [pods/exec]", "resources: [subjectaccessreviews]"} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "NAMESPACE") || strings.Contains(text, "swdt-system") || strings.Contains(text, "*") {
		t.Errorf("the role is of another namespace, or has a wildcard:\n%s", text)
	}
}

func TestAPodThatAdmissionRefuses(t *testing.T) {
	w := newWorld(t)
	w.add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "swdt-system"}})
	w.refuse = func(verb, resource string) error {
		if verb == "create" && resource == "pods" {
			return forbidden("pods")
		}
		return nil
	}
	_, err := w.way().Connect(t.Context())
	var admission *viapod.NotAdmittedError
	if !errors.As(err, &admission) || !strings.Contains(err.Error(), "the server says no") {
		t.Errorf("%v", err)
	}
	w.nothingIsLeft()
}

// Clusters that keep the critical classes for kube-system get a pod without a class.
func TestAClusterThatRefusesThePriority(t *testing.T) {
	w := newWorld(t)
	first := true
	w.refuse = func(verb, resource string) error {
		if verb == "create" && resource == "pods" && first {
			first = false
			return forbidden("pods")
		}
		return nil
	}
	if _, err := w.way().Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if pods := w.pods(); pods[0].Spec.PriorityClassName != "" {
		t.Errorf("priority class %q", pods[0].Spec.PriorityClassName)
	}
}

// After some answers, the pod may have been made all the same: it is removed, and the record stays for the next
// contact.
func TestAFailureAfterThePodWasMade(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	answer := func(code int) error {
		return apierrors.NewGenericServerResponse(code, "create", pods, "", "from the load balancer", 0, false)
	}
	for name, failure := range map[string]error{
		"500 of etcd":                  apierrors.NewInternalError(errors.New("etcdserver: request timed out")),
		"504 of the API server":        apierrors.NewTimeoutError("request did not complete", 0),
		"502 of a load balancer":       answer(http.StatusBadGateway),
		"503 of a load balancer":       answer(http.StatusServiceUnavailable),
		"504 of a load balancer":       answer(http.StatusGatewayTimeout),
		"408 of a load balancer":       answer(http.StatusRequestTimeout),
		"409 after an earlier attempt": apierrors.NewAlreadyExists(pods, "swdt-via-x"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			made := 0
			w.client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
				if made++; made > 1 {
					return false, nil, nil
				}
				if err := w.client.Tracker().Add(action.(clienttesting.CreateAction).GetObject()); err != nil {
					return true, nil, err
				}
				return true, nil, failure
			})
			if _, err := w.way().Connect(t.Context()); err == nil || made != 1 {
				t.Fatalf("made %d pods: %v", made, err)
			}
			if left := w.pods(); len(left) > 0 {
				t.Errorf("left the pod %s", left[0].Name)
			}
			if left, err := filepath.Glob(filepath.Join(w.records, "*.json")); err != nil || len(left) != 1 {
				t.Errorf("records %v, want one for the next contact; %v", left, err)
			}
			next := w.way()
			if _, err := next.Connect(t.Context()); err != nil {
				t.Fatal(err)
			}
			next.Leave(t.Context())
			w.nothingIsLeft()
		})
	}
}

// Ctrl-C may cut off a request after others were refused: its pod is removed, too.
func TestCtrlCAfterARefusal(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	requests := 0
	w.client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if requests++; requests <= 2 { // with a priority class, and without
			return true, nil, forbidden("pods")
		}
		cancel()
		err := w.client.Tracker().Add(action.(clienttesting.CreateAction).GetObject())
		return true, nil, errors.Join(context.Canceled, err)
	})
	if _, err := w.way().Connect(ctx); !errors.Is(err, context.Canceled) || requests != 3 {
		t.Errorf("%d requests: %v", requests, err)
	}
	if left := w.pods(); len(left) > 0 {
		t.Errorf("left the pod %s", left[0].Name)
	}
}

func binding(subjects ...rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "swdt-system", Name: "devs"}, Subjects: subjects}
}

// The attacker is another user of the cluster, who may get into the pod.
func TestANamespaceThatOthersMayUseIsRefused(t *testing.T) {
	always := func(string, string, attributes) bool { return true }
	tests := map[string]struct {
		may  func(user, group string, a attributes) bool
		bind []rbacv1.Subject
		want string // "": the namespace is accepted
	}{
		"no other user": {nil, nil, ""},
		"all users may exec": {func(_, group string, a attributes) bool {
			return group == "system:authenticated" && a.Resource == "pods" && a.Subresource == "exec" && a.Verb == "get"
		}, nil, "group system:authenticated (get pods/exec)"},
		"all users may update pods, and so the image of one": {func(_, group string, a attributes) bool {
			return group == "system:authenticated" && a.Resource == "pods" && a.Subresource == "" && a.Verb == "update"
		}, nil, "group system:authenticated (update pods)"},
		"all service accounts may make Jobs": {func(_, group string, a attributes) bool {
			return group == "system:serviceaccounts" && a.Group == "batch" && a.Resource == "jobs"
		}, nil, "group system:serviceaccounts (create jobs)"},
		"another user": {func(user, _ string, _ attributes) bool { return user == "eve" },
			[]rbacv1.Subject{{Kind: "User", Name: "eve"}}, "user eve (RoleBinding devs) (create pods/exec)"},
		"another user who may only look": {func(user, _ string, a attributes) bool {
			return user == "eve" && a.Verb == "list"
		},
			[]rbacv1.Subject{{Kind: "User", Name: "eve"}}, ""},
		"another group": {func(_, group string, _ attributes) bool { return group == "devs" },
			[]rbacv1.Subject{{Kind: "Group", Name: "devs"}}, "group devs (RoleBinding devs)"},
		"a service account": {func(user, _ string, _ attributes) bool {
			return user == "system:serviceaccount:swdt-system:default"
		}, []rbacv1.Subject{{Kind: "ServiceAccount", Name: "default"}}, "serviceaccount default"},
		"the user alone": {func(user, _ string, _ attributes) bool { return user == "me" },
			[]rbacv1.Subject{{Kind: "User", Name: "me"}}, ""},
		"a group of the user": {func(_, group string, _ attributes) bool { return group == "us" },
			[]rbacv1.Subject{{Kind: "Group", Name: "us"}}, ""},
		"more than swdt examines": {always, manySubjects(), "many subjects"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.may = test.may
			w.add(binding(test.bind...))
			_, err := w.way().Connect(t.Context())
			var open *viapod.OpenNamespaceError
			switch {
			case test.want == "" && err != nil:
				t.Fatal(err)
			case test.want == "":
				return
			case !errors.As(err, &open) || !carrier.IsRefusal(err) || !strings.Contains(err.Error(), test.want):
				t.Fatalf("%v, want %s", err, test.want)
			}
			w.nothingIsLeft()
			if _, err := w.way(func(o *viapod.Options) { o.Shared = true }).Connect(t.Context()); err != nil {
				t.Errorf("with leave: %v", err)
			}
		})
	}
}

// Each of these requests alone is enough for another user.
func TestEachWayIntoANamespaceIsRefused(t *testing.T) {
	for _, way := range waysIn() {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.may = func(user, _ string, a attributes) bool {
				resource := a.Resource
				if a.Subresource != "" {
					resource += "/" + a.Subresource
				}
				inNamespace := a.Namespace == "swdt-system" || resource == "users" || resource == "groups"
				return user == "eve" && way == a.Verb+" "+resource && inNamespace
			}
			w.add(binding(rbacv1.Subject{Kind: "User", Name: "eve"}))
			_, err := w.way().Connect(t.Context())
			if open, ok := errors.AsType[*viapod.OpenNamespaceError](err); !ok || !strings.Contains(open.Error(), "("+way+")") {
				t.Errorf("the error is %v", err)
			}
			w.nothingIsLeft()
		})
	}
}

func waysIn() (all []string) {
	for _, resource := range []string{"pods", "deployments", "daemonsets", "statefulsets", "replicasets",
		"replicationcontrollers", "cronjobs"} {
		all = append(all, "create "+resource, "update "+resource, "patch "+resource)
	}
	return append(all, "create jobs", "create pods/exec", "get pods/exec", "create pods/attach", "get pods/attach",
		"update pods/ephemeralcontainers", "patch pods/ephemeralcontainers", "create serviceaccounts/token",
		"create secrets", "impersonate serviceaccounts", "impersonate users", "impersonate groups", "escalate roles",
		"bind roles", "bind clusterroles")
}

func manySubjects() (all []rbacv1.Subject) {
	for i := range 60 {
		all = append(all, rbacv1.Subject{Kind: "User", Name: strings.Repeat("x", i+1)})
	}
	return all
}

// A swdt that is killed leaves a pod and a record with a free lock: the next contact removes both.
func TestThePodOfAKilledSwdtIsRemoved(t *testing.T) {
	w := newWorld(t)
	first := w.way()
	t.Cleanup(func() { goruntime.KeepAlive(first) }) // its lock is free as soon as it is collected
	if _, err := first.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	killed := w.pods()[0].Name
	locks, err := filepath.Glob(filepath.Join(w.records, "*.lock"))
	if err != nil || len(locks) != 1 {
		t.Fatal(locks, err)
	}
	// The first way still holds its lock: its pod is left alone.
	second := w.way()
	if _, err := second.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := len(w.pods()); got != 2 {
		t.Fatalf("%d pods beside a swdt that works", got)
	}
	second.Leave(t.Context())
	// A new file in place of the lock is what the end of the process does to the lock.
	if err := errors.Join(os.Remove(locks[0]), os.WriteFile(locks[0], nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	third := w.way()
	if _, err := third.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if pods := w.pods(); len(pods) != 1 || pods[0].Name == killed {
		t.Errorf("pods %d, the first %s", len(pods), pods[0].Name)
	}
	third.Leave(t.Context())
	w.nothingIsLeft()
}

// A file in the folder of records that another program has written removes nothing but itself.
func TestARecordThatIsNone(t *testing.T) {
	w := newWorld(t)
	w.add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "etcd"}})
	for name, text := range map[string]string{
		"etcd":       `{"server":"https://api:6443","namespace":"kube-system","pod":"etcd","begun":"2100-01-01T00:00:00Z"}`,
		"swdt-via-x": `{"server":"https://api:6443","namespace":"kube-system","pod":"etcd","begun":"2100-01-01T00:00:00Z"}`,
		"swdt-via-y": `{"server":`,
	} {
		if err := os.WriteFile(filepath.Join(w.records, name+".json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	way := w.way()
	if _, err := way.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	way.Leave(t.Context())
	if _, err := w.client.CoreV1().Pods("kube-system").Get(t.Context(), "etcd", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	w.nothingIsLeft()
}

// Pods that have ended are removed, whoever has made them; other pods with copied labels are not.
func TestEndedPodsAreRemoved(t *testing.T) {
	w := newWorld(t)
	pod := func(name, label string, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "swdt-system", Name: name,
			Labels: map[string]string{"swdt.dev/via": label}}, Status: corev1.PodStatus{Phase: phase}}
	}
	w.add(pod("swdt-via-a", "swdt-via-a", corev1.PodFailed), pod("swdt-via-b", "swdt-via-b", corev1.PodRunning),
		pod("other", "swdt-via-a", corev1.PodFailed))
	way := w.way()
	if _, err := way.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	way.Leave(t.Context())
	var names []string
	for _, p := range w.pods() {
		names = append(names, p.Name)
	}
	if diff := cmp.Diff([]string{"other", "swdt-via-b"}, names); diff != "" {
		t.Error(diff)
	}
}

// A kept pod is used again by its own node alone, and only while its container is the same.
func TestAKeptPod(t *testing.T) {
	w := newWorld(t)
	keep := func(o *viapod.Options) { o.Keep = true }
	first := w.way(keep)
	c, err := first.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	identity, lasting := c.Machine()
	if !lasting || !strings.Contains(identity, "containerd://1") {
		t.Errorf("identity %q, lasting %v", identity, lasting)
	}
	first.Leave(t.Context())
	kept := w.pods()[0].Name
	second := w.way(keep)
	if _, err := second.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if pods := w.pods(); len(pods) != 1 || pods[0].Name != kept {
		t.Errorf("made another pod beside %s", kept)
	}
	second.Leave(t.Context())
	again := w.pods()[0]
	again.Status.ContainerStatuses[0].ContainerID = "containerd://2" // the machine was set up anew
	_, err = w.client.CoreV1().Pods("swdt-system").UpdateStatus(t.Context(), &again, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	third := w.way(keep)
	if _, err := third.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if pods := w.pods(); len(pods) != 1 || pods[0].Name == kept {
		t.Errorf("used a pod whose container is another one")
	}
	last := w.way()
	if _, err := last.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	third.Leave(t.Context())
	last.Leave(t.Context())
}

// The remedy names settings that every command has.
func TestAKubeconfigThatIsNotThere(t *testing.T) {
	_, err := viapod.NewClusters().Open(cluster.Options{Kubeconfig: filepath.Join(t.TempDir(), "none")})
	var unusable *cluster.ConfigError
	if !errors.As(err, &unusable) || !strings.Contains(err.Error(), "--kubeconfig or KUBECONFIG") {
		t.Errorf("%v", err)
	}
}
