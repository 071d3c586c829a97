package join_test

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/join"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// proxyLab is a machine in a cluster whose kube-proxy is a service.
type proxyLab struct {
	*lab
	network, hnsNetwork string
	sourceVIP           string // of the overlay network; "": it has none yet
}

const proxyAccount = `apiVersion: v1
kind: ServiceAccount
metadata: {name: kube-proxy-windows, namespace: kube-system}
---
apiVersion: v1
kind: Secret
metadata:
  name: kube-proxy-windows-token
  namespace: kube-system
  annotations: {kubernetes.io/service-account.name: kube-proxy-windows}
type: kubernetes.io/service-account-token
`

func newProxyLab(t *testing.T) *proxyLab {
	t.Helper()
	l := &proxyLab{lab: newLab(t), network: "calico", hnsNetwork: "Calico", sourceVIP: "192.168.15.130"}
	if err := l.control.Plant(proxyAccount); err != nil {
		t.Fatal(err)
	}
	l.choose(cluster.KubeProxyService)
	// The machine has the feature, so that the join needs no reboot.
	if _, err := l.Node.Node.Features.Set(t.Context(), &agentv1.SetFeatureRequest{Name: "Containers", Enabled: true}); err != nil {
		t.Fatal(err)
	}
	l.Machine.Reboot()
	if err := l.Reconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
	return l
}

// choose records a form of kube-proxy, as swdt network install does.
func (l *proxyLab) choose(form cluster.KubeProxyForm) {
	l.t.Helper()
	choice := cluster.KubeProxyChoice{Form: form, Network: l.network, HNSNetwork: l.hnsNetwork, Server: "https://192.0.2.1:6443"}
	record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: cluster.KubeProxyRecord}, Data: choice.Data()}
	maps := l.cluster.Clientset().CoreV1().ConfigMaps(metav1.NamespaceSystem)
	_ = maps.Delete(l.t.Context(), record.Name, metav1.DeleteOptions{}) // fails if there is none
	if _, err := maps.Create(l.t.Context(), record, metav1.CreateOptions{}); err != nil {
		l.t.Fatal(err)
	}
}

const hnsNetworkFile = simulated.HNSFolder + `\networks\1B5C9C50-5B0B-4B7E-8C5C-0C6E2A1F3D44.json`

// makeNetwork makes the overlay network of the pods in HNS, as Calico does after a join.
func (l *proxyLab) makeNetwork() {
	l.put(hnsNetworkFile, `{"ID":"1B5C9C50-5B0B-4B7E-8C5C-0C6E2A1F3D44","Name":"Calico","Type":"Overlay"}`)
}

func (l *proxyLab) run(change func(*join.Options)) (plan.Result, error) {
	options := l.options()
	options.ReadyTimeout = 3 * time.Minute
	options.FindPodNetwork = func(context.Context, *node.Node, string) (join.PodNetwork, bool, error) {
		if l.get(hnsNetworkFile) == "" {
			return join.PodNetwork{}, false, nil
		}
		return join.PodNetwork{Type: "Overlay", SourceVIP: l.sourceVIP}, true, nil
	}
	if change != nil {
		change(&options)
	}
	return join.Run(l.t.Context(), l.Node.Node, l.doc, options, l.story)
}

func (l *proxyLab) mustRun() []plan.StepResult {
	l.t.Helper()
	result, err := l.run(nil)
	if err != nil {
		l.t.Fatalf("%v\n%s\n%s", err, table(result.Steps), l.story)
	}
	return result.Steps
}

// commandLine returns that of the service kube-proxy; "" if there is no such service.
// commandLine returns the command line of the service; "" if there is none.
func (l *proxyLab) commandLine() string {
	l.t.Helper()
	is, err := l.Services.Get(l.t.Context(), &agentv1.GetServiceRequest{Name: "kube-proxy"})
	if err != nil && !errors.Is(err, fault.ErrNoService) {
		l.t.Fatal(err)
	}
	return is.GetConfig().GetCommandLine()
}

func (l *proxyLab) label() string {
	l.t.Helper()
	n, err := l.cluster.Node(l.t.Context(), "win1")
	if err != nil {
		l.t.Fatal(err)
	}
	return n.Labels[cluster.KubeProxyLabel]
}

