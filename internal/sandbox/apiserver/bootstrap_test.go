package apiserver_test

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/swdt-dev/swdt/internal/sandbox/apiserver"
)

func TestATokenSignsAndExpires(t *testing.T) {
	f := start(t, apiserver.Options{})
	secrets := f.client.CoreV1().Secrets("kube-system")
	if _, err := secrets.Create(t.Context(), tokenSecret("abcdef", "0123456789abcdef", time.Now().Add(time.Hour)),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	anonymous := f.as(t, "")
	signature := func() string {
		info, err := anonymous.CoreV1().ConfigMaps("kube-public").Get(t.Context(), "cluster-info", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return info.Data["jws-kubeconfig-abcdef"]
	}
	await(t, "the token's signature", func() bool { return signature() != "" })
	if _, err := anonymous.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "kubelet-config",
		metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("anybody reads kubelet-config: %v", err)
	}
	joining := f.as(t, "abcdef.0123456789abcdef")
	if _, err := joining.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "kubelet-config",
		metav1.GetOptions{}); err != nil {
		t.Errorf("a joining node reads kubelet-config: %v", err)
	}
	if _, err := joining.CoreV1().Secrets("kube-system").List(t.Context(),
		metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a joining node reads secrets: %v", err)
	}
	if _, err := f.as(t, "abcdef.wrongwrongwrongw").CoreV1().Nodes().Get(t.Context(), "node-n",
		metav1.GetOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("a wrong token: %v", err)
	}
	f.SetClock(2 * time.Hour)
	await(t, "the end of the token's signature", func() bool { return signature() == "" })
	if _, err := secrets.Get(t.Context(), "bootstrap-token-abcdef", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the expired token: %v", err)
	}
	if _, err := joining.CoreV1().Nodes().Get(t.Context(), "node-n",
		metav1.GetOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("an expired token: %v", err)
	}
}

func TestANodeThatIsNotHeardOf(t *testing.T) {
	f := start(t, apiserver.Options{NodeGrace: 50 * time.Millisecond})
	for _, name := range []string{"planted", "node-n"} {
		f.plant(t, "apiVersion: v1\nkind: Node\nmetadata: {name: "+name+"}")
		if _, err := f.client.CoreV1().Nodes().Patch(t.Context(), name, types.StrategicMergePatchType,
			[]byte(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`), metav1.PatchOptions{},
			"status"); err != nil {
			t.Fatal(err)
		}
	}
	f.plant(t, "apiVersion: coordination.k8s.io/v1\nkind: Lease\n"+
		"metadata: {name: node-n, namespace: kube-node-lease}")
	await(t, "a node that is not known to be ready", func() bool {
		n, err := f.client.CoreV1().Nodes().Get(t.Context(), "node-n", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return n.Status.Conditions[0].Status == "Unknown" && len(n.Status.Conditions) == 4 &&
			n.Status.Conditions[3].Reason == "NodeStatusNeverUpdated" && hasTaint(n, "node.kubernetes.io/unreachable")
	})
	planted, err := f.client.CoreV1().Nodes().Get(t.Context(), "planted", metav1.GetOptions{})
	if err != nil || planted.Status.Conditions[0].Status != "True" {
		t.Errorf("a node without a lease: %v, %+v", err, planted.Status.Conditions)
	}
}
