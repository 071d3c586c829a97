package apiserver

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ofRBAC ends the full names of RBAC's resources.
const ofRBAC = "." + rbacv1.GroupName

// granted reports whether a role of the store, which a binding gives to the sender, allows the request.
func (c *Cluster) granted(r Request) bool {
	if r.Resource == "" {
		return false
	}
	bindings, _ := c.store.list("clusterrolebindings"+ofRBAC, "")
	if r.Namespace != "" {
		here, _ := c.store.list("rolebindings"+ofRBAC, r.Namespace)
		bindings = append(bindings, here...)
	}
	return slices.ContainsFunc(bindings, func(o object) bool {
		var binding rbacv1.RoleBinding // a ClusterRoleBinding has the same fields
		if runtime.DefaultUnstructuredConverter.FromUnstructured(o, &binding) != nil ||
			!slices.ContainsFunc(binding.Subjects, r.isSubject) {
			return false
		}
		at := key{"clusterroles" + ofRBAC, "", binding.RoleRef.Name}
		if binding.RoleRef.Kind == "Role" {
			at = key{"roles" + ofRBAC, binding.Namespace, binding.RoleRef.Name}
		}
		var role rbacv1.Role
		stored, ok := c.store.get(at)
		return ok && runtime.DefaultUnstructuredConverter.FromUnstructured(stored, &role) == nil &&
			slices.ContainsFunc(role.Rules, r.ruleAllows)
	})
}

// isSubject reports whether a subject of a binding is the sender. Service accounts send no requests here.
func (r Request) isSubject(s rbacv1.Subject) bool {
	return s.Kind == rbacv1.UserKind && s.Name == r.User || s.Kind == rbacv1.GroupKind && slices.Contains(r.groups, s.Name)
}

func (r Request) ruleAllows(rule rbacv1.PolicyRule) bool {
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	has := func(list []string, word string) bool {
		return slices.Contains(list, word) || slices.Contains(list, "*")
	}
	return has(rule.Verbs, r.Verb) && has(rule.APIGroups, r.Group) && has(rule.Resources, resource) &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, r.Name))
}
