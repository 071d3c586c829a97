package apiserver

import (
	"crypto/subtle"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	groupMasters = "system:masters"
	groupNodes   = "system:nodes"
	// groupJoining is the group of joining nodes, to which kubeadm grants their rights.
	groupJoining       = "system:bootstrappers:kubeadm:default-node-token"
	groupBootstrappers = "system:bootstrappers"
	groupAuthenticated = "system:authenticated"
	nodeUser           = "system:node:"
)

// user is the sender of a request.
type user struct {
	name   string
	groups []string
}

// authenticate returns the sender of a request, by its client certificate or bootstrap token.
func (c *Cluster) authenticate(r *http.Request) (user, error) {
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		subject := r.TLS.VerifiedChains[0][0].Subject
		return user{subject.CommonName, append(slices.Clone(subject.Organization), groupAuthenticated)}, nil
	}
	bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return user{"system:anonymous", []string{"system:unauthenticated"}}, nil
	}
	id, secret, _ := strings.Cut(bearer, ".")
	token, ok := c.token(id)
	if !ok || !token.authentication || subtle.ConstantTimeCompare([]byte(token.secret), []byte(secret)) != 1 {
		return user{}, apierrors.NewUnauthorized("Unauthorized")
	}
	groups := append([]string{groupBootstrappers, groupAuthenticated}, token.groups...)
	return user{"system:bootstrap:" + id, groups}, nil
}

// allowed reports whether the sender may send the request. It decides as the RBAC rules of kubeadm's clusters
// (cmd/kubeadm/app/phases/bootstraptoken) and the node authorizer (plugin/pkg/auth/authorizer) do, and by the roles that
// are stored.
func (c *Cluster) allowed(r Request) bool {
	in := func(group string) bool { return slices.Contains(r.groups, group) }
	switch {
	case in(groupMasters):
		return true
	case r.Resource == "":
		return mayDiscover(r, in(groupAuthenticated))
	case r.is("configmaps", "get") && r.Namespace == "kube-public" && r.Name == clusterInfoName:
		return true
	case in(groupAuthenticated) && strings.HasPrefix(r.Resource, "selfsubject"):
		return true
	case in(groupJoining) && joiningMay(r):
		return true
	case in(groupNodes):
		return nodeMay(r)
	}
	return c.granted(r)
}

// mayDiscover reports whether a sender may read a path that is no resource: the roles system:public-info-viewer and
// system:discovery (kubernetes v1.36.3, plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go).
func mayDiscover(r Request, authenticated bool) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(r.Path, "/"), "/")
	switch {
	case r.Verb != "get":
		return false
	case slices.Contains([]string{"api", "apis", "openapi"}, first):
		return authenticated
	}
	return slices.Contains([]string{"/version", "/version/", "/healthz", "/livez", "/readyz"}, r.Path)
}

func (r Request) is(resource string, verbs ...string) bool {
	return r.Resource == resource && slices.Contains(verbs, r.Verb)
}

func (r Request) readsKubeadmConfig() bool {
	return r.is("configmaps", "get") && r.Namespace == "kube-system" &&
		(r.Name == kubeletConfigName || r.Name == kubeadmConfigName)
}

func joiningMay(r Request) bool {
	return r.is("certificatesigningrequests", "create", "get", "list", "watch") || r.is("nodes", "get") ||
		r.readsKubeadmConfig()
}

// nodeMay reports whether a kubelet may send the request. Kubelets may change only their own
// objects.
func nodeMay(r Request) bool {
	own := r.Name == strings.TrimPrefix(r.User, nodeUser)
	switch {
	case r.is("nodes", "create"), r.is("nodes", "get", "list", "watch"):
		return true
	case r.is("nodes", "update", "patch"):
		return own
	case r.Resource == "leases" && r.Namespace == "kube-node-lease":
		return own || r.Verb == "create"
	case r.is("csinodes", "create", "get", "update", "patch"), r.is("events", "create", "patch", "update"):
		return true
	case r.is("pods", "get", "list", "watch", "delete"), r.Resource == "pods" && r.Subresource == "status":
		return true
	case r.is("services", "list", "watch"), r.is("certificatesigningrequests", "create", "get", "list", "watch"):
		return true
	}
	return r.readsKubeadmConfig()
}

func forbidden(r Request) error {
	if r.Resource == "" {
		//lint:ignore ST1005 the real API server has this text
		text := fmt.Errorf("User %q cannot %s path %q", r.User, r.Verb, r.Path)
		return apierrors.NewForbidden(schema.GroupResource{}, "", text)
	}
	where := "at the cluster scope"
	if r.Namespace != "" {
		where = fmt.Sprintf("in the namespace %q", r.Namespace)
	}
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: r.Group, Resource: r.Resource}, r.Name,
		//lint:ignore ST1005 the real API server has this text
		fmt.Errorf("User %q cannot %s resource %q in API group %q %s", r.User, r.Verb, resource, r.Group, where))
}

