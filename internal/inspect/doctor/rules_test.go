package doctor_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/inspect/doctor"
	"github.com/swdt-dev/swdt/internal/join/preflight"
	"github.com/swdt-dev/swdt/internal/join/switches"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// fault is a change to healthy facts, and the words that the finding must contain.
type fault struct {
	rule     string
	severity finding.Severity
	change   func(*doctor.Facts)
	words    string
}

// onService returns a change to one service.
func onService(name string, change func(*preflight.Service)) func(*doctor.Facts) {
	return func(f *doctor.Facts) {
		s := (*f.Services.Value)[name]
		change(&s)
		(*f.Services.Value)[name] = s
	}
}

func stopped(name string) func(*doctor.Facts) {
	return onService(name, func(s *preflight.Service) { s.State, s.ExitCode = "stopped", 1067 })
}

func add[T any](list *[]T, values ...T) { *list = append(*list, values...) }

func crash(n int, service string) (all []doctor.Event) {
	for i := range n {
		all = append(all, doctor.Event{
			Time: taken.Add(-time.Duration(n-i) * time.Minute), Provider: "Service Control Manager", ID: 7031,
			Subject: service,
			Message: "The " + service + " service terminated unexpectedly.",
		})
	}
	return all
}

func event(provider string, id int) func(*doctor.Facts) {
	return func(f *doctor.Facts) {
		add(f.Events.Value, doctor.Event{Time: taken.Add(-time.Hour), Provider: provider, ID: id,
			Message: "It happened."})
	}
}

