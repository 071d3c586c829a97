package cli_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/swdt-dev/swdt/internal/cluster"
)

// boundRoles binds the printed roles to a user.
const boundRoles = `
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: op}
subjects: [{kind: User, name: op, apiGroup: rbac.authorization.k8s.io}]
roleRef: {kind: ClusterRole, name: swdt-via-swdt-system, apiGroup: rbac.authorization.k8s.io}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: op, namespace: swdt-system}
subjects: [{kind: User, name: op, apiGroup: rbac.authorization.k8s.io}]
roleRef: {kind: Role, name: swdt-via, apiGroup: rbac.authorization.k8s.io}
`

// onlyRule is one verb on one resource of a role.
type onlyRule struct {
	verb, group, resource string
	clusterWide           bool
}

// rulesOf lists the rules of roles one by one.
func rulesOf(clusterWide, namespaced []rbacv1.PolicyRule) (all []onlyRule) {
	for _, each := range []struct {
		rules       []rbacv1.PolicyRule
		clusterWide bool
	}{{clusterWide, true}, {namespaced, false}} {
		for _, rule := range each.rules {
			for _, verb := range rule.Verbs {
				all = append(all, onlyRule{verb, rule.APIGroups[0], rule.Resources[0], each.clusterWide})
			}
		}
	}
	return all
}

// without returns the rules without one.
func (o onlyRule) without(rules []rbacv1.PolicyRule) (left []rbacv1.PolicyRule) {
	for _, rule := range rules {
		if rule.Resources[0] == o.resource && rule.APIGroups[0] == o.group {
			rule.Verbs = slices.DeleteFunc(slices.Clone(rule.Verbs), func(v string) bool { return v == o.verb })
		}
		left = append(left, rule)
	}
	return left
}

// permission returns the words by which an error names the rule. The error names the object, too; pods/exec has
// one permission for both verbs.
func (o onlyRule) permission() string {
	switch o.resource {
	case "nodes":
		return "may not " + o.verb + " nodes"
	case "pods/exec":
		return "--subresource=exec -n swdt-system: "
	}
	p := cluster.Permission{Verb: o.verb, Group: o.group, Resource: o.resource, Namespace: "swdt-system"}
	if o.clusterWide {
		p.Namespace = ""
	}
	if o.resource == "namespaces" {
		p.Name = "swdt-system"
	}
	return "may not " + p.String()
}

// With the printed role every command works. Without any one of its rules a command fails with exit code 3 and
// names the rule; so no rule is superfluous. The API server is the simulated one, which evaluates roles.
func TestEachRuleOfThePrintedRoleIsNeeded(t *testing.T) {
	m := newMixed(t)
	_, roles, _ := m.swdt("status", "--print-rbac", "-l", "pool")
	text, err := m.cluster.KubeconfigOf("op")
	kubeconfig := filepath.Join(t.TempDir(), "op")
	if err := errors.Join(err, m.cluster.Plant(roles+boundRoles), os.WriteFile(kubeconfig, text, 0o600)); err != nil {
		t.Fatal(err)
	}
	administrator, err := cluster.Open(cluster.Options{Kubeconfig: strings.TrimPrefix(m.via, "kubernetes,kubeconfig=")})
	if err != nil {
		t.Fatal(err)
	}
	m.via = "kubernetes,kubeconfig=" + kubeconfig
	for _, args := range [][]string{
		{"status", "-l", "pool=a"}, {"status", "-n", "win-1"}, {"exec", "-n", "win-1", "--", "hostname"},
		{"logs", "kubelet", "-n", "win-1", "--tail", "1"}, {"ps", "-l", "pool in (a,b)"},
	} {
		if code, _, stderr := m.swdtBefore(args); code != 0 || strings.Contains(stderr, "warning") {
			t.Errorf("%v: exit code %d\n%s", args, code, stderr)
		}
	}
	client := administrator.Clientset()
	clusterRole, err := client.RbacV1().ClusterRoles().Get(t.Context(), "swdt-via-swdt-system", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	role, err := client.RbacV1().Roles("swdt-system").Get(t.Context(), "swdt-via", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := rulesOf(clusterRole.Rules, role.Rules)
	if len(all) != 12 {
		t.Errorf("the role has %d rules", len(all))
	}
	for _, rule := range all {
		if rule.resource == "events" {
			continue // needed if a pod does not start: TestEventsThatMayNotBeRead of package viapod
		}
		t.Run(rule.verb+" "+rule.resource, func(t *testing.T) {
			m.t = t
			setRules(t, client, rule.without(clusterRole.Rules), rule.without(role.Rules))
			choice := []string{"-n", "win-1"}
			if rule.verb+" "+rule.resource == "list nodes" {
				choice = []string{"-l", "pool=a"}
			}
			code, _, stderr := m.swdt(append([]string{"status"}, choice...)...)
			for _, want := range []string{rule.permission(), "--print-rbac"} {
				if code != 3 || !strings.Contains(stderr, want) {
					t.Errorf("exit code %d, want 3 and %q:\n%s", code, want, stderr)
				}
			}
		})
	}
}

func setRules(t *testing.T, client kubernetes.Interface, clusterWide, namespaced []rbacv1.PolicyRule) {
	t.Helper()
	ctx := context.Background()
	clusterRole, err := client.RbacV1().ClusterRoles().Get(ctx, "swdt-via-swdt-system", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	role, err := client.RbacV1().Roles("swdt-system").Get(ctx, "swdt-via", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	clusterRole.Rules, role.Rules = clusterWide, namespaced
	_, err = client.RbacV1().ClusterRoles().Update(ctx, clusterRole, metav1.UpdateOptions{})
	if err == nil {
		_, err = client.RbacV1().Roles("swdt-system").Update(ctx, role, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}
