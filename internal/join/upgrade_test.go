package join_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/join"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/sandbox/apiserver"
	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

const (
	configYAML = `C:\var\lib\kubelet\config.yaml`
	kubeletExe = `C:\k\kubelet.exe`
)

// kubeletConfigMap replaces the cluster's kubelet configuration, with these lines at its end.
func (l *lab) kubeletConfigMap(dns, more string) {
	l.t.Helper()
	text := strings.NewReplacer("ADDRESS", dns, "MORE", more).Replace(`
apiVersion: v1
kind: ConfigMap
metadata: {name: kubelet-config, namespace: kube-system}
data:
  kubelet: |
    apiVersion: kubelet.config.k8s.io/v1beta1
    kind: KubeletConfiguration
    authentication: {x509: {clientCAFile: /etc/kubernetes/pki/ca.crt}}
    clusterDNS: [ADDRESS]
    resolvConf: /run/systemd/resolve/resolv.conf
    staticPodPath: /etc/kubernetes/manifests
    MORE
`)
	if err := l.control.Plant(text); err != nil {
		l.t.Fatal(err)
	}
}

// joinedAt joins the machine with kubelet 1.35.4 and a gate that 1.36 lacks.
func joinedAt(t *testing.T) *lab {
	t.Helper()
	l := newLab(t)
	l.kubeletConfigMap("10.96.0.10", "featureGates: {MemoryManager: true}")
	l.spec().Version = "1.35.4"
	l.mustJoin()
	l.spec().Version = "1.36.3"
	return l
}

func (l *lab) upgrade(change ...func(*join.Options)) (plan.Result, error) {
	l.t.Helper()
	o := l.options()
	o.Drain = &cluster.DrainOptions{}
	for _, c := range change {
		c(&o)
	}
	return join.Upgrade(l.t.Context(), l.Node.Node, l.doc, o, l.story)
}

func dryRun(o *join.Options) { o.DryRun = true }

// kubeletLine returns the command line of the service kubelet.
func (l *lab) kubeletLine() string {
	l.t.Helper()
	reply, err := l.Services.Get(l.t.Context(), &agentv1.GetServiceRequest{Name: "kubelet"})
	if err != nil {
		l.t.Fatal(err)
	}
	return reply.GetConfig().GetCommandLine()
}

// byHand adds a flag to kubelet's service and a field to its configuration.
func (l *lab) byHand() {
	l.t.Helper()
	config := &agentv1.ServiceConfig{Name: "kubelet", CommandLine: l.kubeletLine() + " --v=4"}
	if _, err := l.Services.Configure(l.t.Context(), config); err != nil {
		l.t.Fatal(err)
	}
	l.put(configYAML, l.get(configYAML)+"maxPods: 40\n")
}

func expectIn(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in:\n%s", part, text)
		}
	}
}

func TestUpgrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := joinedAt(t)
		l.byHand()
		l.kubeletConfigMap("10.96.0.53", "")
		before := l.get(configYAML)

		result, err := l.upgrade(dryRun)
		if err != nil {
			t.Fatal(err)
		}
		text := table(result.Steps)
		expectIn(t, text, "drain the node", "kubelet 1.35.4 → 1.36.3", "kubeadm", `clusterDNS: ["10.96.0.10"] → ["10.96.0.53"]`,
			"featureGates.MemoryManager: true → not set", "config.yaml has maxPods: 40", "kubelet runs with --v=4")
		if l.get(configYAML) != before || l.isReady().KubeletVersion != "v1.35.4" {
			t.Fatal("the dry run has changed the node")
		}

		if result, err = l.upgrade(); err != nil {
			t.Fatalf("%v\n%s", err, table(result.Steps))
		}
		if n := l.isReady(); n.KubeletVersion != "v1.36.3" || n.Cordoned {
			t.Errorf("the node has kubelet %s, cordoned: %v", n.KubeletVersion, n.Cordoned)
		}
		expectIn(t, l.get(configYAML), "10.96.0.53", "maxPods: 40", `C:\etc\kubernetes\pki\ca.crt`)
		expectIn(t, l.kubeletLine(), "--v=4")
		if strings.Contains(l.get(configYAML), "MemoryManager") {
			t.Error("the gate is still there")
		}

		again, err := l.upgrade()
		if err != nil || len(changed(again.Steps)) > 0 {
			t.Errorf("a second run: %v\n%s", err, table(again.Steps))
		}
		expectIn(t, table(again.Steps), "config.yaml has maxPods: 40", "--v=4")
	})
}

