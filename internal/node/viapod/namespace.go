package viapod

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
)

// podSecurity is the label by which Pod Security admission allows HostProcess pods.
const podSecurity = "pod-security.kubernetes.io/enforce"

// checkNamespace makes the namespace if it is missing. It returns an *OpenNamespaceError if others may get
// into the pods of the namespace, unless Options.Shared is set.
func (w *Way) checkNamespace(ctx context.Context) error {
	namespaces := w.c.Clientset().CoreV1().Namespaces()
	_, err := namespaces.Get(ctx, w.o.Namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = namespaces.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.o.Namespace,
			Labels: map[string]string{managedBy: manager, podSecurity: "privileged"}}}, metav1.CreateOptions{})
		w.namespace.made.Store(err == nil || apierrors.IsAlreadyExists(err)) // by another swdt at the same time
		if !w.namespace.made.Load() {
			return w.fail("make namespace "+w.o.Namespace, cluster.Permission{Verb: "create", Resource: "namespaces"}, err)
		}
		err = nil
	}
	if err != nil {
		return w.fail("read namespace "+w.o.Namespace,
			cluster.Permission{Verb: "get", Resource: "namespaces", Name: w.o.Namespace}, err)
	}
	if w.o.Shared {
		return nil
	}
	return w.checkOthers(ctx)
}

// subject is a user or a group of the cluster, with the words for messages.
type subject struct {
	user  string
	group string
	words string
}

// allGroups returns the groups that no administrator chooses one by one.
func allGroups() []subject {
	var all []subject
	for _, group := range []string{"system:authenticated", "system:unauthenticated", "system:serviceaccounts"} {
		all = append(all, subject{group: group, words: "group " + group})
	}
	return all
}

// checkOthers returns an *OpenNamespaceError if the API server allows others to get into the pods: the groups
// that have all users, or a subject of a RoleBinding in the namespace other than the user and the user's own groups.
//
// Subjects of ClusterRoleBindings are not examined: who may exec in each namespace is SYSTEM already, by the
// HostProcess pods of the cluster itself, such as kube-proxy.
func (w *Way) checkOthers(ctx context.Context) error {
	bound, err := w.boundHere(ctx)
	if err != nil {
		return err
	}
	open := &OpenNamespaceError{Namespace: w.o.Namespace}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for _, s := range append(allGroups(), bound...) {
		group.Go(func() error {
			in, err := w.getsIn(ctx, s)
			if err != nil || in == "" {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			open.Who = append(open.Who, s.words+" ("+in+")")
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if len(open.Who) > 0 {
		slices.Sort(open.Who)
		return open
	}
	return nil
}

// mostSubjects bounds the subjects of RoleBindings that are examined; a namespace of swdt's own has few.
const mostSubjects = 50

// boundHere returns the subjects of the RoleBindings in the namespace that are neither the user nor a group
// of the user.
func (w *Way) boundHere(ctx context.Context) ([]subject, error) {
	me, err := w.c.Clientset().AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{},
		metav1.CreateOptions{})
	if err != nil {
		return nil, w.fail("ask for the kubeconfig's user", cluster.Permission{Verb: "create",
			Group: authenticationv1.GroupName, Resource: "selfsubjectreviews"}, err)
	}
	own := me.Status.UserInfo
	list, err := w.c.Clientset().RbacV1().RoleBindings(w.o.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, w.fail("list the RoleBindings of namespace "+w.o.Namespace, cluster.Permission{Verb: "list",
			Group: rbacv1.GroupName, Resource: "rolebindings", Namespace: w.o.Namespace}, err)
	}
	var all []subject
	for _, binding := range list.Items {
		for _, s := range binding.Subjects {
			found := subject{words: bindingText(s.Kind, s.Name, binding.Name)}
			switch {
			case s.Kind == rbacv1.UserKind && s.Name != own.Username:
				found.user = s.Name
			case s.Kind == rbacv1.GroupKind && !slices.Contains(own.Groups, s.Name):
				found.group = s.Name
			case s.Kind == rbacv1.ServiceAccountKind:
				namespace := s.Namespace
				if namespace == "" {
					namespace = w.o.Namespace
				}
				if found.user = "system:serviceaccount:" + namespace + ":" + s.Name; found.user == own.Username {
					continue
				}
			default:
				continue
			}
			all = append(all, found)
		}
	}
	if len(all) > mostSubjects {
		return nil, &OpenNamespaceError{Namespace: w.o.Namespace, Who: []string{"many subjects of its RoleBindings"}}
	}
	return all, nil
}

// waysIn returns the requests by which a user of the cluster gets into a pod of the namespace, makes one that is
// SYSTEM on a node, or becomes another user who may.
func waysIn(namespace string) (all []cluster.Permission) {
	add := func(group string, resources []string, verbs ...string) {
		for _, resource := range resources {
			for _, verb := range verbs {
				all = append(all, cluster.Permission{Verb: verb, Group: group, Resource: resource, Namespace: namespace})
			}
		}
	}
	add("", []string{"pods/exec", "pods/attach"}, "create", "get")
	add("", []string{"pods"}, "create", "update", "patch")
	add("", []string{"pods/ephemeralcontainers"}, "update", "patch")
	// Controllers make pods of templates. A Job's template cannot be changed.
	add("", []string{"replicationcontrollers"}, "create", "update", "patch")
	add("apps", []string{"deployments", "daemonsets", "statefulsets", "replicasets"}, "create", "update", "patch")
	add("batch", []string{"cronjobs"}, "create", "update", "patch")
	add("batch", []string{"jobs"}, "create")
	// The controller of a fleet has an account here. A Secret can ask for the token of an account, too.
	add("", []string{"serviceaccounts/token", "secrets"}, "create")
	add("", []string{"serviceaccounts"}, "impersonate")
	// A role can be given more, and be given to more users.
	add(rbacv1.GroupName, []string{"roles"}, "escalate")
	add(rbacv1.GroupName, []string{"roles", "clusterroles"}, "bind")
	namespace = "" // users and groups are in none
	add("", []string{"users", "groups"}, "impersonate")
	return all
}

// getsIn returns the first way in that the API server allows to a subject, or "".
func (w *Way) getsIn(ctx context.Context, s subject) (string, error) {
	for _, p := range waysIn(w.o.Namespace) {
		allowed, err := w.c.OthersMay(ctx, s.user, s.group, p)
		if err != nil {
			return "", asDenied(err, w.o.Namespace)
		}
		if allowed {
			return p.Verb + " " + p.Resource, nil
		}
	}
	return "", nil
}