const proxyFlags = `C:\k\kube-proxy.exe --windows-service --v=2 --proxy-mode=kernelspace --hostname-override=win1 ` +
	`--kubeconfig=C:\etc\kubernetes\kube-proxy.conf --network-name=Calico --enable-dsr=true --source-vip=192.168.15.130`

// The join waits for the pod network, which exists only some time after kubelet runs, and for its source address. The
// service then has the flags and credentials that it needs, and a second run finds nothing to do.
func TestKubeProxyBecomesAServiceOnceHNSHasTheNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newProxyLab(t)
		l.sourceVIP = ""
		first, err := l.run(func(o *join.Options) { o.DryRun = true })
		if err != nil || !strings.Contains(table(first.Steps), "register the service kube-proxy, once HNS has the network Calico") ||
			!strings.Contains(table(first.Steps), "kube-proxy.exe") {
			t.Fatalf("a dry run: %v\n%s", err, table(first.Steps))
		}
		go func() {
			time.Sleep(time.Minute)
			l.makeNetwork()
			time.Sleep(time.Minute)
			l.sourceVIP = "192.168.15.130"
		}()
		began := time.Now()
		l.mustRun()
		if waited := time.Since(began); waited < 2*time.Minute {
			t.Errorf("it did not wait for the source address: %s", waited)
		}
		if got := l.commandLine(); !strings.HasSuffix(got, proxyFlags) || !strings.HasPrefix(got, `C:\k\kube-log-runner.exe --log-file=`) {
			t.Errorf("the service runs %s\nwant … %s", got, proxyFlags)
		}
		if l.pid("kube-proxy") == 0 || l.label() != "service" {
			t.Errorf("process %d, label %q", l.pid("kube-proxy"), l.label())
		}
		l.checkKubeconfig()
		again, err := l.run(nil)
		nothing(t, again.Steps, err)
	})
}

// checkKubeconfig checks that kube-proxy acts as its own account.
func (l *proxyLab) checkKubeconfig() {
	l.t.Helper()
	var conf struct {
		Clusters []struct {
			Cluster struct {
				Server string
				CA     []byte `json:"certificate-authority-data"`
			}
		}
		Users []struct{ User struct{ Token string } }
	}
	if err := yaml.Unmarshal([]byte(l.get(`C:\etc\kubernetes\kube-proxy.conf`)), &conf); err != nil {
		l.t.Fatal(err)
	}
	secret, _ := l.control.Object("secrets", "kube-system", "kube-proxy-windows-token")
	data := secret["data"].(map[string]any)
	token, err := base64.StdEncoding.DecodeString(data["token"].(string))
	if err != nil || len(conf.Clusters) != 1 || len(conf.Users) != 1 || conf.Users[0].User.Token != string(token) ||
		string(conf.Clusters[0].Cluster.CA) != string(l.control.CA()) || conf.Clusters[0].Cluster.Server != "https://192.0.2.1:6443" {
		l.t.Errorf("kubeconfig %+v, %v", conf, err)
	}
}

// A changed source address changes the service; a restart of HNS and the end of its process bring kube-proxy back.
func TestKubeProxyServiceComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newProxyLab(t)
		l.makeNetwork()
		const program = `C:\Windows\hns.exe`
		l.put(program, string(simulated.Binary(simulated.BinarySpec{Name: "hns", Version: "v1"})))
		hns := &agentv1.ServiceConfig{Name: "hns", CommandLine: program, StartType: agentv1.StartType_START_TYPE_AUTO}
		if _, err := l.Services.Create(t.Context(), hns); err != nil {
			t.Fatal(err)
		}
		l.mustRun()
		is, err := l.Services.Get(t.Context(), &agentv1.GetServiceRequest{Name: "kube-proxy"})
		if err != nil || strings.Join(is.GetConfig().GetDependencies(), " ") != "hns" {
			t.Fatalf("dependencies %q, %v", is.GetConfig().GetDependencies(), err)
		}
		before := l.pid("kube-proxy")
		if err := join.RestartService(t.Context(), l.Node.Node, "hns"); err != nil {
			t.Fatal(err)
		}
		restarted := l.pid("kube-proxy")
		if restarted == 0 || restarted == before {
			t.Errorf("process %d before and %d after a restart of HNS", before, restarted)
		}
		l.kill(`C:\k\kube-proxy.exe`)
		time.Sleep(20 * time.Second)
		if again := l.pid("kube-proxy"); again == 0 || again == restarted {
			t.Errorf("process %d before and %d after its end", restarted, again)
		}
		l.sourceVIP = "192.168.15.200"
		if steps := changed(l.mustRun()); strings.Join(steps, " ") != "kube-proxy" {
			t.Errorf("another source address changed %q", steps)
		}
		if got := l.commandLine(); !strings.HasSuffix(got, "--source-vip=192.168.15.200") {
			t.Errorf("it runs %s", got)
		}
	})
}

