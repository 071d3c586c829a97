package capture

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/inspect/hns"
)

// UnknownError names pods or Services without a known address: they do not exist, or have
// no address of their own, like pods on the host network and headless Services.
type UnknownError struct {
	Kind  string // pod, Service
	Names []string
	Asked string // a text about the sources that were asked
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("no %s %s with an address of its own: %s; --kubeconfig names the cluster to ask", e.Kind,
		strings.Join(e.Names, ", "), e.Asked)
}

// ParseName returns an error unless text is NAMESPACE/NAME.
func ParseName(text string) error {
	namespace, name, ok := strings.Cut(text, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return fmt.Errorf("%q: write NAMESPACE/NAME", text)
	}
	return nil
}

// PodAddresses returns the addresses of the named pods. The error is an *UnknownError if a pod has
// no address of its own, such as a pod on the host network.
func PodAddresses(known hns.Known, names []string) ([]netip.Prefix, error) {
	return find(names, "pod", asked(known, "the nodes' container runtimes were asked"), func(name string) []string {
		for _, pod := range slices.Concat(known.Here, known.Everywhere) {
			if pod.String() == name && len(pod.IPs) > 0 {
				return pod.IPs
			}
		}
		return nil
	})
}

// ServiceAddresses returns the addresses of the named Services and of the Services' endpoints,
// since behind the virtual switch, packets have the addresses of endpoints.
func ServiceAddresses(known hns.Known, states []hns.State, names []string) ([]netip.Prefix, error) {
	return find(names, "Service", asked(known, "no cluster was asked"), func(name string) (all []string) {
		for _, service := range known.Services {
			if service.String() != name {
				continue
			}
			all = append(all, service.IPs...)
			for _, state := range states {
				all = append(all, backends(state, service)...)
			}
		}
		return all
	})
}

func asked(known hns.Known, others string) string {
	if known.Cluster {
		return "the cluster was asked"
	}
	return others
}

func backends(state hns.State, service hns.Service) (all []string) {
	for _, balancer := range state.LoadBalancers {
		if !slices.ContainsFunc(balancer.VIPs, func(vip string) bool { return slices.Contains(service.IPs, vip) }) {
			continue
		}
		for _, id := range balancer.Endpoints {
			if endpoint, ok := state.Endpoint(id); ok && endpoint.IP() != "" {
				all = append(all, endpoint.IP())
			}
		}
	}
	return all
}

func find(names []string, kind, asked string, addresses func(string) []string) (all []netip.Prefix, err error) {
	unknown := &UnknownError{Kind: kind, Asked: asked}
	for _, name := range names {
		found := addresses(name)
		if len(found) == 0 {
			unknown.Names = append(unknown.Names, name)
		}
		for _, text := range found {
			address, parseErr := ParseAddress(text)
			err = errors.Join(err, parseErr)
			if !slices.Contains(all, address) {
				all = append(all, address)
			}
		}
	}
	if len(unknown.Names) > 0 {
		return nil, unknown
	}
	return all, err
}

// ByAddress returns the pods of a node by their addresses.
func ByAddress(pods []hns.Pod) map[netip.Addr]string {
	byAddress := map[netip.Addr]string{}
	for _, pod := range pods {
		for _, ip := range pod.IPs {
			if address, err := netip.ParseAddr(ip); err == nil {
				byAddress[address] = pod.String()
			}
		}
	}
	return byAddress
}
