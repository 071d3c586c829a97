package network

import (
	"cmp"
	"fmt"
	"maps"
	"strings"
)

// accept returns commands, for people, that let a packet through the chain that stops it. It tries
// them on a copy of the firewall.
func (f *Firewall) accept(p Packet, v Verdict) string {
	otherwise := "put the VM on the bridge of kind itself: network mode bridge"
	if p.In == p.Out {
		otherwise = "`sudo sysctl net.bridge.bridge-nf-call-iptables=0`"
	}
	for _, h := range f.hooks {
		if h.isBridge && h.chain.table == v.Table { // the sysctl has no effect on chains of the family bridge
			otherwise = "remove the rule"
		}
	}
	stopped := p
	if v.Answer {
		stopped = p.answer()
	}
	half := ""
	for _, c := range f.candidates(v) {
		allowed := c.allow(stopped)
		now := f.with(c.id, allowed).Judge(p)
		if now.Passes {
			return fmt.Sprintf("`sudo %s`; or %s", c.command(allowed), otherwise)
		}
		if half == "" && now != v { // the new rule helps, but another rule stops the packet
			half = fmt.Sprintf("`sudo %s`, then run this check again; or %s", c.command(allowed), otherwise)
		}
	}
	return cmp.Or(half, otherwise)
}

// candidate is a chain that may get one more rule at its top.
type candidate struct {
	id   chainID
	hook hook
}

// candidates returns the chains in which a new rule may let a packet through: those of the table in
// which the packet is stopped. DOCKER-USER comes first, since Docker never changes this chain; but in
// some firewalls, other chains stop the packet before it reaches DOCKER-USER.
func (f *Firewall) candidates(v Verdict) (all []candidate) {
	if v.Table == "filter" {
		user := chainID{"filter", "DOCKER-USER"}
		if f.chains[user] != nil {
			all = append(all, candidate{user, hook{stage: forward}})
		}
	}
	for _, h := range f.hooks {
		if h.chain.table == v.Table && f.chains[h.chain] != nil && !h.isNAT {
			all = append(all, candidate{h.chain, h})
		}
	}
	return all
}

// ofIPTables reports whether the chain is in a table of iptables.
func (c candidate) ofIPTables() bool { return !strings.Contains(c.id.table, " ") }

// allow returns a rule that lets a packet through. If the chain sees both interfaces of the packet,
// the rule lets all packets between these interfaces through, or only those of established
// connections if the packet is an answer.
func (c candidate) allow(p Packet) rule {
	conditions := fmt.Sprintf("-s %s -d %s", p.From, p.To)
	if c.hook.stage == forward && !c.hook.isBridge {
		conditions = fmt.Sprintf("-i %s -o %s", p.In, p.Out)
		if p.isAnswer {
			conditions += " -m conntrack --ctstate RELATED,ESTABLISHED"
		}
	}
	text := conditions + " -j ACCEPT"
	return parseRule(text, strings.Fields(text))
}

// command returns the command that adds a rule to the chain. The rule is a result of the method
// allow.
func (c candidate) command(r rule) string {
	if !c.ofIPTables() {
		return fmt.Sprintf("nft 'insert rule %s %s %s'", c.id.table, c.id.name, inNFT(r.text))
	}
	table := ""
	if c.id.table != "filter" {
		table = "-t " + c.id.table + " "
	}
	return fmt.Sprintf("iptables %s-I %s %s", table, c.id.name, r.text)
}

// inNFT translates a rule that the methods allow or exempt have made to the words of nft.
func inNFT(text string) (translated string) {
	words := map[string]string{
		"-i": "iifname", "-o": "oifname", "-s": "ip saddr", "-d": "ip daddr", "-m": "ct", "conntrack": "state",
		"RELATED,ESTABLISHED": "established,related", "ACCEPT": "accept", "RETURN": "return",
	}
	quotes := false
	for word := range strings.FieldsSeq(text) {
		if word == "-j" || word == "--ctstate" {
			continue
		}
		known, isKnown := words[word]
		switch {
		case isKnown:
			translated += " " + known
		case quotes:
			translated += fmt.Sprintf(" %q", word)
		default:
			translated += " " + word
		}
		quotes = word == "-i" || word == "-o"
	}
	return strings.TrimSpace(translated)
}

// with returns a copy of the firewall with one more rule at the top of a chain.
func (f *Firewall) with(id chainID, r rule) *Firewall {
	changed := *f
	changed.chains = maps.Clone(f.chains)
	c := f.chains[id]
	changed.chains[id] = &chain{policy: c.policy, rules: append([]rule{r}, c.rules...)}
	return &changed
}

// exempt returns the command that makes your machine keep the sender's address of a packet.
func (f *Firewall) exempt(p Packet, v Verdict) string {
	text := fmt.Sprintf("-s %s -d %s -j RETURN", p.From, p.To)
	for _, h := range f.hooks {
		if h.isNAT && h.chain.table == v.Table && strings.Contains(v.Table, " ") {
			return fmt.Sprintf("`sudo nft 'insert rule %s %s %s'`", v.Table, h.chain.name, inNFT(text))
		}
	}
	return "`sudo iptables -t nat -I POSTROUTING " + text + "`"
}