// A setting with which a new program ends is found before anything is changed.
func TestAnUpgradeWithASettingThatEndsAProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := joinedAt(t)
		for name, test := range map[string]struct {
			spoil func()
			want  []string
		}{
			"a gate of the cluster": {func() { l.kubeletConfigMap("10.96.0.53", "featureGates: {MemoryManager: true}") },
				[]string{"Kubernetes 1.36 removed the feature gate MemoryManager", "seen: config.yaml: featureGates.MemoryManager: true"}},
			"a field by hand": {func() { l.put(configYAML, l.get(configYAML)+"userNamespaces: {idsPerPod: 65536}\n") },
				[]string{"the field userNamespaces is not supported on Windows"}},
			"a flag by hand": {func() {
				config := &agentv1.ServiceConfig{Name: "kubelet", CommandLine: l.kubeletLine() + " --feature-gates=NodeLogQuery=false"}
				if _, err := l.Services.Configure(l.t.Context(), config); err != nil {
					t.Fatal(err)
				}
			}, []string{"the feature gate NodeLogQuery is locked to true since 1.36", "seen: service kubelet: --feature-gates=NodeLogQuery=false"}},
		} {
			config, line := l.get(configYAML), l.kubeletLine()
			test.spoil()
			_, err := l.upgrade()
			if refused, ok := errors.AsType[*join.UpgradeRefusedError](err); !ok || l.isReady().KubeletVersion != "v1.35.4" {
				t.Errorf("%s: the error is %v, a %T", name, err, refused)
				continue
			}
			expectIn(t, err.Error(), test.want...)
			l.kubeletConfigMap("10.96.0.53", "")
			l.put(configYAML, config)
			if _, err := l.Services.Configure(l.t.Context(), &agentv1.ServiceConfig{Name: "kubelet", CommandLine: line}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := l.upgrade(dryRun); err != nil {
			t.Errorf("without these settings: %v", err)
		}
	})
}

// A policy that takes effect on Windows with the new version is a warning, whichever of kubelet's settings has it.
func TestAnUpgradeThatTurnsAPolicyOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		control := newControl(t, apiserver.Options{NodeGrace: 3 * time.Second, Version: "v1.38.0"})
		l := newNodeOf(t, control, "win1")
		l.kubeletConfigMap("10.96.0.10", "cpuManagerPolicy: static")
		l.spec().Version = "1.37.0"
		l.mustJoin()
		config := &agentv1.ServiceConfig{Name: "kubelet", CommandLine: l.kubeletLine() + " --memory-manager-policy=Static"}
		if _, err := l.Services.Configure(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		l.spec().Version = "1.38.0"
		result, err := l.upgrade(dryRun)
		if err != nil {
			t.Fatal(err)
		}
		var seen []string
		for _, p := range result.Problems {
			if p.Severity == finding.Warning && strings.Contains(p.What, "WindowsCPUAndMemoryAffinity") {
				seen = append(seen, p.Evidence)
			}
		}
		expectIn(t, strings.Join(seen, "\n"), "config.yaml: cpuManagerPolicy: static", "service kubelet: --memory-manager-policy=Static")
	})
}

// A configuration that the new kubelet refuses leaves everything as it was, if the node file ignores the check.
func TestAnUpgradeRollsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := joinedAt(t)
		l.byHand()
		l.spec().Join.IgnorePreflightErrors = []string{"gate-unknown"}
		l.kubeletConfigMap("10.96.0.53", "featureGates: {MemoryManager: true}")
		config, record, kubelet, line := l.get(configYAML), l.get(layout.KubeletRecord), l.get(kubeletExe), l.kubeletLine()
		result, err := l.upgrade()
		if back, ok := errors.AsType[*push.RolledBackError](err); !ok || !back.Complete() {
			t.Fatalf("the error is %v\n%s", err, table(result.Steps))
		}
		expectIn(t, err.Error(), "unrecognized feature gate: MemoryManager")
		if l.get(configYAML) != config || l.get(layout.KubeletRecord) != record || l.get(kubeletExe) != kubelet ||
			l.kubeletLine() != line {
			t.Error("something is not as before")
		}
		if n := l.isReady(); n.KubeletVersion != "v1.35.4" || n.Cordoned {
			t.Errorf("the node has kubelet %s, cordoned: %v", n.KubeletVersion, n.Cordoned)
		}
		l.kubeletConfigMap("10.96.0.53", "") // the cluster is mended, and the next run goes through
		if result, err := l.upgrade(); err != nil {
			t.Fatalf("%v\n%s", err, table(result.Steps))
		}
	})
}

// A kubelet that starts and is not healthy is no upgrade either.
func TestAnUpgradeToAnUnhealthyKubelet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := joinedAt(t)
		l.kubeletConfigMap("10.96.0.53", "")
		config, line := l.get(configYAML), l.kubeletLine()
		l.programs.fault["kubelet"] = simulated.Unhealthy
		_, err := l.upgrade()
		if back, ok := errors.AsType[*push.RolledBackError](err); !ok || !back.Complete() {
			t.Fatalf("the error is %v", err)
		}
		if l.get(configYAML) != config || l.kubeletLine() != line {
			t.Error("the configuration is not as before")
		}
		l.isReady()
	})
}

