package network

import (
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/swdt-dev/swdt/internal/testing/netspace"
)

// chainsOfIPTables returns rules in the form of iptables-save.
func chainsOfIPTables(table string, chains []string, rules ...string) string {
	text := "*" + table + "\n"
	for _, name := range chains {
		policy := "ACCEPT"
		if name == "DOCKER-USER" {
			policy = "-"
		}
		text += ":" + name + " " + policy + " [0:0]\n"
	}
	for _, rule := range rules {
		text += "-A " + rule + "\n"
	}
	return text + "COMMIT\n"
}

// iptablesRules are rules of iptables, by what they do.
func iptablesRules() map[string]string {
	filter := func(rules ...string) string {
		return chainsOfIPTables("filter", []string{"INPUT", "FORWARD", "OUTPUT", "DOCKER-USER"}, rules...)
	}
	nat := func(rules ...string) string {
		return chainsOfIPTables("nat", []string{"PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"}, rules...)
	}
	return map[string]string{
		"no rules":  filter(),
		"Docker 28": docker,
		"Docker 28, and DOCKER-USER": strings.Replace(docker, "-A FORWARD -j DOCKER-USER",
			"-A DOCKER-USER -i virbr0 -o br-kind -j ACCEPT\n-A FORWARD -j DOCKER-USER", 1),
		"libvirt rejects": filter("FORWARD -o virbr0 -j REJECT --reject-with icmp-port-unreachable"),
		"only to a port":  filter("FORWARD -d 172.18.0.0/16 -p tcp -m tcp --dport 6000:7000 -j DROP"),
		"not to a port":   filter("FORWARD -p tcp -m multiport ! --dports 80,6443 -j DROP"),
		"a chain returns": filter("DOCKER-USER -s 192.168.122.0/24 -j RETURN", "DOCKER-USER -j DROP",
			"FORWARD -j DOCKER-USER"),
		"goto":                       filter("FORWARD -i virbr0 -g DOCKER-USER", "FORWARD ! -i virbr0 -j DROP"),
		"everything that is not new": filter("FORWARD -m conntrack --ctstate NEW -j DROP"),
		"libvirt hides":              nat("POSTROUTING -s 192.168.122.0/24 ! -d 192.168.122.0/24 -j MASQUERADE"),
		"libvirt hides, with exception": nat("POSTROUTING -s 192.168.122.0/24 -d 172.18.0.0/16 -j RETURN",
			"POSTROUTING -s 192.168.122.0/24 -j MASQUERADE"),
		"raw": chainsOfIPTables("raw", []string{"PREROUTING", "OUTPUT"}, "PREROUTING -d 172.18.0.2/32 ! -i br-kind -j DROP"),
	}
}