func machineFaults() []fault {
	machine := func(change func(*doctor.Machine)) func(*doctor.Facts) {
		return func(f *doctor.Facts) { change(f.Machine.Value) }
	}
	return []fault{
		{"windows-version", finding.Error, machine(func(m *doctor.Machine) { m.Build = "14393.1" }), "build 14393.1"},
		{"combinations", finding.Warning, machine(func(m *doctor.Machine) { m.Build = "26100.33296" }),
			"does not support Windows Server 2025"},
		{"combinations", finding.Warning, func(f *doctor.Facts) { f.Containerd.Value.Snapshotter = "cimfs" }, "snapshotter cimfs"},
		{"windows-patches", finding.Warning, machine(func(m *doctor.Machine) { m.Build = "20348.1193" }), "Windows build 20348.1193"},
		{"windows-patches", finding.Info, machine(func(m *doctor.Machine) { m.Build = "20348.4529" }), "140377743 is not set"},
		{"windows-patches", finding.Warning, func(f *doctor.Facts) {
			f.Machine.Value.Build = "20348.4529"
			add(f.Switches.Value, doctor.Switch{Key: switches.Policy, Name: "140377743", Value: "1"},
				doctor.Switch{Key: switches.Policy, Name: "1114842764", Value: "0"})
		}, "140377743 is 1"},
		{"windows-patches", finding.Info, func(f *doctor.Facts) {
			f.Machine.Value.Build = "20348.4529"
			f.Switches = doctor.Fact[[]doctor.Switch]{Unknown: "access is denied"}
		}, "access is denied"},
		{"architecture", finding.Error, machine(func(m *doctor.Machine) { m.Architecture = "arm64" }), "arm64"},
		{"elevated", finding.Warning, machine(func(m *doctor.Machine) { m.Elevated = false }), "may not change"},
		{"disk-space", finding.Error, machine(func(m *doctor.Machine) { m.DiskFree = 1e9 }), "1.0 GB free"},
		{"disk-space", finding.Warning, machine(func(m *doctor.Machine) { m.DiskFree = 9e9 }), "9.0 GB free"},
		{"memory", finding.Warning, machine(func(m *doctor.Machine) { m.MemoryFree = 1e8 }), "in use"},
		{"pending-reboot", finding.Warning,
			machine(func(m *doctor.Machine) { m.PendingReboot = []string{"Windows Update"} }), "Windows Update"},
		{"containers-feature", finding.Error, func(f *doctor.Facts) { *f.Containers.Value = platform.FeatureDisabled },
			"not enabled"},
		{"containers-feature", finding.Error,
			func(f *doctor.Facts) { *f.Containers.Value = platform.FeatureEnablePending }, "next reboot"},
		{"page-file", finding.Warning, func(f *doctor.Facts) { *f.PageFiles.Value = nil }, "no page file"},
		{"clock", finding.Warning, func(f *doctor.Facts) { f.Clocks.Value.NodeAhead = 60 }, "1m1s ahead"},
		{"clock", finding.Error, func(f *doctor.Facts) { f.Clocks.Value.NodeAhead = -3600 }, "59m59s behind"},
		{"time-service", finding.Warning, onService("w32time",
			func(s *preflight.Service) { s.State, s.StartType = "stopped", "disabled" }), "is disabled"},
		{"time-service", finding.Info,
			onService("w32time", func(s *preflight.Service) { s.State, s.StartType = "stopped", "manual" }),
			"at the moment"},
		{"automatic-updates", finding.Info, func(f *doctor.Facts) { f.Updates.Value.Automatic = true }, "by itself"},
		{"defender", finding.Warning, func(f *doctor.Facts) { f.Defender.Value.Exclusions = nil }, "scans every file"},
		{"program-folders", finding.Warning, func(f *doctor.Facts) {
			f.Changeable.Value = &[]preflight.Changeable{{Path: `C:\k`, By: []string{"BU"}}}
		}, "Users"},
		{"proxy", finding.Warning, func(f *doctor.Facts) { f.Proxy.Value.No = ".svc" }, "API server cp.example"},
		{"proxy", finding.Info, func(f *doctor.Facts) { f.Proxy.Value.No = "*.example" }, "cluster's services"},
		{"proxy", finding.Warning, func(f *doctor.Facts) {
			f.Proxy.Value.Services = map[string]doctor.Proxy{"kubelet": {HTTPS: "http://proxy.example", No: ".svc"}}
		}, "the service kubelet uses its proxy for the API server cp.example"},
		{"proxy-running", finding.Warning, func(f *doctor.Facts) { f.Proxy.Value.Running["containerd"] = doctor.Proxy{} },
			"containerd does not run with the proxy that is set"},
		{"proxy-running", finding.Warning, func(f *doctor.Facts) {
			f.Proxy.Value.Services = map[string]doctor.Proxy{"kubelet": {HTTPS: "http://new.example", No: "cp.example,.svc"}}
		}, "kubelet does not run with the proxy that is set"},
		{"root-certificates", finding.Warning, func(f *doctor.Facts) { (*f.Roots.Value)[0].Trusted = false },
			"CN=Company is no longer among the machine's root certificates"},
		{"root-certificates", finding.Warning, func(f *doctor.Facts) { (*f.Roots.Value)[0].NotAfter = taken },
			"CN=Company has expired"},
		{"root-certificates", finding.Info, func(f *doctor.Facts) {
			(*f.Roots.Value)[0].NotAfter = taken.Add(72 * time.Hour)
		}, "CN=Company expires in 3 days"},
		{"service-crashes", finding.Error, func(f *doctor.Facts) { add(f.Events.Value, crash(3, "kubelet")...) },
			"kubelet ended unexpectedly 3 times"},
		{"service-crashes", finding.Info, func(f *doctor.Facts) { add(f.Events.Value, crash(1, "spooler")...) },
			"spooler ended unexpectedly once"},
		{"unexpected-shutdown", finding.Warning, event("Microsoft-Windows-Kernel-Power", 41), "event 41"},
		{"unexpected-shutdown", finding.Warning, event("EventLog", 6008), "event 6008"},
		{"disk-errors", finding.Error, event("Ntfs", 55), "event 55 of Ntfs"},
		{"memory-exhausted", finding.Warning, event("Microsoft-Windows-Resource-Exhaustion-Detector", 2004),
			"virtual memory"},
	}
}

