package placement_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/cluster/placement"
)

// A pod that names its node is on that node alone.
func TestAPodThatNamesItsNode(t *testing.T) {
	for node, refuses := range map[string]bool{"win-1": false, "win-2": true} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
		if why := placement.Refuses(n, corev1.PodSpec{NodeName: "win-1"}); (why != "") != refuses {
			t.Errorf("%s: %q", node, why)
		}
	}
}
