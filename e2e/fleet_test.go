//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/sandbox/wine"
	"github.com/swdt-dev/swdt/internal/testing/registrytest"
)

// fleet is a cluster in which the program of a fleet runs on the Wine node, as a pod of its DaemonSet. The real
// controller runs beside the control plane, with the token of its account, since no Linux node could run it.
type fleet struct {
	podCluster
	shop   *registrytest.Registry // has the image, and the binaries of rollouts
	server string                 // host and port of the API server
}

// TestFleetInPods swaps the kubelet that runs the pod which does it, by a patch from a registry, rolls out one that
// does not start, and swaps the containerd below the pod. Then it ends the pod, and the node, in the middle of a swap.
func TestFleetInPods(t *testing.T) {
	f := newFleet(t)
	pod := f.awaitPod(t)
	t.Run("a patch for the kubelet", f.fetchesAPatch)
	if now := f.awaitPod(t); now != pod {
		t.Errorf("the pod is %s, and was %s before the swap of the kubelet", now, pod)
	}
	t.Run("a kubelet that does not start", f.staysAsItIs)
	t.Run("a containerd", f.swapsContainerd)
	t.Run("a pod that is deleted", f.outlivesItsPod)
	for _, state := range []string{"stopping", "checking"} {
		t.Run("a restart while "+state, func(t *testing.T) { f.outlivesARestart(t, state) })
	}
}

func newFleet(t *testing.T) fleet {
	t.Helper()
	f := fleet{podCluster: newPodCluster(t), shop: registrytest.StartOnDisk(t, t.TempDir())}
	f.needsAddress(t)
	// Wine's prefix lacks SYSTEM's profile.
	profile := filepath.Join(f.cluster.Prefix, "drive_c/windows/system32/config/systemprofile")
	if err := os.MkdirAll(profile, 0o700); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(f.cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	server := regexp.MustCompile(`server: https://(\S+)`).FindSubmatch(text)
	if server == nil {
		t.Fatalf("no server in %s", f.cluster.Kubeconfig)
	}
	f.server = string(server[1])
	var images []string
	for _, name := range []string{"controller", "node"} {
		image := f.shop.Host + "/team/swdt-" + name + ":v1"
		run(t, beside(t, "fleet-images"), "push", beside(t, "images/swdt-"+name), image)
		images = append(images, image)
	}
	ok(t, "fleet", "install", "--kubeconfig", f.cluster.Kubeconfig, "--controller-image", images[0], "--agent-image",
		images[1], "--api-server", f.server)
	f.startController(t)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(f.kubectl(t, "describe", "pods", "-n", "swdt-fleet"))
			t.Log(f.kubectl(t, "get", "nodestates,noderollouts", "-o", "yaml"))
		}
	})
	return f
}

// beside returns the path of a file that `make images` has put beside swdt.
func beside(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(filepath.Dir(environment(t, "SWDT_BIN")), name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: run make images", err)
	}
	return path
}