func portFaults() []fault {
	excluded := func(first, last uint16) func(*doctor.Facts) {
		return func(f *doctor.Facts) { add(&f.Ports.Value.Excluded, doctor.PortRange{First: first, Last: last}) }
	}
	return []fault{
		{"excluded-ports", finding.Error, excluded(10200, 10299), "port 10250, kubelet"},
		{"excluded-ports", finding.Warning, excluded(31000, 31099), "NodePorts are excluded"},
		{"dynamic-ports", finding.Warning,
			func(f *doctor.Facts) { f.Ports.Value.DynamicFirst, f.Ports.Value.DynamicCount = 20000, 20000 }, "overlap"},
		{"dynamic-ports", finding.Warning,
			func(f *doctor.Facts) { f.Ports.Value.DynamicFirst, f.Ports.Value.DynamicCount = 60000, 1000 },
			"few dynamic ports"},
		{"dynamic-ports", finding.Warning, // Windows' default
			func(f *doctor.Facts) { f.Ports.Value.DynamicFirst, f.Ports.Value.DynamicCount = 49152, 16384 },
			"few dynamic ports"},
		{"mtu", finding.Warning, func(f *doctor.Facts) { (*f.Interfaces.Value)[0].MTU = 1400 },
			"vEthernet (Ethernet) sends larger"},
		{"mtu", finding.Warning, func(f *doctor.Facts) { (*f.Interfaces.Value)[1].MTU = 576 }, "very small"},
		{"kubelet-port", finding.Error, func(f *doctor.Facts) { *f.Listeners.Value = (*f.Listeners.Value)[1:] },
			"no process listens"},
		{"kubelet-port", finding.Error, func(f *doctor.Facts) { (*f.Listeners.Value)[0].Process = "nginx.exe" },
			"in use by nginx.exe"},
		{"kubelet-firewall", finding.Warning, func(f *doctor.Facts) { *f.Firewall.Value = (*f.Firewall.Value)[1:] },
			"TCP port 10250"},
		{"kubelet-firewall", finding.Warning, func(f *doctor.Facts) {
			add(f.Firewall.Value, doctor.FirewallRule{Name: "lock down", Protocol: "tcp", Ports: "1000-20000"})
		}, "blocks TCP port 10250"},
		{"vxlan-firewall", finding.Warning, func(f *doctor.Facts) { (*f.Firewall.Value)[1].Ports = "8472" },
			"UDP port 4789"},
	}
}

func serviceFaults() []fault {
	return []fault{
		{"kubelet-service", finding.Error, stopped("kubelet"), "exit code 1067"},
		{"kubelet-service", finding.Error, func(f *doctor.Facts) { delete(*f.Services.Value, "kubelet") },
			"there is no service kubelet"},
		{"containerd-service", finding.Error, stopped("containerd"), "containerd is stopped"},
		{"kube-proxy-service", finding.Error, stopped("kube-proxy"), "kube-proxy is stopped"},
		{"kube-proxy-service", finding.Error, onService("kube-proxy",
			func(s *preflight.Service) { s.State, s.PID = "start pending", 0 }), "kube-proxy is start pending"},
		{"csi-proxy-service", finding.Warning, stopped("csi-proxy"), "csi-proxy is stopped"},
		{"hns-service", finding.Error, stopped("hns"), "hns is stopped"},
		{"vmcompute-service", finding.Error, stopped("vmcompute"), "vmcompute is stopped"},
		{"service-start", finding.Warning, onService("kubelet", func(s *preflight.Service) { s.StartType = "manual" }),
			"start= auto"},
		{"service-recovery", finding.Info, onService("containerd",
			func(s *preflight.Service) { none := 0; s.Restarts, s.RestartsRepeat = &none, false }),
			"not restart the service containerd"},
		{"service-recovery", finding.Info, onService("kubelet", func(s *preflight.Service) {
			none := 0
			s.Restarts, s.RestartsRepeat, s.Reboots = &none, false, true
		}), "Windows restarts after a failure of the service kubelet"},
		{"service-recovery", finding.Info, onService("kubelet", func(s *preflight.Service) {
			s.RestartsRepeat, s.RestartsReset = false, time.Hour
		}), "after 3 restarts in a row, Windows leaves the service kubelet stopped"},
		{"kubelet-after-containerd", finding.Info,
			onService("kubelet", func(s *preflight.Service) { s.Dependencies = nil }), "depends on: nothing"},
		{"container-runtime", finding.Warning, func(f *doctor.Facts) {
			(*f.Services.Value)["docker"] = preflight.Service{Name: "docker", State: "running"}
		}, "docker, which is running"},
		{"unfinished-push", finding.Error, func(f *doctor.Facts) { (*f.Swaps.Value)[0].Guarded = false },
			"interrupted"},
		{"unfinished-push", finding.Error, func(f *doctor.Facts) { (*f.Swaps.Value)[0].Result = "failed" },
			"could not be undone"},
		{"unfinished-push", finding.Warning,
			func(f *doctor.Facts) { (*f.Swaps.Value)[0].Begun = taken.Add(-time.Hour) }, "for 1h"},
		{"unfinished-push", finding.Info, func(f *doctor.Facts) { (*f.Swaps.Value)[0].Result = "rolledBack" },
			"rolledBack"},
		{"outdated-process", finding.Warning, func(f *doctor.Facts) {
			(*f.Programs.Value)["kubelet"] = doctor.Program{Path: `C:\k\kubelet.exe`, Version: "v1.36.0",
				Outdated: true}
		}, "kubelet runs another file"},
		{"service-program", finding.Error, func(f *doctor.Facts) {
			f.Placements = doctor.Known([]doctor.Placement{{Name: "kubelet", Service: "kubelet",
				Destination: `C:\k\kubelet.exe`, Runs: `D:\k\kubelet.exe`}})
		}, `C:\k\kubelet.exe`},
		{"push-leftovers", finding.Info, func(f *doctor.Facts) {
			(*f.Programs.Value)["kubelet"] = doctor.Program{Leftovers: []string{`C:\k\kubelet.exe.swdt-1234`}}
		}, "swdt-1234"},
	}
}

