package viapod

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/wait"
)

const (
	managedBy, manager = "app.kubernetes.io/managed-by", "swdt"
	viaLabel           = cluster.ViaLabel // on each pod of this package
	// ownerAnnotation names the user and the machine that have made the pod, for people.
	ownerAnnotation = "swdt.dev/owner"
	namePrefix      = "swdt-via-"
	container       = "node"
	// deadline is the longest life of a pod, in seconds. The kubelet ends the pod then, whatever has
	// become of its swdt. A command that takes longer makes a new pod.
	deadline = 4 * 60 * 60
	// graceSeconds is the time that the pod's program has to end.
	graceSeconds = 1
	system       = `NT AUTHORITY\SYSTEM`
)

// WaitCommand returns a command for a HostProcess container that waits for about as many seconds, with any image.
// ping.exe is the only program that each Windows has, and that waits without a console.
func WaitCommand(seconds int) []string {
	return []string{"cmd.exe", "/d", "/c", "ping.exe", "-n", strconv.Itoa(seconds), "127.0.0.1", ">nul"}
}

// podOf returns the pod to make. Its program waits for the pod's end: agents come by exec.
func podOf(o Options, name, priority string) *corev1.Pod {
	yes, no, life, grace, user := true, false, int64(deadline), int64(graceSeconds), system
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: o.Namespace,
			Labels:      map[string]string{managedBy: manager, viaLabel: name},
			Annotations: map[string]string{ownerAnnotation: owner()},
		},
		Spec: corev1.PodSpec{
			NodeName:                      o.Node, // no scheduler: the node may be cordoned or full
			OS:                            &corev1.PodOS{Name: corev1.Windows},
			HostNetwork:                   true,
			RestartPolicy:                 corev1.RestartPolicyNever,
			ActiveDeadlineSeconds:         &life,
			TerminationGracePeriodSeconds: &grace,
			AutomountServiceAccountToken:  &no,
			EnableServiceLinks:            &no,
			PriorityClassName:             priority,
			Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			SecurityContext: &corev1.PodSecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{
				HostProcess: &yes, RunAsUserName: &user,
			}},
			Containers: []corev1.Container{{
				Name: container, Image: o.Image, ImagePullPolicy: corev1.PullIfNotPresent,
				Command: WaitCommand(deadline + 60),
			}},
		},
	}
}

// owner returns the user and the machine that make a pod, for people who find it.
func owner() string {
	name, host := "unknown", "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return fmt.Sprintf("%s@%s, process %d", name, host, os.Getpid())
}

const (
	// critical makes the kubelet evict other pods before this one. Some clusters allow the class in
	// kube-system only.
	critical = "system-node-critical"
	// accountLimit bounds the time until a new namespace has its service account, without which the API
	// server refuses pods.
	accountLimit = 20 * time.Second
)

// makePod makes the pod and its record.
func (w *Way) makePod(ctx context.Context) error {
	name := namePrefix + strings.ToLower(rand.Text())[:16]
	own, err := w.records().begin(w.c.Server(), cluster.Pod{Namespace: w.o.Namespace, Name: name}, w.o)
	if err != nil {
		return err
	}
	w.o.Reporter.Step("starting a pod on %s", w.o.Node)
	pod, none, err := w.create(ctx, name)
	switch {
	case err != nil && none:
		own.forget()
		return err
	case err != nil: // the pod may have been made, or still be made
		w.remove(ctx, own)
		own.release()
		return err
	}
	own.UID = string(pod.UID)
	w.pod = own
	if err := own.save(); err != nil {
		w.abandon(ctx)
		return err
	}
	return nil
}

// provesNoPod reports whether the error is an answer of the API server after which there is no pod. An error of the
// server or of a load balancer (5xx) is none, since etcd may have the pod all the same. After a conflict, the pod may
// be that of an earlier attempt of client-go.
func provesNoPod(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return false
	}
	code := answer.Status().Code
	return code >= 400 && code < 500 && code != http.StatusRequestTimeout && code != http.StatusConflict
}

