package cluster

import (
	"context"
	"strings"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Permission is an action that RBAC may allow.
type Permission struct {
	Verb      string `json:"verb"`
	Group     string `json:"group,omitempty"` // "" is the core group
	Resource  string `json:"resource"`        // such as pods or pods/eviction, or a path such as /version
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// String returns the permission as arguments of kubectl auth can-i, such as create secrets
// -n kube-system.
func (p Permission) String() string {
	resource, sub, _ := strings.Cut(p.Resource, "/")
	if p.Group != "" {
		resource += "." + p.Group
	}
	if p.isPath() {
		resource, sub = p.Resource, ""
	}
	s := p.Verb + " " + resource
	if p.Name != "" {
		s += "/" + p.Name
	}
	if sub != "" {
		s += " --subresource=" + sub
	}
	if p.Namespace != "" {
		s += " -n " + p.Namespace
	}
	return s
}

func (p Permission) isPath() bool { return strings.HasPrefix(p.Resource, "/") }

// Missing returns the needed permissions that the kubeconfig's user does not have.
func (c *Cluster) Missing(ctx context.Context, needed []Permission) ([]Permission, error) {
	has := make([]bool, len(needed))
	var group errgroup.Group
	group.SetLimit(reviewsAtOnce)
	for i, p := range needed {
		group.Go(func() (err error) {
			has[i], err = c.may(ctx, p)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var missing []Permission
	for i, p := range needed {
		if !has[i] {
			missing = append(missing, p)
		}
	}
	return missing, nil
}

// reviewsAtOnce bounds the questions about permissions that the API server gets at the same time.
const reviewsAtOnce = 8

// may reports whether the user has a permission.
func (c *Cluster) may(ctx context.Context, p Permission) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: p.spec()}
	answer, err := c.client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, c.fail("ask what the kubeconfig's user may do", Permission{
			Verb: "create", Group: authorizationv1.GroupName, Resource: "selfsubjectaccessreviews"}, err)
	}
	return answer.Status.Allowed, nil
}

// OthersMay reports whether a user or a group has a permission; the other one of the two is "".
func (c *Cluster) OthersMay(ctx context.Context, user, group string, p Permission) (bool, error) {
	own := p.spec()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user, ResourceAttributes: own.ResourceAttributes, NonResourceAttributes: own.NonResourceAttributes}}
	if group != "" {
		review.Spec.Groups = []string{group}
	}
	answer, err := c.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, c.fail("ask what others may do", Permission{
			Verb: "create", Group: authorizationv1.GroupName, Resource: "subjectaccessreviews"}, err)
	}
	return answer.Status.Allowed, nil
}

func (p Permission) spec() authorizationv1.SelfSubjectAccessReviewSpec {
	if p.isPath() {
		return authorizationv1.SelfSubjectAccessReviewSpec{
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: p.Resource, Verb: p.Verb}}
	}
	resource, sub, _ := strings.Cut(p.Resource, "/")
	return authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Verb: p.Verb, Group: p.Group, Resource: resource, Subresource: sub, Namespace: p.Namespace, Name: p.Name}}
}

// JoinNeeds returns the permissions that joining a node requires.
func JoinNeeds() []Permission {
	secrets := Permission{Resource: "secrets", Namespace: metav1.NamespaceSystem}
	nodes := Permission{Resource: "nodes"}
	configMaps := Permission{Resource: "configmaps"}
	return []Permission{
		secrets.to("create"), secrets.to("list"), secrets.to("delete"),
		configMaps.in(metav1.NamespacePublic).to("get"), configMaps.in(metav1.NamespaceSystem).to("get"),
		nodes.to("get"), nodes.to("patch"), leasePermission(),
	}
}

// DrainNeeds returns the permissions that draining a node requires.
func DrainNeeds() []Permission {
	nodes := Permission{Resource: "nodes"}
	return []Permission{
		nodes.to("get"), nodes.to("patch"), podsPermission(),
		{Verb: "get", Group: "apps", Resource: "daemonsets"},
		evictionPermission(corev1.NamespaceAll),
		{Verb: "list", Group: policyv1.GroupName, Resource: "poddisruptionbudgets"},
	}
}

func (p Permission) to(verb string) Permission {
	p.Verb = verb
	return p
}

func (p Permission) in(namespace string) Permission {
	p.Namespace = namespace
	return p
}

func podsPermission() Permission { return Permission{Verb: "list", Resource: "pods"} }

func evictionPermission(namespace string) Permission {
	return Permission{Verb: "create", Resource: "pods/eviction", Namespace: namespace}
}