// kill ends the processes of a program.
func (l *proxyLab) kill(image string) {
	l.t.Helper()
	list, err := l.Node.Node.Processes.List(l.t.Context(), &agentv1.ListProcessesRequest{})
	if err != nil {
		l.t.Fatal(err)
	}
	for _, p := range list.GetProcesses() {
		if !strings.EqualFold(p.GetImage(), image) {
			continue
		}
		if _, err := l.Node.Node.Processes.Kill(l.t.Context(), &agentv1.KillProcessRequest{Pid: p.GetPid()}); err != nil {
			l.t.Fatal(err)
		}
	}
}

// A cluster that runs kube-proxy otherwise has the service removed, and its pods come back onto the node.
func TestAnotherFormRemovesTheService(t *testing.T) {
	for _, form := range []cluster.KubeProxyForm{cluster.KubeProxyDaemonSet, cluster.KubeProxyNone, ""} {
		subtest(t, "form "+string(form), func(t *testing.T) {
			l := newProxyLab(t)
			l.makeNetwork()
			l.mustRun()
			l.choose(form)
			if steps := changed(l.mustRun()); strings.Join(steps, " ") != "kube-proxy" {
				t.Errorf("it changed %q", steps)
			}
			if l.commandLine() != "" || l.label() != "" || l.get(`C:\etc\kubernetes\kube-proxy.conf`) != "" {
				t.Errorf("left: %q, label %q", l.commandLine(), l.label())
			}
			again, err := l.run(nil)
			nothing(t, again.Steps, err)
		})
	}
}

// No service is started as long as a pod of kube-proxy is on the node.
func TestKubeProxyServiceWaitsForThePodsToLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newProxyLab(t)
		l.makeNetwork()
		pods := l.cluster.Clientset().CoreV1().Pods("kube-system")
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "kube-proxy-windows-x",
			Labels: map[string]string{"k8s-app": "kube-proxy-windows"}}, Spec: corev1.PodSpec{NodeName: "win1"}}
		if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		_, err := l.run(nil)
		if err == nil || !strings.Contains(err.Error(), "kube-proxy-windows-x is still there") || l.commandLine() != "" {
			t.Errorf("%v, service %q", err, l.commandLine())
		}
		if l.label() != "service" {
			t.Error("the label that keeps the pods off is missing")
		}
	})
}

func TestResetRemovesTheKubeProxyService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newProxyLab(t)
		l.makeNetwork()
		before := l.state()
		l.mustRun()
		result, err := join.RunReset(t.Context(), l.Node.Node, l.doc, join.ResetOptions{Cluster: l.cluster}, l.story)
		if err != nil {
			t.Fatalf("%v\n%s", err, table(result.Steps))
		}
		l.isAsBefore(before)
		if l.label() != "" {
			t.Errorf("the node keeps the label %q", l.label())
		}
	})
}

// A kube-proxy that does not become healthy is a failure, with the last lines of its log.
func TestAKubeProxyThatCrashes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newProxyLab(t)
		l.makeNetwork()
		l.programs.fault["kube-proxy"] = simulated.CrashAtStart
		_, err := l.run(nil)
		var failed *join.FailedError
		if !errors.As(err, &failed) || failed.Phase != "kube-proxy" || len(failed.Log) == 0 {
			t.Errorf("%v", err)
		}
	})
}
