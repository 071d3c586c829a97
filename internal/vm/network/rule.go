package network

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// match is the result of a comparison. It is unknown if swdt does not know the condition, which
// then may hold or not.
type match int

const (
	no match = iota
	unknown
	yes
)

// rule is one line of a chain.
type rule struct {
	text       string // the rule as iptables-save or nft prints it
	conditions []condition
	target     string // a verdict in iptables' words; empty if the rule only counts packets or calls a chain
	calls      string // the chain of the same table that the rule calls; empty if the rule calls none
	isGoto     bool   // the called chain returns to the caller of this rule's chain
}

// condition is a condition of a rule.
type condition interface {
	holds(p Packet) match
}

// option is a condition that is an option of iptables with its values.
type option struct {
	name   string
	values []string
	not    bool
}

// parseRule reads the words after `-A CHAIN`.
func parseRule(text string, words []string) rule {
	r := rule{text: text}
	not := false
	for i := 0; i < len(words); i++ {
		word := words[i]
		if word == "!" {
			not = true
			continue
		}
		if word == "-m" || word == "--comment" { // -m only announces the options that follow
			i++
			continue
		}
		var values []string
		for i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") && words[i+1] != "!" {
			i++
			values = append(values, words[i])
		}
		switch {
		case (word == "-j" || word == "-g") && len(values) > 0:
			r.target, r.isGoto = values[0], word == "-g"
			return r // the target's own options follow
		default:
			r.conditions = append(r.conditions, option{word, values, not})
		}
		not = false
	}
	return r
}

// matches reports whether all of the rule's conditions hold for a packet. The result is unknown if
// no condition fails, but swdt cannot judge all of them.
func (r rule) matches(p Packet) match {
	result := yes
	for _, c := range r.conditions {
		result = min(result, c.holds(p))
	}
	return result
}

func (c option) holds(p Packet) match {
	if len(c.values) == 0 {
		return unknown
	}
	result := c.test(p)
	if result == unknown || !c.not {
		return result
	}
	return yes - result
}

func (c option) test(p Packet) match {
	value := c.values[0]
	switch c.name {
	case "-i":
		return is(interfaceMatches(value, p.In))
	case "-o":
		return is(interfaceMatches(value, p.Out))
	case "-s":
		return within(value, p.From)
	case "-d":
		return within(value, p.To)
	case "-p":
		return is(value == p.Protocol || value == "all")
	case "--dport", "--dports":
		return portWithin(value, p.Port, p.isAnswer)
	case "--sport", "--sports":
		return portWithin(value, p.Port, !p.isAnswer)
	case "--ctstate", "--state":
		state := "NEW"
		if p.isAnswer {
			state = "ESTABLISHED"
		}
		return is(slices.Contains(strings.Split(value, ","), state))
	}
	return unknown
}

func is(b bool) match {
	if b {
		return yes
	}
	return no
}

// interfaceMatches compares an interface with a pattern, whose + at the end matches any rest.
func interfaceMatches(pattern, name string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "+"); ok {
		return strings.HasPrefix(name, prefix)
	}
	return pattern == name
}

// within reports whether an address is in one of the networks of a comma-separated list.
func within(networks string, a netip.Addr) match {
	for network := range strings.SplitSeq(networks, ",") {
		if !strings.Contains(network, "/") {
			network += "/" + strconv.Itoa(a.BitLen())
		}
		prefix, err := netip.ParsePrefix(network)
		if err != nil {
			return unknown // a mask that is not a prefix
		}
		if prefix.Contains(a) {
			return yes
		}
	}
	return no
}

// portWithin reports whether a port is in a list such as 22,80:90. If isClients is set, the port is
// the client's, which is unknown, but high.
func portWithin(list string, port uint16, isClients bool) match {
	const lowestOfClients = 32768 // Linux's default; Windows begins at 49152
	low, high := uint64(port), uint64(port)
	if isClients {
		low, high = lowestOfClients, 65535
	}
	result := no
	for item := range strings.SplitSeq(list, ",") {
		text, last, ranged := strings.Cut(item, ":")
		if !ranged {
			last = text
		}
		from, errFrom := strconv.ParseUint(text, 10, 16)
		to, errTo := strconv.ParseUint(last, 10, 16)
		switch {
		case errFrom != nil || errTo != nil:
			return unknown
		case from <= low && high <= to:
			return yes
		case from <= high && low <= to:
			result = unknown
		}
	}
	return result
}