func kubeletFaults() []fault {
	certificate := func(i int, until time.Time) func(*doctor.Facts) {
		return func(f *doctor.Facts) { (*f.Certificates.Value)[i].NotAfter = until }
	}
	return []fault{
		{"kubelet-flags", finding.Error,
			func(f *doctor.Facts) { (*f.KubeletFlags.Value)["pod-infra-container-image"] = "x" },
			"no longer supports since 1.35"},
		// Azure/AgentBaker#6925, kubernetes/kubernetes#142125
		{"service-settings", finding.Error, func(f *doctor.Facts) { kubeProxyRuns(f, "v1.34.2", "--feature-gates=WinOverlay=false") },
			"WinOverlay is locked to true"},
		{"service-settings", finding.Error, func(f *doctor.Facts) { kubeProxyRuns(f, "v1.38.0", "--feature-gates=WinDSR=true") },
			"Kubernetes 1.38 removed the feature gate WinDSR"},
		{"service-settings", finding.Error, func(f *doctor.Facts) { kubeProxyRuns(f, "v1.38.0", "--proxy-mode=iptables") },
			"Windows has only the mode kernelspace"},
		{"kubelet-config", finding.Error, func(f *doctor.Facts) { f.Kubelet.Value.Problem = "yaml: line 3" },
			"does not start"},
		{"kubelet-config", finding.Warning,
			func(f *doctor.Facts) {
				f.Kubelet.Value.Ignored = []doctor.IgnoredField{{What: "config.yaml: line 3: x: is unknown", Remedy: "remove it"}}
			},
			"line 3: x: is unknown"},
		// kubernetes-sigs/image-builder#2011, cluster-api-provider-azure#5967
		{"kubeadm-flags", finding.Warning, func(f *doctor.Facts) {
			f.KubeadmFlags.Value.Flags["cloud-provider"] = "external"
			f.KubeadmFlags.Value.Flags["register-with-taints"] = "a=b:NoSchedule"
		}, "--cloud-provider, --register-with-taints"},
		{"kubeadm-flags", finding.Info, func(f *doctor.Facts) { f.KubeadmFlags.Value.Flags["node-labels"] = "a=1,c=3" },
			"--node-labels"},
		{"kubeadm-flags", finding.Warning,
			func(f *doctor.Facts) { f.KubeadmFlags.Value.Problem = "line 1: the file ends without it" }, "cannot be read"},
		{"kubelet-cgroups", finding.Warning,
			func(f *doctor.Facts) { delete(*f.KubeletFlags.Value, "cgroups-per-qos") }, "cgroupsPerQOS"},
		{"kubelet-cgroups", finding.Error,
			func(f *doctor.Facts) { (*f.KubeletFlags.Value)["enforce-node-allocatable"] = "pods" },
			"enforceNodeAllocatable"},
		{"kubelet-endpoint", finding.Error, func(f *doctor.Facts) { f.Containerd.Value.Pipe = `\\.\pipe\other` },
			"another pipe than containerd's"},
		{"kubelet-endpoint", finding.Error,
			func(f *doctor.Facts) { delete(*f.KubeletFlags.Value, "container-runtime-endpoint") }, "has no endpoint"},
		{"kubelet-health", finding.Error,
			func(f *doctor.Facts) { f.Health.Value.Status, f.Health.Value.Body = 500, "[-]syncloop failed" },
			"syncloop failed"},
		{"kubelet-health", finding.Error, func(f *doctor.Facts) { f.Health.Value.Error = "connection refused" },
			"does not answer"},
		{"kubelet-log", finding.Info,
			onService("kubelet", func(s *preflight.Service) { s.CommandLine = `C:\k\kubelet.exe --windows-service` }),
			"is not stored"},
		{"log-size", finding.Warning, func(f *doctor.Facts) { (*f.Logs.Value)[0].Bytes = 4 << 30 }, "grown to 4.3 GB"},
		{"joined", finding.Info, func(f *doctor.Facts) { *f.Kubeconfig.Value = doctor.Kubeconfig{} }, "never joined"},
		{"joined", finding.Error, func(f *doctor.Facts) { *f.Kubeconfig.Value = doctor.Kubeconfig{Bootstrap: true} },
			"begun to join"},
		{"joined", finding.Error, func(f *doctor.Facts) { f.Kubeconfig.Value.Problem = "yaml: line 1" }, "damaged"},
		{"kubelet-certificate", finding.Error, certificate(0, taken.Add(-time.Hour)), "has expired"},
		{"kubelet-certificate", finding.Warning, certificate(0, taken.AddDate(0, 0, 3)), "expires in 3 days"},
		{"kubelet-certificate", finding.Warning, certificate(1, taken.Add(-time.Hour)),
			"serving certificate has expired"},
		{"kubelet-certificate", finding.Warning, certificate(1, taken.Add(-time.Hour)),
			`cmd /c del 'C:\var\lib\kubelet\pki\kubelet.crt' 'C:\var\lib\kubelet\pki\kubelet.key'`},
		{"cluster-ca", finding.Error, certificate(2, taken.Add(-time.Hour)), "CA has expired"},
		{"cluster-ca", finding.Warning, certificate(2, taken.AddDate(0, 0, 20)), "expires in 20 days"},
		{"kubelet-identity", finding.Error, func(f *doctor.Facts) { f.Object.Value.Name = "win-2" },
			"names node win-1"},
		{"other-cluster", finding.Error,
			func(f *doctor.Facts) { f.Server.Value.CAHashes = []string{"sha256:bbbbbbbbbbbbbbbb"} },
			"does not trust the CA"},
		{"other-cluster", finding.Error, func(f *doctor.Facts) {
			f.Kubeconfig.Value.Bootstrap, f.Kubeconfig.Value.BootstrapServer = true, "https://elsewhere:6443"
		}, "a bootstrap file of another"},
		{"joined-twice", finding.Warning,
			func(f *doctor.Facts) { (*f.Others.Value)[0].SystemUUID = strings.ToUpper(uuid) },
			"Node cp is this machine too"},
		{"joined-twice", finding.Warning,
			func(f *doctor.Facts) { (*f.Others.Value)[0].Addresses = []string{"10.0.0.7"} }, "10.0.0.7"},
		{"control-plane-name", finding.Error,
			func(f *doctor.Facts) { (*f.Reached.Value)[0].Unresolved = "no such host" },
			"does not know the name cp.example"},
		{"control-plane-reachable", finding.Error,
			func(f *doctor.Facts) { (*f.Reached.Value)[0].Outcome = platform.TimedOut }, "cp.example:6443"},
	}
}

