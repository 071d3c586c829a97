package viapod_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"sigs.k8s.io/yaml"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/node/carrier"
	"github.com/swdt-dev/swdt/internal/node/viapod"
	"github.com/swdt-dev/swdt/internal/sandbox/controlplane"
	"github.com/swdt-dev/swdt/internal/sandbox/controlplane/controlplanetest"
	"github.com/swdt-dev/swdt/internal/testing/gobuild"
)

// badImage is an image that the kubelet of the test cannot start.
const badImage = "BAD"

// realWorld is a real API server, with a user who has the printed roles and nothing else. Its node has no machine: a
// stand-in for a kubelet reports pods as running, and answers exec.
type realWorld struct {
	t     *testing.T
	admin kubernetes.Interface
	least *cluster.Cluster
	roles map[string][]rbacv1.PolicyRule // as they are printed

	program    string // swdt itself
	kubeconfig string // of the user
}

// TestEachRuleOnARealAPIServer uses the way with the printed roles, and without each verb of each of their rules.
// Without a verb, the program swdt ends with the exit code of a node that cannot be reached.
func TestEachRuleOnARealAPIServer(t *testing.T) {
	w := newRealWorld(t)
	w.eventually("the roles suffice", func() error { return w.reach("image") })
	for _, role := range []string{"ClusterRole", "Role"} {
		for i, rule := range w.roles[role] {
			for _, verb := range rule.Verbs {
				if rule.Resources[0] == "pods/exec" && verb == "get" {
					continue // which of the two verbs an API server asks for depends on its version
				}
				t.Run(verb+" "+rule.Resources[0], func(t *testing.T) { w.without(t, role, i, verb) })
			}
		}
	}
}

// TestEachWayInOnARealAPIServer gives another user one way into the namespace at a time, as a real API server
// understands it.
func TestEachWayInOnARealAPIServer(t *testing.T) {
	w := newRealWorld(t)
	w.eventually("the namespace is accepted", func() error { return w.reach("image") })
	for _, way := range waysIn() {
		verb, resource, _ := strings.Cut(way, " ")
		if resource == "users" || resource == "groups" {
			continue // these are in no namespace, so no Role allows it
		}
		t.Run(way, func(t *testing.T) {
			roles, bindings := w.admin.RbacV1().Roles("swdt-system"), w.admin.RbacV1().RoleBindings("swdt-system")
			_, err := roles.Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "eve"},
				Rules: []rbacv1.PolicyRule{{Verbs: []string{verb}, Resources: []string{resource},
					APIGroups: []string{"", "apps", "batch", rbacv1.GroupName}}}}, metav1.CreateOptions{})
			_, bound := bindings.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "eve"},
				Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "eve"}},
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "eve"}}, metav1.CreateOptions{})
			if err := errors.Join(err, bound); err != nil {
				t.Fatal(err)
			}
			w.eventually("the way is found", func() error {
				err := w.reach("image")
				if open, ok := errors.AsType[*viapod.OpenNamespaceError](err); ok && strings.Contains(open.Error(), "("+way+")") {
					return nil
				}
				return fmt.Errorf("it answers %v", err)
			})
			if err := errors.Join(roles.Delete(t.Context(), "eve", metav1.DeleteOptions{}),
				bindings.Delete(t.Context(), "eve", metav1.DeleteOptions{})); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// without takes a verb of a rule away, expects an error that names the permission, and gives the verb back.
func (w *realWorld) without(t *testing.T, role string, index int, verb string) {
	rules := slices.Clone(w.roles[role])
	resource := rules[index].Resources[0]
	rules[index].Verbs = slices.DeleteFunc(slices.Clone(rules[index].Verbs), func(v string) bool {
		return v == verb || resource == "pods/exec"
	})
	if len(rules[index].Verbs) == 0 {
		rules = slices.Delete(rules, index, index+1)
	}
	w.set(role, rules)
	w.eventually(verb+" "+resource+" is named", func() error {
		if resource == "events" {
			err := w.reach(badImage)
			if err == nil || !strings.Contains(err.Error(), "may not list events") {
				return fmt.Errorf("a pod that does not start: %w", err)
			}
			return nil
		}
		err := w.reach("image")
		var denied *viapod.DeniedError
		if !errors.As(err, &denied) || denied.Missing.Verb != verb || denied.Missing.Resource != resource {
			return fmt.Errorf("it does not name the permission: %w", err)
		}
		if !carrier.IsRefusal(err) {
			return fmt.Errorf("it is no refusal: %w", err)
		}
		return nil
	})
	image := "image"
	if resource == "events" {
		image = badImage // swdt lists events only of a pod that does not start
	}
	w.expectRefusal(t, image, verb, resource)
	w.set(role, w.roles[role])
	w.eventually("the roles suffice again", func() error { return w.reach("image") })
}

