package windows

import (
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/platform"
)

// parseRule parses a rule as stored in the registry ([MS-GPFAS] 2.2.2.19), such
// as
//
//	v2.30|Action=Allow|Active=TRUE|Dir=In|Protocol=6|LPort=10250|Name=kubelet|
//
// Repeated fields are alternatives. The second result is false if text is not a
// rule.
func parseRule(text string) (platform.FirewallRule, bool) {
	version, rest, found := strings.Cut(text, "|")
	if !found || !strings.HasPrefix(version, "v") {
		return platform.FirewallRule{}, false
	}
	rule := platform.FirewallRule{Protocol: "any"}
	var ports, profiles, addresses []string
	for field := range strings.SplitSeq(rest, "|") {
		name, value, _ := strings.Cut(field, "=")
		switch {
		case name == "Action":
			rule.Allow = strings.EqualFold(value, "Allow") || strings.EqualFold(value, "ByPass")
		case name == "Active":
			rule.Enabled = strings.EqualFold(value, "TRUE")
		case name == "Dir":
			rule.Inbound = strings.EqualFold(value, "In")
		case name == "Protocol":
			rule.Protocol = protocolName(value)
		case name == "Name":
			rule.Name = value
		case name == "EmbedCtxt":
			rule.Group = value
		case name == "App":
			rule.Program = value
		case name == "Profile":
			profiles = append(profiles, strings.ToLower(value))
		case name == "LPort" || strings.HasPrefix(name, "LPort2_"):
			ports = append(ports, value)
		case name == "RA4" || name == "RA6" || strings.HasPrefix(name, "RA42") || strings.HasPrefix(name, "RA62"):
			addresses = appendNew(addresses, value) // LocalSubnet is in the lists of IPv4 and of IPv6
		}
	}
	rule.Ports = strings.Join(ports, ",")
	rule.Profiles = profileList(profiles)
	rule.Addresses = strings.Join(addresses, ",")
	return rule, rule.Name != ""
}

// protocolName returns the name of a common protocol. For any other protocol it returns the number.
func protocolName(number string) string {
	switch number {
	case "1":
		return "icmpv4"
	case "6":
		return "tcp"
	case "17":
		return "udp"
	case "58":
		return "icmpv6"
	case "256":
		return "any"
	}
	return number
}

// profileList returns the profiles in a fixed order, so that equal lists are equal texts. If the
// list has none or all of the profiles, it returns "any".
func profileList(profiles []string) string {
	var list []string
	for _, profile := range []string{"domain", "private", "public"} {
		if slices.Contains(profiles, profile) {
			list = append(list, profile)
		}
	}
	if len(list) == 0 || len(list) == 3 {
		return "any"
	}
	return strings.Join(list, ",")
}

func appendNew(list []string, value string) []string {
	if slices.Contains(list, value) {
		return list
	}
	return append(list, value)
}
