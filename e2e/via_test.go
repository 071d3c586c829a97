//go:build e2e

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// throughCluster is a node whose agent's stream the real API server, kubelet and containerd carry.
type throughCluster struct {
	podCluster
	credentials string // of the node file, which names no host for SSH
	profile     string // the folder that receives the agent
}

// TestThroughTheCluster uses a node through its cluster alone.
func TestThroughTheCluster(t *testing.T) {
	c := newThroughCluster(t)
	t.Run("answers", c.answersAsOverSSH)
	t.Run("least role", c.leastRole)
	t.Run("selftest", c.provesItself)
	t.Run("cut streams", c.followsThroughCuts)
	t.Run("idle streams", c.staysWhileIdle)
	t.Run("restarts", c.survivesRestarts)
	t.Run("pushes", c.pushesBelowItself)
	t.Run("killed", c.survivesKills)
	t.Run("kubelet down", c.namesAnotherWay)
	c.expectNothingLeft(t)
}

func newThroughCluster(t testing.TB) throughCluster {
	t.Helper()
	c := throughCluster{podCluster: newPodCluster(t)}
	c.needsAddress(t)
	// Wine has no PowerShell, and its prefix lacks SYSTEM's profile.
	ok(t, "cp", "-c", c.config, windowsProgram(t, "powershell"), `node:C:\windows\system32\WindowsPowerShell\v1.0\powershell.exe`)
	c.profile = filepath.Join(c.cluster.Prefix, "drive_c/windows/system32/config/systemprofile")
	if err := os.MkdirAll(c.profile, 0o700); err != nil {
		t.Fatal(err)
	}
	c.credentials = fmt.Sprintf("    kubernetes: {node: wine-1, kubeconfig: %s, image: '%s/burn:1'}\n",
		c.cluster.Kubeconfig, c.registry)
	return c
}

// badUsage is the exit code of a command that contacts no node.
const badUsage = 2

