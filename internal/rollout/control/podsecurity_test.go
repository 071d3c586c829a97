package control_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/rollout/installation"
	"github.com/swdt-dev/swdt/internal/rollout/manifests"
	"github.com/swdt-dev/swdt/internal/sandbox/controlplane"
	"github.com/swdt-dev/swdt/internal/ui"
)

// warnings collects the warnings of an API server.
type warnings struct {
	mutex sync.Mutex
	all   []string
}

func (w *warnings) HandleWarningHeader(code int, _, text string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if code == 299 { // the code of all warnings that Kubernetes sends
		w.all = append(w.all, text)
	}
}

// take returns the warnings since the last call.
func (w *warnings) take() []string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	all := w.all
	w.all = nil
	return all
}

// On an API server that enforces the standard "restricted" in each namespace without labels, the installation
// and its dry run cause no warning. The controller's pod obeys that standard; the HostProcess pod does not, and
// is allowed in the fleet's namespace alone.
func TestInstallationUnderPodSecurity(t *testing.T) {
	l := startLab(t, controlplane.Options{PodSecurity: "restricted"})
	heard := &warnings{}
	config := rest.CopyConfig(l.config)
	config.WarningHandler = heard
	var err error
	if l.admin, err = cluster.FromConfig(config); err != nil {
		t.Fatal(err)
	}
	for _, dry := range []bool{true, false, true} {
		if _, err := installation.Run(t.Context(), l.admin, installation.Options{DryRun: dry}, ui.Discard{}); err != nil {
			t.Fatalf("install (dry run: %t): %v", dry, err)
		}
		if all := heard.take(); len(all) > 0 {
			t.Errorf("install (dry run: %t): the API server warns: %q", dry, all)
		}
	}
	controller, program := templates(t)
	for _, try := range []struct {
		what, namespace string
		template        corev1.PodTemplateSpec
		allowed         bool
	}{
		{"controller", manifests.Namespace, controller, true},
		{"controller", "default", controller, true},
		{"program", manifests.Namespace, program, true},
		{"program", "default", program, false},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "tried-", Namespace: try.namespace},
			Spec: *try.template.Spec.DeepCopy()}
		if try.namespace == "default" {
			pod.Spec.ServiceAccountName = "default"
			pod.Spec.PriorityClassName = "" // another admission limits this class
		}
		_, err := l.client().CoreV1().Pods(try.namespace).Create(t.Context(), pod,
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if (err == nil) != try.allowed || err != nil && !apierrors.IsForbidden(err) {
			t.Errorf("the pod of the %s in %s: %v; want it allowed: %t", try.what, try.namespace, err, try.allowed)
		}
		heard.take()
	}
	l.warned(t, heard, program)
}

// warned checks that a warning would have been heard: the DaemonSet in another namespace causes one.
func (l *lab) warned(t *testing.T, heard *warnings, program corev1.PodTemplateSpec) {
	t.Helper()
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "tried"}, Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: program.Labels}, Template: program}}
	_, err := l.client().AppsV1().DaemonSets("default").Create(t.Context(), set,
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		t.Fatal(err)
	}
	if all := heard.take(); !slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, "hostProcess") }) {
		t.Errorf("a HostProcess DaemonSet in another namespace causes the warnings %q", all)
	}
}

// templates returns the templates of the pods in the manifests.
func templates(t *testing.T) (controller, program corev1.PodTemplateSpec) {
	t.Helper()
	objects, err := manifests.Objects(manifests.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	read := func(o *unstructured.Unstructured, into any) {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range objects {
		switch o.GetKind() {
		case "Deployment":
			var d appsv1.Deployment
			read(o, &d)
			controller = d.Spec.Template
		case "DaemonSet":
			var d appsv1.DaemonSet
			read(o, &d)
			program = d.Spec.Template
		}
	}
	return controller, program
}