// admit refuses, completes or accepts the object o that results from a request. before is the
// stored object, or nil for a new object. admit must not call the store, since call.change calls
// admit while the store is locked.
func (c *Cluster) admit(r Request, before, o object) error {
	if r.Group == "" && r.Resource == "pods" && before == nil {
		c.startPod(o)
	}
	if r.Group == "" && r.Resource == "services" && before == nil {
		c.giveClusterIP(o)
	}
	if r.Group != "" || r.Resource != "nodes" {
		return nil
	}
	if strings.HasPrefix(r.User, nodeUser) {
		if err := restrictNode(r, before, o); err != nil {
			return err
		}
	}
	if before == nil {
		taintNewNode(o)
	}
	return nil
}

// restrictNode does the work of the NodeRestriction admission plugin on nodes (kubernetes v1.36.3,
// plugin/pkg/admission/noderestriction/admission.go, admitNode).
func restrictNode(r Request, before, o object) error {
	refused := func(format string, args ...any) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, r.Name, fmt.Errorf(format, args...))
	}
	if own := strings.TrimPrefix(r.User, nodeUser); r.Name != own {
		return refused("node %q is not allowed to modify node %q", own, r.Name)
	}
	bad := strings.Join(foreignChanges(texts(before, "metadata", "labels"), texts(o, "metadata", "labels")), ", ")
	switch {
	case before == nil && bad != "":
		return refused("node %q is not allowed to set the following labels: %s", r.Name, bad)
	case before != nil && r.Subresource == "" && !equalJSON(field(before, "spec", "taints"), field(o, "spec", "taints")):
		return refused("node %q is not allowed to modify taints", r.Name)
	case bad != "":
		return refused("is not allowed to modify labels: %s", bad)
	}
	return nil
}

// foreignChanges returns the labels that differ, and that a kubelet may not set.
func foreignChanges(before, after map[string]string) (bad []string) {
	for name, value := range after {
		if old, ok := before[name]; (!ok || old != value) && !kubeletLabel(name) {
			bad = append(bad, name)
		}
	}
	for name := range before {
		if _, stays := after[name]; !stays && !kubeletLabel(name) {
			bad = append(bad, name)
		}
	}
	slices.Sort(bad)
	return bad
}

// kubeletLabel reports whether a kubelet may set a label of its node (k8s.io/kubelet/pkg/apis, IsKubeletLabel).
func kubeletLabel(name string) bool {
	domain, _, qualified := strings.Cut(name, "/")
	inDomain := func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) }
	switch {
	case !qualified, inDomain("kubelet.kubernetes.io"), inDomain("node.kubernetes.io"):
		return true
	case slices.Contains([]string{
		"kubernetes.io/hostname", "kubernetes.io/arch", "kubernetes.io/os", "beta.kubernetes.io/instance-type",
		"beta.kubernetes.io/os", "beta.kubernetes.io/arch", "topology.kubernetes.io/zone",
		"topology.kubernetes.io/region",
		"failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
	}, name):
		return true
	}
	return !inDomain("kubernetes.io") && !inDomain("k8s.io")
}

// review answers a sender's question about itself or, for a SubjectAccessReview, about others. It sets the
// status of o to the sender's name and groups or, for an access review, to the answer whether the subject
// may send the request that o describes.
func (c *Cluster) review(r Request, resource Resource, o object) object {
	o["apiVersion"], o["kind"] = resource.apiVersion(), resource.Kind
	if resource.Kind == "SelfSubjectReview" {
		groups := []any{}
		for _, group := range r.groups {
			groups = append(groups, group)
		}
		o["status"] = object{"userInfo": object{"username": r.User, "groups": groups}}
		return o
	}
	sender := user{r.User, r.groups}
	if resource.Kind == "SubjectAccessReview" {
		sender = user{name: text(o, "spec", "user")}
		if groups, ok := field(o, "spec", "groups").([]any); ok {
			for _, group := range groups {
				sender.groups = append(sender.groups, fmt.Sprint(group))
			}
		}
	}
	asked := func(name string) string { return text(o, "spec", "resourceAttributes", name) }
	about := Request{
		Verb: asked("verb"), Group: asked("group"), Resource: asked("resource"), Subresource: asked("subresource"),
		Namespace: asked("namespace"), Name: asked("name"), User: sender.name, groups: sender.groups,
	}
	o["status"] = object{"allowed": c.allowed(about)}
	return o
}
