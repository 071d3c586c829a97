package comparison_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/inspect/comparison"
	"github.com/swdt-dev/swdt/internal/inspect/doctor"
	"github.com/swdt-dev/swdt/internal/join/preflight"
	"github.com/swdt-dev/swdt/internal/join/switches"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
	"github.com/swdt-dev/swdt/internal/ui"
)

func start(t *testing.T, name, hostname string) *nodetest.Node {
	t.Helper()
	return nodetest.Start(t, name, simulated.Options{Hostname: hostname, Preset: simulated.Node})
}

func gather(t *testing.T, n *nodetest.Node) doctor.Facts {
	t.Helper()
	facts, err := doctor.Gather(t.Context(), doctor.Sources{Node: n.Node, Everything: true})
	if err != nil {
		t.Fatal(err)
	}
	return facts
}

func compare(t *testing.T, all ...doctor.Facts) comparison.Report {
	t.Helper()
	var sources []comparison.Source
	for _, f := range all {
		sources = append(sources, comparison.Source{Facts: f})
	}
	report, err := comparison.Of(sources)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// names returns the differences as "kind: name".
func names(r comparison.Report) (all []string) {
	for _, d := range r.Differences {
		all = append(all, string(d.Kind)+": "+d.Name)
	}
	slices.Sort(all)
	return all
}

func number(value uint64) *agentv1.RegistryValue {
	return &agentv1.RegistryValue{Type: string(platform.RegistryDWord), Integer: value}
}

// set returns a change of a value in the registry.
func set(key, name string, value *agentv1.RegistryValue) func(*testing.T, *nodetest.Node) {
	return func(t *testing.T, n *nodetest.Node) {
		t.Helper()
		value.Name = name
		if _, err := n.Registry.Set(t.Context(), &agentv1.RegistrySetRequest{Key: key, Value: value}); err != nil {
			t.Fatal(err)
		}
	}
}

// registered returns a change of values in the key of a service.
func registered(service string, values map[string]uint64) func(*testing.T, *nodetest.Node) {
	return func(t *testing.T, n *nodetest.Node) {
		t.Helper()
		for name, value := range values {
			set(services+service, name, number(value))(t, n)
		}
	}
}

func configure(config *agentv1.ServiceConfig) func(*testing.T, *nodetest.Node) {
	return func(t *testing.T, n *nodetest.Node) {
		t.Helper()
		if _, err := n.Services.Configure(t.Context(), config); err != nil {
			t.Fatal(err)
		}
	}
}

func put(path, content string) func(*testing.T, *nodetest.Node) {
	return func(_ *testing.T, n *nodetest.Node) { n.Put(path, []byte(content)) }
}

const (
	services = `HKLM\SYSTEM\CurrentControlSet\Services\`
	packages = `HKLM\SOFTWARE\Microsoft\Windows\CurrentVersion\Component Based Servicing\Packages\`
	cniFile  = `C:\Program Files\containerd\cni\conf\10-calico.conf`
	toml     = `C:\Program Files\containerd\config.toml`
	kubelet  = `C:\var\lib\kubelet\config.yaml`
)

// plant is one thing that is different on a node, and the differences by which it must be named.
type plant struct {
	change func(*testing.T, *nodetest.Node)
	want   []string
}

func plants() map[string]plant {
	return map[string]plant{
		"nothing":  {func(*testing.T, *nodetest.Node) {}, nil},
		"revision": {func(_ *testing.T, n *nodetest.Node) { n.Machine.SetFacts(newer) }, []string{"windows: build"}},
		"update": {set(packages+`Package_for_KB5044281~31bf3856ad364e35~amd64~~20348.2762.1.6`, "CurrentState", number(112)),
			[]string{"update: Package_for_KB5044281"}},
		"superseded update": {set(packages+`Package_for_KB5040437~31bf3856ad364e35~amd64~~20348.2582.1.6`, "CurrentState", number(80)),
			nil},
		"override": {set(switches.Policy, "1114842764", number(1)), []string{`switch: ` + switches.Policy + `\1114842764`}},
		"switch of HNS": {set(switches.HNS, "HnsNpmRefresh", number(1)),
			[]string{`switch: ` + switches.HNS + `\HnsNpmRefresh`}},
		"local override": {set(switches.Local+`\8\1234`, "EnabledState", number(2)),
			[]string{`switch: ` + switches.Local + `\8\1234\EnabledState`}},
		"driver file": {put(`C:\Windows\System32\drivers\vfpext.sys`, "another"),
			[]string{`driver: C:\Windows\System32\drivers\vfpext.sys`}},
		"driver start": {set(services+"WinNat", "Start", number(4)), []string{"driver: WinNat start type"}},
		// Windows makes such a service for each login, with a number of its own.
		"service of a login": {registered("WpnUserService_43a0b", map[string]uint64{"Type": 0xe0, "Start": 2}), nil},
		"new service":        {registered("scanner", map[string]uint64{"Type": 0x10, "Start": 2}), []string{"service: scanner"}},
		"delayed start": {registered("W32Time", map[string]uint64{"DelayedAutostart": 1}),
			[]string{"service: W32Time start type"}},
		"new driver": {set(services+"filter", "Type", number(2)), nil}, // without a start type it registers nothing
		"service":    {configure(&agentv1.ServiceConfig{Name: "W32Time", StartType: agentv1.StartType_START_TYPE_DISABLED}), []string{"service: W32Time start type"}},
		"setting of containerd": {put(toml, "version = 2\noom_score = -5\n"),
			[]string{"configuration: containerd " + toml + ": oom_score"}},
		"comment of containerd": {put(toml, "# of this node\nversion = 2\n"), nil},
		"setting of kubelet": {put(kubelet, "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 50\n"),
			[]string{"configuration: kubelet " + kubelet + ": maxPods"}},
		"setting of the pod network": {put(cniFile, `{"name": "Calico", "cniVersion": "1.0.0", "type": "calico", "ipam": {"type": "calico-ipam"}}`),
			[]string{"configuration: CNI " + cniFile + ": cniVersion"}},
		"plugin": {put(`C:\Program Files\containerd\cni\bin\calico.exe`, "another"),
			[]string{`program: C:\Program Files\containerd\cni\bin\calico.exe`}},
		"flag of kubelet": {configure(&agentv1.ServiceConfig{Name: "kubelet", CommandLine: simulated.KubeletPath +
			` --windows-service --config=/var/lib/kubelet/config.yaml --container-runtime-endpoint=npipe:////./pipe/containerd-containerd ` +
			`--cgroups-per-qos=false --enforce-node-allocatable= --resolv-conf= --v=4`}), []string{"configuration: kubelet --v"}},
		"ports": {func(_ *testing.T, n *nodetest.Node) { n.Machine.SetDynamicPorts(20000, 20000) }, []string{"network: dynamic ports"}},
		"MTU": {func(_ *testing.T, n *nodetest.Node) { n.Machine.SetAdapter("vEthernet (Ethernet)", 9000) },
			[]string{"network: MTU of vEthernet (Ethernet)"}},
		// Windows does not enable it before a restart, which is a difference of its own.
		"feature": {enable("VirtualMachinePlatform"), []string{"feature: VirtualMachinePlatform", "windows: pending reboot"}},
	}
}

