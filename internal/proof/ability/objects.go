package ability

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/join/smoke"
	"github.com/swdt-dev/swdt/internal/proof/leftover"
	"github.com/swdt-dev/swdt/internal/proof/probepod"
)

const (
	// prefix begins the name of the namespace of a run.
	prefix = "swdt-ability-"
	// roleLabel marks the pods behind the Services.
	roleLabel, backend = "swdt.dev/ability-role", "backend"
	serverPort         = 8080
	servicePort        = 80
)

// makeNamespace makes the namespace of the run, and the ServiceAccount of its pods.
func (w *run) makeNamespace(ctx context.Context, record *leftover.Run) error {
	random := make([]byte, 4)
	_, _ = rand.Read(random) // never fails
	name := prefix + hex.EncodeToString(random)
	err := record.MakeNamespace(ctx, w.c, name, map[string]string{"pod-security.kubernetes.io/enforce": "restricted"})
	if err != nil {
		return err
	}
	w.namespace = name
	_, err = w.c.Clientset().CoreV1().ServiceAccounts(name).Create(ctx, smoke.NewAccount(name), metav1.CreateOptions{})
	return w.refused("make ServiceAccount "+smoke.Account, "serviceaccounts", err)
}

// refused explains the failure to make an object; nil if err is nil.
func (w *run) refused(doing, resource string, err error) error {
	return w.c.Failure(doing+" in namespace "+w.namespace,
		cluster.Permission{Verb: "create", Resource: resource, Namespace: w.namespace}, err)
}

func (w *run) imageFor(n cluster.Node) string {
	if systemOf(n) == windows {
		return w.Image
	}
	return w.LinuxImage
}

// newPod returns a pod for a node. Its container runs agnhost with these arguments, and has a folder for the
// probe.
func (w *run) newPod(name string, n cluster.Node, args ...string) *corev1.Pod {
	pod := smoke.NewPod(w.namespace, name, w.imageFor(n), n, args...)
	probepod.Mount(pod, probepod.PlaceOf(systemOf(n), false))
	return pod
}

// server returns the arguments of an HTTP server.
func server() []string {
	return []string{"netexec", fmt.Sprintf("--http-port=%d", serverPort), "--udp-port=-1"}
}

// limit gives the pod's container limits of CPU time and memory.
func limit(pod *corev1.Pod) {
	pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(cpuLimitMillis, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(memoryLimitBytes, resource.BinarySI),
	}
}

// newService returns a Service in front of the backends.
func (w *run) newService(name string, change func(*corev1.ServiceSpec)) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{roleLabel: backend},
			Ports:    []corev1.ServicePort{{Port: servicePort, TargetPort: intstr.FromInt32(serverPort)}},
		},
	}
	if change != nil {
		change(&s.Spec)
	}
	return s
}
