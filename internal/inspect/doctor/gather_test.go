package doctor_test

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/grpc/metadata"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/format/redact"
	"github.com/swdt-dev/swdt/internal/format/windowstext"
	"github.com/swdt-dev/swdt/internal/inspect/doctor"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/imitation/criserver"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func gather(t *testing.T, n *nodetest.Node) doctor.Facts {
	t.Helper()
	facts, err := doctor.Gather(t.Context(), doctor.Sources{Node: n.Node})
	if err != nil {
		t.Fatal(err)
	}
	return facts
}

// On a simulated node rules find nothing worse than Info, and gathering facts changes
// nothing.
func TestAHealthyNode(t *testing.T) {
	n := nodetest.Start(t, "sample", simulated.Options{Hostname: "WIN-1", Preset: simulated.Node})
	operations := len(n.Machine.Operations())
	facts := gather(t, n)
	r := examine(t, facts)
	for _, f := range r.Findings {
		if f.Severity != finding.Info {
			t.Errorf("%+v", f)
		}
	}
	// The skipped rules need facts that the simulation or a cluster would have to provide.
	for _, s := range r.Skipped {
		t.Log(s.Rule, ": ", s.Why)
	}
	for _, rule := range []string{
		"kubelet-service", "kubelet-flags", "kubelet-config", "kubelet-cgroups", "kubelet-endpoint", "kubelet-health",
		"containerd-config",
		"runtime-answers", "network-ready", "image-mismatch", "cni-config", "cni-binaries", "service-crashes", "log-size",
		"excluded-ports", "dynamic-ports", "mtu", "image-store",
	} {
		if !slices.Contains(r.Rules, rule) {
			t.Errorf("%s was not looked at", rule)
		}
	}
	for _, o := range n.Machine.Operations()[operations:] {
		if changes(o) {
			t.Errorf("the machine was changed: %v", o)
		}
	}
}

// changes reports whether an operation changes the machine. The programs that doctor runs
// (netsh, wevtutil, --version) only print, and the agent may write to its own folder.
func changes(o simulated.Operation) bool {
	return !strings.HasPrefix(o.Target, layout.Root) && !slices.Contains([]simulated.Kind{
		simulated.OpHTTPGet, simulated.OpPipeDial, simulated.OpResolve, simulated.OpReach, simulated.OpListeners,
		simulated.OpProcessRun,
	}, o.Kind)
}

// Rules find the faults of a machine.
func TestPlantedFaults(t *testing.T) {
	n := nodetest.Start(t, "sample", simulated.Options{
		Hostname: "WIN-1", Preset: simulated.Node,
		Images: []criserver.Image{{ID: "large", Tag: "example.com/large:1", Size: 9e9, OSVersion: "10.0.20348.1"}},
	})
	n.Machine.ExcludePorts(10200, 10299, false)
	n.Machine.SetDynamicPorts(20000, 20000)
	n.Machine.SetAdapter("vEthernet (Ethernet)", 9000)
	for range 3 {
		n.Machine.LogEvent(simulated.LoggedEvent{
			Channel: "System", Provider: "Service Control Manager", ID: 7031, Level: 2, Data: []string{"kubelet", "1"},
			Message: "The kubelet service terminated unexpectedly.",
		})
	}
	n.Machine.SetFacts(func(f *platform.Facts) { f.DiskFree = 1e9 })
	n.Put(`C:\var\lib\kubelet\config.yaml`, []byte("kind: Pod\n"))
	n.Put(`C:\Program Files\containerd\config.toml`, []byte("version = 9\n"))
	n.Put(`C:\etc\kubernetes\bootstrap-kubelet.conf`, []byte(kubeconfig("https://10.0.0.9:6443")))
	n.Machine.SetReach("10.0.0.9:6443", platform.TimedOut)
	facts := gather(t, n)
	r := examine(t, facts)
	for _, rule := range []string{"service-crashes", "disk-space", "kubelet-config", "containerd-config", "joined",
		"control-plane-reachable"} {
		if !slices.ContainsFunc(r.Findings, func(f finding.Fault) bool {
			return f.Rule == rule && f.Severity == finding.Error
		}) {
			t.Errorf("%s found nothing: %+v", rule, r.Findings)
		}
	}
	for rule, words := range map[string]string{
		"excluded-ports": "10200-10299", "dynamic-ports": "20000-39999", "mtu": "vEthernet (Ethernet): 9000",
		"image-store": "9.6 GB in images",
	} {
		if !slices.ContainsFunc(r.Findings, func(f finding.Fault) bool {
			return f.Rule == rule && strings.Contains(f.Evidence, words)
		}) {
			t.Errorf("%s did not see %q: %+v", rule, words, r.Findings)
		}
	}
	text, err := json.Marshal(facts)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), secret) {
		t.Error("the facts hold a token")
	}
}