func newer(f *platform.Facts) { f.Build = "20348.2900" }

func enable(feature string) func(*testing.T, *nodetest.Node) {
	return func(t *testing.T, n *nodetest.Node) {
		t.Helper()
		if _, err := n.Features.Set(t.Context(), &agentv1.SetFeatureRequest{Name: feature, Enabled: true}); err != nil {
			t.Fatal(err)
		}
	}
}

// Two nodes that differ in one thing: exactly that is named.
func TestExactlyOneThingIsNamed(t *testing.T) {
	first := gather(t, start(t, "win-1", "WIN-1"))
	for name, p := range plants() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			second := start(t, "win-2", "WIN-2")
			p.change(t, second)
			report := compare(t, first, gather(t, second))
			if diff := cmp.Diff(p.want, names(report)); diff != "" {
				t.Errorf("(-want +found) %s", diff)
			}
			if report.Compared < 60 {
				t.Errorf("only %d facts were compared; gaps %+v", report.Compared, report.Gaps)
			}
		})
	}
}

// fleet returns the facts of n nodes that are the same.
func fleet(t *testing.T, n int) (all []doctor.Facts) {
	t.Helper()
	text, err := json.Marshal(gather(t, start(t, "win", "WIN")))
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		var f doctor.Facts
		if err := json.Unmarshal(text, &f); err != nil {
			t.Fatal(err)
		}
		f.Node = fmt.Sprintf("win-%d", i+1)
		all = append(all, f)
	}
	return all
}

