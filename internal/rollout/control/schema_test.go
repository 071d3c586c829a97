package control_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
)

const goodRollout = `
apiVersion: fleet.swdt.dev/v1alpha1
kind: NodeRollout
metadata: {name: tried}
spec:
  selector: {}
  content:
    provisioners:
      - name: kubelet
        sourceURL: https://binaries.example/kubelet.exe
        sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
        destination: 'C:\k\kubelet.exe'
`

// testBadObjects checks that the API server refuses wrong fields, and names them.
func (l *lab) testBadObjects(t *testing.T) {
	rollouts := l.admin.Dynamic().Resource(fleetv1.RolloutResource())
	try := func(text string) error {
		t.Helper()
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatal(err)
		}
		_, err := rollouts.Create(t.Context(), u, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll},
			FieldValidation: metav1.FieldValidationStrict})
		return err
	}
	if err := try(goodRollout); err != nil {
		t.Fatalf("a good object is refused: %v", err)
	}
	for _, bad := range []struct{ old, new, field string }{
		{"https://", "https://user:secret@", "spec.content.provisioners[0].sourceURL"},
		{"https://", "oci://user:secret@", "spec.content.provisioners[0].sourceURL"},
		{"https://binaries.example/kubelet.exe", "oci://registry.example", "spec.content.provisioners[0].sourceURL"},
		{"https://binaries.example/kubelet.exe", "oci://registry.example/team/node:dev", ""},
		{"https://binaries.example/kubelet.exe", "oci+http://registry.example:5000/node@sha256:0123", ""},
		{"https://", "file://", "spec.content.provisioners[0].sourceURL"},
		{"https://binaries.example", "C:", "spec.content.provisioners[0].sourceURL"},
		{"kubelet.exe\n", "$SECRET\n", "spec.content.provisioners[0].sourceURL"},
		{"0123456789abcdef\n", "\n", "spec.content.provisioners[0].sha256"},
		{`C:\k\`, `k\`, "spec.content.provisioners[0].destination"},
		{"selector: {}", "selector: {}\n  maxUnavailable: 0", "spec.maxUnavailable"},
		{"selector: {}", "selector: {}\n  maxUnavailable: 10", ""},
		{"selector: {}", "selector: {}\n  maxUnavailable: 10%", ""},
		{"selector: {}", "selector: {}\n  maxUnavailable: 101%", "spec.maxUnavailable"},
		{"selector: {}", "selector: {}\n  failureLimit: 0", "spec.failureLimit"},
		{"selector: {}", "selector: {}\n  canary: [{nodes: 0}]", "spec.canary[0].nodes"},
		{"selector: {}", "selector: {}\n  canary: [{nodes: 1, pause: soon}]", "spec.canary[0].pause"},
		{"selector: {}", "selector: {}\n  window: {start: '25:00', end: '06:00'}", "spec.window.start"},
		{"selector: {}", "selector: {}\n  onFailure: ignore", "spec.onFailure"},
		{"selector: {}", "selector: {}\n  operation: Explode", "spec.operation"},
		{"selector: {}", "selector: {matchExpressions: [{key: a, operator: Like, values: [b]}]}",
			"spec.selector.matchExpressions"},
		{"selector: {}", "selector: {matchExpressions: [{key: a, operator: In}]}", "spec.selector.matchExpressions"},
		{"selector: {}", "selector: {matchExpressions: [{key: a, operator: Exists}]}", ""},
		{"name: tried", "name: tried-" + strings.Repeat("x", 60), "metadata.name"},
		{"name: kubelet", "nmae: kubelet", "nmae"},
		{"sha256:", "sha265:", "sha265"},
	} {
		err := try(strings.Replace(goodRollout, bad.old, bad.new, 1))
		switch {
		case bad.field == "" && err == nil:
		case bad.field == "":
			t.Errorf("%q is refused: %v", bad.new, err)
		case !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err):
			t.Errorf("%q is not refused: %v", bad.new, err)
		case !strings.Contains(err.Error(), bad.field):
			t.Errorf("%q: the message does not name %s: %v", bad.new, bad.field, err)
		}
	}
}
