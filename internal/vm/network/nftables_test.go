package network

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// realRuleset returns the firewall of testdata, which nft 1.0.6 has printed.
func realRuleset(t testing.TB, iptables string) *Firewall {
	t.Helper()
	f, err := ParseFirewall(strings.NewReader(iptables))
	if err == nil {
		err = f.addNFT(bytes.NewReader(file(t, "ruleset.json")), textsOf(t))
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func textsOf(t testing.TB) nftTexts {
	t.Helper()
	texts, err := parseNFTTexts(bytes.NewReader(file(t, "ruleset.txt")))
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

func file(t testing.TB, name string) []byte {
	t.Helper()
	content, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestJudgeOfNFTRules(t *testing.T) {
	f := realRuleset(t, "")
	within := Packet{
		In: "br-kind", InPort: "swdt0", Out: "br-kind", From: ip("172.18.255.254"), To: ip("172.18.0.2"), Protocol: "tcp",
	}
	change := func(change func(*Packet)) Packet {
		p := within
		change(&p)
		return p
	}
	for name, test := range map[string]struct {
		packet Packet
		want   Verdict
	}{
		"a named set, in a chain that a map calls": {
			change(func(p *Packet) { p.Port = 10250 }),
			Verdict{Table: "inet fw", Rule: `chain sub: tcp dport @ports counter drop comment "no API"`},
		},
		"the family bridge, by the name of a port": {
			change(func(p *Packet) { p.Port, p.From = 6443, ip("172.18.0.9") }),
			Verdict{Table: "inet fw", Rule: `chain sub: tcp dport @ports counter drop comment "no API"`},
		},
		"an interval of a named set, except": {
			change(func(p *Packet) { p.Protocol, p.Port, p.To = "udp", 4789, ip("172.18.0.3") }),
			Verdict{Table: "inet fw", Rule: "chain sub: ip saddr @bad ip daddr != 172.18.0.2 udp dport 4789 reject with " +
				"icmp port-unreachable"},
		},
		"the exception": {
			change(func(p *Packet) { p.Protocol, p.Port = "udp", 4789 }), Verdict{Passes: true},
		},
		"conditions that are not known come before": {
			change(func(p *Packet) { p.In, p.Port = "eth7", 22 }),
			Verdict{Table: "inet fw", Rule: "chain forward: fib daddr type local drop", Maybe: true},
		},
		"a range of ports": {
			change(func(p *Packet) { p.In, p.Out, p.Port = "eth7", "eth8", 85 }),
			Verdict{Passes: true, Table: "inet fw", Hides: `chain post: ip saddr 172.18.0.0/16 oifname != "br-kind" masquerade`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, f.Judge(test.packet)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A condition that swdt does not know is unknown, not wrong.
func TestConditionsOfNFT(t *testing.T) {
	const (
		from  = `{"payload": {"protocol": "ip", "field": "saddr"}}`
		dport = `{"payload": {"protocol": "th", "field": "dport"}}`
		state = `{"ct": {"key": "state"}}`
		in    = `{"meta": {"key": "iifname"}}`
	)
	is := func(op, left, right string) string {
		return `{"match": {"op": "` + op + `", "left": ` + left + `, "right": ` + right + `}}`
	}
	verdicts := func(accepted string) string { // and all others are dropped
		return `{"vmap": {"key": ` + in + `, "data": {"set": [["*", {"drop": null}],
			["` + accepted + `", {"accept": null}]]}}}`
	}
	packet := Packet{
		In: "virbr0", Out: "br-kind", From: ip("192.168.122.50"), To: ip("172.18.0.2"), Protocol: "udp", Port: 4789,
	}
	for statement, want := range map[string]match{
		is("==", from, `"192.168.122.50"`):                                                         yes,
		is("!=", from, `"192.168.122.50"`):                                                         no,
		is("==", from, `{"range": ["192.168.122.0", "192.168.122.255"]}`):                          yes,
		is("==", from, `{"range": ["192.168.122.x", "192.168.122.255"]}`):                          unknown,
		is("==", from, `{"range": [{}, {}]}`):                                                      unknown,
		is("==", from, `{"prefix": {"addr": "fc00::", "len": 7}}`):                                 no,
		is("==", from, `"gateway.example"`):                                                        unknown,
		is("==", from, `"@gone"`):                                                                  no,
		is("==", from, `{"set": ["10.0.0.1", {"elem": {"val": "192.168.122.50", "timeout": 9}}]}`): yes,
		is("==", from, `{"set": [{"concat": ["192.168.122.50", 1]}]}`):                             unknown,
		is("<", from, `"192.168.122.50"`):                                                          unknown,
		is("==", dport, `4789`):                                                                    yes,
		is("==", dport, `{"set": [1, {"range": [4000, 5000]}]}`):                                   yes,
		is("==", dport, `"vxlan"`):                                                                 unknown,
		is(">", dport, `1024`):                                                                     unknown,
		is("==", `{"payload": {"protocol": "tcp", "field": "dport"}}`, `4789`):                     no,
		is("!=", `{"payload": {"protocol": "tcp", "field": "dport"}}`, `1`):                        no,
		is("==", `{"payload": {"protocol": "udp", "field": "length"}}`, `1`):                       unknown,
		is("==", `{"payload": {"base": "th", "offset": 0, "len": 16}}`, `1`):                       unknown,
		is("!=", `{"payload": {"protocol": "ip6", "field": "saddr"}}`, `"::1"`):                    no,
		is("==", `{"payload": {"protocol": "vlan", "field": "id"}}`, `1`):                          unknown,
		is("in", state, `["new", "untracked"]`):                                                    yes,
		is("in", state, `"established"`):                                                           no,
		is("!=", state, `"invalid"`):                                                               yes,
		is("==", `{"ct": {"key": "mark"}}`, `1`):                                                   unknown,
		is("!=", `{"meta": {"key": "mark"}}`, `1`):                                                 unknown,
		is("==", `{"&": [{"meta": {"key": "mark"}}, 255]}`, `1`):                                   unknown,
		is("==", `{"meta": {"key": "l4proto"}}`, `17`):                                             yes,
		is("==", `{"meta": {"key": "l4proto"}}`, `{"set": ["tcp", "icmp"]}`):                       no,
		is("==", `{"meta": {"key": "nfproto"}}`, `"ipv6"`):                                         no,
		is("==", `{"meta": {"key": "protocol"}}`, `"ip"`):                                          yes,
		is("==", `{"meta": {"key": "ibrname"}}`, `"virbr0"`):                                       yes,
		is("==", `{"meta": {"key": "obrname"}}`, `"virbr0"`):                                       no,
		is("==", in, `"virbr*"`):                                                                   yes,
		is("==", in, `"virbr"`):                                                                    no,
		is("!=", in, `"*"`):                                                                        no,
		`{"limit": {"rate": 5, "per": "second"}}`:                                                  unknown,
		`{"xt": {"type": "match", "name": "string"}}`:                                              unknown,
		`{"match": "x"}`: unknown,
		`{"counter": null}, {"log": {"prefix": "x"}}`: yes,
		`{"a": 1, "b": 2}`:                            unknown,
		verdicts("eth0"):                              yes,
		verdicts("virbr0"):                            no,
		`{"vmap": 1}`:                                 unknown,
	} {
		f := newFirewall()
		ruleset := `{"nftables": [{"chain": {"family": "inet", "table": "t", "name": "c", "type": "filter",
			"hook": "forward", "policy": "accept"}},
			{"rule": {"family": "inet", "table": "t", "chain": "c", "expr": [` + statement + `, {"drop": null}]}}]}`
		if err := f.addNFT(strings.NewReader(ruleset), nil); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		got := no
		switch v := f.forward(packet); {
		case v.Maybe:
			got = unknown
		case !v.Passes:
			got = yes
		}
		if got != want {
			t.Errorf("%s: %d, want %d", statement, got, want)
		}
	}
}

// A port of a bridge that is not known may be the one that a rule names.
func TestAnUnknownPortOfABridge(t *testing.T) {
	f := realRuleset(t, "")
	p := Packet{In: "br-kind", Out: "br-kind", From: ip("10.9.9.9"), To: ip("172.18.0.2"), Protocol: "tcp", Port: 6443}
	for port, want := range map[string]match{"": unknown, "swdt0": yes, "veth1": no} {
		p.InPort = port
		rule, target, maybe := f.decide(hook{chain: chainID{"bridge fw", "forward"}, stage: forward, isBridge: true}, p)
		got := no
		if stops(target) {
			got = yes
		}
		if maybe {
			got = min(got, unknown)
		}
		if got != want {
			t.Errorf("port %q: %d, want %d (%s %s)", port, got, want, rule, target)
		}
	}
}

// A table that iptables keeps in nftables is judged once, by the rules as iptables prints them.
func TestTablesOfIPTables(t *testing.T) {
	const ruleset = `{"nftables": [
		{"chain": {"family": "ip", "table": "filter", "name": "FORWARD", "type": "filter", "hook": "forward",
			"policy": "drop"}}
	]}`
	p := sides("virbr0").Connections()[0].Packet
	for header, passes := range map[string]bool{
		"# Generated by iptables-save v1.8.9 (nf_tables) on Monday\n": true,
		"# Generated by iptables-save v1.8.9 on Monday\n":             false, // it prints the tables of an older kernel
		"": false,
	} {
		f := parse(t, header+"*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n")
		if err := f.addNFT(strings.NewReader(ruleset), nil); err != nil {
			t.Fatal(err)
		}
		if got := f.Judge(p).Passes; got != passes {
			t.Errorf("%q: passes = %v, want %v", header, got, passes)
		}
	}
}

func TestProblemsOfNFTRules(t *testing.T) {
	problems := realRuleset(t, "").Problems(sides("br-kind").Connections()[:1])
	var got []string
	for _, p := range problems {
		got = append(got, string(p.Severity), p.What, p.Evidence, p.Remedy)
	}
	want := []string{
		"error",
		"the kubelet reaches the API server: your firewall drops it (TCP from 192.168.122.50 to 172.18.0.2, port 6443)",
		`inet fw: chain sub: tcp dport @ports counter drop comment "no API"`,
		"`sudo nft 'insert rule inet fw forward iifname \"br-kind\" oifname \"br-kind\" accept'`, " +
			"then run this check again; or `sudo sysctl net.bridge.bridge-nf-call-iptables=0`",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDamagedOutputOfNFT(t *testing.T) {
	for _, text := range []string{
		"", "{", "[]", `{"nftables": 1}`, `{"nftables": [{"rule": {"family": "ip", "table": "a", "chain": "gone"}}]}`,
	} {
		if err := newFirewall().addNFT(strings.NewReader(text), nil); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
	if _, err := parseNFTTexts(strings.NewReader(strings.Repeat("a", 2<<20))); err == nil {
		t.Error("a line of 2 MiB was accepted")
	}
}

func FuzzAddNFT(f *testing.F) {
	f.Add(file(f, "ruleset.json"), file(f, "ruleset.txt"))
	f.Add([]byte(`{"nftables": [
		{"chain": {"family": "ip", "table": "a", "name": "b", "hook": "forward", "policy": "drop"}},
		{"rule": {"family": "ip", "table": "a", "chain": "b", "expr": [{"jump": {"target": "b"}}, {"match": {"op": "<",
		"left": {"payload": {"protocol": "th", "field": "dport"}}, "right": {"range": [1, "x"]}}}]}}]}`),
		[]byte("table ip a {"))
	f.Fuzz(func(t *testing.T, ruleset, text []byte) {
		texts, err := parseNFTTexts(bytes.NewReader(text))
		if err != nil {
			return
		}
		firewall := newFirewall()
		if firewall.addNFT(bytes.NewReader(ruleset), texts) == nil {
			firewall.Problems(sides("virbr0").Connections())
			firewall.Problems(sides("br-kind").Connections())
		}
	})
}
