package smoke

import (
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/swdt-dev/swdt/internal/cluster"
)

const (
	// serverName is the name of the Linux pod and of its Service. It has only one part, so that a
	// Windows pod can resolve the Service's name.
	serverName = "server"
	// account is the pods' ServiceAccount. The account named default would only appear some time
	// after the namespace.
	account = "smoke"
	// container is the name of the only container of each pod.
	container = "agnhost"
	// serverPort is the port on which the pods' servers listen, and servicePort is the port of the
	// Service. The two ports differ, so that a request to the Service succeeds only if the node
	// translates the Service's address.
	serverPort, servicePort = 8080, 80

	roleLabel = "swdt.dev/smoke-role"
)

// windowsPod returns the pod for a Windows node.
func windowsPod(namespace, name, image string, n cluster.Node) *corev1.Pod {
	pod := newPod(namespace, name, image)
	pod.Spec.OS = &corev1.PodOS{Name: corev1.Windows}
	pod.Spec.NodeSelector = map[string]string{corev1.LabelOSStable: windows}
	pod.Spec.Tolerations = tolerated(n)
	pod.Spec.Affinity = onNode(n.Name)
	user := "ContainerUser"
	pod.Spec.SecurityContext.WindowsOptions = &corev1.WindowsSecurityContextOptions{RunAsUserName: &user}
	return pod
}

// linuxPod returns the server's pod.
func linuxPod(namespace, image string) *corev1.Pod {
	pod := newPod(namespace, serverName, image)
	pod.Labels[roleLabel] = serverName
	pod.Spec.OS = &corev1.PodOS{Name: corev1.Linux}
	pod.Spec.NodeSelector = map[string]string{corev1.LabelOSStable: linux}
	var others []corev1.NodeSelectorRequirement
	for _, key := range controlPlaneTaints() {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations,
			corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule})
		others = append(others, corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpDoesNotExist})
	}
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
			Weight: 1, Preference: corev1.NodeSelectorTerm{MatchExpressions: others}}},
	}}
	user, no := int64(65534), false
	pod.Spec.SecurityContext.RunAsUser = &user
	pod.Spec.SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	return pod
}

// newPod returns the part that the Windows pods and the Linux pod have in common: an HTTP server
// that does not run as root and gets no token.
func newPod(namespace, name, image string) *corev1.Pod {
	no, yes, grace := false, true, int64(1)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{managedBy: manager}},
		Spec: corev1.PodSpec{
			ServiceAccountName: account, AutomountServiceAccountToken: &no, EnableServiceLinks: &no,
			RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: &grace,
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes},
			Containers: []corev1.Container{{
				Name: container, Image: image,
				Args:                     []string{"netexec", "--http-port=" + strconv.Itoa(serverPort), "--udp-port=-1"},
				Ports:                    []corev1.ContainerPort{{ContainerPort: serverPort}},
				TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("64Mi")}},
			}},
		},
	}
}

// service returns the Service of the server.
func service(namespace string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: serverName,
			Labels: map[string]string{managedBy: manager}},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{roleLabel: serverName},
			Ports:    []corev1.ServicePort{{Port: servicePort, TargetPort: intstr.FromInt32(serverPort)}},
		},
	}
}

// serviceAccount returns the pods' ServiceAccount, which has no rights.
func serviceAccount(namespace string) *corev1.ServiceAccount {
	no := false
	return &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account,
			Labels: map[string]string{managedBy: manager}},
		AutomountServiceAccountToken: &no,
	}
}

func hostPort(host string, port int32) string { return net.JoinHostPort(host, strconv.Itoa(int(port))) }
