package network

import (
	"bufio"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"

	"github.com/anmitsu/go-shlex"
)

// Firewall is the packet filter of your machine, as iptables-save prints it.
type Firewall struct {
	chains map[chainID]*chain
}

type chainID struct{ table, name string }

// chain is an ordered list of rules.
type chain struct {
	policy string // ACCEPT or DROP if the kernel itself calls the chain; else "-"
	rules  []rule
}

// Packet is the first packet of a connection that your machine forwards.
type Packet struct {
	In, Out  string // interfaces; a bridge's name for one of its ports
	From, To netip.Addr
	Protocol string // tcp or udp
	Port     uint16 // of the receiver

	isAnswer bool // Port is then the sender's
}

// answer returns the first packet of the other direction.
func (p Packet) answer() Packet {
	p.In, p.Out, p.From, p.To, p.isAnswer = p.Out, p.In, p.To, p.From, true
	return p
}

func (p Packet) String() string {
	return fmt.Sprintf("%s from %s to %s, port %d", strings.ToUpper(p.Protocol), p.From, p.To, p.Port)
}

// Verdict is the decision of a firewall about a connection.
type Verdict struct {
	// Passes reports whether the packet is forwarded.
	Passes bool
	// Answer means that the packet passes, and its answer does not.
	Answer bool
	// Table is the table of the rule that decides.
	Table string
	// Rule is the rule that decides, as iptables-save prints it, or the chain's policy;
	// empty if no rule decides.
	Rule string
	// Maybe means that the rule has a condition that swdt does not know.
	Maybe bool
	// Hides is the rule that replaces the sender's address, so that the receiver sees
	// your machine instead; empty if none does.
	Hides string
}

// Bounds of a rule set, beyond those of the busiest machines.
const (
	mostRules = 100_000
	mostDepth = 32 // of chains that call chains
	mostSteps = 1_000_000
)

// ParseFirewall reads the output of iptables-save.
func ParseFirewall(r io.Reader) (*Firewall, error) {
	f := &Firewall{chains: map[chainID]*chain{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 64<<10)
	table := ""
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if n > mostRules {
			return nil, fmt.Errorf("read the firewall: more than %d lines", mostRules)
		}
		if err := f.parseLine(&table, line); err != nil {
			return nil, fmt.Errorf("read the firewall: line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the firewall: %w", err)
	}
	return f, nil
}

func (f *Firewall) parseLine(table *string, line string) error {
	switch {
	case line == "", line[0] == '#', line == "COMMIT":
		return nil
	case line[0] == '*':
		*table = line[1:]
		return nil
	case line[0] == ':':
		words := strings.Fields(line[1:])
		if len(words) < 2 {
			return fmt.Errorf("%.80q names no chain with a policy", line)
		}
		f.chains[chainID{*table, words[0]}] = &chain{policy: words[1]}
		return nil
	}
	words, err := shlex.Split(strings.TrimPrefix(line, "["), true)
	if err != nil {
		return fmt.Errorf("%.80q: %w", line, err)
	}
	if len(words) > 0 && strings.HasSuffix(words[0], "]") { // counters, of iptables-save -c
		words = words[1:]
	}
	if len(words) < 2 || words[0] != "-A" {
		return fmt.Errorf("%.80q is not a rule", line)
	}
	c := f.chains[chainID{*table, words[1]}]
	if c == nil {
		return fmt.Errorf("%.80q is in a chain that was not declared", line)
	}
	c.rules = append(c.rules, parseRule(line, words[2:]))
	return nil
}

// Judge returns what the firewall does to a connection that your machine forwards: to its
// first packet and, for TCP, to the answer. VXLAN, the use of UDP here, has no answers.
func (f *Firewall) Judge(p Packet) Verdict {
	if v := f.forward(p); !v.Passes {
		return v
	}
	if p.Protocol == "tcp" {
		if v := f.forward(p.answer()); !v.Passes {
			v.Answer = true
			return v
		}
	}
	v := Verdict{Passes: true}
	if rule, target, _ := f.decide(chainID{"nat", "POSTROUTING"}, p); target == "MASQUERADE" || target == "SNAT" {
		v.Hides = rule
	}
	return v
}

// forward returns what happens to one packet.
func (f *Firewall) forward(p Packet) Verdict {
	for _, id := range []chainID{{"raw", "PREROUTING"}, {"mangle", "FORWARD"}, {"filter", "FORWARD"}} {
		switch rule, target, maybe := f.decide(id, p); target {
		case "DROP", "REJECT":
			return Verdict{Table: id.table, Rule: rule, Maybe: maybe}
		}
	}
	return Verdict{Passes: true}
}

// decide returns the rule that ends a packet's way through one of the kernel's chains.
func (f *Firewall) decide(id chainID, p Packet) (rule, target string, maybe bool) {
	c := f.chains[id]
	if c == nil {
		return "", "ACCEPT", false
	}
	w := walk{firewall: f, table: id.table, packet: p}
	if end := w.through(c, 0); end != nil {
		return end.text, end.target, w.maybe
	}
	return fmt.Sprintf("the policy %s of chain %s", c.policy, id.name), c.policy, false
}

// walk follows a packet through the chains of a table.
type walk struct {
	firewall *Firewall
	table    string
	packet   Packet
	maybe    bool // the rule that ended it has a condition that is not known
	steps    int
}

// through returns the rule that ends the walk, or nil if the chain returns.
func (w *walk) through(c *chain, depth int) *rule {
	if depth > mostDepth {
		return nil
	}
	for i := range c.rules {
		if w.steps++; w.steps > mostSteps {
			return nil
		}
		r := &c.rules[i]
		matched := r.matches(w.packet)
		if matched == no {
			continue
		}
		if called := w.firewall.chains[chainID{w.table, r.target}]; called != nil {
			if end := w.through(called, depth+1); end != nil {
				w.maybe = w.maybe || matched == unknown
				return end
			}
			if r.isGoto {
				return nil
			}
			continue
		}
		switch {
		case r.target == "RETURN" && matched == yes:
			return nil
		case !slices.Contains(endings(), r.target):
			continue
		case matched == unknown && !slices.Contains([]string{"DROP", "REJECT"}, r.target):
			continue // it may not let the packet through: what comes next decides
		}
		w.maybe = matched == unknown
		return r
	}
	return nil
}

// endings returns the targets that end a packet's way through a table.
func endings() []string {
	return []string{"ACCEPT", "DROP", "REJECT", "MASQUERADE", "SNAT", "DNAT", "QUEUE", "NFQUEUE"}
}
