//go:build e2e && linux

package e2e

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/proof/readiness"
)

// loopbackNetwork gives pods addresses of loopback, on which their programs can listen.
const loopbackNetwork = `{"cniVersion": "0.3.1", "name": "lab", "plugins": [{"type": "lab-network", "prefix": "127.244"}]}`

// abilityNode is a Wine node in a real cluster without Linux nodes, DNS, kube-proxy, volumes and policies.
type abilityNode struct{ podCluster }

func newAbilityNode(t *testing.T) abilityNode {
	t.Helper()
	if os.Getenv("SWDT_LAB_CLUSTER") != "required" {
		t.Skip("needs the lab's control plane, and kubelet's own ports: run make e2e")
	}
	agnhost := lab(t, "pods/agnhost-1.36.3.exe")
	c := newPodClusterWith(t, loopbackNetwork,
		"agnhost:2.63.0="+agnhost+";Windows/System32/curl.exe="+lab(t, "pods/curl.exe"))
	c.needsAddress(t)
	t.Setenv("KUBECONFIG", c.cluster.Kubeconfig)
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	return abilityNode{c}
}

// awaitNoPods waits until the pods of earlier runs have ended, since servers in pods of this node share its ports.
func (n abilityNode) awaitNoPods(t *testing.T) {
	t.Helper()
	within(t, 2*time.Minute, "the end of all pods", func() error {
		if left := n.kubectl(t, "get", "pods", "-A", "-o", "name"); left != "" {
			return errors.New(left)
		}
		return nil
	})
}

// run runs cases, and returns their results. A case that is not proved has a message.
func (n abilityNode) run(t *testing.T, cases []string) map[string]string {
	t.Helper()
	r := swdtWithin(t, 8*time.Minute, "readiness", "run", "-c", n.config, "--case", strings.Join(cases, ","), "--image",
		n.registry+"/agnhost:2.63.0", "--out", filepath.Join(t.TempDir(), "results"), "-o", "json")
	results := map[string]string{}
	for _, c := range decoded[readiness.Report](t, r).Cases {
		results[c.ID] = c.Result
		t.Logf("%s: %s %.1f s %s", c.ID, c.Result, c.Seconds, c.Message)
		if c.Result != readiness.Proved && c.Message == "" {
			t.Errorf("%s: %s without a message", c.ID, c.Result)
		}
	}
	return results
}

const proved, failed, notPossible = readiness.Proved, readiness.Failed, readiness.NotPossible

// TestAbilitiesOfAWineNode runs probes of swdt on a node under Wine, with the real kubelet and containerd. Cases
// that this node can prove are proved, DNS and the API server are not reached, the pod network enforces no policy,
// and the rest is not possible. Then the lab's runtime gets faults, and the cases that are about them fail.
func TestAbilitiesOfAWineNode(t *testing.T) {
	n := newAbilityNode(t)
	for _, run := range []struct {
		name, fault string // of the lab's shim; "": none
		want        map[string]string
	}{
		{"pods", "", map[string]string{
			"probe-pod-starts": proved, "probe-logs-exec": proved, "probe-kubelet-metrics": proved,
			"probe-dns": failed, "probe-api-server": failed, // without DNS and kube-proxy
			"probe-node-logs": notPossible, "probe-windows-to-linux": notPossible, "probe-linux-to-windows": notPossible,
			"probe-cluster-ip": notPossible,
		}},
		{"limits and restarts", "", map[string]string{
			"probe-cpu-limit": proved, "probe-memory-limit": proved,
			"probe-kubelet-restart": proved, "probe-containerd-restart": proved,
			"probe-csi-volume": notPossible, "probe-reboot": notPossible, // without --disruptive
		}},
		// Alone, since servers in pods of this node share its ports.
		{"policies", "", map[string]string{"probe-network-policy": failed}},
		{"limits that do not bind", "unlimited", map[string]string{
			"probe-cpu-limit": failed, "probe-memory-limit": failed}},
		{"a restart that loses pods", "mortal", map[string]string{
			"probe-kubelet-restart": proved, "probe-containerd-restart": failed}},
	} {
		t.Run(run.name, func(t *testing.T) {
			n.awaitNoPods(t)
			if run.fault != "" {
				ok(t, "cp", "-c", n.config, textFile(t, run.fault), `node:C:\lab\`+run.fault)
			}
			got, want := n.run(t, slices.Sorted(maps.Keys(run.want))), maps.Clone(run.want)
			const limit = "probe-cpu-limit"
			unseen := got[limit] == notPossible && coresLeft(t) <= coresOfProbe
			if unseen {
				want[limit] = notPossible
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if unseen {
				t.Skip("other programs left the containers too little CPU time for a limit to show; the other cases are as wanted")
			}
		})
	}
}

// coresOfProbe is how many cores a container without a limit needs for the limit of another one to show: the limit
// of 0.2 cores, and half as much again, which the probe tolerates.
const coresOfProbe = 0.3

// coresLeft returns how many cores two busy threads of this process get for a second, as the probe's threads do.
func coresLeft(t *testing.T) float64 {
	t.Helper()
	begun, before := time.Now(), cpuUsed(t)
	over, cancel := context.WithTimeout(t.Context(), time.Second) // the time of the measurement
	defer cancel()
	var busy sync.WaitGroup
	for range 2 {
		busy.Go(func() {
			for over.Err() == nil {
			}
		})
	}
	busy.Wait()
	return (cpuUsed(t) - before).Seconds() / time.Since(begun).Seconds()
}

// cpuUsed returns the CPU time of this process.
func cpuUsed(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