// startController runs the controller until the test ends, with the files of a pod in a file system of its own.
func (f fleet) startController(t *testing.T) {
	t.Helper()
	const begin = `mount -t tmpfs none /run && mkdir -p "$1" && cp "$2"/* "$1" && exec "$3" --metrics 0 --probes 0`
	account := t.TempDir()
	for name, content := range map[string]string{
		"token":  f.kubectl(t, "create", "token", "swdt-controller", "-n", "swdt-fleet", "--duration=2h"),
		"ca.crt": f.kubectl(t, "get", "configmap", "kube-root-ca.crt", "-o", `jsonpath={.data.ca\.crt}`),
	} {
		if err := os.WriteFile(filepath.Join(account, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	host, port, _ := strings.Cut(f.server, ":")
	controller := exec.Command("unshare", "--map-root-user", "--mount", "sh", "-c", begin, "sh",
		"/run/secrets/kubernetes.io/serviceaccount", account, beside(t, "fleet/swdt-controller-linux-amd64"))
	controller.Env = append(os.Environ(), "POD_NAMESPACE=swdt-fleet", "KUBERNETES_SERVICE_HOST="+host,
		"KUBERNETES_SERVICE_PORT="+port)
	controller.Stdout, controller.Stderr = t.Output(), t.Output()
	if err := controller.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = controller.Process.Kill()
		_ = controller.Wait() // a killed program has no exit code
	})
}

// awaitPod waits until the only pod of the DaemonSet is Ready, and returns its name.
func (f fleet) awaitPod(t *testing.T) (name string) {
	t.Helper()
	within(t, commandLimit, "the fleet's pod", func() error {
		var pods struct {
			Items []struct {
				Metadata struct{ Name string }
				Spec     struct{ NodeName string }
				Status   struct {
					Conditions []struct{ Type, Status string }
				}
			}
		}
		text := f.kubectl(t, "get", "pods", "-n", "swdt-fleet", "-l", "app.kubernetes.io/name=swdt-node", "-o", "json")
		if err := json.Unmarshal([]byte(text), &pods); err != nil {
			return err
		}
		if len(pods.Items) != 1 {
			return fmt.Errorf("%d pods", len(pods.Items))
		}
		pod := pods.Items[0]
		for _, c := range pod.Status.Conditions {
			if c.Type == "Ready" && c.Status == "True" && pod.Spec.NodeName == "wine-1" {
				name = pod.Metadata.Name
				return nil
			}
		}
		return fmt.Errorf("pod %s is not Ready", pod.Metadata.Name)
	})
	return name
}

// binary is a binary in a registry.
type binary struct {
	name, destination string
	source, sha256    string
	whole, patch      int64 // bytes of the layers; 0: there is no patch
}

// published publishes a binary, and returns where a node finds it.
func (f fleet) published(t *testing.T, name, file, destination string) binary {
	t.Helper()
	target := f.shop.Host + "/team/" + name + ":dev"
	report := decoded[struct {
		Digest     string
		Components []struct {
			SHA256  string
			Layer   struct{ SizeBytes int64 }
			Patches []struct{ Layer struct{ SizeBytes int64 } }
		}
	}](t, ok(t, "fleet", "publish", target, "-c", nodeFile(t, "    kubernetes: {node: wine-1}\n",
		provisioner(name, "", file, destination, "")), "-o", "json"))
	if len(report.Components) != 1 {
		t.Fatalf("published %+v", report)
	}
	c := report.Components[0]
	b := binary{name: name, destination: destination, sha256: c.SHA256, whole: c.Layer.SizeBytes,
		source: "oci://" + strings.TrimSuffix(target, ":dev") + "@" + report.Digest}
	if len(c.Patches) > 0 {
		b.patch = c.Patches[0].Layer.SizeBytes
	}
	return b
}

// rolloutOf is a rollout of one binary to all Windows nodes. The variable makes each rollout's content another one, since
// a node does not try a content again.
const rolloutOf = `
apiVersion: fleet.swdt.dev/v1alpha1
kind: NodeRollout
metadata: {name: %[1]s}
spec:
  selector: {}
  content:
    setup: {environment: {SWDT_ROLLOUT: %[1]s}}
    provisioners:
    - {name: %[2]s, sourceURL: '%[3]s', sha256: %[4]s, destination: '%[5]s'}
  health: {settle: 1s, timeout: 2m}
`

// begin makes a rollout, in the place of an earlier one of the same name.
func (f fleet) begin(t *testing.T, name string, b binary) {
	t.Helper()
	f.kubectl(t, "delete", "noderollouts", "--all", "--wait=true")
	f.apply(t, fmt.Sprintf(rolloutOf, name, b.name, b.source, b.sha256, b.destination))
}

// nodeState has some fields of the node's NodeState.
type nodeState struct {
	Spec   struct{ Verdict, Reason string }
	Status struct{ Phase, Message, Journal string }
}

// await waits until the rollout is in a state, and returns what the node reports.
func (f fleet) await(t *testing.T, name, state string) (s nodeState) {
	t.Helper()
	within(t, commandLimit, "rollout "+name+" to be "+state, func() error {
		now := f.kubectl(t, "get", "noderollout", name, "-o", "jsonpath={.status.state}")
		if now == state {
			return nil
		}
		return fmt.Errorf("it is %q: %s", now, f.kubectl(t, "get", "nodestates", "-o", "wide"))
	})
	s = f.state(t)
	t.Logf("%s: %+v", name, s)
	return s
}

// state returns the node's NodeState.
func (f fleet) state(t *testing.T) (s nodeState) {
	t.Helper()
	if err := json.Unmarshal([]byte(f.kubectl(t, "get", "nodestate", "wine-1", "-o", "json")), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// fetchesAPatch swaps the kubelet for an edited one. The node fetches a patch of the kubelet that it has.
func (f fleet) fetchesAPatch(t *testing.T) {
	whole := f.published(t, "kubelet", lab(t, "node/kubelet-1.36.3.exe"), kubeletExe)
	edited := f.published(t, "kubelet", lab(t, "node/kubelet-1.36.3-edited.exe"), kubeletExe)
	if edited.patch == 0 || whole.patch != 0 {
		t.Fatalf("published %+v after %+v", edited, whole)
	}
	f.shop.Sent()
	f.begin(t, "kubelet", edited)
	f.await(t, "kubelet", "Complete")
	const manifest = 8 << 10
	fetched := f.shop.Sent()
	t.Logf("the node fetched %d bytes: a patch of %d, where the compressed kubelet has %d", fetched, edited.patch, edited.whole)
	if fetched < edited.patch || fetched > edited.patch+manifest {
		t.Errorf("the node fetched %d bytes, want the patch's %d and a manifest", fetched, edited.patch)
	}
	f.expectNode(t, "wine-1", "Ready", "v1.36.3-edited", "containerd://1.7.12")
}

// staysAsItIs rolls out a kubelet that ends at its start. The node puts its kubelet back, and the rollout stops.
func (f fleet) staysAsItIs(t *testing.T) {
	f.begin(t, "broken", f.published(t, "kubelet", lab(t, "kubelet-v1.29.1-crash-at-start.exe"), kubeletExe))
	if s := f.await(t, "broken", "Stopped"); s.Spec.Verdict != "Failed" || s.Status.Phase != "RolledBack" {
		t.Errorf("the node reports %+v", s)
	}
	f.expectNode(t, "wine-1", "Ready", "v1.36.3-edited", "containerd://1.7.12")
	if r := swdt(t, "fleet", "status", "--kubeconfig", f.cluster.Kubeconfig); r.code != exitFinding {
		t.Errorf("swdt fleet status: %v", r)
	}
}

// node returns the node's files and processes.
func (f fleet) node() *victim { return &victim{info: f.cluster.sandboxInfo} }

// expectNothingLeft fails the test if a staged file, a journal or a guardian of a swap is left on the node.
func (f fleet) expectNothingLeft(t *testing.T) {
	t.Helper()
	eventually(t, "no guardian runs", func() error {
		if left := processesOf(t, f.cluster.Prefix, guardianProcess); len(left) > 0 {
			return fmt.Errorf("guardians: %v", left)
		}
		return nil
	})
	f.node().checkLeftovers(t)
}

// swapsContainerd swaps the containerd that runs the pod which does it.
func (f fleet) swapsContainerd(t *testing.T) {
	pod := f.awaitPod(t)
	f.begin(t, "containerd", f.published(t, "containerd", lab(t, "containerd-1.7.11.exe"), containerdExe))
	if s := f.await(t, "containerd", "Complete"); s.Spec.Verdict != "Updated" || s.Status.Phase != "Done" {
		t.Errorf("the node reports %+v", s)
	}
	f.expectNode(t, "wine-1", "Ready", "v1.36.3-edited", "containerd://1.7.11")
	if now := f.awaitPod(t); now != pod {
		t.Errorf("the pod is %s, and was %s before the swap of containerd", now, pod)
	}
	f.expectNothingLeft(t)
}

// other publishes the kubelet that the node does not have, and returns its version.
func (f fleet) other(t *testing.T) (b binary, version string) {
	t.Helper()
	const edited = "v1.36.3-edited"
	if strings.Contains(f.kubectl(t, "get", "node", "wine-1", "-o", "jsonpath={.status.nodeInfo.kubeletVersion}"), edited) {
		return f.published(t, "kubelet", lab(t, "node/kubelet-1.36.3.exe"), kubeletExe), "v1.36.3"
	}
	return f.published(t, "kubelet", lab(t, "node/kubelet-1.36.3-edited.exe"), kubeletExe), edited
}

// awaitSwap waits until the journal of a swap has a state, and returns the ID of the swap.
func (f fleet) awaitSwap(t *testing.T, state string) (id string) {
	t.Helper()
	path, ok := f.node().awaitState("", state)
	if !ok {
		t.Fatalf("no swap comes to the state %s: %s", state, f.kubectl(t, "get", "nodestates", "-o", "wide"))
	}
	return strings.TrimSuffix(filepath.Base(path), ".jsonl")
}

// outlivesItsPod deletes the pod while its swap of the kubelet is under way. Another pod reports the end of the same
// swap.
func (f fleet) outlivesItsPod(t *testing.T) {
	pod := f.awaitPod(t)
	kubelet, version := f.other(t)
	f.begin(t, "deleted", kubelet)
	swap := f.awaitSwap(t, "stopping")
	f.kubectl(t, "delete", "pod", "-n", "swdt-fleet", pod, "--wait=false")
	s := f.await(t, "deleted", "Complete")
	if s.Spec.Verdict != "Updated" || s.Status.Phase != "Done" || s.Status.Journal != swap {
		t.Errorf("the swap was %s; the node reports %+v", swap, s)
	}
	f.expectNode(t, "wine-1", "Ready", version)
	eventually(t, "another pod", func() error {
		if now := f.awaitPod(t); now == pod {
			return fmt.Errorf("pod %s is still there", now)
		}
		return nil
	})
	f.expectNothingLeft(t)
}

// outlivesARestart ends all processes of the node, as a power switch does, when a swap of the kubelet is in a state.
// The node starts again and reports what it runs: the swap is undone, or finished.
func (f fleet) outlivesARestart(t *testing.T, state string) {
	f.awaitPod(t)
	before := f.kubectl(t, "get", "node", "wine-1", "-o", "jsonpath={.status.nodeInfo.kubeletVersion}")
	kubelet, version := f.other(t)
	prefix, err := wine.Open(f.cluster.Prefix)
	if err != nil {
		t.Fatal(err)
	}
	f.begin(t, "restarted-while-"+state, kubelet)
	swap := f.awaitSwap(t, state)
	if err := prefix.Reboot(t.Context()); err != nil {
		t.Fatal(err)
	}
	var s nodeState
	within(t, commandLimit, "a verdict", func() error {
		s = f.state(t)
		if s.Spec.Verdict == "" {
			return fmt.Errorf("the node reports %+v", s)
		}
		return nil
	})
	t.Logf("after a restart while %s: %+v", state, s)
	wanted := map[string]string{"Updated Done": version, "Failed RolledBack": before}[s.Spec.Verdict+" "+s.Status.Phase]
	if wanted == "" || s.Status.Journal != swap {
		t.Fatalf("the swap was %s; the node reports %+v", swap, s)
	}
	f.expectNode(t, "wine-1", "Ready", wanted)
	f.awaitPod(t)
	f.expectNothingLeft(t)
}
