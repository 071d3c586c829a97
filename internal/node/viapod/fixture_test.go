package viapod_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/node/viapod"
)

type attributes = authorizationv1.ResourceAttributes

// world is a cluster in memory with one Windows node, whose kubelet runs each pod at once.
type world struct {
	t       *testing.T
	client  *fake.Clientset
	records string

	mu      sync.Mutex
	state   func(*corev1.Pod)                           // what the kubelet reports
	refuse  func(verb, resource string) error           // the API server's refusals
	may     func(user, group string, a attributes) bool // what others may do
	missing string                                      // VERB RESOURCE that the user may not do
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, client: fake.NewClientset(), records: t.TempDir(), state: running}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-1",
		Labels: map[string]string{"kubernetes.io/os": "windows"}}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if err := w.client.Tracker().Add(n); err != nil {
		t.Fatal(err)
	}
	w.client.PrependReactor("*", "*", w.react)
	return w
}

func running(p *corev1.Pod) {
	p.Status.Phase = corev1.PodRunning
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "node", ContainerID: "containerd://1",
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
}

func waiting(reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "node", Image: p.Spec.Containers[0].Image,
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
	}
}

func (w *world) react(action clienttesting.Action) (bool, runtime.Object, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	resource := action.GetResource().Resource
	if action.GetSubresource() != "" {
		resource += "/" + action.GetSubresource()
	}
	if w.refuse != nil {
		if err := w.refuse(action.GetVerb(), resource); err != nil {
			return true, nil, err
		}
	}
	if create, ok := action.(clienttesting.CreateAction); ok && action.GetVerb() == "create" {
		switch o := create.GetObject().(type) {
		case *corev1.Pod:
			o.UID = "uid-of-pod"
			w.state(o)
		case *authenticationv1.SelfSubjectReview:
			o.Status.UserInfo = authenticationv1.UserInfo{Username: "me", Groups: []string{"us", "system:authenticated"}}
			return true, o, nil
		case *authorizationv1.SelfSubjectAccessReview:
			a := o.Spec.ResourceAttributes
			o.Status.Allowed = a.Verb+" "+a.Resource != w.missing
			return true, o, nil
		case *authorizationv1.SubjectAccessReview:
			group := strings.Join(o.Spec.Groups, ",")
			o.Status.Allowed = w.may != nil && w.may(o.Spec.User, group, *o.Spec.ResourceAttributes)
			return true, o, nil
		}
	}
	return false, nil, nil
}

func (w *world) way(change ...func(*viapod.Options)) *viapod.Way {
	o := viapod.Options{Node: "win-1", Records: w.records, StartLimit: time.Second}
	for _, c := range change {
		c(&o)
	}
	return viapod.New(cluster.FromClients("https://api:6443", w.client, nil), o)
}

// pods returns swdt's pods.
func (w *world) pods() []corev1.Pod {
	w.t.Helper()
	list, err := w.client.CoreV1().Pods("swdt-system").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// nothingIsLeft fails the test if a pod or a record is left.
func (w *world) nothingIsLeft() {
	w.t.Helper()
	if pods := w.pods(); len(pods) > 0 {
		w.t.Errorf("left the pod %s", pods[0].Name)
	}
	left, err := filepath.Glob(filepath.Join(w.records, "*"))
	if err != nil || len(left) > 0 {
		w.t.Errorf("left the records %v, %v", left, err)
	}
}

func forbidden(resource string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("the server says no"))
}

func (w *world) add(objects ...runtime.Object) {
	w.t.Helper()
	for _, o := range objects {
		if err := w.client.Tracker().Add(o); err != nil {
			w.t.Fatal(err)
		}
	}
}