// nftRules are rules of nftables, by what they do.
func nftRules() map[string]string {
	forward := func(policy string, rules ...string) string {
		return "table inet fw {\nset api {\ntype inet_service; elements = { 6443, 10250 };\n}\n" +
			"set near {\ntype ipv4_addr; flags interval; elements = { 172.18.0.128/25, 10.0.0.1-10.0.0.9 };\n}\n" +
			"chain sub {\nip saddr 192.168.122.0/24 return\ndrop\n}\n" +
			"chain forward {\ntype filter hook forward priority 0; policy " + policy + ";\n" +
			strings.Join(rules, "\n") + "\n}\n}\n"
	}
	chain := func(table, head string, rules ...string) string {
		return "table " + table + " fw {\nchain c {\ntype " + head + "; policy accept;\n" +
			strings.Join(rules, "\n") + "\n}\n}\n"
	}
	return map[string]string{
		"policy":          forward("drop"),
		"policy, answers": forward("drop", `iifname "virbr0" accept`, "ct state established,related accept"),
		"policy, interface": forward("drop", `iifname { "virbr0", "eth0" } oifname "br-*" accept`,
			"ct direction reply accept"),
		"a named set":     forward("accept", "ip saddr @near tcp dport @api reject"),
		"a set of ports":  forward("accept", "ip daddr 172.18.0.2 tcp dport { 80, 6000-7000 } drop"),
		"not an address":  forward("accept", "ip daddr != 172.18.0.2 tcp dport 6443 drop"),
		"a chain returns": forward("accept", "jump sub"),
		"goto":            forward("drop", "goto sub", "accept"),
		"map of states": forward("drop", "ct state vmap { established : accept, related : accept, invalid : drop }",
			`iifname "virbr0" accept`),
		"map of interfaces": forward("accept", `iifname vmap { "br-kind" : jump sub, "virbr0" : accept, "x*" : drop }`),
		"map of ports":      forward("accept", "tcp dport vmap { 1-6442 : accept, 6443 : goto sub }"),
		"protocols": forward("accept", "meta l4proto { icmp, udp } drop", "ip protocol udp drop",
			"udp dport 6443 drop"),
		"IPv6": forward("accept", "ip6 saddr != fc00::/7 drop", "meta nfproto ipv6 drop",
			"icmpv6 type 1 drop"),
		"of the answers": forward("accept", "tcp sport 6443 ct state established drop"),
		"like firewalld": forward("accept", "ct state { established, related } accept", "ct status dnat accept",
			`iifname "lo" accept`, `oifname "br-kind" iifname "br-kind" accept`, "ct state invalid drop",
			"reject with icmpx admin-prohibited"),
		"raw":                chain("ip", "filter hook prerouting priority -300", `ip saddr 192.168.122.50 drop`),
		"no way out yet":     chain("ip", "filter hook prerouting priority -300", `oifname != "lo" drop`),
		"no way in any more": chain("inet", "filter hook postrouting priority 300", `iifname != "lo" drop`),
		"after the last":     chain("inet", "filter hook postrouting priority 300", `oifname "virbr0" drop`),
		"hides": chain("inet",
			"nat hook postrouting priority srcnat", "ip saddr 172.18.0.0/16 masquerade"),
		"ports of a bridge": chain("bridge",
			"filter hook forward priority 0", `iifname "p0-250" ip daddr 172.18.0.2 drop`),
		"before a bridge": chain("bridge",
			"filter hook prerouting priority 0", `iifname "p0-250" tcp dport 6443 drop`),
		"behind a bridge": chain("bridge",
			"filter hook postrouting priority 0", `oifname "p0-2" ether type ip drop`),
		"only what is no bridge": chain("bridge", "filter hook forward priority 0", `iifname "p122-50" drop`),
		"IPv6 alone":             chain("ip6", "filter hook forward priority 0", "drop"),
	}
}

// TestTheKernelAgrees compares verdicts with what the kernel does to real connections
// between a VM on one bridge and a container on another, or on the same.
func TestTheKernelAgrees(t *testing.T) {
	if !netspace.Enter(t) {
		return
	}
	k := newKernel(t)
	for name, rules := range iptablesRules() {
		t.Run("iptables, "+name, func(t *testing.T) {
			netspace.ReplaceRuleset(t, "")
			netspace.Restore(t, rules)
			k.compare(t, true)
		})
	}
	for name, rules := range nftRules() {
		t.Run("nftables, "+name, func(t *testing.T) {
			netspace.ReplaceRuleset(t, rules)
			k.compare(t, true)
		})
	}
	for _, name := range []string{"policy", "a named set", "ports of a bridge", "behind a bridge"} {
		t.Run("nftables that see no bridges, "+name, func(t *testing.T) {
			k.filterBridges(t, false)
			defer k.filterBridges(t, true)
			netspace.ReplaceRuleset(t, nftRules()[name])
			k.compare(t, false)
		})
	}
	t.Run("both", func(t *testing.T) {
		netspace.ReplaceRuleset(t, "")
		netspace.Restore(t, iptablesRules()["libvirt rejects"])
		netspace.AddRuleset(t, nftRules()["a named set"])
		k.compare(t, true)
	})
	if k.passing < 100 || k.dropped < 60 {
		t.Errorf("%+v: %d pass and %d are dropped, want 100 and 60 at least", k.tries, k.passing, k.dropped)
	}
	if k.hidden < 5 || k.mended < 40 {
		t.Errorf("%+v: %d are hidden and %d mended, want 5 and 40 at least", k.tries, k.hidden, k.mended)
	}
}

// kernel has machines whose connections the kernel forwards.
type kernel struct {
	vm, near, container netspace.Station
	tries
}

// tries counts the connections that were tried.
type tries struct{ passing, dropped, hidden, mended int }

const kernelPort = 6443

func newKernel(t *testing.T) *kernel {
	t.Helper()
	must(t, os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o600))
	k := &kernel{
		vm:        netspace.NewStation(t, "virbr0", "192.168.122.50/24", "192.168.122.1"),
		near:      netspace.NewStation(t, "br-kind", "172.18.0.250/24", "172.18.0.1"),
		container: netspace.NewStation(t, "br-kind", "172.18.0.2/24", "172.18.0.1"),
	}
	k.filterBridges(t, true)
	for _, s := range []netspace.Station{k.vm, k.near, k.container} {
		s.Listen(t, kernelPort)
	}
	return k
}

