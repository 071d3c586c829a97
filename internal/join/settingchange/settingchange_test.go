package settingchange_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/join/nodesettings"
	"github.com/swdt-dev/swdt/internal/join/settingchange"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/layout"
	"github.com/swdt-dev/swdt/internal/wire/tracerecord"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	configFile = `C:\var\lib\kubelet\config.yaml`
	header     = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
)

// bench is a node with a kubelet and a kube-proxy of a version that the table has.
type bench struct {
	*nodetest.Node
	t   *testing.T
	doc config.Document
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, Node: nodetest.Start(t, "win-1", simulated.Options{Hostname: "WIN-1", Preset: simulated.Node})}
	for name, path := range map[string]string{"kubelet": `C:\k\kubelet.exe`, "kube-proxy": `C:\k\kube-proxy.exe`} {
		if _, err := b.Services.Stop(t.Context(), &agentv1.StopServiceRequest{Name: name}); err != nil {
			t.Fatal(err)
		}
		b.Put(path, simulated.Binary(simulated.BinarySpec{Name: name, Version: "v1.36.3", Size: 100_000}))
		if _, err := b.Services.Start(t.Context(), &agentv1.StartServiceRequest{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	b.doc.Node.Metadata.Name = "win-1"
	b.doc.Node.Spec.Kubernetes.Provisioners = []v1alpha1.Provisioner{{Name: "kubelet", Destination: `C:\k\kubelet.exe`},
		{Name: "kube-proxy", Destination: `C:\k\kube-proxy.exe`}}
	v1alpha1.SetDefaults(&b.doc.Node)
	return b
}

func (b *bench) read(p kubesettings.Program) *settingchange.Settings {
	b.t.Helper()
	table, err := kubesettings.Load()
	if err != nil {
		b.t.Fatal(err)
	}
	s, err := settingchange.Read(b.t.Context(), b.Node.Node, p, table)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// change changes settings: gates as NAME=VALUE, fields as NAME: VALUE, and what is to go as -NAME.
func (b *bench) change(p kubesettings.Program, wishes ...string) (push.NodeResult, error) {
	b.t.Helper()
	var all []settingchange.Wish
	for _, text := range wishes {
		w := settingchange.Wish{Kind: upgradecheck.GateSetting}
		name, value, isGate := strings.Cut(text, "=")
		if !isGate {
			w.Kind = upgradecheck.FieldSetting
			name, value, _ = strings.Cut(text, ": ")
		}
		w.Name, w.Value = name, value
		if bare, unset := strings.CutPrefix(name, "-"); unset {
			w.Name, w.Unset = bare, true
		}
		all = append(all, w)
	}
	return b.apply(func(s *settingchange.Settings) (*settingchange.Plan, error) { return s.Plan(all) }, p)
}

func (b *bench) apply(change func(*settingchange.Settings) (*settingchange.Plan, error), p kubesettings.Program) (push.NodeResult, error) {
	b.t.Helper()
	plan, err := change(b.read(p))
	if err != nil {
		return push.NodeResult{}, err
	}
	return plan.Apply(b.t.Context(), b.Node.Node, b.doc, push.Options{Holder: "tester"}, ui.Discard{})
}

func (b *bench) line(service string) string {
	b.t.Helper()
	reply, err := b.Services.Get(b.t.Context(), &agentv1.GetServiceRequest{Name: service})
	if err != nil {
		b.t.Fatal(err)
	}
	return reply.GetConfig().GetCommandLine()
}

func (b *bench) pid(service string) uint32 {
	b.t.Helper()
	reply, err := b.Services.Get(b.t.Context(), &agentv1.GetServiceRequest{Name: service})
	if err != nil {
		b.t.Fatal(err)
	}
	return reply.GetStatus().GetPid()
}

// A gate goes into the configuration file, whose comments, order, byte order mark and line ends stay. kubelet restarts
// once, and nothing happens the second time.
func TestAGateIsSetInTheFile(t *testing.T) { synctest.Test(t, testAGateIsSetInTheFile) }

func testAGateIsSetInTheFile(t *testing.T) {
	b := newBench(t)
	const text = "\ufeff# ours\r\napiVersion: kubelet.config.k8s.io/v1beta1\r\nkind: KubeletConfiguration   # kubelet's\r\n\r\nmaxPods: 40\r\n"
	b.Put(configFile, []byte(text))
	before := b.pid("kubelet")
	result, err := b.change(kubesettings.Kubelet, "PodAndContainerStatsFromCRI=true")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(b.Get(configFile)), text+"featureGates:\r\n  PodAndContainerStatsFromCRI: true\r\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if result.Result != push.Changed || result.Components[0].Action != push.ActionRestarted ||
		!strings.Contains(result.Components[0].Message, "PodAndContainerStatsFromCRI: not set → true ("+configFile+")") {
		t.Errorf("%s %+v", result.Result, result.Components[0])
	}
	after := b.pid("kubelet")
	if after == before || after == 0 {
		t.Errorf("kubelet's process was %d and is %d", before, after)
	}
	again, err := b.change(kubesettings.Kubelet, "PodAndContainerStatsFromCRI=true")
	if err != nil || again.Result != push.Unchanged || b.pid("kubelet") != after {
		t.Errorf("the second time: %s, %v", again.Result, err)
	}
	if _, err := b.change(kubesettings.Kubelet, "-PodAndContainerStatsFromCRI="); err != nil || string(b.Get(configFile)) != text {
		t.Errorf("unset: %q, %v", b.Get(configFile), err)
	}
}

// A flag wins over the file, so the flag changes, letter for letter, and the rest of the command line stays.
func TestAGateIsSetWhereItIs(t *testing.T) { synctest.Test(t, testAGateIsSetWhereItIs) }

func testAGateIsSetWhereItIs(t *testing.T) {
	b := newBench(t)
	line := b.line("kubelet")
	with := func(gates string) string {
		return strings.Replace(line, " --cgroups", " --feature-gates="+gates+"  --cgroups", 1)
	}
	b.register("kubelet", with("NodeLogQuery=true,PodAndContainerStatsFromCRI=false"))
	b.Put(configFile, []byte(header+"featureGates: {PodAndContainerStatsFromCRI: true}\n"))
	if _, err := b.change(kubesettings.Kubelet, "PodAndContainerStatsFromCRI=true"); err != nil {
		t.Fatal(err)
	}
	if got, want := b.line("kubelet"), with("NodeLogQuery=true,PodAndContainerStatsFromCRI=true"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if _, err := b.change(kubesettings.Kubelet, "-PodAndContainerStatsFromCRI=", "-NodeLogQuery="); err != nil {
		t.Fatal(err)
	}
	if got := b.line("kubelet"); got != strings.Replace(with(""), " --feature-gates=", "", 1) {
		t.Errorf("%s", got)
	}
	if got := string(b.Get(configFile)); got != header {
		t.Errorf("%q", got)
	}
}

func (b *bench) register(service, line string) {
	b.t.Helper()
	if _, err := b.Services.Configure(b.t.Context(), &agentv1.ServiceConfig{Name: service, CommandLine: line}); err != nil {
		b.t.Fatal(err)
	}
}

// kube-proxy without a file has its gates on the command line; with one, flags are ignored and the file has them.
func TestGatesOfKubeProxy(t *testing.T) { synctest.Test(t, testGatesOfKubeProxy) }

func testGatesOfKubeProxy(t *testing.T) {
	b := newBench(t)
	line := b.line("kube-proxy")
	if _, err := b.change(kubesettings.KubeProxy, "WinDSR=true", "NFTablesProxyMode=true"); err != nil {
		t.Fatal(err)
	}
	if got := b.line("kube-proxy"); got != line+" --feature-gates=WinDSR=true,NFTablesProxyMode=true" {
		t.Errorf("%s", got)
	}
	const file = `C:\k\proxy.yaml`
	b.Put(file, []byte("apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"))
	b.register("kube-proxy", line+` --config=C:\k\proxy.yaml --feature-gates=WinDSR=true`)
	if _, err := b.change(kubesettings.KubeProxy, "WinDSR=true", "winkernel.enableDSR: true"); err != nil {
		t.Fatal(err)
	}
	if got := string(b.Get(file)); !strings.HasSuffix(got, "featureGates:\n  WinDSR: true\nwinkernel:\n  enableDSR: true\n") {
		t.Errorf("%q", got)
	}
	if _, err := b.change(kubesettings.KubeProxy, "-WinDSR="); err != nil {
		t.Fatal(err)
	}
	if got := b.line("kube-proxy"); got != line+` --config=C:\k\proxy.yaml` {
		t.Errorf("%s", got)
	}
}

// A setting that the version does not take is refused before anything is touched, with the name and the remedy.
func TestWhatTheVersionDoesNotTakeIsRefused(t *testing.T) {
	synctest.Test(t, testWhatTheVersionDoesNotTakeIsRefused)
}

func testWhatTheVersionDoesNotTakeIsRefused(t *testing.T) {
	b := newBench(t)
	pid := b.pid("kubelet")
	for wish, want := range map[string]string{
		"PodAndContainerStatsFromCRl=true":       "set feature gate PodAndContainerStatsFromCRl: kubelet 1.36 has no such gate, and ends with it; did you mean PodAndContainerStatsFromCRI?",
		"Nonsense=true":                          "`swdt kubelet features get` lists those that it has",
		"MemoryManager=true":                     "Kubernetes 1.36 removed it",
		"NodeLogQuery=false":                     "it is locked to true in kubelet 1.36, since 1.36",
		"maxPodz: 40":                            "set field maxPodz: kubelet 1.36 has no field maxPodz; did you mean maxPods?",
		"maxPods: many":                          "set maxPods: the value is a text; write a whole number",
		"authentication.anonymous.enabld: true":  "did you mean authentication.anonymous.enabled?",
		"userNamespaces: {idsPerPod: 65536}":     "userNamespaces is not supported on Windows",
		"featureGates.NodeSwap: true":            "`swdt kubelet features get`",
		"serverCertificateKeyAlgorithm: ED25519": "kubelet 1.36 has no field",
	} {
		_, err := b.change(kubesettings.Kubelet, wish)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", wish, err, want)
		}
	}
	if got := string(b.Get(configFile)); got != header || b.pid("kubelet") != pid {
		t.Errorf("the node was touched: %q", got)
	}
}

// A gate that needs another one, which is off, ends kubelet.
func TestAGateThatNeedsAnother(t *testing.T) { synctest.Test(t, testAGateThatNeedsAnother) }

func testAGateThatNeedsAnother(t *testing.T) {
	b := newBench(t)
	table, err := kubesettings.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range table.Gates() {
		g := table.Gate(name, 36)
		for _, needed := range table.Needs(name, 36) {
			if other := table.Gate(needed, 36); !g.Known || g.Locked || other.Locked {
				continue
			}
			_, err := b.change(kubesettings.Kubelet, name+"=true", needed+"=false")
			var refused *settingchange.RefusedError
			if !errors.As(err, &refused) {
				t.Errorf("%s with %s off: %v", name, needed, err)
			}
			return
		}
	}
	t.Fatal("no gate needs another one")
}

// A setting with which kubelet does not come up is undone by the node, byte for byte.
func TestASettingThatCrashesKubeletIsRolledBack(t *testing.T) {
	synctest.Test(t, testASettingThatCrashesKubeletIsRolledBack)
}

func testASettingThatCrashesKubeletIsRolledBack(t *testing.T) {
	b := newBench(t)
	const text = "# ours\n" + header + "maxPods: 40"
	b.Put(configFile, []byte(text))
	line := b.line("kubelet") + " --config-dir=C:\\k\\none" // kubelet starts anew only with the change
	b.register("kubelet", line)
	_, err := b.change(kubesettings.Kubelet, "maxPods: 50")
	var back *push.RolledBackError
	if !errors.As(err, &back) || !strings.Contains(err.Error(), "kubelet: ") {
		t.Fatalf("%v", err)
	}
	if got := string(b.Get(configFile)); got != text {
		t.Errorf("%q", got)
	}
	if b.line("kubelet") != line {
		t.Errorf("%s", b.line("kubelet"))
	}
}

// kubelet as sig-windows-tools starts it (kubeadm/scripts/StartKubelet.ps1, with other values): nssm runs a script, which
// reads kubeadm-flags.env. Settings that an upgrade would break go out of both; a new gate goes into the configuration file.
func TestAKubeletThatAScriptStarts(t *testing.T) { synctest.Test(t, testAKubeletThatAScriptStarts) }

func testAKubeletThatAScriptStarts(t *testing.T) {
	b := newBench(t)
	const (
		script = `C:\k\StartKubelet.ps1`
		flags  = `C:\var\lib\kubelet\kubeadm-flags.env`
		text   = "$words = (Get-Content C:/var/lib/kubelet/kubeadm-flags.env).Trim('\"')\r\n# the pods\r\n" +
			"$line = \"C:\\k\\kubelet.exe $words --config=/var/lib/kubelet/config.yaml --feature-gates=MemoryManager=true --v=2\"\r\nInvoke-Expression $line\r\n"
	)
	b.Put(script, []byte(text))
	b.Put(flags, []byte("KUBELET_KUBEADM_ARGS=\"--pod-infra-container-image=registry.k8s.io/pause:3.10 --node-ip=192.0.2.7\"\n"))
	b.startBy(script)

	s := b.read(kubesettings.Kubelet)
	facts := b.facts()
	table, target := b.target("1.36")
	removals, left := upgradecheck.Removals(upgradecheck.Check(table, target, facts))
	var wishes []settingchange.Wish
	for _, r := range removals {
		if r.Program == kubesettings.Kubelet {
			wishes = append(wishes, settingchange.Wish{Kind: r.Kind, Name: r.Name, Unset: true})
		}
	}
	if len(wishes) != 2 {
		t.Errorf("%+v, left %+v", removals, left)
	}
	wishes = append(wishes, settingchange.Wish{Kind: upgradecheck.GateSetting, Name: "PodAndContainerStatsFromCRI", Value: "true"})
	plan, err := s.Plan(wishes)
	if err != nil {
		t.Fatal(err)
	}
	result, err := plan.Apply(t.Context(), b.Node.Node, b.doc, push.Options{Holder: "tester"}, ui.Discard{})
	if err != nil || !strings.Contains(result.Components[0].Message, "stays stopped") {
		t.Errorf("%+v, %v", result.Components[0], err)
	}
	for path, want := range map[string]string{
		script:     strings.Replace(text, " --feature-gates=MemoryManager=true", "", 1),
		flags:      "KUBELET_KUBEADM_ARGS=\"--node-ip=192.0.2.7\"\n",
		configFile: header + "featureGates:\n  PodAndContainerStatsFromCRI: true\n",
	} {
		if got := string(b.Get(path)); got != want {
			t.Errorf("%s: %q\nwant %q", path, got, want)
		}
	}
}

func (b *bench) facts() upgradecheck.Facts {
	b.t.Helper()
	table, _ := b.target("1.36")
	facts, err := nodesettings.Read(b.t.Context(), b.Node.Node, nodesettings.Options{Name: "win-1"}, table)
	if err != nil {
		b.t.Fatal(err)
	}
	return facts
}

func (b *bench) target(kubernetes string) (*kubesettings.Table, upgradecheck.Target) {
	b.t.Helper()
	table, err := kubesettings.Load()
	if err != nil {
		b.t.Fatal(err)
	}
	target, err := upgradecheck.ParseTarget(table, kubernetes, "", "")
	if err != nil {
		b.t.Fatal(err)
	}
	return table, target
}

// undo puts the files back byte for byte, and a second undo puts the change back.
func TestUndo(t *testing.T) { synctest.Test(t, testUndo) }

func testUndo(t *testing.T) {
	b := newBench(t)
	const text = "# ours\n" + header + "maxPods:   40"
	b.Put(configFile, []byte(text))
	undo := func(s *settingchange.Settings) (*settingchange.Plan, error) { return s.Undo(t.Context(), b.Node.Node) }
	var none *settingchange.NothingToUndoError
	if _, err := b.apply(undo, kubesettings.Kubelet); !errors.As(err, &none) {
		t.Errorf("nothing to undo: %v", err)
	}
	if _, err := b.change(kubesettings.Kubelet, "maxPods: 50", "PodAndContainerStatsFromCRI=true"); err != nil {
		t.Fatal(err)
	}
	changed := string(b.Get(configFile))
	l, err := b.read(kubesettings.Kubelet).ChangedFields(t.Context(), b.Node.Node)
	if err != nil || len(l.Settings) != 2 || l.Settings[1].Before != "40" || l.Settings[1].Value != "50" {
		t.Errorf("the difference: %+v, %v", l.Settings, err)
	}
	for _, want := range []string{text, changed} {
		if _, err := b.apply(undo, kubesettings.Kubelet); err != nil || string(b.Get(configFile)) != want {
			t.Errorf("%q, want %q: %v", b.Get(configFile), want, err)
		}
	}
	past, err := push.History(t.Context(), b.Node.Node, b.doc, nil, nil)
	if err != nil || len(past) != 3 || past[0].Components[0].Name != "kubelet" || past[0].Components[1].Destination != configFile {
		t.Errorf("the history: %+v, %v", past, err)
	}
}

// undo takes back the last change alone: a file of an earlier change stays, and what was changed by hand since is not lost.
func TestUndoIsOfTheLastChange(t *testing.T) { synctest.Test(t, testUndoIsOfTheLastChange) }

func testUndoIsOfTheLastChange(t *testing.T) {
	b := newBench(t)
	const dropIn = `C:\k\conf.d\10-own.conf`
	b.Put(dropIn, []byte(header+"maxPods: 20\n"))
	b.register("kubelet", b.line("kubelet")+` --config-dir=C:\k\conf.d`)
	undo := func(s *settingchange.Settings) (*settingchange.Plan, error) { return s.Undo(t.Context(), b.Node.Node) }
	for _, wish := range []string{"maxPods: 30", "clusterDomain: example.com"} {
		if _, err := b.change(kubesettings.Kubelet, wish); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.apply(undo, kubesettings.Kubelet); err != nil || string(b.Get(configFile)) != header ||
		!strings.HasSuffix(string(b.Get(dropIn)), "maxPods: 30\n") {
		t.Errorf("%q, %q, %v", b.Get(configFile), b.Get(dropIn), err)
	}
	const byHand = header + "clusterDomain: by.hand\n"
	b.Put(configFile, []byte(byHand))
	var none *settingchange.NothingToUndoError
	if _, err := b.apply(undo, kubesettings.Kubelet); !errors.As(err, &none) || !strings.Contains(err.Error(), "was changed since push 3") ||
		string(b.Get(configFile)) != byHand {
		t.Errorf("%q, %v", b.Get(configFile), err)
	}
}

// A rollback to a change of settings puts its file back, and restarts the program that reads it.
func TestRollbackToAChange(t *testing.T) { synctest.Test(t, testRollbackToAChange) }

func testRollbackToAChange(t *testing.T) {
	b := newBench(t)
	for _, wish := range []string{"maxPods: 30", "maxPods: 40"} {
		if _, err := b.change(kubesettings.Kubelet, wish); err != nil {
			t.Fatal(err)
		}
	}
	pid := b.pid("kubelet")
	result, err := push.RollbackTo(t.Context(), b.Node.Node, b.doc, push.Target{Number: 1}, push.Options{Holder: "tester"}, ui.Discard{})
	if err != nil || string(b.Get(configFile)) != header+"maxPods: 30\n" {
		t.Fatalf("%q, %v", b.Get(configFile), err)
	}
	if b.pid("kubelet") == pid || len(result.Components) != 2 || result.Components[1].Action != push.ActionRestarted {
		t.Errorf("kubelet was not restarted: %+v", result.Components)
	}
}

// A field that a flag sets changes in the flag, which wins.
func TestAFieldThatAFlagSets(t *testing.T) { synctest.Test(t, testAFieldThatAFlagSets) }

func testAFieldThatAFlagSets(t *testing.T) {
	b := newBench(t)
	line := b.line("kubelet")
	b.register("kubelet", line+" --max-pods=110")
	b.Put(configFile, []byte(header+"maxPods: 20\n"))
	if _, err := b.change(kubesettings.Kubelet, "maxPods: 40"); err != nil {
		t.Fatal(err)
	}
	if got := b.line("kubelet"); got != line+" --max-pods=40" || !strings.Contains(string(b.Get(configFile)), "maxPods: 20") {
		t.Errorf("%s\n%s", got, b.Get(configFile))
	}
	if _, err := b.change(kubesettings.Kubelet, "-maxPods"); err != nil {
		t.Fatal(err)
	}
	if got := b.line("kubelet"); got != line || string(b.Get(configFile)) != header {
		t.Errorf("%s\n%s", got, b.Get(configFile))
	}
}

// A trace has changed the command line, and its end restores it.
func TestATracedCommandLineIsLeftAlone(t *testing.T) {
	synctest.Test(t, testATracedCommandLineIsLeftAlone)
}

func testATracedCommandLineIsLeftAlone(t *testing.T) {
	b := newBench(t)
	line := b.line("kubelet")
	b.register("kubelet", line+" --max-pods=110 --v=4")
	record, err := tracerecord.Record{Services: map[string]tracerecord.Service{"kubelet": {On: true,
		CommandLine: tracerecord.Change{Before: line + " --max-pods=110", After: line + " --max-pods=110 --v=4"}}}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	b.Put(layout.TraceRecord, record)
	_, err = b.change(kubesettings.Kubelet, "maxPods: 40")
	var on *tracerecord.OnError
	if !errors.As(err, &on) || b.line("kubelet") != line+" --max-pods=110 --v=4" {
		t.Errorf("%v, %s", err, b.line("kubelet"))
	}
}

// An ordinary user may make files in folders of the drive. A file of such a user, or a link in its place, is not
// changed and not made the settings of kubelet with a restart.
func TestAFileOfAnOrdinaryUserIsNotChanged(t *testing.T) {
	synctest.Test(t, testAFileOfAnOrdinaryUserIsNotChanged)
}

func testAFileOfAnOrdinaryUserIsNotChanged(t *testing.T) {
	b := newBench(t)
	const planted = header + "staticPodPath: C:\\evil\n"
	if err := b.Files.Remove(configFile); err != nil {
		t.Fatal(err)
	}
	user := b.Machine.SpawnAs("evil.exe", simulated.User)
	file, err := user.Platform.Files.Create(configFile, platform.CreateTruncate)
	if err == nil {
		_, err = file.Write([]byte(planted))
	}
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	b.isUnsafe(planted, simulated.User)
}

func TestALinkIsNotChanged(t *testing.T) { synctest.Test(t, testALinkIsNotChanged) }

func testALinkIsNotChanged(t *testing.T) {
	b := newBench(t)
	const secret = "C:\\secret.yaml"
	b.Put(secret, []byte(header+"maxPods: 9\n"))
	if err := errors.Join(b.Files.Remove(configFile), b.Machine.Link(configFile, secret)); err != nil {
		t.Fatal(err)
	}
	b.isUnsafe(header+"maxPods: 9\n", "it is a link")
}

func (b *bench) isUnsafe(content, why string) {
	b.t.Helper()
	pid := b.pid("kubelet")
	_, err := b.change(kubesettings.Kubelet, "maxPods: 40")
	var unsafe *settingchange.UnsafeError
	if !errors.As(err, &unsafe) || !strings.Contains(err.Error(), why) {
		b.t.Errorf("%v, want %s", err, why)
	}
	if string(b.Get(configFile)) != content || b.pid("kubelet") != pid {
		b.t.Errorf("the node was touched: %q", b.Get(configFile))
	}
}

// A node may answer with anything: names and values are bounded by the readers, and printed without control characters.
func TestTheTextOfAHostileNode(t *testing.T) { synctest.Test(t, testTheTextOfAHostileNode) }

func testTheTextOfAHostileNode(t *testing.T) {
	b := newBench(t)
	b.Put(configFile, []byte(header+"clusterDomain: \"a\\e[31mb\"\n\"x\\e]0;y\\a\": 1\nfeatureGates: {\"Z\\e[2J\": true}\n"))
	var out bytes.Buffer
	for _, list := range []func(*settingchange.Settings) (settingchange.Listing, error){
		func(s *settingchange.Settings) (settingchange.Listing, error) { return s.Fields(nil) },
		func(s *settingchange.Settings) (settingchange.Listing, error) { return s.ChangedGates() },
	} {
		l, err := list(b.read(kubesettings.Kubelet))
		if err != nil {
			t.Fatal(err)
		}
		report := settingchange.NewReport([]fleet.Result[settingchange.Listing]{{Document: b.doc, Value: l}})
		if err := report.WriteText(ui.NewPage(&out, false)); err != nil {
			t.Fatal(err)
		}
	}
	if text := out.String(); strings.ContainsAny(text, "\x1b\a") || !strings.Contains(text, "clusterDomain") || !strings.Contains(text, "[2J") {
		t.Errorf("%q", text)
	}
}

// A file of millions of aliases, which a hostile node may have, ends in an error.
func TestAFileOfAliases(t *testing.T) { synctest.Test(t, testAFileOfAliases) }

func testAFileOfAliases(t *testing.T) {
	b := newBench(t)
	text := header + "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c <= 'j'; c++ {
		text += fmt.Sprintf("%c: &%c [*%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c]\n", c, c, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1)
	}
	b.Put(configFile, []byte(text))
	if _, err := b.change(kubesettings.Kubelet, "maxPods: 40"); err == nil {
		t.Error("no error")
	}
}

// Without a version that the table has, only removal is possible.
func TestAnUnknownVersion(t *testing.T) { synctest.Test(t, testAnUnknownVersion) }

func testAnUnknownVersion(t *testing.T) {
	n := nodetest.Start(t, "win-1", simulated.Options{Hostname: "WIN-1", Preset: simulated.Node})
	b := &bench{t: t, Node: n}
	b.doc.Node.Metadata.Name = "win-1"
	b.doc.Node.Spec.Kubernetes.Provisioners = []v1alpha1.Provisioner{{Name: "kubelet", Destination: `C:\k\kubelet.exe`}}
	v1alpha1.SetDefaults(&b.doc.Node)
	b.Put(configFile, []byte(header+"featureGates: {Old: true}\n"))
	if _, err := b.change(kubesettings.Kubelet, "PodAndContainerStatsFromCRI=true"); err == nil ||
		!strings.Contains(err.Error(), "this swdt knows those of 1.33 to 1.38") {
		t.Errorf("%v", err)
	}
	if _, err := b.change(kubesettings.Kubelet, "-Old="); err != nil || string(b.Get(configFile)) != header {
		t.Errorf("%q, %v", b.Get(configFile), err)
	}
}