// Every rule has a case in which it finds something; on healthy facts all rules run and
// find nothing.
func TestEveryRuleFindsAndDoesNot(t *testing.T) {
	base, err := doctor.Examine(*healthy())
	if err != nil {
		t.Fatal(err)
	}
	if len(base.Skipped) > 0 || len(base.Findings) > 0 {
		t.Errorf("on healthy facts: skipped %+v, found %+v", base.Skipped, base.Findings)
	}
	faults := slices.Concat(machineFaults(), portFaults(), serviceFaults(), kubeletFaults(), runtimeFaults(),
		hnsFaults(), clusterFaults())
	found := map[string]bool{}
	for _, c := range faults {
		t.Run(c.rule+" "+string(c.severity)+" "+c.words, func(t *testing.T) {
			f := healthy()
			c.change(f)
			r := examine(t, *f, c.rule)
			if !slices.ContainsFunc(r.Findings, func(is finding.Fault) bool {
				return is.Severity == c.severity && strings.Contains(is.What+"\n"+is.Evidence+"\n"+is.Remedy, c.words)
			}) {
				t.Errorf("found %+v", r.Findings)
			}
			rules, err := doctor.Select([]string{c.rule})
			if err != nil || !rules[0].Severity.AtLeast(c.severity) {
				t.Errorf("worse than the rule's severity: %v", err)
			}
			for _, is := range r.Findings {
				switch {
				case is.Rule != c.rule:
					t.Errorf("is.Rule = %v, want %v", is.Rule, c.rule)
				case is.What == "":
					t.Error("is.What is empty")
				case is.Remedy == "":
					t.Error("is.Remedy is empty")
				case is.Link == "":
					t.Errorf("is.Link is empty; incomplete: %+v", is)
				}
			}
			c.sameFromJSON(t, *f)
			c.needsNoMore(t, f)
		})
		found[c.rule] = true
	}
	for _, rule := range doctor.Rules() {
		if !found[rule.ID] {
			t.Errorf("no case makes %s find anything", rule.ID)
		}
	}
	if n := len(doctor.Rules()); n < 40 {
		t.Errorf("there are %d rules", n)
	}
}