// filterBridges sets whether rules for IP see the frames between the ports of a bridge.
func (k *kernel) filterBridges(t *testing.T, on bool) {
	t.Helper()
	value := map[bool]string{true: "1", false: "0"}[on]
	must(t, os.WriteFile("/proc/sys/net/bridge/bridge-nf-call-iptables", []byte(value), 0o600))
}

// compare compares the verdicts about connections with the kernel's. mend means that the remedies are
// tried, too.
func (k *kernel) compare(t *testing.T, mend bool) {
	t.Helper()
	for _, ends := range [][2]netspace.Station{{k.vm, k.container}, {k.container, k.vm}, {k.near, k.container}} {
		from, to := ends[0], ends[1]
		c := Connection{Use: "test", Packet: Packet{
			In: from.Bridge, InPort: from.Port, Out: to.Bridge, OutPort: to.Port, From: from.Address.Addr(),
			To: to.Address.Addr(), Protocol: "tcp", Port: kernelPort,
		}}
		v := k.agrees(t, from, to, c)
		const most = 3 // rules in the way of one connection
		for i := 0; mend && !v.Passes && i < most; i++ {
			f, err := ReadFirewall(t.Context(), Proc())
			must(t, err)
			mendBy(t, f.Problems([]Connection{c})[0].Remedy)
			k.mended++
			v = k.agrees(t, from, to, c)
		}
		if mend && !v.Passes {
			t.Errorf("%s is judged %+v after its remedies", c.Packet, v)
		}
	}
}

// agrees compares one verdict with the kernel's.
func (k *kernel) agrees(t *testing.T, from, to netspace.Station, c Connection) Verdict {
	t.Helper()
	f, err := ReadFirewall(t.Context(), Proc())
	must(t, err)
	v := f.Judge(c.Packet)
	remote := netip.AddrPortFrom(to.Address.Addr(), kernelPort)
	if !v.Passes {
		k.dropped++
		if seen, err := from.Read(remote, 120*time.Millisecond); err == nil {
			t.Errorf("%s is judged %+v, but is connected, and is seen as %s", c.Packet, v, seen)
		}
		return v
	}
	k.passing++
	seen, err := from.Read(remote, 8*time.Second)
	if err != nil {
		t.Errorf("%s is judged %+v, but: %v", c.Packet, v, err)
		return v
	}
	if v.Hides != "" {
		k.hidden++
	}
	if isHidden := seen != from.Address.Addr().String(); isHidden != (v.Hides != "") {
		t.Errorf("%s is judged %+v, but is seen as %s", c.Packet, v, seen)
	}
	return v
}

// mendBy runs the first command of a remedy.
func mendBy(t *testing.T, remedy string) {
	t.Helper()
	_, rest, _ := strings.Cut(remedy, "`sudo ")
	command, _, ok := strings.Cut(rest, "`")
	if !ok {
		t.Fatalf("no command is in %q", remedy)
	}
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", command).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
}

func TestATapIsMadeOnceAndRemoved(t *testing.T) {
	if !netspace.Enter(t) {
		return
	}
	tap := Tap{Name: "swdt-tap0", Bridge: "br-kind", Owner: 0}
	if err := tap.Make(); err == nil || !strings.Contains(err.Error(), "no bridge br-kind") {
		t.Errorf("without the bridge: %v", err)
	}
	for _, name := range []string{"br-kind", "br-other"} {
		must(t, netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: name}}))
	}
	for range 2 {
		must(t, tap.Make())
		if missing, err := tap.Missing(); err != nil || len(missing) > 0 {
			t.Errorf("after Make: %v, %v", missing, err)
		}
	}
	moved := Tap{Name: tap.Name, Bridge: "br-other"}
	if missing, err := moved.Missing(); err != nil || len(missing) != 1 {
		t.Errorf("on another bridge: %q, %v", missing, err)
	}
	must(t, moved.Make())
	if err := (Tap{Name: "br-other", Bridge: "br-kind"}).Remove(); err == nil {
		t.Error("a bridge was removed as if it were a tap")
	}
	if err := (Tap{Name: tap.Name, Bridge: "br-kind", Owner: 12345}).Remove(); err == nil {
		t.Error("a tap of another user was removed")
	}
	if err := (Tap{Name: "../x", Bridge: "br-kind"}).Make(); err == nil {
		t.Error("a name with a slash was accepted")
	}
	for range 2 {
		must(t, tap.Remove())
	}
	if missing, err := tap.Missing(); err != nil || len(missing) != 1 {
		t.Errorf("after Remove: %q, %v", missing, err)
	}
}
