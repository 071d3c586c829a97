package kubeletargs

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// oldest is the minor version of the first supported kubelet, 1.22.
const oldest = 22

// minorOf returns y for a version 1.y.z. It returns an error if the text is not such a version, or
// if y is less than oldest.
func minorOf(text string) (int, error) {
	parsed, err := version.ParseGeneric(text)
	if err != nil || parsed.Major() != 1 {
		return 0, &FieldError{Field: "spec.kubernetes.version", What: fmt.Sprintf("%.60q is not a version of kubelet",
			text), Remedy: "write a version such as 1.36.3"}
	}
	if parsed.Minor() < oldest {
		return 0, &FieldError{Field: "spec.kubernetes.version", What: text + " is too old",
			Remedy: fmt.Sprintf("use 1.%d or newer", oldest)}
	}
	return int(parsed.Minor()), nil
}

// goneFlags maps each removed flag to the first minor version without it. From that version on,
// the flag makes kubelet end with "unknown flag". The list is from kubelet's sources.
func goneFlags() map[string]int {
	return map[string]int{
		// removed with dockershim
		"network-plugin": 24, "network-plugin-mtu": 24, "image-pull-progress-deadline": 24, "docker-endpoint": 24,
		"cni-bin-dir": 24, "cni-cache-dir": 24, "cni-conf-dir": 24, "non-masquerade-cidr": 24,
		"experimental-dockershim-root-directory": 24,

		"dynamic-config-dir":                                24,
		"really-crash-for-testing":                          24,
		"container-runtime":                                 27,
		"master-service-namespace":                          27,
		"keep-terminated-pod-volumes":                       31,
		"cloud-config":                                      34,
		"register-schedulable":                              34,
		"pod-infra-container-image":                         35,
		"experimental-check-node-capabilities-before-mount": 24,

		// klog's flags, which kube-log-runner replaces
		"log-dir": 26, "log-file": 26, "log-file-max-size": 26, "logtostderr": 26, "alsologtostderr": 26,
		"stderrthreshold": 26, "one-output": 26, "skip-headers": 26, "skip-log-headers": 26,
		"add-dir-header": 26, "log-backtrace-at": 26,
	}
}

// Gone reports whether a kubelet of this minor version, such as 36 for 1.36, no longer has the flag.
func Gone(flag string, minor int) bool {
	gone, ok := goneFlags()[flag]
	return ok && minor >= gone
}

// newFlags maps flags that kubelet got after 1.22 to their first minor version. For config-dir,
// this is the first version that accepts the flag without an environment variable.
func newFlags() map[string]int {
	return map[string]int{"config-dir": 30}
}

// separator returns what separates the elements of a flag whose value is a list, or "" for other flags. The flags are
// those whose repetition adds elements in kubelet's sources, and register-with-taints, of which kubelet itself would
// ignore all but the last.
func separator(flag string) string {
	switch flag {
	case "allowed-unsafe-sysctls", "cluster-dns", "cpu-manager-policy-options", "enforce-node-allocatable",
		"eviction-hard", "eviction-minimum-reclaim", "eviction-soft", "eviction-soft-grace-period", "feature-gates",
		"kube-reserved", "manifest-url-header", "node-labels", "qos-reserved", "register-with-taints", "system-reserved",
		"tls-cipher-suites", "topology-manager-policy-options":
		return ","
	case "reserved-memory":
		return ";"
	}
	return ""
}

// Refusal is a flag that makes a kubelet end at once, and the reason.
type Refusal struct{ Flag, Why string }

// Refused returns the given flags that a kubelet of this version does not support. The version may
// begin with v; if it cannot be parsed, Refused returns nil.
func Refused(version string, flags []string) (all []Refusal) {
	minor, err := minorOf(version)
	if err != nil {
		return nil
	}
	for _, name := range flags {
		if gone, ok := goneFlags()[name]; ok && minor >= gone {
			all = append(all, Refusal{name, fmt.Sprintf("which kubelet no longer supports since 1.%d", gone)})
		}
		if since, ok := newFlags()[name]; ok && minor < since {
			all = append(all, Refusal{name, fmt.Sprintf("which kubelet supports only since 1.%d", since)})
		}
	}
	return all
}

// checkLabel rejects a label that kubelet refuses to set on its node. Such a label belongs to
// Kubernetes itself, and nodes may not set it.
func checkLabel(key string) error {
	namespace, _, prefixed := strings.Cut(key, "/")
	if !prefixed || !isWithin(namespace, "kubernetes.io") && !isWithin(namespace, "k8s.io") {
		return nil
	}
	if isWithin(namespace, "kubelet.kubernetes.io") || isWithin(namespace, "node.kubernetes.io") {
		return nil
	}
	switch key {
	case "kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch",
		"topology.kubernetes.io/region", "topology.kubernetes.io/zone",
		"failure-domain.beta.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone",
		"beta.kubernetes.io/instance-type", "beta.kubernetes.io/os", "beta.kubernetes.io/arch":
		return nil
	}
	return &FieldError{
		Field:  fmt.Sprintf("%s.nodeLabels[%s]", kubeletField, key),
		What:   "is a label that kubelet may not give its node",
		Remedy: "use another prefix, such as node.kubernetes.io/, or label the node with kubectl once it has joined",
	}
}

// isWithin reports whether a namespace is a domain or a subdomain of it.
func isWithin(namespace, domain string) bool {
	return namespace == domain || strings.HasSuffix(namespace, "."+domain)
}
