package pktmonexe

import (
	"encoding/json"
	"fmt"
	"slices"
)

// component is a place in the network stack. Names and numbers are invented;
// the form of the list is Windows'.
type component struct {
	id              int
	group           string
	name, kind, mac string
}

// The IDs of the components that capture packets.
const (
	adapterID = 5
	switchID  = 12
	podNicID  = 30
)

func components() []component {
	return []component{
		{adapterID, "Ethernet", "Ethernet", "Miniport", "00-15-5D-0A-7A-DC"},
		{switchID, "Calico", "vmswitch.sys", "Filter", ""},
		{podNicID, "Calico", "Container NIC 0a0fa7", "Host vNIC", PodMAC},
	}
}

func (p *program) list(args []string) error {
	if !slices.Contains(args, "--json") {
		text := "Network Adapters:\n Id MAC Address       Name\n -- -----------       ----\n"
		for _, c := range components() {
			if c.mac != "" {
				text += fmt.Sprintf(" %2d %-17s %s\n", c.id, c.mac, c.name)
			}
		}
		return p.print("%s", text)
	}
	type property struct{ Name, Value string }
	type listed struct {
		Name       string
		Type       string
		ID         int `json:"Id"`
		Properties []property
	}
	type group struct {
		Group      string
		Components []listed
	}
	var groups []group
	for _, c := range components() {
		if len(groups) == 0 || groups[len(groups)-1].Group != c.group {
			groups = append(groups, group{Group: c.group})
		}
		one := listed{Name: c.name, Type: c.kind, ID: c.id, Properties: []property{{"ifIndex", fmt.Sprint(c.id)}}}
		if c.mac != "" {
			one.Properties = append(one.Properties, property{"MAC Address", c.mac})
		}
		last := &groups[len(groups)-1]
		last.Components = append(last.Components, one)
	}
	text, err := json.MarshalIndent(groups, "", "  ")
	if err != nil {
		return err
	}
	return p.print("%s\n", text)
}
