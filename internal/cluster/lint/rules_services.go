package lint

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/swdt-dev/swdt/internal/ui/finding"
)

const serviceExample = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec:\n  selector: {app: web}\n  ports: [{port: 80}]\n"

// serviceRules are about Services whose pods run on Windows nodes.
func serviceRules() []Rule {
	const proxyAt = kubernetesAt + "pkg/proxy/winkernel/proxier.go"
	service := func(field string) string {
		return pod("metadata: {name: web, labels: {app: web}}", "") + "---\n" + serviceExample + indented(field, "  ")
	}
	return []Rule{
		{
			ID: "svc-affinity-timeout", Severity: finding.Warning, Effect: Ignored,
			Title:  "no Service of Windows pods has a timeout of its session affinity",
			Means:  "kube-proxy on Windows does not hand timeoutSeconds to the host network service. Affinity itself needs Windows Server 2022. 10800, which the API server writes, is not found.",
			Remedy: "remove sessionAffinityConfig", Source: proxyAt, object: affinityTimeout,
			Bad:  service("sessionAffinity: ClientIP\nsessionAffinityConfig: {clientIP: {timeoutSeconds: 60}}"),
			Good: service("sessionAffinity: ClientIP"),
		},
		{
			ID: "svc-source-ranges", Severity: finding.Warning, Effect: Ignored,
			Title:  "no Service of Windows pods restricts its sources",
			Means:  "kube-proxy on Windows does not implement loadBalancerSourceRanges. The load balancer of a cloud may.",
			Remedy: "restrict the sources at the load balancer, or with a NetworkPolicy",
			Source: "https://github.com/kubernetes/kubernetes/issues/120033", object: sourceRanges,
			Bad: service("type: LoadBalancer\nloadBalancerSourceRanges: [10.0.0.0/8]"), Good: service("type: LoadBalancer"),
		},
		{
			ID: "svc-topology", Severity: finding.Info, Effect: Ignored,
			Title:  "no Service of Windows pods prefers close endpoints",
			Means:  "kube-proxy on Windows nodes uses all endpoints: trafficDistribution has no effect for clients there.",
			Remedy: "do not rely on trafficDistribution", Source: proxyAt, object: distribution,
			Bad: service("trafficDistribution: PreferClose"), Good: service("internalTrafficPolicy: Cluster"),
		},
		{
			ID: "svc-target-port", Severity: finding.Warning, Effect: Changed,
			Title:  "the pods of a Service have the same number for a named target port",
			Means:  "a load balancer of the host network service has one port for all its endpoints: that of the endpoint which kube-proxy reads last. Connections to the others fail.",
			Remedy: "give the port the same number in all pods, or make a Service for each number", Source: proxyAt, object: targetPorts,
			Bad:  portOf("web-1", 80) + "---\n" + portOf("web-2", 8080) + "---\n" + namedPortExample,
			Good: portOf("web-1", 80) + "---\n" + portOf("web-2", 80) + "---\n" + namedPortExample,
		},
		{
			ID: "svc-dual-stack", Severity: finding.Info, Effect: Changed,
			Title:  "Services of Windows pods have IPv4 alone, unless the pod network is l2bridge",
			Means:  "on overlay networks, kube-proxy falls back to one family. Dual stack needs a network of the type l2bridge and Windows Server 2022, and before Kubernetes 1.36 both families could share a load balancer.",
			Remedy: "write ipFamilyPolicy: SingleStack and ipFamilies: [IPv4] if the pod network is an overlay", Source: kubernetesAt + "pkg/proxy/winkernel/proxier.go",
			object: dualStack,
			Bad:    service("ipFamilyPolicy: RequireDualStack"), Good: service("ipFamilyPolicy: SingleStack"),
		},
	}
}

const namedPortExample = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec:\n  selector: {app: web}\n  ports: [{port: 80, targetPort: http}]\n"

// portOf returns a healthy pod whose port http has a number.
func portOf(name string, number int) string {
	return strings.Replace(pod("metadata: {name: "+name+", labels: {app: web}}", ""), "    resources:",
		fmt.Sprintf("    ports: [{name: http, containerPort: %d}]\n    resources:", number), 1)
}

