package windows

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// Rules as Windows Server 2022 stores them in its registry.
const (
	remoteDesktop = `v2.31|Action=Allow|Active=FALSE|Dir=In|Protocol=6|LPort=3389|` +
		`App=%SystemRoot%\system32\svchost.exe|Svc=termservice|Name=@FirewallAPI.dll,-28775|` +
		`Desc=@FirewallAPI.dll,-28756|EmbedCtxt=@FirewallAPI.dll,-28752|`
	kubelet = `v2.31|Action=Allow|Active=TRUE|Dir=In|Protocol=6|LPort=10250|LPort=10255|Profile=Private|` +
		`Profile=Domain|Name=kubelet|`
	ranges = `v2.31|Action=Block|Active=TRUE|Dir=Out|Protocol=17|LPort2_10=8000-8100|RA4=LocalSubnet|` +
		`RA4=10.0.0.0/255.0.0.0|RA6=LocalSubnet|Name=out|`
	ping = `v2.31|Action=Allow|Active=TRUE|Dir=In|Protocol=1|ICMP4=8:*|Profile=Public|Name=ping|`
)

func TestParseRule(t *testing.T) {
	for text, want := range map[string]platform.FirewallRule{
		remoteDesktop: {Name: "@FirewallAPI.dll,-28775", Group: "@FirewallAPI.dll,-28752", Inbound: true, Allow: true,
			Protocol: "tcp", Ports: "3389", Program: `%SystemRoot%\system32\svchost.exe`, Profiles: "any"},
		kubelet: {Name: "kubelet", Enabled: true, Inbound: true, Allow: true, Protocol: "tcp", Ports: "10250,10255",
			Profiles: "domain,private"},
		ranges: {Name: "out", Enabled: true, Protocol: "udp", Ports: "8000-8100", Profiles: "any",
			Addresses: "LocalSubnet,10.0.0.0/255.0.0.0"},
		ping: {Name: "ping", Enabled: true, Inbound: true, Allow: true, Protocol: "icmpv4", Profiles: "public"},
		`v2.0|Action=Allow|Dir=In|Protocol=47|Name=gre|`: {Name: "gre", Inbound: true, Allow: true,
			Protocol: "47", Profiles: "any"},
	} {
		got, ok := parseRule(text)
		if !ok || got != want {
			t.Errorf("%s\n got %+v\nwant %+v", text, got, want)
		}
	}
	for _, text := range []string{"", "v2.31", "v2.31|Action=Allow|", "x|Name=y|"} {
		if rule, ok := parseRule(text); ok {
			t.Errorf("%q is a rule: %+v", text, rule)
		}
	}
}

func TestParseRuleTakesAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[^|]{1,20}`).Draw(t, "name")
		junk := rapid.SliceOf(rapid.StringMatching(`[A-Za-z0-9_]{0,8}=?[^|]{0,8}`)).Draw(t, "junk")
		rule, ok := parseRule("v2.31|" + strings.Join(junk, "|") + "|Name=" + name + "|")
		switch {
		case !ok:
			t.Fatal("ok is false, want true")
		case rule.Name != name:
			t.Fatalf("rule.Name is %q, want %q", rule.Name, name)
		}
	})
}

// rules is a registry that contains only these rules.
type rules struct {
	platform.Registry
	texts []string
}

func (r rules) List(string) ([]platform.RegistryValue, []string, error) {
	if r.texts == nil {
		return nil, nil, fault.ErrNotExist
	}
	var values []platform.RegistryValue
	for _, text := range r.texts {
		values = append(values, platform.RegistryValue{Type: platform.RegistryString, String: text})
	}
	return values, nil, nil
}

func TestAddRule(t *testing.T) {
	box := &toolbox{t: t, answers: []answer{{}}}
	f := firewall{netsh: "netsh", processes: box, registry: rules{}}
	err := f.Add(t.Context(), platform.FirewallRule{
		Name: "my rule", Enabled: true, Inbound: true, Allow: true, Protocol: "TCP", Ports: "10250",
		Addresses: "LocalSubnet",
	})
	if err != nil {
		t.Fatal(err)
	}
	box.called(t, []string{"netsh", "advfirewall", "firewall", "add", "rule", "name=my rule", "dir=in", "action=allow",
		"enable=yes", "profile=any", "protocol=tcp", "localport=10250", "remoteip=LocalSubnet"})
}

func TestAddReplacesRule(t *testing.T) {
	box := &toolbox{t: t, answers: []answer{{}, {}}}
	f := firewall{netsh: "netsh", processes: box, registry: rules{texts: []string{kubelet}}}
	if err := f.Add(t.Context(), platform.FirewallRule{Name: "Kubelet", Protocol: "udp"}); err != nil {
		t.Fatal(err)
	}
	box.called(t, []string{"netsh", "advfirewall", "firewall", "delete", "rule", "name=Kubelet"},
		[]string{"netsh", "advfirewall", "firewall", "add", "rule", "name=Kubelet", "dir=out", "action=block",
			"enable=no", "profile=any", "protocol=udp"})
}

func TestRulesThatAreRefused(t *testing.T) {
	f := firewall{processes: &toolbox{t: t}, registry: rules{texts: []string{`v2.31|Name=all|`}}}
	for _, rule := range []platform.FirewallRule{
		{Name: "all"}, {Name: "ALL"}, {}, {Name: "a|b"}, {Name: "x", Group: "g"}, {Name: "x", Ports: "1"},
		{Name: "x", Ports: "1", Protocol: "icmpv4"},
	} {
		if err := f.Add(t.Context(), rule); err == nil {
			t.Errorf("%+v was added", rule)
		}
	}
	if err := f.Remove(t.Context(), "all"); err == nil {
		t.Error("all rules were removed")
	}
}

func TestRemoveAndEnable(t *testing.T) {
	box := &toolbox{t: t, answers: []answer{{}, {}, {output: "Zugriff verweigert.\r\n", code: 1}}}
	f := firewall{netsh: "netsh", processes: box, registry: rules{texts: []string{kubelet, remoteDesktop}}}
	if err := f.Remove(t.Context(), "none"); !errors.Is(err, fault.ErrNotExist) {
		t.Errorf("remove of nothing: %v", err)
	}
	if err := f.EnableGroup(t.Context(), "@FirewallAPI.dll,-1", true); !errors.Is(err, fault.ErrNotExist) {
		t.Errorf("no group: %v", err)
	}
	if err := f.Remove(t.Context(), "kubelet"); err != nil {
		t.Error(err)
	}
	if err := f.EnableGroup(t.Context(), "@firewallapi.dll,-28752", true); err != nil {
		t.Error(err)
	}
	err := f.EnableGroup(t.Context(), "@FirewallAPI.dll,-28752", false)
	var failure *ToolError
	if !errors.As(err, &failure) || failure.ExitCode != 1 {
		t.Errorf("failed: %v", err)
	}
	box.called(t, []string{"netsh", "advfirewall", "firewall", "delete", "rule", "name=kubelet"},
		[]string{"netsh", "advfirewall", "firewall", "set", "rule", "group=@firewallapi.dll,-28752",
			"new", "enable=yes"},
		[]string{"netsh", "advfirewall", "firewall", "set", "rule", "group=@FirewallAPI.dll,-28752",
			"new", "enable=no"})
}

func TestRulesWithoutFirewall(t *testing.T) {
	got, err := firewall{registry: rules{}}.Rules(t.Context())
	switch {
	case err != nil:
		t.Error(err)
	case len(got) != 0:
		t.Errorf("got is %v, want it empty", got)
	}
	got, err = firewall{registry: rules{texts: []string{"junk", kubelet}}}.Rules(t.Context())
	switch want, _ := parseRule(kubelet); {
	case err != nil:
		t.Error(err)
	case !reflect.DeepEqual(got, []platform.FirewallRule{want}):
		t.Errorf("got is %v, want %v", got, []platform.FirewallRule{want})
	}
}
