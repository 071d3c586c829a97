package simulated

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/imitation/criserver"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// The files from which HNS and HCS read their replies, one object per file, as on a node under
// Wine. A test that needs another network puts other files into these folders.
const (
	// HNSFolder holds the files KIND\ID.json.
	HNSFolder = `C:\ProgramData\swdt-hns`
	// HCSFolder holds the files ID.json.
	HCSFolder = HNSFolder + `\systems`
)

// computeView implements platform.Compute for one process. The documents have the fields of hcsshim's hcn and
// internal/hcs/schema2 packages; which of them a node fills in is partly a guess: docs/guesses.md.
type computeView struct{ p *process }

func (v computeView) NetworkObjects(ctx context.Context, kind platform.NetworkKind) ([][]byte, error) {
	if err := v.p.checkContext(ctx); err != nil {
		return nil, err
	}
	switch kind {
	case platform.HNSNetworks, platform.HNSEndpoints, platform.HNSNamespaces, platform.HNSLoadBalancers:
	default:
		return nil, fmt.Errorf("list the %s of the Host Network Service: %w", kind, fault.ErrNotSupported)
	}
	v.p.m.mu.Lock()
	defer v.p.m.mu.Unlock()
	var objects [][]byte
	for _, object := range v.p.m.objectsIn(HNSFolder + `\` + string(kind)) {
		objects = append(objects, object.document)
	}
	return objects, nil
}

// Remove keeps a network while a load balancer exists: since patch 10.0.17763.1554, Windows wants load balancers (policy
// lists) to be removed first (Azure/aks-engine PR 3956).
func (v computeView) Remove(ctx context.Context, kind platform.NetworkKind, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	switch kind {
	case platform.HNSNetworks, platform.HNSEndpoints, platform.HNSLoadBalancers:
	default:
		return fmt.Errorf("delete one of the %s: %w", kind, fault.ErrNotSupported)
	}
	return v.p.do(OpHNSRemove, string(kind)+`\`+id, func() error {
		if strings.ContainsAny(id, `\/:`) {
			return fmt.Errorf("delete one of the %s, %s: %w", kind, id, fault.ErrNotExist)
		}
		if kind == platform.HNSNetworks && v.p.m.balances(id) {
			return fmt.Errorf("delete network %s, which load balancers use: %w", id, fault.ErrInUse)
		}
		if err := v.p.m.disk.remove(system(), HNSFolder+`\`+string(kind)+`\`+id+".json"); err != nil {
			return fmt.Errorf("delete one of the %s, %s: %w", kind, id, err)
		}
		return nil
	})
}

func (v computeView) Systems(ctx context.Context) ([]platform.ComputeSystem, error) {
	if err := v.p.checkContext(ctx); err != nil {
		return nil, err
	}
	v.p.m.mu.Lock()
	defer v.p.m.mu.Unlock()
	var systems []platform.ComputeSystem
	for _, object := range v.p.m.objectsIn(HCSFolder) {
		systems = append(systems, platform.ComputeSystem{ID: object.id, Summary: object.document,
			Properties: object.document})
	}
	return systems, nil
}

func (v computeView) Terminate(ctx context.Context, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return v.p.do(OpTerminate, id, func() error {
		if strings.ContainsAny(id, `\/:`) {
			return fmt.Errorf("open compute system %s: %w", id, fault.ErrNotExist)
		}
		if err := v.p.m.disk.remove(system(), HCSFolder+`\`+id+".json"); err != nil {
			return fmt.Errorf("open compute system %s: %w", id, err)
		}
		v.p.m.ended[id] = true
		return nil
	})
}

// balances reports whether a load balancer has an endpoint of a network; the caller holds the lock.
func (m *Machine) balances(network string) bool {
	var endpoints []string
	for _, o := range m.objectsIn(HNSFolder + `\` + string(platform.HNSEndpoints)) {
		var endpoint struct{ HostComputeNetwork string }
		if json.Unmarshal(o.document, &endpoint) == nil && strings.EqualFold(endpoint.HostComputeNetwork, network) {
			endpoints = append(endpoints, fold(o.id))
		}
	}
	return slices.ContainsFunc(m.objectsIn(HNSFolder+`\`+string(platform.HNSLoadBalancers)), func(o object) bool {
		var balancer struct{ HostComputeEndpoints []string }
		return json.Unmarshal(o.document, &balancer) == nil && slices.ContainsFunc(balancer.HostComputeEndpoints,
			func(id string) bool { return slices.Contains(endpoints, fold(id)) })
	})
}

// systemEnded reports whether a compute system was terminated.
func (m *Machine) systemEnded(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ended[id]
}

type object struct {
	id       string
	document []byte
}

// objectsIn returns the objects of a folder by ID; the caller holds the lock.
func (m *Machine) objectsIn(path string) []object {
	folder, err := m.disk.find(path, true)
	if err != nil || !folder.folder {
		return nil
	}
	var objects []object
	for _, f := range folder.children {
		if id, ok := strings.CutSuffix(f.name, ".json"); ok && !f.folder {
			objects = append(objects, object{id, f.bytes()})
		}
	}
	slices.SortFunc(objects, func(a, b object) int { return strings.Compare(a.id, b.id) })
	return objects
}

const podGateway = "192.168.15.129"

// installPodNetwork creates the HNS network of the pods that the machine's runtime lists, and their
// compute systems.
func (m *Machine) installPodNetwork() {
	id, pods := guid("network Calico"), criserver.Example(time.Time{}, m.options.Pods).Pods
	network := podNetwork(pods)
	m.putObject(HNSFolder+`\networks`, id, map[string]any{
		"ID": id, "Name": "Calico", "Type": "L2Bridge", "Flags": 0,
		"Ipams": []any{map[string]any{"Type": "Static", "Subnets": []any{map[string]any{
			"IpAddressPrefix": network.String(),
			"Routes":          []any{map[string]any{"NextHop": podGateway, "DestinationPrefix": "0.0.0.0/0"}},
		}}}},
		"Policies": []any{map[string]any{"Type": "NetAdapterName",
			"Settings": map[string]any{"NetworkAdapterName": "Ethernet"}}},
	})
	for i, pod := range pods {
		m.installSandbox(id, network.Bits(), i, pod)
	}
}

// podNetwork returns the prefix of one block of Calico's addresses. If one block is too small for
// the pods, it returns the prefix of all blocks.
func podNetwork(pods []criserver.Pod) netip.Prefix {
	block := netip.MustParsePrefix("192.168.15.128/26")
	if block.Contains(netip.MustParseAddr(pods[len(pods)-1].IP)) {
		return block
	}
	return netip.MustParsePrefix("192.168.0.0/16")
}

func (m *Machine) installSandbox(network string, bits, i int, pod criserver.Pod) {
	m.putSystem(pod.ID, 12<<20, "CExecSvc.exe", "wininit.exe")
	for _, c := range pod.Containers {
		m.putSystem(c.ID, c.Memory, "CExecSvc.exe", c.Name+".exe")
	}
	if pod.NetworkNamespace == "" {
		return
	}
	endpoint := guid("endpoint " + pod.ID)
	m.putObject(HNSFolder+`\endpoints`, endpoint, map[string]any{
		"ID": endpoint, "Name": pod.ID + "_Calico", "HostComputeNetwork": network,
		"HostComputeNamespace": pod.NetworkNamespace,
		"MacAddress":           fmt.Sprintf("00-15-5D-0A-%02X-%02X", (0x0fa7+i)>>8, (0x0fa7+i)&0xff),
		"IpConfigurations":     []any{map[string]any{"IpAddress": pod.IP, "PrefixLength": bits}},
		"Routes":               []any{map[string]any{"NextHop": podGateway, "DestinationPrefix": "0.0.0.0/0"}},
		"Policies": []any{
			map[string]any{"Type": "OutBoundNAT",
				"Settings": map[string]any{"Exceptions": []any{"10.96.0.0/12", "192.168.0.0/16"}}},
		},
	})
	m.putObject(HNSFolder+`\namespaces`, pod.NetworkNamespace, map[string]any{
		"ID": pod.NetworkNamespace, "NamespaceId": i + 2, "Type": "Host",
		"Resources": []any{
			map[string]any{"Type": "Endpoint", "Data": map[string]any{"Id": endpoint}},
			map[string]any{"Type": "Container", "Data": map[string]any{"Id": pod.ID}},
		},
	})
}

func (m *Machine) putSystem(id string, memory uint64, programs ...string) {
	var processes []any
	for i, program := range programs {
		processes = append(processes, map[string]any{
			"ProcessId": 4120 + 8*i, "ImageName": program,
			"MemoryWorkingSetPrivateBytes": memory / uint64(len(programs)),
		})
	}
	m.putObject(HCSFolder, id, map[string]any{
		"Id": id, "SystemType": "Container", "RuntimeOsType": "Windows", "Owner": "containerd-shim-runhcs-v1.exe",
		"State":     "Running",
		"RuntimeId": guid("runtime " + id),
		"Statistics": map[string]any{
			"Memory": map[string]any{"MemoryUsageCommitBytes": memory + memory/4,
				"MemoryUsagePrivateWorkingSetBytes": memory},
		},
		"ProcessList": processes,
	})
}

func (m *Machine) putObject(folder, id string, document any) {
	text, err := json.Marshal(document)
	if err != nil {
		panic("simulated: preset object " + id + ": " + err.Error())
	}
	m.putFile(folder+`\`+id+".json", text)
}

// guid returns a GUID that depends only on a text.
func guid(of string) string {
	b := sha256.Sum256([]byte(of))
	return strings.ToUpper(fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16]))
}
