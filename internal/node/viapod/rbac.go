package viapod

import (
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/internal/cluster"
)

// Needs returns the permissions that swdt needs to reach nodes through their cluster. The WebSocket of an
// exec is a GET request, which needs "get" and, since Kubernetes 1.35, also "create". SPDY needs "create".
func Needs(namespace string) []cluster.Permission {
	in := func(verb, group, resource string) cluster.Permission {
		return cluster.Permission{Verb: verb, Group: group, Resource: resource, Namespace: namespace}
	}
	return []cluster.Permission{
		{Verb: "get", Resource: "nodes"},
		{Verb: "get", Resource: "namespaces", Name: namespace},
		{Verb: "create", Group: "authorization.k8s.io", Resource: "subjectaccessreviews"},
		in("list", "rbac.authorization.k8s.io", "rolebindings"),
		in("create", "", "pods"), in("get", "", "pods"), in("list", "", "pods"), in("delete", "", "pods"),
		in("create", "", "pods/exec"), in("get", "", "pods/exec"),
	}
}

// Manifest returns the namespace and the least roles with which swdt works, as YAML for kubectl apply. The
// subject of the bindings is left to the administrator. lists reports whether the nodes are chosen by their
// labels, which needs a rule more.
func Manifest(namespace string, lists bool) string {
	if namespace == "" {
		namespace = DefaultNamespace
	}
	nodes := "[get]"
	if lists {
		nodes = "[get, list] # list: to choose nodes by their labels"
	}
	return strings.NewReplacer("NAMESPACE", namespace, "NODEVERBS", nodes).Replace(manifest)
}

// manifest has the rules of Needs, and the reading of events, which explain a pod that does not start.
const manifest = `# The least rights for swdt --via kubernetes. Whoever has them is SYSTEM on each
# Windows node of the cluster: bind them to administrators of the nodes alone.
# With them swdt does not make the namespace, so this file does.
apiVersion: v1
kind: Namespace
metadata:
  name: NAMESPACE
  labels:
    app.kubernetes.io/managed-by: swdt
    pod-security.kubernetes.io/enforce: privileged
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: swdt-via-NAMESPACE
rules:
- apiGroups: [""]
  resources: [nodes]
  verbs: NODEVERBS
- apiGroups: [""]
  resources: [namespaces]
  resourceNames: [NAMESPACE]
  verbs: [get]
- apiGroups: [authorization.k8s.io]
  resources: [subjectaccessreviews] # to see whether others get into the pods
  verbs: [create]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: swdt-via
  namespace: NAMESPACE
rules:
- apiGroups: [""]
  resources: [pods]
  verbs: [create, get, list, delete]
- apiGroups: [""]
  resources: [pods/exec]
  verbs: [create, get] # get: WebSocket; create: WebSocket since 1.35, and SPDY
- apiGroups: [""]
  resources: [events] # to say why a pod does not start
  verbs: [list]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [rolebindings] # to see whether others get into the pods
  verbs: [list]
# Then, for each administrator of the nodes:
#   kubectl create clusterrolebinding swdt-via-NAMESPACE --clusterrole=swdt-via-NAMESPACE --user=NAME
#   kubectl create rolebinding swdt-via -n NAMESPACE --role=swdt-via --user=NAME
`

func bindingText(kind, name, binding string) string {
	return fmt.Sprintf("%s %s (RoleBinding %s)", strings.ToLower(kind), name, binding)
}
