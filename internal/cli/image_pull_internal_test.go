package cli

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
)

// A node pulls the images of pods that are scheduled to it alone: by selectors, affinity and taints.
func TestANodePullsWhatIsScheduledToIt(t *testing.T) {
	table, err := kubesettings.Load()
	if err != nil {
		t.Fatal(err)
	}
	r := upgradecheck.NewReader(table)
	r.Documents([]byte(`
{kind: Pod, apiVersion: v1, metadata: {name: a}, spec: {os: {name: windows}, containers: [{image: any}]}}
---
{kind: Pod, apiVersion: v1, metadata: {name: b}, spec: {os: {name: windows}, nodeSelector: {pool: a}, containers: [{image: selected}]}}
---
kind: Pod
apiVersion: v1
metadata: {name: c}
spec:
  os: {name: windows}
  tolerations: [{key: gpu, operator: Exists}]
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
    {matchExpressions: [{key: pool, operator: NotIn, values: [a]}]}]}}}
  containers: [{image: tolerated}]
`), upgradecheck.Place{File: "pods.yaml"})
	node := func(pool string, taints ...corev1.Taint) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: pool, Labels: map[string]string{"pool": pool}}, Spec: corev1.NodeSpec{Taints: taints}}
	}
	w := wanted{pods: r.Pods, nodes: map[string]*corev1.Node{"a": node("a"),
		"b": node("b", corev1.Taint{Key: "gpu", Effect: corev1.TaintEffectNoSchedule})}}
	for name, want := range map[string][]string{"a": {"named", "any", "selected"}, "b": {"named", "tolerated"}} {
		if got := w.on(name, []string{"named"}); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if got := (wanted{pods: r.Pods}).on("", nil); len(got) != 3 {
		t.Errorf("without a cluster: %v", got)
	}
}