func examine(t *testing.T, f doctor.Facts, ids ...string) doctor.Report {
	t.Helper()
	r, err := doctor.Examine(f, ids...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// sameFromJSON checks that facts read from a file give the same findings.
func (c fault) sameFromJSON(t *testing.T, f doctor.Facts) {
	t.Helper()
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var read doctor.Facts
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	if got, want := examine(t, read), examine(t, f); !reflect.DeepEqual(got, want) {
		t.Errorf("from JSON: %+v\nwant %+v", got, want)
	}
}

// needsNoMore checks that a rule runs with no other facts than those in Needs, and is
// skipped without them.
func (c fault) needsNoMore(t *testing.T, f *doctor.Facts) {
	t.Helper()
	rules, err := doctor.Select([]string{c.rule})
	if err != nil {
		t.Fatal(err)
	}
	facts := reflect.ValueOf(f).Elem()
	for i := range facts.NumField() {
		name := facts.Type().Field(i).Tag.Get("json")
		if !strings.HasPrefix(facts.Type().Field(i).Type.Name(), "Fact[") || slices.Contains(rules[0].Needs, name) {
			continue
		}
		facts.Field(i).SetZero()
	}
	if r := examine(t, *f, c.rule); len(r.Rules) != 1 {
		t.Errorf("with all that it needs: %+v", r)
	}
	for i := range facts.NumField() {
		if slices.Contains(rules[0].Needs, facts.Type().Field(i).Tag.Get("json")) {
			facts.Field(i).SetZero()
		}
	}
	switch r := examine(t, *f, c.rule); {
	case len(r.Skipped) != 1:
		t.Errorf("len(r.Skipped) = %v, want 1: %+v", len(r.Skipped), r.Skipped)
	case len(r.Findings) > 0:
		t.Errorf("len(r.Findings) = %v, want 0: %+v", len(r.Findings), r.Findings)
	case r.Skipped[0].Why == "":
		t.Errorf("r.Skipped[0].Why is empty; without anything: %+v", r)
	}
}

// A push that has ended on the node cannot be undone by the next one, which only collects its result.
func TestAPushThatHasEndedIsComplete(t *testing.T) {
	for _, result := range []string{"committed", "rolledBack"} {
		f := *healthy()
		(*f.Swaps.Value)[0].Result = result
		r := examine(t, f, "unfinished-push")
		if len(r.Findings) != 1 || !strings.Contains(r.Findings[0].Remedy, "the push is complete") ||
			strings.Contains(r.Findings[0].Remedy, "undo") {
			t.Errorf("%s: %+v", result, r.Findings)
		}
	}
}

func TestRulesAreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range doctor.Rules() {
		switch {
		case r.ID == "":
			t.Error("r.ID is empty")
		case seen[r.ID]:
			t.Errorf("seen[r.ID] is wrong; %+v", r)
		case r.Title == "":
			t.Error("r.Title is empty")
		case r.Means == "":
			t.Error("r.Means is empty")
		case r.Link == "":
			t.Error("r.Link is empty")
		case len(r.Needs) == 0:
			t.Errorf("len(r.Needs) = 0: %+v", r.Needs)
		case !slices.Contains(finding.Severities(), r.Severity):
			t.Errorf("%+v", r)
		}
		seen[r.ID] = true
		if strings.HasSuffix(r.Title, ".") || !strings.HasSuffix(r.Means, ".") {
			t.Errorf("%s: a title has no full stop, a meaning has one", r.ID)
		}
	}
}

// Facts that resemble a fault, but are none, cause no finding.
func TestSimilarFactsCauseNoFinding(t *testing.T) {
	proxy := func(change func(*doctor.Proxy)) func(*doctor.Facts) {
		return func(f *doctor.Facts) { change(f.Proxy.Value) }
	}
	for _, c := range []fault{
		{rule: "proxy", words: "no proxy for any address",
			change: proxy(func(p *doctor.Proxy) { p.No = "localhost, *" })},
		{rule: "proxy", words: "with a port", change: proxy(func(p *doctor.Proxy) { p.No = "cp.example:6443,.svc" })},
		{rule: "proxy", words: "another protocol's",
			change: proxy(func(p *doctor.Proxy) { p.HTTPS, p.No = "", ".svc" })},
		{rule: "kubelet-endpoint", words: "an unread configuration", change: func(f *doctor.Facts) {
			delete(*f.KubeletFlags.Value, "container-runtime-endpoint")
			f.Kubelet = doctor.Fact[doctor.KubeletConfig]{Unknown: "no answer"}
		}},
	} {
		f := healthy()
		c.change(f)
		if r := examine(t, *f, c.rule); len(r.Rules) != 1 || len(r.Findings) > 0 {
			t.Errorf("%s, %s: %+v", c.rule, c.words, r)
		}
	}
}

// Windows logs an unexpected shutdown twice; doctor reports it once.
func TestAShutdownIsCountedOnce(t *testing.T) {
	f := healthy()
	event("Microsoft-Windows-Kernel-Power", 41)(f)
	event("EventLog", 6008)(f)
	r := examine(t, *f, "unexpected-shutdown")
	if len(r.Findings) != 1 || !strings.HasSuffix(r.Findings[0].What, "once in a day") {
		t.Errorf("%+v", r.Findings)
	}
}

// kubeProxyRuns gives the service kube-proxy a version and a flag.
func kubeProxyRuns(f *doctor.Facts, version, flag string) {
	(*f.Services.Value)["kube-proxy"] = preflight.Service{Name: "kube-proxy", State: "running",
		CommandLine: `C:\k\kube-proxy.exe --enable-dsr=true ` + flag}
	(*f.Programs.Value)["kube-proxy"] = doctor.Program{Path: `C:\k\kube-proxy.exe`, Exists: true, Version: version}
}