// answersAsOverSSH runs the same commands over both ways and compares what they print.
func (c throughCluster) answersAsOverSSH(t *testing.T) {
	kubelet := provisioner("kubelet", "", lab(t, "node/kubelet-1.36.3.exe"), kubeletExe, "")
	overSSH := nodeFile(t, credentialsOf(t, c.cluster.sandboxInfo), kubelet)
	over := nodeFile(t, c.credentials, kubelet)
	ok(t, "status", "-c", over) // pulls the pod's image, so that the lists of images are the same
	sent := filepath.Join(t.TempDir(), "sent.txt")
	if err := os.WriteFile(sent, bytes.Repeat([]byte("swdt\r\n"), 1<<18), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{
		{"exec", "--", "hostname"},
		{"exec", "--", "cmd", "/c", "exit 7"},
		{"exec", "--", "nothing-of-this-name"},
		{"status", "-o", "name"},
		{"cri", "version"},
		{"cri", "images", "-o", "name"},
		{"hcs", "list", "-o", "name"},
		{"setup", "--dry-run"},
	} {
		t.Run(strings.Join(command[:2], " "), func(t *testing.T) {
			onto := func(file string) result {
				r := swdt(t, slices.Insert(slices.Clone(command), 1, "-c", file)...)
				r.stderr = "" // names the way
				return r
			}
			if diff := cmp.Diff(onto(overSSH), onto(over), cmp.AllowUnexported(result{})); diff != "" {
				t.Errorf("swdt %v prints (-over SSH +through the cluster):\n%s", command, diff)
			}
		})
	}
	// The texts of these change with time, or with the files that are there already.
	for _, command := range [][]string{
		{"status"}, {"ps"}, {"events"}, {"logs", "list"}, {"logs", "kubelet", "--tail", "3"}, {"push", "--dry-run"},
		{"doctor"}, {"diag", "--out", filepath.Join(t.TempDir(), "diag.tar.gz")}, {"cri", "pods"}, {"hns", "networks"},
		{"cp", sent, `node:C:\sent.txt`}, {"cp", `node:C:\sent.txt`, sent + ".fetched"},
	} {
		t.Run(strings.Join(command, " "), func(t *testing.T) {
			ssh := swdt(t, append(slices.Clone(command), "-c", overSSH)...)
			via := swdt(t, append(slices.Clone(command), "-c", over)...)
			if ssh.code != via.code || ssh.code == badUsage {
				t.Errorf("swdt %v: exit code %d over SSH, %d through the cluster", command, ssh.code, via.code)
			}
		})
	}
}

// leastRole uses the node as a user who has the rights that swdt prints, and no others. Without one of them,
// swdt names it.
func (c throughCluster) leastRole(t *testing.T) {
	text, err := os.ReadFile(c.cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	least := textFile(t, strings.Replace(string(text), "  user:\n", "  user:\n    as: least\n", 1))
	file := nodeFile(t, strings.Replace(c.credentials, c.cluster.Kubeconfig, least, 1), "")
	if r := swdt(t, "exec", "-c", file, "--", "hostname"); r.code != 3 || !strings.Contains(r.stderr, "--print-rbac") {
		t.Errorf("a user without any rights: %v", r)
	}
	c.apply(t, ok(t, "status", "-c", file, "--via", "kubernetes", "--print-rbac").stdout)
	c.kubectl(t, "create", "clusterrolebinding", "swdt-via-swdt-system", "--clusterrole=swdt-via-swdt-system",
		"--user=least")
	c.kubectl(t, "create", "rolebinding", "swdt-via", "-n", "swdt-system", "--role=swdt-via", "--user=least")
	eventually(t, "the bindings count", func() error {
		if r := swdt(t, "exec", "-c", file, "--", "hostname"); r.code != 0 {
			return errors.New(r.stderr)
		}
		return nil
	})
	ok(t, "status", "-c", file)
	ok(t, "ps", "-c", file)

	c.kubectl(t, "patch", "role", "swdt-via", "-n", "swdt-system", "--type=json",
		"-p", `[{"op": "test", "path": "/rules/1/resources/0", "value": "pods/exec"}, {"op": "remove", "path": "/rules/1"}]`)
	eventually(t, "the missing rule is named", func() error {
		r := swdt(t, "exec", "-c", file, "--", "hostname")
		if r.code != 3 || !strings.Contains(r.stderr, "pods/exec") || !strings.Contains(r.stderr, "--print-rbac") {
			return fmt.Errorf("exit code %d: %s", r.code, r.stderr)
		}
		return nil
	})
	c.expectNoViaPods(t)

	// To the administrator, least is another user who gets into the pods.
	c.kubectl(t, "patch", "role", "swdt-via", "-n", "swdt-system", "--type=json",
		"-p", `[{"op": "add", "path": "/rules/-", "value": {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["*"]}}]`)
	if r := swdt(t, "status", "-c", c.file(t, "")); r.code != 3 || !strings.Contains(r.stderr, "least") {
		t.Errorf("a namespace that another user gets into: %v", r)
	}
	c.kubectl(t, "delete", "rolebinding", "swdt-via", "-n", "swdt-system")
	c.kubectl(t, "delete", "clusterrolebinding", "swdt-via-swdt-system")
}

// through returns credentials that reach the API server through a proxy.
func (c throughCluster) through(t *testing.T, idle time.Duration) (credentials string, between *proxy) {
	t.Helper()
	text, err := os.ReadFile(c.cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	server := regexp.MustCompile(`https://(\S+)`).FindSubmatch(text)
	if server == nil {
		t.Fatalf("no server in %s", c.cluster.Kubeconfig)
	}
	between = newProxy(t, string(server[1]), idle)
	kubeconfig := textFile(t, strings.ReplaceAll(string(text), string(server[1]), between.address()))
	return strings.Replace(c.credentials, c.cluster.Kubeconfig, kubeconfig, 1), between
}

// followsThroughCuts cuts the connections to the API server while swdt follows a log.
func (c throughCluster) followsThroughCuts(t *testing.T) {
	credentials, between := c.through(t, 0)
	followThroughCuts(t, nodeFile(t, credentials, ""), c.cluster.Prefix, between, 4)
}

// staysWhileIdle follows a log that grows after a while, through a proxy that ends idle connections sooner, as
// load balancers in front of API servers do.
func (c throughCluster) staysWhileIdle(t *testing.T) {
	const idle = 15 * time.Second
	credentials, _ := c.through(t, idle)
	file := nodeFile(t, credentials, "")
	log := growing{t: t, path: filepath.Join(c.cluster.Prefix, "drive_c", "idle.log")}
	log.add("begin\n")
	f := follow(t, "logs", "-f", "--tail", "-1", "-o", "json", "-c", file, `file:C:\idle.log`)
	f.await(t, "begin")
	time.Sleep(2*idle + idle/2) // the time itself is what is tested
	log.add("end\n")
	f.await(t, "end")
	f.end(t)
	if strings.Contains(f.stderr.String(), "reconnecting") {
		t.Errorf("the stream was cut while it was idle:\n%s", f.stderr.String())
	}
}

// pushesBelowItself replaces the kubelet and containerd, which carry the stream of the push.
func (c throughCluster) pushesBelowItself(t *testing.T) {
	edited := c.file(t, provisioner("kubelet", "", lab(t, "node/kubelet-1.36.3-edited.exe"), kubeletExe, ""))
	c.expectPushed(t, edited, "changed")
	c.expectNode(t, "wine-1", "Ready", "v1.36.3-edited", "containerd://1.7.12")
	c.expectPushed(t, edited, "unchanged")
	ok(t, "rollback", "kubelet", "-c", edited)
	c.expectNode(t, "wine-1", "Ready", "v1.36.3", "containerd://1.7.12")

	broken := c.file(t, provisioner("kubelet", "", lab(t, "kubelet-v1.29.1-crash-at-start.exe"), kubeletExe, ""))
	if r := swdt(t, "push", "-c", broken); r.code != 4 {
		t.Errorf("a kubelet that does not come up: %v", r)
	}
	c.expectNode(t, "wine-1", "Ready", "v1.36.3", "containerd://1.7.12")

	c.expectPushed(t, c.file(t, containerdProvisioner(t, "1.7.11")), "changed")
	c.expectNode(t, "wine-1", "Ready", "v1.36.3", "containerd://1.7.11")

	broken = c.file(t, provisioner("containerd", "", lab(t, "kubelet-v1.29.1-crash-at-start.exe"), containerdExe, ""))
	if r := swdt(t, "push", "-c", broken); r.code != 4 {
		t.Errorf("a containerd that does not come up: %v", r)
	}
	c.expectNode(t, "wine-1", "Ready", "v1.36.3", "containerd://1.7.11")
}

// survivesKills kills swdt during a push. The node is well, the next command removes the pod, and the next push
// reports the transaction that the node has finished without swdt.
func (c throughCluster) survivesKills(t *testing.T) {
	edited := c.file(t, provisioner("kubelet", "", lab(t, "node/kubelet-1.36.3-edited.exe"), kubeletExe, ""))
	original := c.file(t, provisioner("kubelet", "", lab(t, "node/kubelet-1.36.3.exe"), kubeletExe, ""))
	for _, kill := range []struct {
		at    string
		begun bool // the transaction
	}{
		{"starting a pod", false}, {"installing the agent", false}, {"sending kubelet", false},
		{"stopping kubelet", true}, {"reconnecting", true},
	} {
		t.Run(kill.at, func(t *testing.T) {
			killAt(t, kill.at, "push", "-c", edited)
			c.expectNode(t, "wine-1", "Ready")
			ok(t, "status", "-c", edited)
			c.expectNoViaPods(t)
			next := decoded[report](t, ok(t, "push", "-c", edited, "-o", "json"))
			if got := next.Nodes[0].Recovered; len(got) == 1 != kill.begun || kill.begun && got[0].Result != "committed" {
				t.Errorf("the next push reports %+v", got)
			}
			c.expectNode(t, "wine-1", "Ready", "v1.36.3-edited")
			ok(t, "push", "-c", original)
		})
	}
}

// namesAnotherWay stops the kubelet over SSH. Once the cluster knows, swdt makes no pod and names the ways that are
// left.
func (c throughCluster) namesAnotherWay(t *testing.T) {
	c.expectNoViaPods(t) // a pod whose removal the kubelet has not finished stays until it runs again
	ok(t, "exec", "-c", c.config, "--", "net", "stop", "kubelet")
	within(t, commandLimit, "the cluster misses the kubelet", func() error {
		ready := c.kubectl(t, "get", "node", "wine-1", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
		if ready != "Unknown" {
			return errors.New(ready)
		}
		return nil
	})
	if r := swdt(t, "status", "-c", c.file(t, "")); r.code != 3 || !strings.Contains(r.stderr, "spec.credentials.hostname") ||
		strings.Contains(r.stderr, "starting a pod") {
		t.Errorf("a node whose kubelet is down: %v", r)
	}
	c.expectNoViaPods(t)
	ok(t, "exec", "-c", c.config, "--", "net", "start", "kubelet")
	c.expectNode(t, "wine-1", "Ready")
	ok(t, "status", "-c", c.file(t, ""))
}

// expectNothingLeft fails the test if a pod or a file of the way is left.
func (c throughCluster) expectNothingLeft(t *testing.T) {
	t.Helper()
	c.expectNoViaPods(t)
	left, err := filepath.Glob(filepath.Join(c.profile, "swdt-agent-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left in SYSTEM's profile: %v, %v", left, err)
	}
}

// file writes a node file that leads through the cluster.
func (c throughCluster) file(t *testing.T, provisioners string) string {
	t.Helper()
	return nodeFile(t, c.credentials, provisioners)
}

func (c podCluster) expectPushed(t *testing.T, file, result string) {
	t.Helper()
	r := decoded[report](t, ok(t, "push", "-c", file, "-o", "json"))
	if len(r.Nodes) != 1 || r.Nodes[0].Result != result {
		t.Errorf("push: %+v, want %s", r, result)
	}
}

func (c podCluster) expectNoViaPods(t *testing.T) {
	t.Helper()
	eventually(t, "swdt's pods are gone", func() error {
		if left := c.kubectl(t, "get", "pods", "-n", "swdt-system", "-o", "name"); left != "" {
			return fmt.Errorf("pods: %s", left)
		}
		return nil
	})
}
