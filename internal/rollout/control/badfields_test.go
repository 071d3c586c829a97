package control_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
)

// fullContent and fullRollout set every field that the schema has.
const fullContent = `
    setup:
      enableRDP: true
      chocoPackages: [git]
      features: [Containers]
      hosts: [{address: 192.0.2.1, names: [registry.example]}]
      environment: {A: b}
      path: ['C:\k']
      firewall: [{name: kubelet, direction: in, action: allow, protocol: tcp, ports: '10250', profiles: any,
        addresses: 192.0.2.0/24}]
    provisioners:
      - name: kubelet
        version: v1.37.2
        sourceURL: https://binaries.example/kubelet.exe
        sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
        destination: 'C:\k\kubelet.exe'
        service: kubelet
        overwrite: true
        args: [--v=2]
        dependsOn: [containerd]
        health: {httpGet: 'http://127.0.0.1:10248/healthz', criPipe: '\\.\pipe\containerd-containerd', none: false,
          settle: 1s, timeout: 60s, stopTimeout: 30s}
`

const fullRollout = `
apiVersion: fleet.swdt.dev/v1alpha1
kind: NodeRollout
metadata: {name: tried}
spec:
  selector:
    matchLabels: {pool: a}
    matchExpressions: [{key: pool, operator: In, values: [a]}]
  content:` + fullContent + `
  maxUnavailable: 10%
  failureLimit: 1
  onFailure: rollback
  acceptedFailures: {hash: 0123456789abcdef, nodes: 1}
  canary: [{nodes: 1, pause: 10m}]
  window: {days: [Mon], start: '22:00', end: '05:00', timeZone: UTC}
  drain: {timeout: 5m, gracePeriod: 30s, deleteEmptyDir: true, force: true}
  health: {settle: 10s, timeout: 5m}
  progressDeadline: 15m
  paused: false
  operation: Roll
`

const fullState = `
apiVersion: fleet.swdt.dev/v1alpha1
kind: NodeState
metadata: {name: tried}
spec:
  rollout: r
  hash: 0123456789abcdef
  action: Apply
  released: true
  since: '2026-11-24T00:00:00Z'
  verdict: Updated
  reason: none
  rollbackGeneration: 1
  content:` + fullContent

// mistake is a wrong value of a field.
type mistake struct {
	path  string // spec.canary[0].pause
	what  string
	value any // nil: the field is missing
}

// mistakes returns wrong values of each field in value that a schema allows, and reports fields that value lacks.
func mistakes(t *testing.T, s apiextensions.JSONSchemaProps, value any, path string) (all []mistake) {
	add := func(what string, wrong any) { all = append(all, mistake{path, what, wrong}) }
	types := map[string]any{"string": int64(5), "integer": "many", "boolean": "perhaps", "array": "one", "object": "one"}
	if wrong, ok := types[s.Type]; ok {
		add("type", wrong)
	}
	if s.XIntOrString {
		add("type", true)
		add("pattern", "many")
		add("minimum", int64(0))
	}
	if len(s.Enum) > 0 {
		add("enum", "Nonsense")
	}
	if s.Pattern != "" && !s.XIntOrString {
		if regexp.MustCompile(s.Pattern).MatchString("§") {
			t.Errorf("%s: the pattern allows §", path)
		}
		add("pattern", "§")
	}
	if s.Minimum != nil {
		add("minimum", int64(*s.Minimum)-1)
	}
	if s.MinLength != nil {
		add("minLength", strings.Repeat("x", int(*s.MinLength)-1))
	}
	if s.MaxLength != nil {
		add("maxLength", strings.Repeat("x", int(*s.MaxLength)+1))
	}
	if s.MinItems != nil {
		add("minItems", []any{})
	}
	switch v := value.(type) {
	case []any:
		if s.MaxItems != nil {
			add("maxItems", slices.Repeat(v, int(*s.MaxItems)+1))
		}
		all = append(all, mistakes(t, *s.Items.Schema, v[0], path+"[0]")...)
	case map[string]any:
		for name, field := range s.Properties {
			below := path + "." + name
			if _, ok := v[name]; !ok {
				t.Errorf("the full object has no %s", below)
				continue
			}
			if slices.Contains(s.Required, name) {
				all = append(all, mistake{below, "required", nil})
			}
			all = append(all, mistakes(t, field, v[name], below)...)
		}
	}
	return all
}

// set returns an object with another value at a path.
func set(t *testing.T, text string, m mistake) *unstructured.Unstructured {
	t.Helper()
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	var at any = object
	names := strings.FieldsFunc(m.path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
	for i, name := range names {
		last := i == len(names)-1
		switch here := at.(type) {
		case map[string]any:
			switch {
			case last && m.value == nil:
				delete(here, name)
			case last:
				here[name] = m.value
			}
			at = here[name]
		case []any:
			if last {
				here[0] = m.value
			}
			at = here[0]
		}
	}
	u := &unstructured.Unstructured{}
	content, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(content, &u.Object)
	}
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// allMistakes returns the mistakes in the spec of a kind.
func allMistakes(t *testing.T, kind, text string) []mistake {
	t.Helper()
	content, err := os.ReadFile("../manifests/fleet.swdt.dev_" + kind + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensions.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(content, &crd); err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	all := mistakes(t, spec, object["spec"], "spec")
	if len(all) < 50 {
		t.Errorf("%s: only %d mistakes", kind, len(all))
	}
	return all
}

// The full objects have every field of the schemas, so that no field is forgotten on the real API server.
func TestEveryFieldIsTried(t *testing.T) {
	t.Logf("%d and %d mistakes", len(allMistakes(t, "noderollouts", fullRollout)),
		len(allMistakes(t, "nodestates", fullState)))
}

// testEveryField tries each mistake in each field of both kinds. The API server refuses it, and names the field.
func (l *lab) testEveryField(t *testing.T) {
	for kind, text := range map[string]string{"noderollouts": fullRollout, "nodestates": fullState} {
		resource := l.admin.Dynamic().Resource(fleetv1.GroupVersion().WithResource(kind))
		try := func(u *unstructured.Unstructured) error {
			_, err := resource.Create(t.Context(), u, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll},
				FieldValidation: metav1.FieldValidationStrict})
			return err
		}
		if err := try(set(t, text, mistake{path: "nothing"})); err != nil {
			t.Fatalf("%s: the full object is refused: %v", kind, err)
		}
		for _, m := range allMistakes(t, kind, text) {
			err := try(set(t, text, m))
			name := fmt.Sprintf("%s: %s of %s", kind, m.what, m.path)
			switch {
			case !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err):
				t.Errorf("%s is not refused: %v", name, err)
			case !strings.Contains(err.Error(), m.path):
				t.Errorf("%s: the message does not name the field: %v", name, err)
			}
		}
	}
}