const secret = "abcdef.0123456789abcdef"

func kubeconfig(server string) string {
	return `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "` + server + `"}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
users: [{name: u, user: {token: ` + secret + `}}]
`
}

// A Japanese Windows prints its ports in Japanese and in its own code page.
func TestAWindowsOfAnotherLanguage(t *testing.T) {
	n := nodetest.Start(t, "sample", simulated.Options{Hostname: "WIN-1", Preset: simulated.Node})
	n.Machine.Script(func(c platform.Command) (simulated.Answer, bool) {
		if !strings.HasSuffix(c.Path, "netsh.exe") {
			return simulated.Answer{}, false
		}
		switch strings.Join(c.Args, " ") {
		case "int ipv4 show dynamicport tcp":
			return simulated.Answer{Stdout: "\r\nプロトコル tcp の動的ポートの範囲\r\n---------------------------------\r\n" +
				"開始ポート      : 1024\r\nポート数        : 64511\r\n\r\n"}, true
		case "int ipv4 show subinterfaces": // イーサネット in code page 932
			return simulated.Answer{Stdout: "   MTU  MediaSenseState   \x8e\xf3\x90M  \x91\x97\x90M  Interface\r\n" +
				"------  ---------------  ---------  ---------  -------------\r\n" +
				"  1400                1         10         10  \x83C\x81[\x83T\x83l\x83b\x83g\r\n" +
				"  1500                1         10         10  vEthernet (\x83C\x81[\x83T\x83l\x83b\x83g)\r\n"}, true
		}
		return simulated.Answer{}, false
	})
	facts := gather(t, n)
	r := examine(t, facts, "dynamic-ports", "mtu", "excluded-ports")
	for rule, words := range map[string]string{"dynamic-ports": "1024-65534", "mtu": "the machine's own adapter: 1400"} {
		if !slices.ContainsFunc(r.Findings, func(f finding.Fault) bool {
			return f.Rule == rule && strings.Contains(f.Evidence, words)
		}) {
			t.Errorf("%s did not see %q: %+v", rule, words, r)
		}
	}
	fault{}.sameFromJSON(t, facts)
}

// On a machine that is not a node yet, most facts are unknown, each with its reason.
func TestABareMachine(t *testing.T) {
	n := nodetest.Start(t, "sample", simulated.Options{Hostname: "WIN-1", Preset: simulated.Minimal})
	r := examine(t, gather(t, n))
	var found []string
	for _, f := range r.Findings {
		if f.Severity == finding.Error {
			found = append(found, f.Rule)
		}
	}
	want := []string{"containers-feature", "kubelet-service", "containerd-service", "runtime-answers"}
	if !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
	for _, s := range r.Skipped {
		if s.Why == "" || s.Why == "it was not gathered" {
			t.Errorf("%+v", s)
		}
	}
}