func text(t *testing.T, r comparison.Report) string {
	t.Helper()
	var out strings.Builder
	page := ui.NewPage(&out, false)
	if err := r.WriteText(page); err != nil {
		t.Fatal(err)
	}
	if err := page.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// Of a fleet, the node that differs from the others is named, with the installers of a switch and their contradiction.
func TestTheOddOneOut(t *testing.T) {
	all := fleet(t, 12)
	for i := range all {
		value := "1"
		if i == 6 {
			value = "0"
			all[i].Machine.Value.Build = "20348.3453"
		}
		*all[i].Switches.Value = append(*all[i].Switches.Value, doctor.Switch{Key: switches.Policy, Name: "1114842764",
			Type: "REG_DWORD", Value: value})
	}
	all[2].Machine.Value.CPUs = 8
	r := compare(t, all...)
	if r.OddOneOut != "win-7" || len(r.Differences) != 3 || r.Nodes[6].Odd != 2 {
		t.Fatalf("odd one out %q of %+v", r.OddOneOut, r.Differences)
	}
	printed := text(t, r)
	for _, want := range []string{
		"12 nodes differ in 3 of", "odd one out: win-7, which differs from most nodes in 2 facts", "likely to explain a symptom:",
		"win-1, win-2, win-3, win-4, win-5 and 6 more", "AKS sets it to 1 since 2024-03B", "image-builder sets it to 0",
		"these installers contradict each other", "https://github.com/Azure/AgentBaker/",
	} {
		if !strings.Contains(printed, want) {
			t.Errorf("no %q in\n%s", want, printed)
		}
	}
	if at := strings.Index(printed, "processors"); at < strings.Index(printed, "1114842764") {
		t.Errorf("the unlikely explanation comes first:\n%s", printed)
	}
}

// A fact that is unknown on one node is a gap and no difference; the other nodes are compared by it.
func TestAnUnknownFactIsNoDifference(t *testing.T) {
	all := fleet(t, 3)
	all[0].Switches = doctor.Fact[[]doctor.Switch]{Unknown: "access is denied"}
	*all[1].Switches.Value = append(*all[1].Switches.Value, doctor.Switch{Key: switches.HNS, Name: "FwPerfImprovementChange", Value: "1"})
	r := compare(t, all...)
	if len(r.Differences) != 1 || len(r.Differences[0].Values) != 2 {
		t.Fatalf("%+v", r.Differences)
	}
	for _, v := range r.Differences[0].Values {
		if slices.Contains(v.Nodes, "win-1") {
			t.Errorf("win-1 has %+v", v)
		}
	}
	if printed := text(t, r); !strings.Contains(printed, "not compared on win-1: registrySwitches: access is denied") {
		t.Errorf("no gap in\n%s", printed)
	}
	if two := compare(t, all[0], all[1]); len(two.Differences) != 0 {
		t.Errorf("%+v", two.Differences)
	}
}

// Settings with the node's own name or address are the same on all nodes.
func TestOwnNamesAreTheSame(t *testing.T) {
	all := fleet(t, 2)
	for i, name := range []string{"WIN-A", "WIN-B"} {
		f, address := &all[i], fmt.Sprintf("10.0.0.%d", i+7)
		f.Machine.Value.Hostname = name
		f.Reached = doctor.Known([]preflight.Reached{{Source: address}})
		(*f.KubeletFlags.Value)["hostname-override"] = strings.ToLower(name)
		(*f.KubeletFlags.Value)["node-ip"] = address
		(*f.Configuration.Value)[0].Settings["root"] = `C:\pods\` + name
	}
	if r := compare(t, all...); len(r.Differences) != 0 {
		t.Errorf("%+v", r.Differences)
	}
	(*all[1].KubeletFlags.Value)["hostname-override"] = "another"
	if diff := cmp.Diff([]string{"configuration: kubelet --hostname-override"}, names(compare(t, all...))); diff != "" {
		t.Error(diff)
	}
}

// A file that a node lacks is one difference; a file without settings is compared setting by setting.
func TestAMissingFileIsOneDifference(t *testing.T) {
	all := fleet(t, 2)
	files := *all[1].Configuration.Value
	files[0].Settings = map[string]string{}
	if diff := cmp.Diff([]string{"configuration: containerd " + toml + ": version"}, names(compare(t, all...))); diff != "" {
		t.Error(diff)
	}
	*all[1].Configuration.Value = files[1:]
	if diff := cmp.Diff([]string{"configuration: containerd " + toml}, names(compare(t, all...))); diff != "" {
		t.Error(diff)
	}
}

// A whole service that a node lacks is one difference, not one for each of its parts.
func TestAMissingServiceIsOneDifference(t *testing.T) {
	all := fleet(t, 2)
	*all[1].Registrations.Value = append(*all[1].Registrations.Value, doctor.Registration{Name: "scanner", Driver: true, Start: "boot",
		Image: `\SystemRoot\scanner.sys`, Account: "LocalSystem"})
	r := compare(t, all...)
	if diff := cmp.Diff([]string{"driver: scanner"}, names(r)); diff != "" {
		t.Fatal(diff)
	}
	if v := r.Differences[0].Values; !v[0].Absent && !v[1].Absent {
		t.Errorf("%+v", v)
	}
}

// The texts of a hostile node neither reach the terminal as commands, nor bring secrets along, nor are they long.
func TestAHostileNode(t *testing.T) {
	const token = "eyJhbGciOiJSUzI1NiIsImtpZCI6IngifQ.eyJzdWIiOiJzeXN0ZW06bm9kZTp4In0.c2lnbmF0dXJlLW9mLXRoaXMtdG9rZW4"
	all := fleet(t, 2)
	evil := "\x1b]0;evil\a\x1b[2J\u202e"
	f := &all[1]
	f.Machine.Value.Build, f.Machine.Value.Product = "20348.1"+evil, strings.Repeat("x", 1<<20)
	*f.Switches.Value = append(*f.Switches.Value, doctor.Switch{Key: switches.HNS + evil, Name: "password", Value: "hunter2secret"})
	*f.Registrations.Value = append(*f.Registrations.Value, doctor.Registration{Name: "x" + evil, Start: "auto",
		Image: `C:\x.exe --token=` + token})
	(*f.KubeletFlags.Value)["token"] = token
	r := compare(t, all...)
	document, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	printed := text(t, r)
	for _, secret := range []string{token, "hunter2secret"} {
		if strings.Contains(string(document), secret) || strings.Contains(printed, secret) {
			t.Errorf("%s is in the report", secret)
		}
	}
	if strings.ContainsAny(printed, "\x1b\a\u202e") || len(document) > 64<<10 {
		t.Errorf("%d bytes: %.2000q", len(document), printed)
	}
	if !strings.Contains(printed, "REDACTED") {
		t.Errorf("nothing was redacted in %.2000q", printed)
	}
}

// A node that lists more services than a node can have is not compared by them.
func TestTooManyServices(t *testing.T) {
	first := gather(t, start(t, "win-1", "WIN-1"))
	second := start(t, "win-2", "WIN-2")
	second.Tamper(func(_ string, _ int, reply proto.Message, send func(proto.Message) error) error {
		if list, ok := reply.(*agentv1.RegistryListReply); ok && slices.Contains(list.GetKeys(), "kubelet") {
			for i := range 5000 {
				list.Keys = append(list.Keys, fmt.Sprint("service", i))
			}
		}
		return send(reply)
	})
	calls := len(second.Calls())
	r := compare(t, first, gather(t, second))
	if !slices.ContainsFunc(r.Gaps, func(g comparison.Gap) bool {
		return g.Node == "win-2" && g.Fact == "registeredServices" && strings.Contains(g.Why, "services and drivers")
	}) || len(r.Differences) != 0 {
		t.Errorf("gaps %+v, differences %v", r.Gaps, names(r))
	}
	if made := len(second.Calls()) - calls; made > 500 {
		t.Errorf("%d calls", made)
	}
}

// Windows ignores the case of switches, services, drivers, paths and accounts: the spelling is no difference, and the first
// one is printed. The names of settings have a case.
func TestCaseIsNoDifference(t *testing.T) {
	all := fleet(t, 2)
	for i, in := range []func(string) string{func(s string) string { return s }, strings.ToUpper} {
		f := &all[i]
		*f.Switches.Value = append(*f.Switches.Value, doctor.Switch{Key: in(switches.HNS), Name: in("HnsControlFlag"), Value: "16"})
		*f.Registrations.Value = append(*f.Registrations.Value, doctor.Registration{Name: in("CimFS"), Driver: true, Start: "manual",
			Image: in(`\SystemRoot\System32\drivers\cimfs.sys`), Account: in("LocalSystem")})
		for j := range *f.Drivers.Value {
			file := &(*f.Drivers.Value)[j]
			file.Path, file.SHA256 = in(file.Path), "5f"
		}
		for j := range *f.Binaries.Value {
			(*f.Binaries.Value)[j].Path = in((*f.Binaries.Value)[j].Path)
		}
		for j := range *f.Configuration.Value {
			(*f.Configuration.Value)[j].Path = in((*f.Configuration.Value)[j].Path)
		}
		for name, p := range *f.Programs.Value {
			p.Path = in(p.Path)
			(*f.Programs.Value)[name] = p
		}
	}
	if r := compare(t, all...); len(r.Differences) != 0 {
		t.Errorf("%v", names(r))
	}
	(*all[1].Switches.Value)[len(*all[1].Switches.Value)-1].Value = "0"
	(*all[1].Configuration.Value)[0].Settings["Version"] = "2"
	want := []string{"configuration: containerd " + toml + ": Version", "switch: " + switches.HNS + `\HnsControlFlag`}
	if diff := cmp.Diff(want, names(compare(t, all...))); diff != "" {
		t.Error(diff)
	}
}

// The installers of a switch are those of all builds that are compared, in any order of the nodes.
func TestInstallersOfAllBuilds(t *testing.T) {
	all := fleet(t, 2)
	all[0].Machine.Value.Build, all[1].Machine.Value.Build = "20348.3453", "26100.7840"
	*all[0].Switches.Value = append(*all[0].Switches.Value, doctor.Switch{Key: switches.Policy, Name: "1114842764", Value: "1"})
	settings := func(r comparison.Report) []comparison.Setting {
		i := slices.IndexFunc(r.Differences, func(d comparison.Difference) bool { return d.Kind == comparison.Switch })
		return r.Differences[i].Settings
	}
	one, other := settings(compare(t, all[0], all[1])), settings(compare(t, all[1], all[0]))
	if diff := cmp.Diff(one, other); diff != "" || len(one) == 0 {
		t.Errorf("%d settings; %s", len(one), diff)
	}
}

// A file or a service that the account may not read is a gap, and not absent.
func TestUnreadableIsNotAbsent(t *testing.T) {
	first := gather(t, start(t, "win-1", "WIN-1"))
	second := start(t, "win-2", "WIN-2")
	if err := second.Machine.Spawn("thief.exe").Platform.Files.SetACL(toml, "D:P(D;;FA;;;BA)(D;;FA;;;SY)"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"W32Time", "WinNat"} {
		if err := second.Machine.DenyKey(services + name); err != nil {
			t.Fatal(err)
		}
	}
	denied := gather(t, second)
	for _, r := range []comparison.Report{compare(t, first, denied), compare(t, denied, first)} {
		if len(r.Differences) != 0 {
			t.Errorf("%v", names(r))
		}
		printed := text(t, r)
		for _, want := range []string{"not compared on win-2: configurationFiles: containerd " + toml + " cannot be read: ",
			"not compared on win-2: registeredServices: these may not be read: W32Time, WinNat",
			"not compared on win-2: configurationFiles: CNI cannot be read: ", "not compared on win-2: programFiles: "} {
			if !strings.Contains(printed, want) {
				t.Errorf("no %q in\n%s", want, printed)
			}
		}
	}
}
