//go:build e2e

package e2e

import (
	"fmt"
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