// A log at the root of a drive is found; other files there are not logs.
func TestLogAtTheRootOfADrive(t *testing.T) {
	n := nodetest.Start(t, "sample", simulated.Options{Hostname: "WIN-1", Preset: simulated.Node})
	n.Put(`C:\containerd.log`, []byte("level=info\n"))
	n.Put(`C:\pagefile.sys`, []byte("much"))
	is, err := n.Services.Get(t.Context(), &agentv1.GetServiceRequest{Name: "containerd"})
	if err != nil {
		t.Fatal(err)
	}
	config := is.GetConfig()
	config.CommandLine = `"C:\Program Files\containerd\bin\containerd.exe" --run-service --log-file C:\containerd.log`
	if _, err := n.Services.Configure(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	var logs []string
	for _, file := range *gather(t, n).Logs.Value {
		logs = append(logs, file.Path)
	}
	if !slices.Contains(logs, `C:\containerd.log`) || slices.Contains(logs, `C:\pagefile.sys`) {
		t.Errorf("logs %q", logs)
	}
}

// The health check uses the port of kubelet's configuration, and is skipped if that is
// 0; a file that kubelet cannot read is a fault.
func TestKubeletFlagsAreGathered(t *testing.T) {
	n := nodetest.Start(t, "sample", simulated.Options{Hostname: "WIN-1", Preset: simulated.Node})
	const header = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
	for text, want := range map[string]doctor.Fact[doctor.Health]{
		header + "healthzPort: 10300\n": doctor.Known(doctor.Health{URL: "http://127.0.0.1:10300/healthz"}),
		header + "healthzPort: 0\n":     {Unknown: "kubelet's health check is disabled (healthzPort is 0)"},
	} {
		n.Put(`C:\var\lib\kubelet\config.yaml`, []byte(text))
		got := gather(t, n).Health
		if got.Value != nil {
			got.Value = &doctor.Health{URL: got.Value.URL} // the answer does not matter here
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("%s: the fact differs (-want +got):\n%s", text, diff)
		}
	}
	n.Put(`C:\var\lib\kubelet\config.yaml`, []byte(header+"port: [\n"))
	r := examine(t, gather(t, n), "kubelet-config", "kubelet-cgroups", "kubelet-endpoint")
	if len(r.Findings) != 1 {
		t.Fatalf("%d findings, want 1: %+v", len(r.Findings), r)
	}
	if got := r.Findings[0].Rule; got != "kubelet-config" {
		t.Errorf("rule %s, want kubelet-config", got)
	}
	if got := r.Findings[0].Evidence; !strings.Contains(got, `C:\var\lib\kubelet\config.yaml`) {
		t.Errorf("the evidence does not name the file: %s", got)
	}
}

// A wrapper starts kubelet and containerd, as in installations by nssm
// (kubernetes-sigs/image-builder#1752, Siemens-Healthineers/K2s#2376, georgbuexel/kubernetes-cluster): doctor
// reads the flags of the programs, or says that they are unknown.
func TestServicesBehindWrappers(t *testing.T) {
	n := nodetest.Start(t, "sample", simulated.Options{Hostname: "WIN-1", Preset: simulated.Node})
	const kubelet = `C:\k\kubelet.exe --config=C:\kubelet.yaml --cgroups_per_qos=false --node-labels=a=1 --node-labels b=2`
	n.Put(`C:\kubelet.yaml`, []byte("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"+
		"containerRuntimeEndpoint: npipe:////./pipe/containerd-containerd\nenforceNodeAllocatable: []\n"))
	n.Put(`C:\k2s\containerd\config.toml`, []byte("version = 9\n"))
	n.Put(`C:\k\Start.ps1`, []byte("& $kubelet"))
	register := func(service, line string, values ...string) {
		t.Helper()
		_, err := n.Services.Configure(t.Context(), &agentv1.ServiceConfig{Name: service, CommandLine: line})
		if err != nil {
			t.Fatal(err)
		}
		for i, name := range []string{"Application", "AppParameters"}[:len(values)] {
			_, err := n.Registry.Set(t.Context(), &agentv1.RegistrySetRequest{
				Key:   `HKLM\SYSTEM\CurrentControlSet\Services\` + service + `\Parameters`,
				Value: &agentv1.RegistryValue{Name: name, Type: "REG_SZ", String_: values[i]}})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	register("containerd", `C:\k\nssm.exe`, `C:\Program Files\containerd\bin\containerd.exe`,
		`--config C:\k2s\containerd\config.toml`)
	for name, set := range map[string]func(){
		"nssm": func() {
			register("kubelet", `C:\k\nssm.exe`, `C:\k\kubelet.exe`, strings.TrimPrefix(kubelet, `C:\k\kubelet.exe `))
		},
		"cmd": func() { register("kubelet", `cmd.exe /c "`+kubelet+` > C:\log 2>&1"`) },
	} {
		set()
		facts := gather(t, n)
		flags := facts.KubeletFlags.Value
		if flags == nil || (*flags)["config"] != `C:\kubelet.yaml` || (*flags)["cgroups-per-qos"] != "false" ||
			(*flags)["node-labels"] != "a=1,b=2" {
			t.Errorf("%s: flags %v, %q", name, flags, facts.KubeletFlags.Unknown)
		}
		if r := examine(t, facts, "kubelet-endpoint", "kubelet-cgroups"); len(r.Findings) > 0 {
			t.Errorf("%s: %+v", name, r.Findings)
		}
		r := examine(t, facts, "containerd-config")
		if len(r.Findings) != 1 || !strings.Contains(r.Findings[0].Evidence, `C:\k2s\containerd\config.toml`) {
			t.Errorf("%s: containerd's configuration: %+v", name, r)
		}
	}
	register("kubelet", `C:\k\nssm.exe`, `powershell.exe`, `-File C:\k\Start.ps1`)
	facts := gather(t, n)
	if facts.KubeletFlags.Value != nil || !strings.Contains(facts.KubeletFlags.Unknown, `C:\k\Start.ps1`) {
		t.Errorf("a script: %+v", facts.KubeletFlags)
	}
	if r := examine(t, facts, "kubelet-endpoint", "kubelet-flags"); len(r.Findings) > 0 {
		t.Errorf("rules that need unknown flags found %+v", r.Findings)
	}
}

// Files that PowerShell or Notepad have saved. Each message names the encoding.
func TestEncodingsOfWindowsTools(t *testing.T) {
	const toml, cni = `C:\Program Files\containerd\config.toml`, `C:\Program Files\containerd\cni\conf\10-net.conf`
	const kubelet, flags = `C:\var\lib\kubelet\config.yaml`, `C:\var\lib\kubelet\kubeadm-flags.env`
	const kubeletConf = `C:\etc\kubernetes\kubelet.conf`
	const config = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
	const env = `KUBELET_KUBEADM_ARGS="--cloud-provider=external"`
	for name, c := range map[string]struct {
		containerd, path, content string // containerd: "" for version 1
		rule, words               string // "": no finding of the rule
	}{
		// containerd/containerd#7016: go-toml v1 skips the mark.
		"containerd 1 skips a mark": {"", toml, "\ufeffversion = 2\n", "", "containerd-config"},
		// containerd/containerd#11940, #4381.
		"containerd 2 refuses a mark": {"v2.2.0", toml, "\ufeffversion = 3\n", "containerd-config",
			"UTF-8 with a byte order mark"},
		"another fault behind a mark": {"", toml, "\ufeffversion = 9\n", "containerd-config", "equal to or less"},
		"UTF-16, containerd 1":        {"", toml, wide("\ufeffversion = 2\r\n"), "containerd-config", "UTF-16 (little"},
		"UTF-16, containerd 2":        {"v2.2.0", toml, wide("version = 3\r\n"), "containerd-config", "without a byte"},
		"NUL tail":                    {"", toml, "version = 2\n\x00\x00", "containerd-config", "line 2"},
		"code page":                   {"", toml, "# B\xfcro\nversion = 2\n", "containerd-config", "0xfc"},
		"CNI with a mark":             {"", cni, "\ufeff{}", "cni-config", "UTF-8 with a byte order mark"},
		"CNI in UTF-16":               {"", cni, wide("\ufeff{\"type\":\"x\"}"), "cni-config", "UTF-16"},
		"CNI in UTF-16, no mark":      {"", cni, wide("{\"type\":\"x\"}"), "cni-config", "UTF-16"},
		"kubelet in UTF-16":           {"", kubelet, wide("\ufeff" + config), "", "kubelet-config"},
		"kubelet with a mark":         {"", kubelet, "\ufeff" + config, "", "kubelet-config"},
		"kubelet in UTF-16, no mark":  {"", kubelet, wide(config), "kubelet-config", "UTF-16"},
		"kubelet, NULs":               {"", kubelet, config + "\x00", "kubelet-config", "NUL"},
		"kubelet.conf, NULs":          {"", kubeletConf, "\x00\x00", "joined", "NUL"},
		"flags in UTF-16":             {"", flags, wide("\ufeff" + env), "kubeadm-flags", "--cloud-provider"},
		"flags in a code page":        {"", flags, "# B\xfcro\n" + env, "kubeadm-flags", "0xfc"},
		"no variable":                 {"", flags, "# nothing", "kubeadm-flags", "KUBELET_KUBEADM_ARGS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := nodetest.Start(t, "sample", simulated.Options{Hostname: "WIN-1", Preset: simulated.Node})
			if c.containerd != "" {
				if _, err := n.Services.Stop(t.Context(), &agentv1.StopServiceRequest{Name: "containerd"}); err != nil {
					t.Fatal(err)
				}
				n.Put(simulated.ContainerdPath,
					simulated.Binary(simulated.BinarySpec{Name: "containerd", Version: c.containerd}))
			}
			n.Put(c.path, []byte(c.content))
			r := examine(t, gather(t, n))
			rule := c.rule
			if rule == "" {
				rule = c.words
			}
			at := slices.IndexFunc(r.Findings, func(f finding.Fault) bool { return f.Rule == rule })
			switch {
			case c.rule == "" && at >= 0:
				t.Errorf("%+v", r.Findings[at])
			case c.rule != "" && (at < 0 || !strings.Contains(r.Findings[at].Evidence, c.words)):
				t.Errorf("%s lacks %q: %+v", c.rule, c.words, r.Findings)
			}
		})
	}
}

// kubelet's configuration is read as kubelet reads it. The file is of opsnull/follow-me-install-
// kubernetes-cluster#458 and kubernetes/kubernetes#121467; a drop-in is merged without regard to the
// case of names, and the file of --config with it.
func TestKubeletConfigurationIsDecodedAsKubeletDoes(t *testing.T) {
	const header = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
	for name, row := range map[string]struct {
		file, dropIn string
		want         []string // severity and a part of the evidence
	}{
		"wrong": {"apiVersion: kubelet.config.k8s.io/v1\nkind: KubeletConfiguration\nmaxPods: \"40\"\n", "",
			[]string{`error C:\var\lib\kubelet\config.yaml: line 1: apiVersion`}},
		"another kind":            {"apiVersion: v1\nkind: Config\n", "", []string{"error kind: is not KubeletConfiguration"}},
		"a wrong type":            {header + "evictionSoft: nil\n", "", []string{"error line 3: evictionSoft: is a text"}},
		"another case":            {header + "cgroupsPerQos: false\n", "", []string{"warning line 3: cgroupsPerQos"}},
		"a wrong drop-in":         {header, header + "maxPods: \"40\"\n", []string{`error C:\k\conf.d\10.conf: line 3: maxPods`}},
		"a drop-in, another case": {header, header + "HealthzPort: 10300\n", []string{"warning line 3: HealthzPort"}},
		"right":                   {header + "maxPods: 40\n", header + "healthzPort: 10300\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			n := nodetest.Start(t, "sample", simulated.Options{Hostname: "WIN-1", Preset: simulated.Node})
			n.Put(`C:\var\lib\kubelet\config.yaml`, []byte(row.file))
			if row.dropIn != "" {
				n.Put(`C:\k\conf.d\10.conf`, []byte(row.dropIn))
				addFlag(t, n, `--config-dir=C:\k\conf.d`)
			}
			facts := gather(t, n)
			found := examine(t, facts, "kubelet-config").Findings
			var got []string
			for i, f := range found {
				got = append(got, string(f.Severity)+" "+f.Evidence)
				if i < len(row.want) {
					severity, evidence, _ := strings.Cut(row.want[i], " ")
					if string(f.Severity) == severity && strings.Contains(f.Evidence, evidence) {
						got[i] = row.want[i]
					}
				}
			}
			if diff := gocmp.Diff(row.want, got); diff != "" {
				t.Errorf("the findings differ (-want +got):\n%s", diff)
			}
			if row.dropIn != "" && row.want == nil && *facts.Kubelet.Value.HealthzPort != 10300 {
				t.Errorf("the drop-in was not read: %+v", facts.Kubelet.Value)
			}
		})
	}
}

// wide returns a text as UTF-16, little-endian.
func wide(text string) string {
	encoding := windowstext.UnmarkedUTF16LE
	return string(windowstext.Text{Encoding: encoding}.Encode(text))
}

// A runtime reads the configuration of the pod network by the rules of libcni, from one folder, and
// only the first file by name.
func TestCNIConfigurationIsReadByTheRulesOfLibcni(t *testing.T) {
	const net = `C:\Program Files\containerd\cni\conf\`
	const list = `{"cniVersion": "1.0.0", "name": "n", "plugins": [{"type": "sdnbridge", "ipam": {"type": "host-local"}}]}`
	for name, row := range map[string]struct {
		file, content, want string // a part of the finding
	}{
		"a list":                {net + "10.conflist", list, ""},
		"one plugin":            {net + "10.conf", `{"cniVersion": "0.3.1", "name": "n", "type": "sdnbridge"}`, ""},
		"one plugin, as JSON":   {net + "10.json", `{"name": "n", "type": "sdnbridge"}`, ""},
		"old texts for true":    {net + "10.conflist", strings.Replace(list, `"name"`, `"disableCheck": "True", "name"`, 1), ""},
		"a list without a name": {net + "10.conflist", strings.Replace(list, `"name": "n", `, "", 1), `it has no "name"`}, // cri-o/cri-o#6541
		// containerd/containerd#11076, #8514, containerd/go-cni#53
		"a list as .conf": {net + "10.conf", list, "rename it to .conflist"},
		"a list as .json": {net + "10.json", list, "rename it to .conflist"},
		// hashicorp/nomad#19816
		"one plugin as .conflist": {net + "10.conflist", `{"name": "n", "type": "sdnbridge"}`, "rename it to .conf"},
		"no plugins":              {net + "10.conflist", `{"name": "n"}`, `it has no "plugins"`},
		"an empty list":           {net + "10.conflist", `{"name": "n", "plugins": []}`, "is empty"},
		"a mapping of plugins":    {net + "10.conflist", `{"name": "n", "plugins": {"type": "x"}}`, "is not a list"},
		// lyft/cni-ipvlan-vpc-k8s#7 is of the time before libcni looked for the type.
		"a plugin without a type": {net + "10.conflist", `{"name": "n", "plugins": [{"type": "a"}, {"name": "b"}]}`, "plugin 2"},
		"a number as a version":   {net + "10.conflist", strings.Replace(list, `"1.0.0"`, "1.0", 1), "cniVersion"},
		"a number as a name":      {net + "10.conflist", strings.Replace(list, `"n"`, "3", 1), `"name" is not a text`},
		"a name with a space":     {net + "10.conflist", strings.Replace(list, `"n"`, `"my net"`, 1), "not a network's name"},
		"neither true nor false":  {net + "10.conflist", strings.Replace(list, `"name"`, `"disableCheck": "yes", "name"`, 1), "disableCheck"},
		"a capability as a text":  {net + "10.conf", `{"name": "n", "type": "x", "capabilities": {"portMappings": "true"}}`, "cannot be read"},
		"a comma too many":        {net + "10.conf", `{"name": "n", "type": "x",}`, "cannot be read"},
		"an extension in capitals": {net + "10.CONF", `{"name": "n", "type": "sdnbridge"}`,
			"has no .conf, .conflist or .json"},
		"another folder":  {`C:\etc\cni\net.d\10-flannel.conflist`, list, "in another folder than"},
		"a folder of AKS": {`C:\k\azurecni\netconf\10-azure.conflist`, list, `C:\k\azurecni\netconf\10-azure.conflist`},
		"a folder of EKS": {`C:\ProgramData\Amazon\EKS\cni\conf\vpc-bridge.conf`, `{"name": "n", "type": "x"}`, "vpc-bridge.conf"},
	} {
		t.Run(name, func(t *testing.T) {
			n := nodetest.Start(t, "sample", simulated.Options{Hostname: "WIN-1", Preset: simulated.Node})
			empty(t, n, net)
			n.Put(row.file, []byte(row.content))
			got := ""
			for _, f := range examine(t, gather(t, n), "cni-config").Findings {
				got += f.What + ": " + f.Evidence + "; " + f.Remedy
			}
			if (got == "") != (row.want == "") || !strings.Contains(got, row.want) {
				t.Errorf("found %q, want %q", got, row.want)
			}
		})
	}
}

// Only the first file by name matters to the runtime, so a fault of another file is a warning.
func TestALaterCNIFileIsNotRead(t *testing.T) {
	const net = `C:\Program Files\containerd\cni\conf\`
	n := nodetest.Start(t, "sample", simulated.Options{Hostname: "WIN-1", Preset: simulated.Node})
	empty(t, n, net)
	n.Put(net+"10.conf", []byte(`{"name": "n", "type": "sdnbridge"}`))
	n.Put(net+"20.conf", []byte("{"))
	r := examine(t, gather(t, n), "cni-config")
	if len(r.Findings) != 1 || r.Findings[0].Severity != finding.Warning {
		t.Errorf("%+v", r.Findings)
	}
}

// containerd's CRI plugin refuses mirrors beside config_path, which containerd's own check of the
// configuration accepts.
func TestContainerdConfigurationThatTheCRIPluginRefuses(t *testing.T) {
	const registry = "plugins.'io.containerd.grpc.v1.cri'.registry"
	for folder, want := range map[string]int{`C:\certs.d`: 1, "": 0} {
		n := nodetest.Start(t, "sample", simulated.Options{Hostname: "WIN-1", Preset: simulated.Node})
		n.Put(`C:\Program Files\containerd\config.toml`, fmt.Appendf(nil, "version = 2\n[%s]\nconfig_path = '%s'\n"+
			"[%[1]s.mirrors.'docker.io']\nendpoint = ['https://m']\n", registry, folder))
		r := examine(t, gather(t, n), "containerd-config")
		if len(r.Findings) != want {
			t.Errorf("%q: %+v", folder, r.Findings)
		}
	}
}

// A TOML error is reported with its place, and with the way to write Windows paths.
func TestContainerdConfigurationWithAPathInDoubleQuotes(t *testing.T) {
	n := nodetest.Start(t, "sample", simulated.Options{Hostname: "WIN-1", Preset: simulated.Node})
	n.Put(`C:\Program Files\containerd\config.toml`, []byte("version = 2\nroot = \"C:\\Somaris\\root\"\n"))
	r := examine(t, gather(t, n), "containerd-config")
	if len(r.Findings) != 1 || !strings.Contains(r.Findings[0].Evidence, "line 2, column") ||
		!strings.Contains(r.Findings[0].Evidence, "single quotes") {
		t.Errorf("%+v", r.Findings)
	}
}

// A service's own environment, a value of its key in the registry, is added to the machine's.
func TestProxiesInTheEnvironmentOfAService(t *testing.T) {
	n := nodetest.Start(t, "sample", simulated.Options{Hostname: "WIN-1", Preset: simulated.Node})
	_, err := n.Registry.Set(t.Context(), &agentv1.RegistrySetRequest{
		Key: `HKLM\SYSTEM\CurrentControlSet\Services\kubelet`, Value: &agentv1.RegistryValue{Name: "Environment",
			Type: "REG_MULTI_SZ", Strings: []string{"https_proxy=http://me:s3cret@proxy.example:3128", "KUBE=1"}}})
	if err != nil {
		t.Fatal(err)
	}
	facts := gather(t, n)
	want := doctor.Proxy{Services: map[string]doctor.Proxy{"kubelet": {HTTPS: "http://proxy.example:3128"}},
		Running: map[string]doctor.Proxy{"containerd": {}, "kubelet": {}, "kube-proxy": {}}}
	if diff := gocmp.Diff(want, *facts.Proxy.Value); diff != "" {
		t.Errorf("the proxies differ (-want +got):\n%s", diff)
	}
	if r := examine(t, facts, "proxy"); len(r.Findings) == 0 {
		t.Error("no finding")
	}
	if r := examine(t, facts, "proxy-running"); len(r.Findings) != 1 {
		t.Errorf("a kubelet that runs without the variable: %+v", r.Findings)
	}
	if _, err := n.Services.Stop(t.Context(), &agentv1.StopServiceRequest{Name: "kubelet"}); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Services.Start(t.Context(), &agentv1.StartServiceRequest{Name: "kubelet"}); err != nil {
		t.Fatal(err)
	}
	if r := examine(t, gather(t, n), "proxy-running"); len(r.Findings) != 0 {
		t.Errorf("a kubelet that was restarted: %+v", r.Findings)
	}
}

// A variable of the machine is none of a service before the next boot, also if the service is restarted.
func TestAProxyOfTheMachineIsNoneOfItsServices(t *testing.T) {
	n := nodetest.Start(t, "sample", simulated.Options{Hostname: "WIN-1", Preset: simulated.Node})
	_, err := n.Settings.SetEnvironment(t.Context(), &agentv1.SetEnvironmentRequest{Variables: []*agentv1.EnvironmentVariable{
		{Name: "HTTPS_PROXY", Value: "http://proxy.example:3128"}}})
	if err != nil {
		t.Fatal(err)
	}
	if r := examine(t, gather(t, n), "proxy-running"); len(r.Findings) != 3 {
		t.Errorf("containerd, kubelet and kube-proxy run without it: %+v", r.Findings)
	}
}

// The service that swdt's selftest ends on purpose is no service that crashes, under either name.
func TestSelftestsOwnKillIsNoCrash(t *testing.T) {
	n := nodetest.Start(t, "sample", simulated.Options{Hostname: "WIN-1", Preset: simulated.Node})
	for _, name := range []string{"swdt selftest", "swdt-selftest"} {
		n.Machine.LogEvent(simulated.LoggedEvent{Channel: "System", Provider: "Service Control Manager", ID: 7034, Level: 2,
			Data: []string{name, "1"}, Message: "The " + name + " service terminated unexpectedly."})
	}
	if r := examine(t, gather(t, n), "service-crashes"); len(r.Findings) > 0 {
		t.Errorf("%+v", r.Findings)
	}
}

// Ntfs reports healthy volumes and damaged ones with the same event id.
func TestHarmlessEventsAreIgnored(t *testing.T) {
	n := nodetest.Start(t, "sample", simulated.Options{Hostname: "WIN-1", Preset: simulated.Node})
	volume := simulated.LoggedEvent{Channel: "System", Provider: "Microsoft-Windows-Ntfs", ID: 98, Level: 4,
		Message: "Volume C: is healthy. No action is needed."}
	n.Machine.LogEvent(volume)
	if r := examine(t, gather(t, n), "disk-errors"); len(r.Findings) > 0 || len(r.Rules) != 1 {
		t.Errorf("%+v", r)
	}
	volume.Level, volume.Message = 2, "Volume C: needs to be taken offline."
	n.Machine.LogEvent(volume)
	if r := examine(t, gather(t, n), "disk-errors"); len(r.Findings) != 1 {
		t.Errorf("%+v", r)
	}
}

// A firewall rule that blocks some addresses does not block the API server.
func TestARuleThatBlocksAFew(t *testing.T) {
	n := nodetest.Start(t, "sample", simulated.Options{Hostname: "WIN-1", Preset: simulated.Node})
	for name, c := range map[string]struct {
		addresses string
		found     bool
	}{"a few": {"203.0.113.0/24", false}, "everybody": {"", true}} {
		rule := &agentv1.FirewallRule{Name: name, Enabled: true, Inbound: true, Protocol: "tcp", Ports: "10250",
			Profiles: "any", Addresses: c.addresses}
		if _, err := n.Firewall.Add(t.Context(), rule); err != nil {
			t.Fatal(err)
		}
		r := examine(t, gather(t, n), "kubelet-firewall")
		blocked := slices.ContainsFunc(r.Findings, func(f finding.Fault) bool { return strings.Contains(f.What, "blocks") })
		if len(r.Rules) != 1 || blocked != c.found {
			t.Errorf("%s: %+v", name, r)
		}
		if _, err := n.Firewall.Remove(t.Context(), &agentv1.RemoveFirewallRuleRequest{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
}

// Redaction covers texts that the runtime returned.
func TestTheRuntimesAnswersAreRedacted(t *testing.T) {
	n := nodetest.Start(t, "sample", simulated.Options{
		Hostname: "WIN-1", Preset: simulated.Node,
		Images: []criserver.Image{{ID: "i", Tag: "corp.example.com/web:1", Size: 9e6, OSVersion: "10.0.20348.1"}},
	})
	for pattern, kept := range map[string]bool{"corp.example": false, "another": true} {
		ctx := metadata.AppendToOutgoingContext(t.Context(), redact.Metadata, "1", redact.MetadataPatterns, pattern)
		facts, err := doctor.Gather(ctx, doctor.Sources{Node: n.Node})
		if err != nil || facts.Images.Value == nil {
			t.Fatal(err, facts.Images.Unknown)
		}
		has := slices.ContainsFunc(*facts.Images.Value,
			func(i doctor.Image) bool { return slices.Contains(i.Tags, "corp.example.com/web:1") })
		if has != kept {
			t.Errorf("%s: %+v", pattern, facts.Images.Value)
		}
	}
}

// If kubelet's kubeconfig has several users and clusters, those of its current context
// are used.
func TestAKubeconfigOfSeveral(t *testing.T) {
	n := nodetest.Start(t, "sample", simulated.Options{Hostname: "WIN-1", Preset: simulated.Node})
	n.Put(`C:\etc\kubernetes\kubelet.conf`, []byte(`apiVersion: v1
kind: Config
clusters:
- {name: a, cluster: {server: "https://10.0.0.1:6443"}}
- {name: b, cluster: {server: "https://10.0.0.2:6443"}}
- {name: c, cluster: {server: "https://10.0.0.3:6443"}}
contexts: [{name: x, context: {cluster: b, user: v}}]
current-context: x
users:
- {name: u, user: {client-certificate: 'C:\u.pem'}}
- {name: v, user: {client-certificate: 'C:\v.pem'}}
- {name: w, user: {client-certificate: 'C:\w.pem'}}
`))
	for name, days := range map[string]int{"u": -10, "v": 100, "w": -10} {
		n.Put(`C:\`+name+`.pem`, certificate(t, days))
	}
	facts := gather(t, n)
	if got := facts.Kubeconfig.Value.Server; got != "https://10.0.0.2:6443" {
		t.Errorf("the API server is %s", got)
	}
	if got := *facts.Certificates.Value; len(got) != 1 || got[0].Path != `C:\v.pem` {
		t.Errorf("%+v", got)
	}
}

// addFlag appends a flag to kubelet's command line.
func addFlag(t *testing.T, n *nodetest.Node, flag string) {
	t.Helper()
	is, err := n.Services.Get(t.Context(), &agentv1.GetServiceRequest{Name: "kubelet"})
	if err != nil {
		t.Fatal(err)
	}
	config := is.GetConfig()
	config.CommandLine += " " + flag
	if _, err := n.Services.Configure(t.Context(), config); err != nil {
		t.Fatal(err)
	}
}

// empty removes the files of a folder.
func empty(t *testing.T, n *nodetest.Node, folder string) {
	t.Helper()
	list, err := n.Node.Files.List(t.Context(), &agentv1.ListFilesRequest{Path: folder})
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range list.GetEntries() {
		if _, err := n.Node.Files.Remove(t.Context(), &agentv1.RemoveRequest{Path: entry.GetPath()}); err != nil {
			t.Fatal(err)
		}
	}
}

// certificate returns a certificate that is valid for the given number of days.
func certificate(t *testing.T, days int) []byte {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().AddDate(0, 0, days)}
	der, err := x509.CreateCertificate(nil, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
