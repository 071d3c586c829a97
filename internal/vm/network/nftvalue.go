package network

import (
	"cmp"
	"encoding/json"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// unknownCondition is a condition that swdt does not know.
type unknownCondition struct{}

func (unknownCondition) holds(Packet) match { return unknown }

// subject is the property of a packet that a condition of nftables compares with values. has(p)
// reports whether the packet p has the property; without the property, no comparison holds, not even
// a negative comparison. is(p, v) reports whether the property of p is one of the values v.
type subject interface {
	has(p Packet) match
	is(p Packet, v values) match
}

// comparison is a condition of nftables.
type comparison struct {
	subject  subject
	operator string // as in nft; empty: ==
	values   values
}

func (c comparison) holds(p Packet) match {
	has := c.subject.has(p)
	if has == no {
		return no
	}
	var result match
	switch c.operator {
	case "==", "in", "":
		result = c.subject.is(p, c.values)
	case "!=":
		result = yes - c.subject.is(p, c.values)
	default: // <, >, and unknown operators
		result = unknown
	}
	return min(has, result)
}

// values are the alternatives of a comparison.
type values struct {
	words   map[string]bool // names; for interfaces also patterns with a * at the end
	ports   []string        // numbers and ranges, such as 80 or 80:90
	ranges  []addressRange  // sorted by their beginning; they do not overlap
	any     bool            // one of the elements stands for all other values
	foreign bool            // there are values that swdt does not know
}

type addressRange struct{ first, last netip.Addr }

func newValues(elements []json.RawMessage) values {
	v := values{words: map[string]bool{}}
	for _, element := range elements {
		v.add(element, 0)
	}
	slices.SortFunc(v.ranges, func(a, b addressRange) int { return a.first.Compare(b.first) })
	return v
}

// add reads one value: a string, a number, or an object with one field.
func (v *values) add(element json.RawMessage, depth int) {
	var text string
	var number uint64
	var object struct {
		Prefix *struct {
			Addr string
			Len  int
		}
		Range []json.RawMessage
		Elem  *struct{ Val json.RawMessage }
	}
	switch {
	case json.Unmarshal(element, &text) == nil:
		v.addText(text)
	case json.Unmarshal(element, &number) == nil:
		v.ports = append(v.ports, strconv.FormatUint(number, 10))
	case json.Unmarshal(element, &object) != nil:
		v.foreign = true
	case object.Prefix != nil:
		v.addText(object.Prefix.Addr + "/" + strconv.Itoa(object.Prefix.Len))
	case len(object.Range) == 2:
		v.addRange(object.Range)
	case object.Elem != nil && depth == 0: // a value with a time or a comment
		v.add(object.Elem.Val, depth+1)
	default:
		v.foreign = true
	}
}

func (v *values) addText(text string) {
	if text == "*" {
		v.any = true
		return
	}
	if a, err := netip.ParseAddr(text); err == nil {
		v.ranges = append(v.ranges, addressRange{a, a})
		return
	}
	if prefix, err := netip.ParsePrefix(text); err == nil {
		if prefix.Addr().Is4() {
			v.ranges = append(v.ranges, addressRange{prefix.Masked().Addr(), broadcast(prefix.Masked())})
		}
		return // judged packets are IPv4, so an IPv6 prefix matches none
	}
	v.words[text] = true
}

// addRange reads a range of addresses or of ports.
func (v *values) addRange(ends []json.RawMessage) {
	var texts [2]string
	var numbers [2]uint64
	for i, end := range ends {
		if json.Unmarshal(end, &texts[i]) != nil && json.Unmarshal(end, &numbers[i]) != nil {
			v.foreign = true
			return
		}
	}
	if texts[0] == "" && texts[1] == "" {
		v.ports = append(v.ports, strconv.FormatUint(numbers[0], 10)+":"+strconv.FormatUint(numbers[1], 10))
		return
	}
	first, errFirst := netip.ParseAddr(texts[0])
	last, errLast := netip.ParseAddr(texts[1])
	if errFirst != nil || errLast != nil {
		v.foreign = true
		return
	}
	v.ranges = append(v.ranges, addressRange{first, last})
}

// otherwise returns the result of a comparison if the packet equals none of the known values.
func (v values) otherwise() match {
	switch {
	case v.any:
		return yes
	case v.foreign:
		return unknown
	}
	return no
}

// subject returns the property on the left side of a comparison.
func (n *nftReader) subject(left json.RawMessage) subject {
	var s struct {
		Meta, CT *struct{ Key string }
		Payload  *struct{ Protocol, Field string }
	}
	switch {
	case json.Unmarshal(left, &s) != nil:
	case s.Meta != nil:
		return metaSubject(s.Meta.Key)
	case s.CT != nil:
		return connectionSubject(s.CT.Key)
	case s.Payload != nil && s.Payload.Field != "":
		return headerSubject(s.Payload.Protocol, s.Payload.Field)
	}
	return unknownSubject{}
}

// metaSubject returns the property for a key of nft's meta expression.
func metaSubject(key string) subject {
	switch key {
	case "iif", "iifname":
		return linkSubject{func(p Packet) link { return p.in }}
	case "oif", "oifname":
		return linkSubject{func(p Packet) link { return p.out }}
	case "ibrname":
		return linkSubject{func(p Packet) link { return link{p.In, true} }}
	case "obrname":
		return linkSubject{func(p Packet) link { return link{p.Out, true} }}
	case "l4proto":
		return wordSubject{func(p Packet) string { return p.Protocol }}
	case "nfproto":
		return wordSubject{func(Packet) string { return "ipv4" }}
	case "protocol":
		return wordSubject{func(Packet) string { return "ip" }}
	}
	return unknownSubject{}
}

// connectionSubject returns the property for a key of nft's ct expression.
func connectionSubject(key string) subject {
	of := func(first, answer string) subject {
		return wordSubject{func(p Packet) string {
			if p.isAnswer {
				return answer
			}
			return first
		}}
	}
	switch key {
	case "state":
		return of("new", "established")
	case "direction":
		return of("original", "reply")
	}
	return unknownSubject{}
}

// headerSubject returns the property for a field of a packet's header.
func headerSubject(protocol, field string) subject {
	switch protocol + " " + field {
	case "ip saddr":
		return addressSubject{func(p Packet) netip.Addr { return p.From }}
	case "ip daddr":
		return addressSubject{func(p Packet) netip.Addr { return p.To }}
	case "ip protocol":
		return wordSubject{func(p Packet) string { return p.Protocol }}
	case "ether type":
		return wordSubject{func(Packet) string { return "ip" }}
	}
	switch protocol {
	case "ip6", "icmp", "icmpv6", "arp":
		return missingSubject{}
	case "tcp", "udp", "th":
		return portSubject{protocol: protocol, field: field}
	}
	return unknownSubject{}
}

// unknownSubject is a property that swdt does not know.
type unknownSubject struct{}

func (unknownSubject) has(Packet) match        { return unknown }
func (unknownSubject) is(Packet, values) match { return unknown }

// missingSubject is a property that the judged packets never have.
type missingSubject struct{}

func (missingSubject) has(Packet) match        { return no }
func (missingSubject) is(Packet, values) match { return no }

// wordSubject is a property whose value is a word, such as tcp or established.
type wordSubject struct{ of func(Packet) string }

func (wordSubject) has(Packet) match { return yes }

func (s wordSubject) is(p Packet, v values) match {
	numbers := map[string]string{"tcp": "6", "udp": "17"}
	word := s.of(p)
	if v.words[word] || slices.Contains(v.ports, cmp.Or(numbers[word], word)) {
		return yes
	}
	return v.otherwise()
}

// linkSubject is an interface of a packet.
type linkSubject struct{ of func(Packet) link }

func (linkSubject) has(Packet) match { return yes }

func (s linkSubject) is(p Packet, v values) match {
	l := s.of(p)
	if !l.isKnown {
		return max(unknown, v.otherwise())
	}
	for pattern := range v.words {
		if prefix, open := strings.CutSuffix(pattern, "*"); pattern == l.name || open && strings.HasPrefix(l.name, prefix) {
			return yes
		}
	}
	return v.otherwise()
}

// addressSubject is an address of a packet.
type addressSubject struct{ of func(Packet) netip.Addr }

func (addressSubject) has(Packet) match { return yes }

func (s addressSubject) is(p Packet, v values) match {
	a := s.of(p)
	i, found := slices.BinarySearchFunc(v.ranges, a, func(r addressRange, a netip.Addr) int { return r.first.Compare(a) })
	if found || i > 0 && v.ranges[i-1].last.Compare(a) >= 0 {
		return yes
	}
	if len(v.words) > 0 { // host names, which nft prints only on request
		return unknown
	}
	return v.otherwise()
}

// portSubject is a port, or another field of the headers that have ports.
type portSubject struct{ protocol, field string }

func (s portSubject) has(p Packet) match { return is(s.protocol == "th" || s.protocol == p.Protocol) }

func (s portSubject) is(p Packet, v values) match {
	isClients := p.isAnswer
	switch s.field {
	case "dport":
	case "sport":
		isClients = !isClients
	default:
		return unknown
	}
	result := v.otherwise()
	for _, port := range v.ports {
		result = max(result, portWithin(port, p.Port, isClients))
	}
	if len(v.words) > 0 {
		result = max(result, unknown)
	}
	return result
}
