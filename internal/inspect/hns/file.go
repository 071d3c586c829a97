package hns

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/swdt-dev/swdt/internal/format/windowstext"
	"github.com/swdt-dev/swdt/internal/platform"
)

// maxDepth limits the lists and envelopes around objects in a file.
const maxDepth = 8

// ReadFile reads the objects of a saved dump: the JSON of `hnsdiag list all -d`, of Get-HnsNetwork, Get-HnsEndpoint,
// Get-HnsPolicyList and Get-HnsNamespace behind ConvertTo-Json, of the service's own answers, or of swdt. The JSON may
// be in other text, such as headings, prompts and the ">" of quoted mail. Objects of schema 1, which these cmdlets
// print, become those of schema 2. The error describes a text without any object.
//
// The fields of schema 1 are those of hcsshim (https://github.com/microsoft/hcsshim/tree/v0.11.4/internal/hns).
func ReadFile(file []byte) (State, error) {
	decoded, err := windowstext.Decode(file)
	if err != nil {
		return State{}, err
	}
	found := dump{}
	text := []byte(withoutQuotes(decoded.Content))
	for at := 0; at < len(text); {
		if c := text[at]; c != '{' && c != '[' {
			at++
			continue
		}
		decoder := json.NewDecoder(bytes.NewReader(text[at:]))
		var value json.RawMessage
		if decoder.Decode(&value) != nil {
			at++
			continue
		}
		found.add(value, maxDepth)
		at += int(decoder.InputOffset())
	}
	if len(found) == 0 {
		return State{}, errors.New("the file has no JSON of networks, endpoints, load balancers or namespaces; save " +
			"that of `hnsdiag list all -d`, or of Get-HnsEndpoint | ConvertTo-Json -Depth 10")
	}
	return Parse(found), nil
}

// withoutQuotes returns a text without the > that begins each of its lines, if it has them, as in a quoted mail.
func withoutQuotes(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(strings.TrimLeft(line, " "), "> ")
	}
	return strings.Join(lines, "\n")
}

// dump has the documents of a file, in schema 2.
type dump map[platform.NetworkKind][][]byte

