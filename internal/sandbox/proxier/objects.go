package proxier

import (
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

// balancer is the load balancer of the first port of a Service.
type balancer struct {
	vip              string
	external, target int32
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
			endpoints: addresses[of]}
	}
	return wanted
}

func sorted[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }

// hns writes objects of the simulated Host Network Service, which are files.
type hns struct{ files platform.Files }

const (
	endpointsFolder = simulated.HNSFolder + `\endpoints`
	balancersFolder = simulated.HNSFolder + `\loadbalancers`
)

func (h hns) putEndpoint(address string) error {
	id := guid("endpoint " + address)
	return h.put(endpointsFolder, id, map[string]any{"ID": id, "Name": "Ethernet", "Flags": 1,
		"IpConfigurations": []any{map[string]any{"IpAddress": address, "PrefixLength": 16}}})
}

func (h hns) removeEndpoint(address string) error {
	return h.remove(endpointsFolder, guid("endpoint "+address))
}

func (h hns) putBalancer(b balancer) error {
	ids := []string{}
	for _, address := range b.endpoints {
		ids = append(ids, guid("endpoint "+address))
	}
	return h.put(balancersFolder, b.id(), map[string]any{"ID": b.id(), "HostComputeEndpoints": ids, "Flags": 1,
		"FrontendVIPs": []string{b.vip},
		"PortMappings": []any{map[string]any{"Protocol": 6, "InternalPort": b.target, "ExternalPort": b.external}}})
}

func (h hns) removeBalancer(b balancer) error { return h.remove(balancersFolder, b.id()) }

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