// serviceOf reads a Service that selects pods for Windows; nil: it is another object.
func serviceOf(o *object, m *manifests) *corev1.ServiceSpec {
	if o.kind != "Service" || o.group != "" || !m.selectWindows(o.namespace, o.texts(path{"spec", "selector"})) {
		return nil
	}
	var spec corev1.ServiceSpec
	if o.decode(path{"spec"}, &spec) != nil {
		return nil
	}
	return &spec
}

func affinityTimeout(o *object, m *manifests, found report) {
	s := serviceOf(o, m)
	if s == nil || s.SessionAffinityConfig == nil || s.SessionAffinityConfig.ClientIP == nil {
		return
	}
	if seconds := s.SessionAffinityConfig.ClientIP.TimeoutSeconds; seconds != nil && *seconds != corev1.DefaultClientIPServiceAffinitySeconds {
		found(seen{at: path{"spec", "sessionAffinityConfig"}, what: "the timeout of the session affinity has no effect on Windows nodes"})
	}
}

func sourceRanges(o *object, m *manifests, found report) {
	if s := serviceOf(o, m); s != nil && len(s.LoadBalancerSourceRanges) > 0 {
		found(seen{at: path{"spec", "loadBalancerSourceRanges"}, what: "kube-proxy on Windows nodes lets all sources through"})
	}
}

func targetPorts(o *object, m *manifests, found report) {
	s := serviceOf(o, m)
	if s == nil {
		return
	}
	selected := m.selected(o.namespace, o.texts(path{"spec", "selector"}))
	for i, port := range s.Ports {
		if port.TargetPort.Type != intstr.String || port.TargetPort.StrVal == "" {
			continue
		}
		if !m.spend(len(selected)) {
			return
		}
		numbers := map[int32]string{}
		for _, p := range selected {
			if number, ok := p.port(port.TargetPort.StrVal); ok {
				numbers[number] = p.object.String()
			}
		}
		if len(numbers) > 1 {
			found(seen{at: path{"spec", "ports"}.index(i).child("targetPort"), what: fmt.Sprintf("%s is %d different ports of the pods, and Windows uses one for all: %s",
				port.TargetPort.StrVal, len(numbers), listed(numbers))})
		}
	}
}

// listed returns ports with an object that has them, such as "80 (Deployment web), 8080 (Deployment api)".
func listed(numbers map[int32]string) string {
	var all []string
	for _, number := range slices.Sorted(maps.Keys(numbers)) {
		all = append(all, fmt.Sprintf("%d (%s)", number, numbers[number]))
	}
	return strings.Join(all[:min(len(all), mostPlaces)], ", ")
}

// port returns the number of a port with a name.
func (p *pods) port(name string) (number int32, ok bool) {
	if p.ports == nil {
		p.ports = map[string]int32{}
		for _, c := range p.spec.Containers {
			for _, port := range c.Ports {
				if _, known := p.ports[port.Name]; !known {
					p.ports[port.Name] = port.ContainerPort
				}
			}
		}
	}
	number, ok = p.ports[name]
	return number, ok
}

func dualStack(o *object, m *manifests, found report) {
	s := serviceOf(o, m)
	if s == nil {
		return
	}
	if s.IPFamilyPolicy != nil && *s.IPFamilyPolicy != corev1.IPFamilyPolicySingleStack {
		found(seen{at: path{"spec", "ipFamilyPolicy"}, what: fmt.Sprintf("%s needs a pod network of the type l2bridge on Windows nodes", *s.IPFamilyPolicy)})
	} else if slices.Contains(s.IPFamilies, corev1.IPv6Protocol) {
		found(seen{at: path{"spec", "ipFamilies"}, what: "IPv6 needs a pod network of the type l2bridge on Windows nodes"})
	}
}

func distribution(o *object, m *manifests, found report) {
	if s := serviceOf(o, m); s != nil && s.TrafficDistribution != nil {
		found(seen{at: path{"spec", "trafficDistribution"}, what: fmt.Sprintf("trafficDistribution %s has no effect on Windows nodes", *s.TrafficDistribution)})
	}
}
