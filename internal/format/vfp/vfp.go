// Package vfp parses the output of vfpctrl.exe, the tool of the virtual filtering platform. The
// platform carries out policies and load balancing at the ports of Hyper-V's virtual switch.
// vfpctrl prints text for people or, with `/format 1`, JSON. Not every build supports JSON.
package vfp

import (
	"strings"
	"unicode"
)

// Port is a port of the virtual switch.
type Port struct {
	Name   string // a GUID, the name that vfpctrl uses
	Label  string // name for people: ExternalPort, Container NIC 0a0fa7, or the ID of an HNS endpoint
	Switch string // the switch's name for people
	MAC    string
}

// Counters are the counters of a port in one direction.
type Counters struct {
	Direction string // Out (from the port's machine or container into the switch) or In
	Values    []Value
}

// The directions.
const (
	Out = "out"
	In  = "in"
)

// Value is one counter, with the name that vfpctrl prints.
type Value struct {
	Name  string
	Count uint64
}

// Total returns the total number of packets if its parameter is "packets", and of bytes if its
// parameter is "bytes". It returns false if there is no such counter.
func (c Counters) Total(of string) (uint64, bool) { return c.find("total" + of) }

// Dropped returns how many packets were dropped; false if there is no such counter.
func (c Counters) Dropped() (uint64, bool) { return c.find("droppedpackets") }

// Reasons returns the nonzero counters of dropped packets, except their sum.
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

// plain normalises a name, so that it is the same for text and JSON.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}
