package network

import (
	"cmp"
	"slices"
)

// hook is a place in the kernel at which packets pass through a chain.
type hook struct {
	chain    chainID
	stage    stage
	priority int  // the chain with the lowest priority at a stage comes first
	isNAT    bool // the chain's table changes addresses
	isBridge bool // the chain sees the frames of bridges
}

// stage is a part of a forwarded packet's way through the kernel.
type stage int

const (
	prerouting stage = iota
	forward
	postrouting
)

// newFirewall returns a firewall with the hooks of iptables, and without chains.
func newFirewall() *Firewall {
	const raw, mangle, filter, nat = -300, -150, 0, 100 // priorities of iptables' tables
	f := &Firewall{chains: map[chainID]*chain{}}
	f.hook(
		hook{chain: chainID{"raw", "PREROUTING"}, stage: prerouting, priority: raw},
		hook{chain: chainID{"mangle", "PREROUTING"}, stage: prerouting, priority: mangle},
		hook{chain: chainID{"mangle", "FORWARD"}, stage: forward, priority: mangle},
		hook{chain: chainID{"filter", "FORWARD"}, stage: forward, priority: filter},
		hook{chain: chainID{"mangle", "POSTROUTING"}, stage: postrouting, priority: mangle},
		hook{chain: chainID{"nat", "POSTROUTING"}, stage: postrouting, priority: nat, isNAT: true},
	)
	return f
}

// hook adds hooks, and keeps all hooks in the order in which a packet meets them.
func (f *Firewall) hook(more ...hook) {
	f.hooks = append(f.hooks, more...)
	slices.SortStableFunc(f.hooks, func(a, b hook) int {
		return cmp.Or(cmp.Compare(a.stage, b.stage), cmp.Compare(a.priority, b.priority))
	})
}

// hasBridgeRules reports whether there are rules for the frames of bridges.
func (f *Firewall) hasBridgeRules() bool {
	return slices.ContainsFunc(f.hooks, func(h hook) bool { return h.isBridge && len(f.chains[h.chain].rules) > 0 })
}

// sees reports whether a packet passes a hook. Chains of the family bridge see frames that come
// from a bridge or leave through a bridge. Of these chains, those at stage forward see only frames
// that stay within one bridge.
func (f *Firewall) sees(h hook, p Packet) bool {
	within := p.In == p.Out // the packet goes from one port of a bridge to another
	if h.isBridge {
		return within || h.stage != forward
	}
	return !within || !f.blindToBridges
}

// link is an interface as a rule sees it.
type link struct {
	name    string // the interface's name; empty if the packet has no such interface at this hook
	isKnown bool
}

// view returns a packet with its interfaces as the rules of the hook see them. At stage prerouting,
// the kernel does not know the outgoing interface yet; at stage postrouting, it no longer names the
// incoming interface.
func (h hook) view(p Packet) Packet {
	p.in, p.out = link{p.In, true}, link{p.Out, true}
	if h.isBridge {
		p.in, p.out = link{p.InPort, p.InPort != ""}, link{p.OutPort, p.OutPort != ""}
	}
	none := link{"", true}
	switch h.stage {
	case prerouting:
		p.out = none
	case postrouting:
		p.in = none
	}
	return p
}
