package proxier

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// balancer is the load balancer of the first port of a Service, and that of its node port.
type balancer struct {
	vip              string
	external, target int32
	nodePort         int32    // 0: none
	sticky           bool     // session affinity
	optimized        bool     // false for the annotation winProxyOptimization: disabled
	endpoints        []string // sorted addresses
}

func (b balancer) id() string { return guid(fmt.Sprintf("balancer %s %d", b.vip, b.external)) }

// wantedBalancers returns the load balancers of all Services that have ready endpoints, by the Services'
// names.
func wantedBalancers(services, all []any) map[string]balancer {
	addresses := map[string][]string{}
	targets := map[string]int32{}
	for _, object := range all {
		slice, ok := object.(*discoveryv1.EndpointSlice)
		if !ok || slice.AddressType != discoveryv1.AddressTypeIPv4 || len(slice.Ports) == 0 || slice.Ports[0].Port == nil {
			continue
		}
		of := slice.Namespace + "/" + slice.Labels[discoveryv1.LabelServiceName]
		targets[of] = *slice.Ports[0].Port
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				addresses[of] = append(addresses[of], e.Addresses...)
			}
		}
	}
	wanted := map[string]balancer{}
	for _, object := range services {
		s, ok := object.(*corev1.Service)
		if !ok || len(s.Spec.Ports) == 0 {
			continue
		}
		of := s.Namespace + "/" + s.Name
		vip, err := netip.ParseAddr(s.Spec.ClusterIP)
		if err != nil || !vip.Is4() || len(addresses[of]) == 0 {
			continue
		}
		slices.Sort(addresses[of])
		wanted[s.Name] = balancer{vip: s.Spec.ClusterIP, external: s.Spec.Ports[0].Port, target: targets[of],
			nodePort: s.Spec.Ports[0].NodePort, sticky: s.Spec.SessionAffinity == corev1.ServiceAffinityClientIP,
			optimized: !strings.EqualFold(s.Annotations["winProxyOptimization"], "disabled"), endpoints: addresses[of]}
	}
	return wanted
}

func sorted[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }

// hns writes objects of the simulated Host Network Service, which are files.
type hns struct {
	files   platform.Files
	compute platform.Compute
	network string // ID of the network of pods
}

const (
	endpointsFolder = simulated.HNSFolder + `\endpoints`
	networksFolder  = simulated.HNSFolder + `\networks`
	balancersFolder = simulated.HNSFolder + `\loadbalancers`
)

// findNetwork finds the network of pods, and makes it if there is none. On a real node the pod network's agent makes it,
// and kube-proxy waits for it.
func (h *hns) findNetwork(ctx context.Context, name string) error {
	all, err := h.compute.NetworkObjects(ctx, platform.HNSNetworks)
	if err != nil {
		return err
	}
	for _, document := range all {
		var network struct{ ID, Name string }
		if json.Unmarshal(document, &network) == nil && strings.EqualFold(network.Name, name) {
			h.network = network.ID
			return nil
		}
	}
	h.network = guid("network " + name)
	return h.put(networksFolder, h.network, map[string]any{"ID": h.network, "Name": name, "Type": "L2Bridge"})
}

// locals returns the IDs of the endpoints that other programs have made, by address: kube-proxy uses them for the pods of
// its node.
func (h hns) locals(ctx context.Context) (map[string]string, error) {
	all, err := h.compute.NetworkObjects(ctx, platform.HNSEndpoints)
	ids := map[string]string{}
	for _, document := range all {
		var e struct {
			ID, HostComputeNetwork string
			Flags                  uint32
			IPConfigurations       []struct{ IPAddress string } `json:"IpConfigurations"`
		}
		if json.Unmarshal(document, &e) == nil && e.Flags&1 == 0 && e.HostComputeNetwork == h.network && len(e.IPConfigurations) > 0 {
			ids[e.IPConfigurations[0].IPAddress] = e.ID
		}
	}
	return ids, err
}

// putEndpoint writes a remote endpoint, whose MAC address is made of its address (kubernetes v1.36.3,
// pkg/proxy/winkernel/proxier.go, conjureMac).
func (h hns) putEndpoint(address string) error {
	id := guid("endpoint " + address)
	mac := "02-11"
	for _, b := range netip.MustParseAddr(address).AsSlice() {
		mac += fmt.Sprintf("-%02X", b)
	}
	return h.put(endpointsFolder, id, map[string]any{"ID": id, "Name": "Ethernet", "Flags": 1, "HostComputeNetwork": h.network,
		"MacAddress": mac, "IpConfigurations": []any{map[string]any{"IpAddress": address, "PrefixLength": 16}}})
}

func (h hns) removeEndpoint(address string) error {
	return h.remove(endpointsFolder, guid("endpoint "+address))
}

// putBalancer writes the load balancer of the cluster IP, with DSR, and that of the node port, with the flags 2 (the node
// itself may use it) and 16 (an address of no Service).
func (h hns) putBalancer(b balancer, locals map[string]string) error {
	ids := []string{}
	for _, address := range b.endpoints {
		ids = append(ids, cmp.Or(locals[address], guid("endpoint "+address)))
	}
	mapping := map[string]any{"Protocol": 6, "InternalPort": b.target, "ExternalPort": b.external}
	if b.sticky {
		mapping["DistributionType"] = 2
	}
	err := h.put(balancersFolder, b.id(), map[string]any{"ID": b.id(), "HostComputeEndpoints": ids, "Flags": 1,
		"FrontendVIPs": []string{b.vip}, "PortMappings": []any{mapping}})
	if err != nil || b.nodePort == 0 {
		return err
	}
	outside := maps.Clone(mapping)
	outside["ExternalPort"], outside["Flags"] = b.nodePort, 2+16
	return h.put(balancersFolder, b.nodePortID(), map[string]any{"ID": b.nodePortID(), "HostComputeEndpoints": ids,
		"PortMappings": []any{outside}})
}

func (b balancer) nodePortID() string { return guid(fmt.Sprintf("node port %d", b.nodePort)) }

func (h hns) removeBalancer(b balancer) error {
	err := h.remove(balancersFolder, b.id())
	if b.nodePort != 0 {
		err = errors.Join(err, h.remove(balancersFolder, b.nodePortID()))
	}
	return err
}

func (h hns) put(folder, id string, document any) error {
	text, err := json.Marshal(document)
	if err != nil {
		return err
	}
	for i, c := range folder {
		if c == '\\' && i > len(`C:`) {
			if err := h.files.MakeFolder(folder[:i]); err != nil {
				return err
			}
		}
	}
	if err := h.files.MakeFolder(folder); err != nil {
		return err
	}
	file, err := h.files.Create(folder+`\`+id+".json", platform.CreateTruncate)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	return errors.Join(err, file.Close())
}

func (h hns) remove(folder, id string) error {
	err := h.files.Remove(folder + `\` + id + ".json")
	if errors.Is(err, fault.ErrNotExist) {
		return nil
	}
	return err
}

// guid returns a GUID that depends only on a text.
func guid(of string) string {
	b := sha256.Sum256([]byte(of))
	return strings.ToUpper(fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16]))
}
