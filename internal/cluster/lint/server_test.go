package lint_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/swdt-dev/swdt/internal/sandbox/controlplane"
	"github.com/swdt-dev/swdt/internal/sandbox/controlplane/controlplanetest"
)

// TestAgreesWithARealAPIServer creates a pod for each field in each of its values, as a dry run, on a real API server, and
// compares the fields that it rejects. No difference is accepted. TestAgreesWithValidation does the same with its code,
// for more pods and two versions.
func TestAgreesWithARealAPIServer(t *testing.T) {
	plane := controlplanetest.Start(t, controlplane.Options{})
	config, err := clientcmd.BuildConfigFromFlags("", plane.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Burst = -1, 0 // no limit
	client := kubernetes.NewForConfigOrDie(config)
	const namespace = "lint"
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}} // pods are rejected without it
	if _, err := client.CoreV1().ServiceAccounts(namespace).Create(t.Context(), account, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	pods, rejected := onePerField(), 0
	for _, pod := range pods {
		pod["metadata"] = object{"name": "a", "namespace": namespace}
		text, err := json.Marshal(pod)
		if err != nil {
			t.Fatal(err)
		}
		err = client.CoreV1().RESTClient().Post().Namespace(namespace).Resource("pods").Param("dryRun", "All").
			SetHeader("Content-Type", "application/json").Body(text).Do(t.Context()).Error()
		var status *apierrors.StatusError
		if err != nil && (!errors.As(err, &status) || status.ErrStatus.Details == nil) {
			t.Fatalf("%s: %v", text, err)
		}
		want := []string{}
		if status != nil {
			rejected++
			for _, cause := range status.ErrStatus.Details.Causes {
				want = append(want, cause.Field)
			}
		}
		slices.Sort(want)
		if got := lintOf(t, pod, "privileged").fields; !slices.Equal(got, slices.Compact(want)) {
			t.Errorf("%s\n  lint: %v\nserver: %v, %v", text, got, want, err)
		}
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil || rejected == 0 {
		t.Fatal(err, rejected)
	}
	t.Logf("%d pods, %d rejected by Kubernetes %s", len(pods), rejected, strings.TrimPrefix(version.GitVersion, "v"))
}
