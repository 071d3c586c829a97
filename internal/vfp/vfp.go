// Package vfp reads what vfpctrl.exe prints: the tool of the virtual filtering
// platform, which carries out policies and load balancing at the ports of Hyper-V's
// virtual switch. It prints text for people or, asked with `/format 1`, JSON; not
// every build knows that.
package vfp

import (
	"strings"
	"unicode"
)

// Port is one of the virtual switch's.
type Port struct {
	Name   string // a GUID, by which vfpctrl knows it
	Label  string // for people: ExternalPort, Container NIC 0a0fa7, or the ID of an HNS endpoint
	Switch string // its name for people
	MAC    string
}

// Counters are those of a port in one direction.
type Counters struct {
	Direction string // Out: from the port's machine or container into the switch; In
	Values    []Value
}

// The directions.
const (
	Out = "out"
	In  = "in"
)

// Value is one counter, under the name that vfpctrl gives it.
type Value struct {
	Name  string
	Count uint64
}

// Total finds one of the counters that have one name in JSON and another in text:
// packets, bytes.
func (c Counters) Total(of string) (uint64, bool) { return c.find("total" + of) }

// Dropped is how many packets were dropped.
func (c Counters) Dropped() (uint64, bool) { return c.find("droppedpackets") }

// Reasons are the counters of dropped packets that have counted some, but for their
// sum.
func (c Counters) Reasons() (some []Value) {
	for _, v := range c.Values {
		name := plain(v.Name)
		if v.Count > 0 && strings.Contains(name, "drop") && name != "droppedpackets" {
			some = append(some, v)
		}
	}
	return some
}

func (c Counters) find(name string) (uint64, bool) {
	for _, v := range c.Values {
		if plain(v.Name) == name {
			return v.Count, true
		}
	}
	return 0, false
}

// plain is a name without what differs between text and JSON.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}