// reach runs a command in a pod of the node, and removes the pod.
func (w *realWorld) reach(image string) error {
	w.t.Helper()
	w.heartbeat()
	way := viapod.New(w.least, viapod.Options{Node: "win-1", Image: image, Records: w.t.TempDir()})
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	connection, err := way.Connect(ctx)
	if err != nil {
		return err
	}
	defer way.Leave(ctx)
	defer connection.Close()
	out, err := connection.Run(ctx, "cmd.exe", "/d", "/c", "exit")
	if err == nil && out.Stdout != "done" {
		err = fmt.Errorf("the command printed %q", out.Stdout)
	}
	return err
}

// expectRefusal runs the program and expects that its exit code and its error say which permission is missing.
func (w *realWorld) expectRefusal(t *testing.T, image, verb, resource string) {
	t.Helper()
	w.heartbeat()
	const unreachable = 3
	home := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	swdt := exec.CommandContext(ctx, w.program, "exec", "--via", "kubernetes,image="+image, "-n", "win-1", "--", "hostname")
	swdt.Dir = home
	swdt.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "KUBECONFIG=" + w.kubeconfig}
	var stderr strings.Builder
	swdt.Stderr = &stderr
	_ = swdt.Run() // the exit code is what counts
	if code := swdt.ProcessState.ExitCode(); code != unreachable {
		t.Errorf("exit code %d, want %d", code, unreachable)
	}
	named := []string{"may not " + verb + " " + resource}
	if of, subresource, ok := strings.Cut(resource, "/"); ok { // it is named as kubectl auth can-i names it
		named = []string{"may not " + verb + " " + of + "/", " --subresource=" + subresource + " "}
	}
	for _, text := range named {
		if !strings.Contains(stderr.String(), text) {
			t.Errorf("the error lacks %q:\n%s", text, &stderr)
		}
	}
}

// buildProgram builds swdt, without an agent if none is built.
func buildProgram(t *testing.T) string {
	t.Helper()
	return gobuild.Build(t, gobuild.Program{Package: "github.com/swdt-dev/swdt/cmd/swdt"})
}

func newRealWorld(t *testing.T) *realWorld {
	t.Helper()
	plane := controlplanetest.Start(t, controlplane.Options{})
	open := func(kubeconfig string) *cluster.Cluster {
		c, err := cluster.Open(cluster.Options{Kubeconfig: kubeconfig})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	text, err := os.ReadFile(plane.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	impersonating := strings.Replace(string(text), "  user:\n", "  user:\n    as: least\n", 1)
	if impersonating == string(text) {
		t.Fatalf("no user in %s", plane.Kubeconfig())
	}
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(impersonating), 0o600); err != nil {
		t.Fatal(err)
	}
	w := &realWorld{t: t, admin: open(plane.Kubeconfig()).Clientset(), least: open(path),
		program: buildProgram(t), kubeconfig: path}
	w.makeNode()
	w.roles = w.apply(viapod.Manifest("", false))
	w.bind()
	w.runPods()
	return w
}

// apply makes the objects of the printed text, and returns the rules of its roles.
func (w *realWorld) apply(text string) map[string][]rbacv1.PolicyRule {
	w.t.Helper()
	rules := map[string][]rbacv1.PolicyRule{}
	for document := range strings.SplitSeq(text, "\n---\n") {
		var kind metav1.TypeMeta
		err := yaml.Unmarshal([]byte(document), &kind)
		switch kind.Kind {
		case "Namespace":
			var o corev1.Namespace
			err = errors.Join(err, yaml.UnmarshalStrict([]byte(document), &o))
			_, made := w.admin.CoreV1().Namespaces().Create(w.t.Context(), &o, metav1.CreateOptions{})
			err = errors.Join(err, made)
		case "ClusterRole":
			var o rbacv1.ClusterRole
			err = errors.Join(err, yaml.UnmarshalStrict([]byte(document), &o))
			rules[kind.Kind] = o.Rules
			_, made := w.admin.RbacV1().ClusterRoles().Create(w.t.Context(), &o, metav1.CreateOptions{})
			err = errors.Join(err, made)
		case "Role":
			var o rbacv1.Role
			err = errors.Join(err, yaml.UnmarshalStrict([]byte(document), &o))
			rules[kind.Kind] = o.Rules
			_, made := w.admin.RbacV1().Roles(o.Namespace).Create(w.t.Context(), &o, metav1.CreateOptions{})
			err = errors.Join(err, made)
		default:
			err = errors.Join(err, fmt.Errorf("kind %q", kind.Kind))
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
	return rules
}

// bind gives the user the roles, as the printed text says.
func (w *realWorld) bind() {
	w.t.Helper()
	user := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "least"}}
	_, err := w.admin.RbacV1().ClusterRoleBindings().Create(w.t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "least"}, Subjects: user,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "swdt-via-swdt-system"},
	}, metav1.CreateOptions{})
	_, inNamespace := w.admin.RbacV1().RoleBindings("swdt-system").Create(w.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "least"}, Subjects: user,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "swdt-via"},
	}, metav1.CreateOptions{})
	if err := errors.Join(err, inNamespace); err != nil {
		w.t.Fatal(err)
	}
}

