package manifests_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/swdt-dev/swdt/internal/rollout/manifests"
)

var update = flag.Bool("update", false, "write the table of rights anew")

// The guide has the rights of both programs, as the manifests grant them.
func TestTheRightsInTheGuide(t *testing.T) {
	const guide, begin, end = "../../../docs/guides/fleet.md", "<!-- rights -->\n", "<!-- end of rights -->"
	content, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(content), begin)
	listed, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no %s", guide, strings.TrimSpace(begin))
	}
	want := rights(t)
	if *update {
		if err := os.WriteFile(guide, []byte(before+begin+want+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if listed != want {
		t.Errorf("%s has other rights than the manifests: run this test with -update. Want:\n%s", guide, want)
	}
}

// rights returns a table of the rules of all roles.
func rights(t *testing.T) string {
	t.Helper()
	objects, err := manifests.Objects(manifests.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	text := "| account | namespace | API group | resources | verbs |\n|---|---|---|---|---|\n"
	rules := 0
	for _, o := range objects {
		if o.GetKind() != "ClusterRole" && o.GetKind() != "Role" {
			continue
		}
		bound(t, objects, o)
		var role rbacv1.Role // a ClusterRole has the same fields, and an aggregation that is not used here
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
			t.Fatal(err)
		}
		namespace := "all"
		if role.Namespace != "" {
			namespace = "`" + role.Namespace + "`"
		}
		for _, r := range role.Rules {
			rules++
			var groups []string
			for _, group := range r.APIGroups {
				groups = append(groups, "`"+group+"`")
			}
			resources := "`" + strings.Join(r.Resources, "`, `") + "`"
			if len(r.ResourceNames) > 0 {
				resources += " named `" + strings.Join(r.ResourceNames, "`, `") + "`"
			}
			text += fmt.Sprintf("| `%s` | %s | %s | %s | %s |\n", role.Name, namespace,
				strings.ReplaceAll(strings.Join(groups, ", "), "``", "core"), resources, strings.Join(r.Verbs, ", "))
		}
	}
	if rules < 5 {
		t.Errorf("the manifests have only %d rules", rules)
	}
	return text
}

// bound checks that a role is bound to the account of its name, and to no other.
func bound(t *testing.T, objects []*unstructured.Unstructured, role *unstructured.Unstructured) {
	t.Helper()
	bindings := 0
	for _, o := range objects {
		if o.GetKind() != role.GetKind()+"Binding" || o.GetNamespace() != role.GetNamespace() {
			continue
		}
		var b rbacv1.RoleBinding
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &b); err != nil {
			t.Fatal(err)
		}
		if b.RoleRef.Name != role.GetName() {
			continue
		}
		bindings++
		if len(b.Subjects) != 1 || b.Subjects[0].Kind != "ServiceAccount" || b.Subjects[0].Name != role.GetName() ||
			b.Subjects[0].Namespace != manifests.Namespace {
			t.Errorf("%s %s is bound to %+v", role.GetKind(), role.GetName(), b.Subjects)
		}
	}
	if bindings != 1 {
		t.Errorf("%s %s has %d bindings", role.GetKind(), role.GetName(), bindings)
	}
}