// add adds a JSON value: an object of the service, a list, or an envelope around them.
func (d dump) add(value json.RawMessage, depth int) {
	var list []json.RawMessage
	if json.Unmarshal(value, &list) == nil {
		for _, element := range list {
			if depth > 0 {
				d.add(element, depth-1)
			}
		}
		return
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(value, &fields) != nil {
		return
	}
	lower := map[string]json.RawMessage{}
	for name, field := range fields {
		lower[strings.ToLower(name)] = field
	}
	if raw, ok := lower["raw"]; ok && depth > 0 { // an object as swdt prints it
		d.add(raw, depth-1)
		return
	}
	if kind, document := classify(lower, value); kind != "" {
		d[kind] = append(d[kind], document)
		return
	}
	// The service answers {"Success":true,"Output":[…]}, Windows PowerShell 5.1 prints {"value":[…],"Count":2} for some
	// lists, and swdt {"nodes":[{"endpoints":[…]}]}.
	for _, name := range []string{"output", "value", "nodes", "hns", "networks", "endpoints", "loadbalancers", "namespaces",
		"policylists"} {
		if inner, ok := lower[name]; ok && depth > 0 {
			d.add(inner, depth-1)
		}
	}
}

// classify returns the kind of an object by the fields that only this kind has, and its document in schema 2. The kind
// is "" if the object is none of the service.
func classify(fields map[string]json.RawMessage, value json.RawMessage) (platform.NetworkKind, []byte) {
	has := func(names ...string) bool {
		for _, name := range names {
			if _, ok := fields[name]; ok {
				return true
			}
		}
		return false
	}
	if !has("id") {
		return "", nil
	}
	switch {
	case has("hostcomputenetwork", "ipconfigurations"):
		return platform.HNSEndpoints, value
	case has("frontendvips", "portmappings", "hostcomputeendpoints"):
		return platform.HNSLoadBalancers, value
	case has("ipams"):
		return platform.HNSNetworks, value
	case has("virtualnetwork", "ipaddress", "isremoteendpoint"):
		return platform.HNSEndpoints, oldEndpoint(value)
	case has("references"):
		return platform.HNSLoadBalancers, oldLoadBalancer(value)
	case has("subnets", "macpools", "managementip", "natname"):
		return platform.HNSNetworks, oldNetwork(value)
	case has("resourcelist"):
		return platform.HNSNamespaces, oldNamespace(value)
	case has("namespaceid", "resources", "namespaceguid"):
		return platform.HNSNamespaces, value
	case has("type", "maclist", "policies") && has("name"):
		return platform.HNSNetworks, value
	}
	return "", nil
}

// schema2 returns a document with the fields of schema 2 added to those that it has. If it cannot be encoded, the
// document stays as it is.
func schema2(value json.RawMessage, fields map[string]any) []byte {
	var all map[string]json.RawMessage
	if json.Unmarshal(value, &all) != nil {
		return value
	}
	for name, field := range fields {
		text, err := json.Marshal(field)
		if err != nil {
			return value
		}
		for old := range all {
			if strings.EqualFold(old, name) {
				delete(all, old)
			}
		}
		all[name] = text
	}
	text, err := json.Marshal(all)
	if err != nil {
		return value
	}
	return text
}

// These types are the parts of the documents of schema 1 that are read.
type (
	oldSubnet   struct{ AddressPrefix, GatewayAddress string }
	oldPolicies []json.RawMessage
)

// settings returns policies of schema 1, whose fields are beside their type, in the form of schema 2.
func (p oldPolicies) settings() []any {
	all := []any{}
	for _, policy := range p {
		var named struct{ Type string }
		var fields map[string]any
		if json.Unmarshal(policy, &named) != nil || json.Unmarshal(policy, &fields) != nil {
			continue // the depth of ConvertTo-Json cut it to a text
		}
		delete(fields, "Type")
		if exceptions, ok := fields["ExceptionList"]; ok {
			fields["Exceptions"] = exceptions
			delete(fields, "ExceptionList")
		}
		all = append(all, map[string]any{"Type": newPolicyName(named.Type), "Settings": fields})
	}
	return all
}

// newPolicyName returns the name that schema 2 has for a policy of schema 1.
func newPolicyName(old string) string {
	switch strings.ToUpper(old) {
	case "ROUTE":
		return "SDNRoute"
	case "PA":
		return "ProviderAddress"
	case "OUTBOUNDNAT":
		return "OutBoundNAT"
	}
	return old
}

func oldNetwork(value json.RawMessage) []byte {
	var n struct {
		Subnets  []oldSubnet
		Policies oldPolicies
	}
	if ok, _ := lenient(value, &n); !ok { // Parse reports the fields that it cannot read
		return value
	}
	subnets := []any{}
	for _, s := range n.Subnets {
		subnets = append(subnets, map[string]any{"IpAddressPrefix": s.AddressPrefix, "Routes": routes(s.GatewayAddress)})
	}
	return schema2(value, map[string]any{"Policies": n.Policies.settings(),
		"Ipams": []any{map[string]any{"Subnets": subnets}}})
}

func routes(gateway string) []wireRoute {
	if gateway == "" {
		return nil
	}
	destination := "0.0.0.0/0"
	if strings.Contains(gateway, ":") {
		destination = "::/0"
	}
	return []wireRoute{{NextHop: gateway, DestinationPrefix: destination}}
}

func oldEndpoint(value json.RawMessage) []byte {
	var e struct {
		VirtualNetwork, IPAddress, IPv6Address, GatewayAddress string
		PrefixLength, IPv6PrefixLength                         int
		IsRemoteEndpoint                                       bool
		Namespace                                              struct{ ID string }
		Policies                                               oldPolicies
	}
	if ok, _ := lenient(value, &e); !ok {
		return value
	}
	addresses := []any{}
	if e.IPAddress != "" {
		addresses = append(addresses, map[string]any{"IpAddress": e.IPAddress, "PrefixLength": e.PrefixLength})
	}
	if e.IPv6Address != "" {
		addresses = append(addresses, map[string]any{"IpAddress": e.IPv6Address, "PrefixLength": e.IPv6PrefixLength})
	}
	flags := 0
	if e.IsRemoteEndpoint {
		flags = endpointRemote
	}
	return schema2(value, map[string]any{"HostComputeNetwork": e.VirtualNetwork, "HostComputeNamespace": e.Namespace.ID,
		"IpConfigurations": addresses, "Routes": routes(e.GatewayAddress), "Flags": flags,
		"Policies": e.Policies.settings()})
}

// oldLoadBalancer converts a policy list, whose references are the endpoints: "/endpoints/ID".
func oldLoadBalancer(value json.RawMessage) []byte {
	var l struct {
		References []string
		Policies   []struct {
			Type, SourceVIP            string
			VIPs                       []string
			ILB, IsDSR                 bool
			Protocol                   uint32
			InternalPort, ExternalPort uint16
		}
	}
	if ok, _ := lenient(value, &l); !ok {
		return value
	}
	endpoints := []string{}
	for _, reference := range l.References {
		endpoints = append(endpoints, reference[strings.LastIndex(reference, "/")+1:])
	}
	fields := map[string]any{"HostComputeEndpoints": endpoints}
	for _, p := range l.Policies {
		flags, portFlags := 0, 0
		if p.IsDSR {
			flags = balancerDSR
		}
		if p.ILB {
			portFlags = portInternal
		}
		fields["FrontendVIPs"], fields["SourceVIP"], fields["Flags"] = p.VIPs, p.SourceVIP, flags
		fields["PortMappings"] = []any{map[string]any{"Protocol": p.Protocol, "InternalPort": p.InternalPort,
			"ExternalPort": p.ExternalPort, "Flags": portFlags}}
	}
	return schema2(value, fields)
}

func oldNamespace(value json.RawMessage) []byte {
	var n struct{ ResourceList []json.RawMessage }
	if ok, _ := lenient(value, &n); !ok {
		return value
	}
	return schema2(value, map[string]any{"Resources": n.ResourceList})
}
