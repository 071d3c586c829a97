// Package kubeproxy is the model of kube-proxy on Windows: it computes which objects the Host Network Service (HNS) of a
// node must hold for the Services of a cluster, and compares them with those that it holds. It contacts nothing.
//
//   - kubeproxy.go: the settings of a kube-proxy; metrics.go: its metrics
//   - cluster.go: Services with their backends, from the objects of the API server
//   - wanted.go: the load balancers that a Service needs on a node
//   - node.go: the objects of a node's HNS, by address and by front end
//   - compare.go, balancers.go, orphans.go, endpoints.go: compare both
//   - findings.go, affected.go: the results; defects.go: the known defects that explain them
//
// The rules are those of pkg/proxy/winkernel of kubernetes 1.33.13 to 1.37.2 (proxier.go, hns.go), which differ between
// versions if a comment says so. ADR 64 has the reasons for a model of its own.
package kubeproxy

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
)

// Settings are those of the kube-proxy of one node.
type Settings struct {
	Node      string     `json:"node"`      // the name of its Node object, by which it knows its own pods
	Version   string     `json:"version"`   // such as v1.36.3; "" if unknown
	Network   string     `json:"network"`   // the HNS network of its endpoints
	SourceVIP string     `json:"sourceVIP"` // its address in an overlay network; "" if unknown
	NodeIP    netip.Addr `json:"nodeIP"`    // invalid if unknown
	DSR       bool       `json:"dsr"`       // direct server return (--enable-dsr)
	// Families are the IP families that it programs. On an overlay network, and on old versions of Windows, it is one.
	Families []corev1.IPFamily `json:"families"`
	// ForwardHealthCheckVIP makes it forward health checks of a cloud's load balancer to the endpoint RootEndpoint. Without a
	// health check port of the Service, they go to HealthzPort.
	ForwardHealthCheckVIP bool   `json:"forwardHealthCheckVIP"`
	RootEndpoint          string `json:"rootEndpoint"`
	HealthzPort           uint16 `json:"healthzPort"`
}

// programs reports whether kube-proxy programs an IP family.
func (s Settings) programs(f corev1.IPFamily) bool { return slices.Contains(s.Families, f) }

// before reports whether kube-proxy is older than a version. It reports false if the version is unknown.
func (s Settings) before(other string) bool {
	v, err := version.ParseSemantic(s.Version)
	return err == nil && v.LessThan(version.MustParseSemantic(other))
}

// familyOf returns the family of an address; "" for an invalid one.
func familyOf(a netip.Addr) corev1.IPFamily {
	switch {
	case a.Is4():
		return corev1.IPv4Protocol
	case a.Is6():
		return corev1.IPv6Protocol
	}
	return ""
}

// parseAddr reads an address as kube-proxy does, whose parser also takes leading zeros. It returns the invalid address for
// any other text.
func parseAddr(text string) netip.Addr {
	a, err := netip.ParseAddr(text)
	if err != nil {
		return sloppy(text)
	}
	return a.Unmap().WithZone("")
}

// sloppy reads an IPv4 address with leading zeros.
func sloppy(text string) netip.Addr {
	parts := strings.Split(text, ".")
	for i, part := range parts {
		if trimmed := strings.TrimLeft(part, "0"); trimmed != "" {
			parts[i] = trimmed
		} else if part != "" {
			parts[i] = "0"
		}
	}
	a, err := netip.ParseAddr(strings.Join(parts, "."))
	if err != nil || !a.Is4() {
		return netip.Addr{}
	}
	return a
}

// DefaultMetricsURL is where kube-proxy serves its metrics by default, on the node itself; its configuration is beside them.
const DefaultMetricsURL = "http://127.0.0.1:10249/metrics"
