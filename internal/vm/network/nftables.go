package network

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// nftRuleset is the output of `nft -j list ruleset`, reduced to the parts that decide about
// packets. libnftables-json(5) describes the output.
type nftRuleset struct {
	Nftables []struct {
		Chain *nftChain
		Rule  *nftRule
		Set   *nftSet
		Map   *nftSet
	}
}

// nftTable names a table of nftables.
type nftTable struct {
	Family, Table string
}

func (t nftTable) String() string { return t.Family + " " + t.Table }

// isIPTables reports whether the table has one of the names that iptables uses for its tables.
func (t nftTable) isIPTables() bool {
	return t.Family == "ip" && slices.Contains([]string{"raw", "mangle", "nat", "filter", "security"}, t.Table)
}

type nftChain struct {
	nftTable
	Name, Type, Hook, Policy string
	Prio                     int
}

type nftRule struct {
	nftTable
	Chain  string
	Handle int
	Expr   []map[string]json.RawMessage
}

// nftSet is a set or a map with a name.
type nftSet struct {
	nftTable
	Name string
	Elem []json.RawMessage
}

// addNFT adds the tables of nftables to a firewall that has the tables of iptables already. ruleset
// is the output of `nft -j list ruleset`; texts has the rules as nft prints them.
func (f *Firewall) addNFT(ruleset io.Reader, texts nftTexts) error {
	var all nftRuleset
	if err := json.NewDecoder(ruleset).Decode(&all); err != nil {
		return fmt.Errorf("read the output of nft: %w", err)
	}
	skipped := func(t nftTable) bool {
		known := slices.Contains([]string{"ip", "inet", "bridge"}, t.Family)
		return !known || f.viaNFT && t.isIPTables() // iptables-save has printed these tables
	}
	sets := map[string]nftSet{}
	for _, object := range all.Nftables {
		for _, set := range []*nftSet{object.Set, object.Map} {
			if set != nil {
				sets[set.nftTable.String()+" "+set.Name] = *set
			}
		}
		if c := object.Chain; c != nil && !skipped(c.nftTable) {
			f.addNFTChain(*c)
		}
	}
	for i, object := range all.Nftables {
		if i > mostRules {
			return fmt.Errorf("read the output of nft: it has more than %d objects", mostRules)
		}
		r := object.Rule
		if r == nil || skipped(r.nftTable) {
			continue
		}
		c := f.chains[chainID{r.nftTable.String(), r.Chain}]
		if c == nil {
			return fmt.Errorf("read the output of nft: rule %d of table %s is in no chain", r.Handle, r.nftTable)
		}
		reader := nftReader{table: r.nftTable, sets: sets}
		reader.rule.text = fmt.Sprintf("chain %s: %s", r.Chain, texts.of(r.nftTable, r.Handle))
		c.rules = append(c.rules, reader.read(r.Expr)...)
	}
	return nil
}

// addNFTChain adds an empty chain. If the kernel calls the chain for forwarded packets, it also
// adds a hook.
func (f *Firewall) addNFTChain(c nftChain) {
	id := chainID{c.nftTable.String(), c.Name}
	policy := strings.ToUpper(c.Policy)
	if policy == "" {
		policy = "-"
	}
	f.chains[id] = &chain{policy: policy}
	stages := map[string]stage{"prerouting": prerouting, "forward": forward, "postrouting": postrouting}
	at, forwards := stages[c.Hook]
	isNAT := c.Type == "nat"
	if !forwards || isNAT && at != postrouting {
		return
	}
	f.hook(hook{chain: id, stage: at, priority: c.Prio, isNAT: isNAT, isBridge: c.Family == "bridge"})
}

// nftTexts are the rules as nft prints them, by table and handle.
type nftTexts map[string]string

// of returns the text of a rule. If there is no text, since the rule was made between the two runs
// of nft, it returns words with the rule's handle.
func (t nftTexts) of(table nftTable, handle int) string {
	if text := t[fmt.Sprintf("%s %d", table, handle)]; text != "" {
		return text
	}
	return fmt.Sprintf("the rule with handle %d", handle)
}

// parseNFTTexts reads the output of `nft -a list ruleset`, in which each rule ends in its handle.
func parseNFTTexts(r io.Reader) (nftTexts, error) {
	texts, table := nftTexts{}, ""
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		text, handle, ok := strings.Cut(strings.TrimSpace(lines.Text()), " # handle ")
		switch words := strings.Fields(text); {
		case !ok:
		case len(words) == 4 && words[0] == "table" && words[3] == "{":
			table = words[1] + " " + words[2]
		case !strings.HasSuffix(text, "{"):
			texts[table+" "+handle] = text
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the output of nft: %w", err)
	}
	return texts, nil
}

