package hns

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/internal/ui"
)

// settings are the settings of all policies that Words describes, under the names that HNS uses.
type settings struct {
	Action, Direction, Protocols, RuleType                    string
	LocalAddresses, RemoteAddresses, LocalPorts, RemotePorts  string
	Priority, Order, Overhead, Port                           json.RawMessage
	Protocol                                                  uint32
	InternalPort, ExternalPort                                uint16
	VIP, VirtualIP, IP, Destination                           string
	Exceptions, Destinations                                  []string
	DestinationPrefix, NextHop, ProviderAddress               string
	NeedEncap, Enable                                         bool
	IsolationID                                               json.RawMessage `json:"IsolationId"`
	DistributedRouterMacAddress, SourceMacAddress, Address    string
	NetworkAdapterName, InterfaceAlias, ExtensionID, Name, ID string
	MaximumOutgoingBandwidthInBytes                           int64
	PolicyType, Values                                        string
	TierACLRules                                              []json.RawMessage `json:"TierAclRules"`
}

// Words returns a description of the policy's effect. For an unknown policy, Words returns the
// settings as JSON.
func (p Policy) Words() string {
	var s settings
	if len(p.Settings) > 0 && json.Unmarshal(p.Settings, &s) != nil {
		return p.text()
	}
	for _, words := range []func(string, settings) string{aclWords, natWords, routeWords, switchWords} {
		if text := words(p.Type, s); text != "" {
			return text
		}
	}
	return p.text()
}

// text returns the settings in one line.
func (p Policy) text() string {
	var line bytes.Buffer
	if json.Compact(&line, p.Settings) != nil {
		return string(p.Settings)
	}
	return line.String()
}

func aclWords(kind string, s settings) string {
	switch kind {
	case "ACL", "NetworkACL":
		words := []string{strings.ToLower(s.Action), strings.ToLower(s.Direction)}
		if protocols := protocolNames(s.Protocols); protocols != "" {
			words = append(words, protocols)
		}
		remote, local := "from", "to"
		if strings.EqualFold(s.Direction, "Out") {
			remote, local = "to", "from"
		}
		words = append(words, side(remote, s.RemoteAddresses, s.RemotePorts),
			side(local, s.LocalAddresses, s.LocalPorts))
		if len(s.Priority) > 0 {
			words = append(words, "(priority "+string(s.Priority)+")")
		}
		return strings.Join(strings.Fields(strings.Join(words, " ")), " ")
	case "TierAcl":
		return fmt.Sprintf("tier %s %s, order %s: %d rules", s.Name, strings.ToLower(s.Direction),
			s.Order, len(s.TierACLRules))
	case "SetPolicy":
		return fmt.Sprintf("set %s: %s", s.Name, s.Values)
	}
	return ""
}

// side describes the sender or the receiver of the traffic that a rule matches.
func side(word, addresses, ports string) string {
	text := strings.ReplaceAll(addresses, ",", ", ")
	if ports != "" {
		text = strings.TrimSpace(text + " port " + strings.ReplaceAll(ports, ",", ", "))
	}
	if text == "" {
		return ""
	}
	return word + " " + text
}

// protocolNames returns the names of the protocols in a list of numbers; 256 stands for
// any protocol.
func protocolNames(numbers string) string {
	var names []string
	for number := range strings.SplitSeq(numbers, ",") {
		var n uint32
		if _, err := fmt.Sscan(number, &n); err != nil || n == 256 {
			continue
		}
		names = append(names, protocol(n))
	}
	return strings.Join(names, ", ")
}

func natWords(kind string, s settings) string {
	switch kind {
	case "OutBoundNAT":
		text := "hides its address"
		if s.VirtualIP != "" {
			text += " behind " + s.VirtualIP
		}
		if len(s.Destinations) > 0 {
			text += " to " + strings.Join(s.Destinations, ", ")
		}
		if len(s.Exceptions) > 0 {
			text += ", except to " + strings.Join(s.Exceptions, ", ")
		}
		return text
	case "PortMapping":
		on := ""
		if s.VIP != "" {
			on = " of " + s.VIP
		}
		return fmt.Sprintf("port %d/%s%s goes to its port %d", s.ExternalPort, protocol(s.Protocol), on, s.InternalPort)
	case "L4Proxy":
		text := fmt.Sprintf("%s goes through the proxy %s:%s", protocol(s.Protocol), s.IP, unquoted(s.Port))
		if len(s.Exceptions) > 0 {
			text += ", except to " + strings.Join(s.Exceptions, ", ")
		}
		return text
	case "QOS":
		return "sends at most " + ui.Size(s.MaximumOutgoingBandwidthInBytes) + "/s"
	}
	return ""
}

func routeWords(kind string, s settings) string {
	switch kind {
	case "SDNRoute", "ROUTE":
		text := "routes " + s.DestinationPrefix
		if s.NextHop != "" {
			text += " by " + s.NextHop
		}
		if s.NeedEncap {
			text += ", encapsulated"
		}
		return text
	case "RemoteSubnetRoute":
		return fmt.Sprintf("%s is on %s (VSID %s, MAC %s)", s.DestinationPrefix, s.ProviderAddress, s.IsolationID,
			s.DistributedRouterMacAddress)
	case "HostRoute":
		return "the node itself reaches it"
	case "ProviderAddress":
		return "encapsulated with the node's address " + s.ProviderAddress
	case "EncapOverhead":
		return string(s.Overhead) + " bytes of each packet are kept for encapsulation"
	case "VxlanPort":
		return "VXLAN on UDP port " + string(s.Port)
	}
	return ""
}

func switchWords(kind string, s settings) string {
	switch kind {
	case "NetAdapterName":
		return "on adapter " + s.NetworkAdapterName
	case "InterfaceConstraint":
		return "on interface " + s.InterfaceAlias
	case "SourceMacAddress":
		return "sends with MAC " + s.SourceMacAddress
	case "DrMacAddress":
		return "its router has MAC " + s.Address
	case "AutomaticDNS":
		return onOff(s.Enable, "automatic DNS")
	case "VSwitchExtension":
		return onOff(s.Enable, "switch extension "+s.ExtensionID)
	case "VSID", "VLAN":
		return kind + " " + string(s.IsolationID)
	case "PortName":
		return "its port is named " + s.Name
	}
	return ""
}

func onOff(on bool, what string) string {
	if on {
		return what + " on"
	}
	return what + " off"
}

func unquoted(text json.RawMessage) string { return strings.Trim(string(text), `"`) }