// create makes the pod, with the critical priority if the cluster allows it. With an error, none reports whether it is
// sure that there is no pod.
func (w *Way) create(ctx context.Context, name string) (pod *corev1.Pod, none bool, err error) {
	needs := cluster.Permission{Verb: "create", Resource: "pods", Namespace: w.o.Namespace}
	var refused error
	err = wait.Condition{
		Name: "the API server to admit the pod", Interval: 500 * time.Millisecond, Limit: accountLimit,
		Look: func(ctx context.Context) error {
			for _, priority := range []string{critical, ""} {
				var err error
				pod, err = w.request(ctx, podOf(w.o, name, priority))
				none = provesNoPod(err)
				if err == nil {
					return nil
				}
				if !apierrors.IsForbidden(err) {
					return wait.Stop(w.fail("make pod "+name, needs, err))
				}
				if refused == nil || priority != "" {
					refused = err
				}
			}
			missing, err := w.c.Missing(ctx, []cluster.Permission{needs})
			if err != nil {
				return wait.Stop(err)
			}
			if len(missing) > 0 {
				return wait.Stop(w.fail("make pod "+name, needs, refused))
			}
			admission := &NotAdmittedError{Namespace: w.o.Namespace, Err: refused}
			return wait.StopIf(!w.namespace.made.Load(), admission)
		},
	}.Wait(ctx)
	var over *wait.Error
	if err != nil && refused != nil && ctx.Err() == nil && errors.As(err, &over) {
		return nil, none, &NotAdmittedError{Namespace: w.o.Namespace, Err: refused}
	}
	return pod, none, err
}

// answerLimit bounds the wait for the answer after Ctrl-C.
const answerLimit = 3 * time.Second

// request makes the pod. It waits for the answer also after Ctrl-C: a request that is cut off may make the pod all
// the same.
func (w *Way) request(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	answered, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		limit := time.NewTimer(answerLimit)
		defer limit.Stop()
		select {
		case <-limit.C:
			cancel()
		case <-answered.Done():
		}
	})()
	return w.c.Clientset().CoreV1().Pods(w.o.Namespace).Create(answered, pod, metav1.CreateOptions{})
}

// runs reports whether the pod of a record still runs.
func (w *Way) runs(ctx context.Context, r *record) (bool, error) {
	pod, err := w.c.Clientset().CoreV1().Pods(r.Namespace).Get(ctx, r.Pod, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, w.fail("read pod "+r.Pod, w.podPermission("get", r.Namespace), err)
	}
	id, running := runningContainer(pod)
	return running && string(pod.UID) == r.UID && pod.DeletionTimestamp == nil && id == r.Container, nil
}

// runningContainer returns the ID of the pod's container if the container runs.
func runningContainer(pod *corev1.Pod) (id string, running bool) {
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == container && c.State.Running != nil {
			return c.ContainerID, true
		}
	}
	return "", false
}

// removePod deletes the pod of a record, unless another pod has its name by now.
func (w *Way) removePod(ctx context.Context, r *record) error {
	o := metav1.DeleteOptions{}
	if r.UID != "" {
		o.Preconditions = metav1.NewUIDPreconditions(r.UID)
	}
	err := w.c.Clientset().CoreV1().Pods(r.Namespace).Delete(ctx, r.Pod, o)
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return w.fail("remove pod "+r.Namespace+"/"+r.Pod, w.podPermission("delete", r.Namespace), err)
}

// checkRemoval returns an error if the user may not remove pods, or not find those to remove: a pod that stays
// is a way onto the node.
func (w *Way) checkRemoval(ctx context.Context) error {
	missing, err := w.c.Missing(ctx, []cluster.Permission{w.podPermission("delete", w.o.Namespace),
		w.podPermission("list", w.o.Namespace)})
	if err != nil {
		return asDenied(err, w.o.Namespace)
	}
	if len(missing) == 0 {
		return nil
	}
	return asDenied(&cluster.ForbiddenError{Doing: "make a pod and remove it again", Missing: missing[0],
		Err: errors.New("so its pod would stay")}, w.o.Namespace)
}

func (w *Way) podPermission(verb, namespace string) cluster.Permission {
	return cluster.Permission{Verb: verb, Resource: "pods", Namespace: namespace}
}