// nftReader reads one rule of nftables.
type nftReader struct {
	table nftTable
	sets  map[string]nftSet
	rule  rule // as read so far
}

// read returns the rules with the same effect as the statements of one rule of nftables. If a
// statement maps a value to verdicts, there are several rules.
func (n *nftReader) read(statements []map[string]json.RawMessage) (rules []rule) {
	for _, statement := range statements {
		if len(statement) != 1 {
			n.add(unknownCondition{})
			continue
		}
		for kind, content := range statement {
			if kind == "vmap" {
				rules = append(rules, n.verdicts(content)...)
				continue
			}
			if r, ok := n.verdict(kind, content); ok {
				return append(rules, r)
			}
			n.condition(kind, content)
		}
	}
	return rules
}

func (n *nftReader) add(c condition) {
	n.rule.conditions = append(slices.Clone(n.rule.conditions), c)
}

// condition adds the condition of a statement that has no verdict. Some statements have no
// condition.
func (n *nftReader) condition(kind string, content json.RawMessage) {
	switch kind {
	case "match":
		n.add(n.match(content))
	case "counter", "log", "mangle", "notrack", "flow", "ct helper", "ct timeout", "ct expectation", "dup", "secmark":
		// these statements require nothing
	default: // limit, quota, ct count, xt, and unknown statements
		n.add(unknownCondition{})
	}
}

// verdict returns the rule that was read so far, with the verdict of a statement. It returns false
// if the statement has no verdict.
func (n *nftReader) verdict(kind string, content json.RawMessage) (rule, bool) {
	targets := map[string]string{
		"accept": "ACCEPT", "drop": "DROP", "reject": "REJECT", "return": "RETURN", "queue": "QUEUE",
		"masquerade": "MASQUERADE", "snat": "SNAT", "dnat": "DNAT", "redirect": "DNAT",
	}
	r := n.rule
	switch kind {
	case "jump", "goto":
		var to struct{ Target string }
		if json.Unmarshal(content, &to) != nil {
			return r, false
		}
		r.calls, r.isGoto = to.Target, kind == "goto"
		return r, true
	}
	r.target = targets[kind]
	return r, r.target != ""
}

// verdicts returns a rule for each verdict of a verdict map.
func (n *nftReader) verdicts(content json.RawMessage) (rules []rule) {
	var statement struct{ Key, Data json.RawMessage }
	if json.Unmarshal(content, &statement) != nil {
		n.add(unknownCondition{})
		return nil
	}
	subject := n.subject(statement.Key)
	var others []rule // the rules of the element that stands for all other values
	for _, element := range n.alternatives(statement.Data) {
		var pair []json.RawMessage
		var verdict map[string]json.RawMessage
		if json.Unmarshal(element, &pair) != nil || len(pair) != 2 || json.Unmarshal(pair[1], &verdict) != nil {
			continue
		}
		values := newValues(pair[:1])
		for _, kind := range slices.Sorted(maps.Keys(verdict)) {
			one := nftReader{rule: n.rule}
			one.add(comparison{subject: subject, values: values})
			r, ok := one.verdict(kind, verdict[kind])
			switch {
			case ok && values.any:
				others = append(others, r)
			case ok:
				rules = append(rules, r)
			}
		}
	}
	return append(rules, others...)
}

// match returns the condition of a statement `match`.
func (n *nftReader) match(content json.RawMessage) condition {
	var m struct {
		Op          string
		Left, Right json.RawMessage
	}
	if json.Unmarshal(content, &m) != nil {
		return unknownCondition{}
	}
	return comparison{subject: n.subject(m.Left), operator: m.Op, values: newValues(n.alternatives(m.Right))}
}

// alternatives returns the values of the right side of a comparison.
func (n *nftReader) alternatives(right json.RawMessage) []json.RawMessage {
	var name string
	if json.Unmarshal(right, &name) == nil {
		if set, isSet := strings.CutPrefix(name, "@"); isSet {
			return n.sets[n.table.String()+" "+set].Elem
		}
		return []json.RawMessage{right}
	}
	var list []json.RawMessage
	if json.Unmarshal(right, &list) == nil {
		return list
	}
	var set struct{ Set []json.RawMessage }
	if json.Unmarshal(right, &set) == nil && set.Set != nil {
		return set.Set
	}
	return []json.RawMessage{right}
}