// The cluster's configuration reaches the node without another version.
func TestAnUpgradeOfTheConfigurationAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.kubeletConfigMap("10.96.0.10", "")
		l.mustJoin()
		nothingToUpgrade(t, l)
		l.kubeletConfigMap("10.96.0.53", "maxPods: 90")
		pid, runtime := l.pid("kubelet"), l.pid("containerd")
		result, err := l.upgrade()
		if err != nil {
			t.Fatalf("%v\n%s", err, table(result.Steps))
		}
		expectIn(t, table(result.Steps), "clusterDNS", "maxPods: not set → 90")
		expectIn(t, l.get(configYAML), "10.96.0.53", "maxPods: 90")
		if l.pid("kubelet") == pid || l.pid("containerd") != runtime {
			t.Error("not kubelet alone was restarted")
		}
		nothingToUpgrade(t, l)
		joined, err := l.join()
		nothing(t, joined, err)
	})
}

func nothingToUpgrade(t *testing.T, l *lab) {
	t.Helper()
	result, err := l.upgrade()
	nothing(t, result.Steps, err)
}

// A node of an older swdt has no record: what differs from the cluster is shown, and goes.
func TestAnUpgradeWithoutARecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := joinedAt(t)
		l.byHand()
		l.kubeletConfigMap("10.96.0.53", "")
		if err := l.Machine.Process("user").Files.Remove(layout.KubeletRecord); err != nil {
			t.Fatal(err)
		}
		result, err := l.upgrade()
		if err != nil {
			t.Fatalf("%v\n%s", err, table(result.Steps))
		}
		expectIn(t, table(result.Steps), "unknown", "maxPods: 40 → not set")
		expectIn(t, l.kubeletLine(), "--v=4")
		nothingToUpgrade(t, l)
	})
}

func TestAJoinPointsToTheUpgrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := joinedAt(t)
		results, err := l.join()
		if err == nil || len(changed(results)) > 0 && l.isReady().KubeletVersion != "v1.35.4" {
			t.Fatalf("%v\n%s", err, table(results))
		}
		expectIn(t, err.Error(), "kubelet 1.35.4", "`swdt upgrade node`")
	})
}

func TestUpgradesThatAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := joinedAt(t)
		for version, why := range map[string]string{
			"1.37.0": "kubelet is newer than the API server", "1.34.9": "behind the node", "1.32.0": "behind the API server",
		} {
			l.spec().Version = version
			_, err := l.upgrade()
			if _, ok := errors.AsType[*join.UpgradeRefusedError](err); !ok {
				t.Fatalf("%s: the error is %v", version, err)
			}
			expectIn(t, err.Error(), why)
		}
		if l.isReady().KubeletVersion != "v1.35.4" {
			t.Error("the node was changed")
		}
	})
}

// Reset leaves none of the upgrade's files.
func TestResetAfterAnUpgrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := joinedAt(t)
		l.kubeletConfigMap("10.96.0.53", "")
		if result, err := l.upgrade(); err != nil {
			t.Fatalf("%v\n%s", err, table(result.Steps))
		}
		if results, err := l.resetWith(resetAll(l)); err != nil {
			t.Fatalf("%v\n%s", err, table(results))
		}
		for _, path := range []string{layout.KubeletRecord, layout.Previous(layout.KubeletRecord), kubeletExe,
			layout.Previous(kubeletExe), configYAML, layout.Previous(configYAML), layout.KubeadmDryRun} {
			if l.get(path) != "" {
				t.Errorf("%s is left", path)
			}
		}
	})
}

// A kube-proxy that is a service is upgraded along, where it is.
func TestAnUpgradeOfKubeProxy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := joinedAt(t)
		l.kubeletConfigMap("10.96.0.10", "")
		const path = `C:\proxy\kube-proxy.exe`
		l.put(path, string(simulated.Binary(simulated.BinarySpec{Name: "kube-proxy", Version: "v1.35.4"})))
		ctx := t.Context()
		if _, err := l.Services.Create(ctx, &agentv1.ServiceConfig{Name: "kube-proxy", CommandLine: path + " --v=2",
			StartType: agentv1.StartType_START_TYPE_AUTO}); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Services.Start(ctx, &agentv1.StartServiceRequest{Name: "kube-proxy"}); err != nil {
			t.Fatal(err)
		}
		pid := l.pid("kube-proxy")
		result, err := l.upgrade()
		if err != nil {
			t.Fatalf("%v\n%s", err, table(result.Steps))
		}
		expectIn(t, table(result.Steps), "kube-proxy 1.35.4 → 1.36.3")
		if l.pid("kube-proxy") == pid || l.get(layout.Previous(path)) == "" {
			t.Error("kube-proxy was not replaced")
		}
		nothingToUpgrade(t, l)
	})
}
