package lint

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

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
	}
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

func distribution(o *object, m *manifests, found report) {
	if s := serviceOf(o, m); s != nil && s.TrafficDistribution != nil {
		found(seen{at: path{"spec", "trafficDistribution"}, what: fmt.Sprintf("trafficDistribution %s has no effect on Windows nodes", *s.TrafficDistribution)})
	}
}
