//go:build e2e

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestSettingsOfARealKubelet sets a feature gate on the real kubelet of a node, which then reports it itself (configz). A
// gate that it lacks is refused before anything is touched, and a value with which it does not start is rolled back by the
// node. The undo restores the file byte for byte.
func TestSettingsOfARealKubelet(t *testing.T) {
	c := clusterSandbox(t)
	server := opensshFor(t, c.sandboxInfo)
	file := c.joinFile(t, server.credentials(), joinWith{})
	ok(t, "join", "-c", file, "--kubeconfig", c.Kubeconfig, "--allow-reboot")
	c.expectNode(t, "wine-1", "Ready")
	c.putConfigYAML(t, "# ours, by hand\n"+c.configYAML(t)+"\n# the end")
	before := c.configYAML(t)

	t.Log(ok(t, "kubelet", "features", "set", "PodAndContainerStatsFromCRI=true", "-c", file).stdout)
	c.reports(t, `"PodAndContainerStatsFromCRI":true`)
	if got := c.configYAML(t); !strings.HasPrefix(got, "# ours, by hand\n") || !strings.HasSuffix(got, "\n# the end") {
		t.Errorf("config.yaml:\n%s", got)
	}
	changed := c.configYAML(t)
	for _, set := range []string{"PodAndContainerStatsFromCRl=true", "NodeLogQuery=false", "MemoryManager=true"} {
		refused := swdt(t, "kubelet", "features", "set", set, "-c", file)
		if refused.code != 1 || c.configYAML(t) != changed {
			t.Errorf("%s: %v", set, refused)
		}
	}
	c.reports(t, `"maxPods":40`)
	back := swdt(t, "kubelet", "config", "set", "maxPods=-1", "-c", file)
	if back.code != 4 || !strings.Contains(back.stderr, "must not be a negative number") {
		t.Errorf("a value with which kubelet does not start: %v", back)
	}
	c.expectNode(t, "wine-1", "Ready")
	c.reports(t, `"maxPods":40`)

	ok(t, "kubelet", "config", "undo", "-c", file)
	if got := c.configYAML(t); got != before {
		t.Errorf("after the undo, config.yaml is\n%s", got)
	}
	c.reports(t, `"maxPods":40`)
	t.Log(ok(t, "history", "kubelet", "-c", file).stdout)
}

// reports waits until the node's kubelet reports a part of its configuration.
func (c cluster) reports(t *testing.T, part string) {
	t.Helper()
	within(t, commandLimit, "kubelet reports "+part, func() error {
		is := c.kubectl(t, "get", "--raw", "/api/v1/nodes/wine-1/proxy/configz")
		if !strings.Contains(is, part) {
			return fmt.Errorf("it reports %s", is)
		}
		return nil
	})
}

// TestSettingsOfARealKubeProxy sets a feature gate on the command line of the real kube-proxy, a service without a
// configuration file, which then reports it itself (configz). A value that a locked gate refuses changes nothing, and a flag
// with which it does not start is rolled back.
func TestSettingsOfARealKubeProxy(t *testing.T) {
	c := clusterSandbox(t)
	n := proxyNode{cluster: c, config: withKubeProxy(t, c.joinFile(t, credentialsOf(t, c.sandboxInfo), joinWith{}), labKubeProxy(t))}
	n.logsAtFailure(t)
	server := n.kubectl(t, "config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}")
	n.installFlannel(t, "service", flannelOfLinux, "--no-wait", "--api-server", strings.TrimPrefix(server, "https://"),
		"--pod-cidr", "10.244.0.0/16", "--service-cidr", "10.96.0.0/12")
	n.prepareHNSNetwork(t, "flannel.4096", "1B5C9C50-5B0B-4B7E-8C5C-0C6E2A1F3D44")
	ok(t, "join", "-c", n.config, "--kubeconfig", c.Kubeconfig, "--allow-reboot")
	line := func() string { return ok(t, "services", "kube-proxy", "-c", n.config).stdout }
	before := line()

	t.Log(ok(t, "kube-proxy", "features", "set", "WinDSR=true", "-c", n.config).stdout)
	within(t, commandLimit, "kube-proxy reports the gate", func() error {
		answer, err := http.Get("http://127.0.0.1:10249/configz")
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		is, err := io.ReadAll(answer.Body)
		if err != nil || !strings.Contains(string(is), `"WinDSR":true`) {
			return fmt.Errorf("it reports %s: %v", is, err)
		}
		return nil
	})
	changed := line()
	for _, set := range []string{"WinDSR=false", "WinDSRR=true"} {
		if refused := swdt(t, "kube-proxy", "features", "set", set, "-c", n.config); refused.code != 1 || commandLineOf(line()) != commandLineOf(changed) {
			t.Errorf("%s: %v", set, refused)
		}
	}
	back := swdt(t, "kube-proxy", "config", "set", `clientConnection.kubeconfig=C:\none.conf`, "-c", n.config)
	if back.code != 4 || commandLineOf(line()) != commandLineOf(changed) {
		t.Errorf("a flag with which kube-proxy does not start: %v\n%s", back, line())
	}
	ok(t, "kube-proxy", "features", "unset", "WinDSR", "-c", n.config)
	if got := line(); commandLineOf(got) != commandLineOf(before) {
		t.Errorf("after the change back:\n%s\nwant\n%s", got, before)
	}
}

// commandLineOf returns the command line in the table of swdt services, behind the process.
func commandLineOf(table string) string {
	_, line, _ := strings.Cut(table, "kube-log-runner")
	return line
}