// set gives a role other rules.
func (w *realWorld) set(role string, rules []rbacv1.PolicyRule) {
	w.t.Helper()
	var err error
	if role == "ClusterRole" {
		o := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "swdt-via-swdt-system"}, Rules: rules}
		_, err = w.admin.RbacV1().ClusterRoles().Update(w.t.Context(), o, metav1.UpdateOptions{})
	} else {
		o := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "swdt-via", Namespace: "swdt-system"}, Rules: rules}
		_, err = w.admin.RbacV1().Roles("swdt-system").Update(w.t.Context(), o, metav1.UpdateOptions{})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// makeNode makes the Node whose kubelet is execAnswer.
func (w *realWorld) makeNode() {
	w.t.Helper()
	kubelet := httptest.NewTLSServer(http.HandlerFunc(w.execAnswer))
	w.t.Cleanup(kubelet.Close)
	at, err := url.Parse(kubelet.URL)
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = w.admin.CoreV1().Nodes().Create(w.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-1",
		Labels: map[string]string{corev1.LabelOSStable: "windows"}}}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.patchNode(fmt.Sprintf(`{"status": {"addresses": [{"type": "InternalIP", "address": %q}], `+
		`"daemonEndpoints": {"kubeletEndpoint": {"Port": %s}}}}`, at.Hostname(), at.Port()))
}

// patchNode changes the status of the Node, which the cluster's controllers change too.
func (w *realWorld) patchNode(patch string) {
	w.t.Helper()
	if _, err := w.admin.CoreV1().Nodes().PatchStatus(w.t.Context(), "win-1", []byte(patch)); err != nil {
		w.t.Fatal(err)
	}
}

// heartbeat reports the node as ready, since the cluster does not wait long for a kubelet.
func (w *realWorld) heartbeat() {
	w.t.Helper()
	w.patchNode(fmt.Sprintf(`{"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Test", `+
		`"lastHeartbeatTime": %q}]}}`, time.Now().UTC().Format(time.RFC3339)))
}

// execAnswer answers exec as a kubelet does: the command prints "done".
func (w *realWorld) execAnswer(rw http.ResponseWriter, r *http.Request) {
	if _, err := httpstream.Handshake(r, rw, []string{remotecommand.StreamProtocolV4Name}); err != nil {
		w.t.Errorf("the kubelet is asked for %s %s: %v", r.Method, r.URL.Path, err)
		return
	}
	const all = 4 // error, stdin, stdout, stderr
	streams := make(chan httpstream.Stream, all)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(rw, r, func(s httpstream.Stream, _ <-chan struct{}) error {
		streams <- s
		return nil
	})
	if conn == nil {
		return
	}
	defer conn.Close()
	by := map[string]httpstream.Stream{}
	for len(by) < all {
		select {
		case s := <-streams:
			by[s.Headers().Get(corev1.StreamType)] = s
		case <-conn.CloseChan():
			return
		}
	}
	_, _ = io.WriteString(by[corev1.StreamTypeStdout], "done")
	_, _ = io.WriteString(by[corev1.StreamTypeError], `{"status":"Success"}`)
	for _, s := range by {
		_ = s.Close()
	}
	<-conn.CloseChan()
}

// runPods reports pods of the node as a kubelet does, until the test ends.
func (w *realWorld) runPods() {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	w.t.Cleanup(func() {
		cancel()
		<-ended
	})
	go func() {
		defer close(ended)
		for ctx.Err() == nil { // a watch ends after a while, and a new one begins with the pods that there are
			changes, err := w.admin.CoreV1().Pods("swdt-system").Watch(ctx, metav1.ListOptions{})
			if err != nil {
				if ctx.Err() == nil {
					w.t.Errorf("the stand-in for a kubelet: %v", err)
				}
				return
			}
			for change := range changes.ResultChan() {
				if pod, ok := change.Object.(*corev1.Pod); ok && change.Type != watch.Deleted {
					w.runPod(ctx, pod)
				}
			}
		}
	}()
}

// runPod starts a pod, or ends one that is to be deleted.
func (w *realWorld) runPod(ctx context.Context, pod *corev1.Pod) {
	pods := w.admin.CoreV1().Pods(pod.Namespace)
	var err error
	switch {
	case pod.DeletionTimestamp != nil:
		now := int64(0)
		err = pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})
	case len(pod.Status.ContainerStatuses) > 0: // it was started
	case pod.Spec.Containers[0].Image == badImage:
		waiting("InvalidImageName", "no such name")(pod)
		pod.Status.ContainerStatuses[0].Name = "node"
		_, err = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	default:
		running(pod)
		_, err = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	}
	// After a conflict, the watch has the newer pod.
	if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		w.t.Errorf("the stand-in for a kubelet: %v", err)
	}
}

// eventually waits until the API server counts what was changed.
func (w *realWorld) eventually(what string, so func() error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := so()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			w.t.Fatalf("not within 2 minutes: %s: %v", what, err)
		case <-tick.C:
		}
	}
}
