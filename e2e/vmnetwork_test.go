//go:build e2e && linux

package e2e

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/insomniacslk/dhcp/dhcpv4/nclient4"
	"golang.org/x/crypto/ssh"

	"github.com/swdt-dev/swdt/internal/testing/dockertest"
	"github.com/swdt-dev/swdt/internal/testing/netspace"
	"github.com/swdt-dev/swdt/internal/testing/vmguest"
	"github.com/swdt-dev/swdt/internal/vm/qemu/qmp"
)

// The network of kind, as the test makes it.
const (
	kindBridge  = "br-kind"
	kindGateway = "172.18.0.1"
	kindAPI     = "172.18.0.2"
	vmAddress   = "172.18.255.254"
)

// networkCheck has the promised fields of `swdt vm network check -o json`.
type networkCheck struct {
	VMs []struct {
		Result, Bridge, Subnet, Address, Tap string
		Problems                             []struct{ Check, Severity, What, Evidence, Remedy string }
	}
}

// find returns the problems of a check, a line each.
func (c networkCheck) find(check string) (found []string) {
	for _, p := range c.VMs[0].Problems {
		if p.Check == check {
			found = append(found, fmt.Sprintf("%s: %s (%s) → %s", p.Severity, p.What, p.Evidence, p.Remedy))
		}
	}
	return found
}

// networkSteps has the promised fields of `swdt vm network prepare -o json`.
type networkSteps struct {
	VMs []struct {
		Result string
		Root   []string
		Steps  []struct{ Name, State string }
	}
}

func (s networkSteps) states() (states []string) {
	for _, step := range s.VMs[0].Steps {
		states = append(states, step.Name+" "+step.State)
	}
	return states
}

// TestAVMOnTheClustersBridge runs a VM of a user without rights on the bridge of kind, with real QEMU, a
// real tap, real DHCP and the firewall of the kernel, in a network namespace of the test. Docker is an
// imitation.
func TestAVMOnTheClustersBridge(t *testing.T) {
	image := vmguest.Disk(t)
	if !netspace.Enter(t) {
		return
	}
	container := netspace.NewStation(t, kindBridge, kindAPI+"/16", kindGateway)
	container.Listen(t, 6443)
	home := newVMHome(t)
	t.Setenv("DOCKER_HOST", dockertest.Start(t, dockertest.Network{
		Name: "kind", Bridge: kindBridge, Subnet: "172.18.0.0/16", Gateway: kindGateway,
		Containers: map[string]string{"kind-control-plane": kindAPI},
	}).Host())
	file := home.bridgedFile(t, image)
	root := environment(t, "SWDT_BIN")
	t.Setenv("SWDT_BIN", withoutRights(t, home.folder, root))

	before := checkNetwork(t, file, 5)
	if got := before.find("tap"); len(got) != 1 || !strings.Contains(got[0], "swdt vm network prepare") {
		t.Errorf("without a tap: %q", before.VMs)
	}
	prepare(t, file)
	after := checkNetwork(t, file, 0)
	v := after.VMs[0]
	network := []string{kindBridge, vmAddress, "172.18.0.0/16"}
	if diff := cmp.Diff(network, []string{v.Bridge, v.Address, v.Subnet}); diff != "" {
		t.Errorf("bridge, address and subnet (-want +got):\n%s", diff)
	}

	created := oneVM(t, ok(t, "vm", "create", "-c", file, "-o", "json"))
	home.writeCD(t, vmguest.Settings{
		Hostname: vmName, Preset: "node", AuthorizedKeys: []string{readText(t, created.Key+".pub")},
	})
	stranger := askAsStranger(t, container)
	started := oneVM(t, home.start(t, file))
	if started.Address != vmAddress+":22" {
		t.Errorf("%+v, want its own address %s", started, vmAddress)
	}
	if err := <-stranger; err == nil {
		t.Error("a machine with another network card got an address")
	}
	guestReaches(t, container, created.Key)
	if r := ok(t, "exec", "-c", file, "--", "hostname"); !strings.Contains(r.stdout, vmName) {
		t.Errorf("hostname: %v", r)
	}
	if r := ok(t, "vm", "address", "-c", file); !strings.Contains(r.stdout, "configured") {
		t.Errorf("vm address: %v", r)
	}

	restartsByItself(t, created.Folder)
	if again := oneVM(t, home.start(t, file)); again.Address != vmAddress+":22" {
		t.Errorf("after the guest restarted: %+v, want the address %s", again, vmAddress)
	}
	guestReaches(t, container, created.Key)

	r := swdt(t, "vm", "network", "remove", "--yes", "-c", file)
	if r.code != 1 || !strings.Contains(r.stderr, "in use by a VM") {
		t.Errorf("the tap of a VM that runs: %v", r)
	}
	t.Setenv("SWDT_BIN", root) // only root can read the firewall
	warnsOfTheFirewall(t, file)
	wantVM(t, oneVM(t, ok(t, "vm", "delete", "--yes", "-c", file, "-o", "json")), "changed", "absent")
	for _, want := range [][]string{{"tap changed", "docker network ok"}, {"tap ok", "docker network ok"}} {
		removed := decoded[networkSteps](t, ok(t, "vm", "network", "remove", "--yes", "-c", file, "-o", "json"))
		if diff := cmp.Diff(want, removed.states()); diff != "" {
			t.Errorf("remove (-want +got):\n%s", diff)
		}
	}
}

// bridgedFile writes the node file of a VM on the network of kind.
func (h vmHome) bridgedFile(t *testing.T, image string) string {
	t.Helper()
	h.writeCD(t, vmguest.Settings{})
	text := fmt.Sprintf(`apiVersion: windows.k8s.io/v1alpha1
kind: Node
metadata:
  name: %s
spec:
  credentials:
    username: %s
  machine:
    image:
      disk: %q
      drivers: %q # the guest's configuration
    cpus: 1
    memory: 512Mi
    disk: 2Gi
    accelerator: tcg
    network:
      mode: bridge
      bridge: kind
  kubernetes:
    join:
      controlPlaneAlias:
        name: kind-control-plane
        ip: %s
`, vmName, vmguest.User, image, h.cd(), kindAPI)
	file := filepath.Join(h.folder, "node.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// withoutRights returns the path of a script that runs a program without any of root's rights.
func withoutRights(t *testing.T, folder, program string) string {
	t.Helper()
	script := filepath.Join(folder, "swdt")
	text := fmt.Sprintf("#!/bin/sh\nexec setpriv --bounding-set=-all --inh-caps=-all --no-new-privs -- '%s' \"$@\"\n",
		program)
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return script
}

func checkNetwork(t *testing.T, file string, code int) networkCheck {
	t.Helper()
	r := swdt(t, "vm", "network", "check", "-c", file, "-o", "json")
	if r.code != code {
		t.Fatalf("exit code %d, want %d", r.code, code)
	}
	return decoded[networkCheck](t, r)
}

// prepare prepares the network as a user does: it runs the command for root that swdt prints.
func prepare(t *testing.T, file string) {
	t.Helper()
	r := swdt(t, "vm", "network", "prepare", "-c", file, "-o", "json")
	steps := decoded[networkSteps](t, r)
	if r.code != 1 {
		t.Fatalf("without rights: exit code %d, want 1: %+v", r.code, steps)
	}
	if root := steps.VMs[0].Root; len(root) == 0 || root[0] != "sudo" {
		t.Fatalf("the command for root is %q, want one of sudo", root)
	}
	if out, err := exec.CommandContext(t.Context(), "env", steps.VMs[0].Root[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("the command for root: %v\n%s", err, out)
	}
	again := decoded[networkSteps](t, ok(t, "vm", "network", "prepare", "-c", file, "-o", "json"))
	diff := cmp.Diff([]string{"docker network ok", "tap ok"}, again.states())
	if diff != "" || again.VMs[0].Result != "unchanged" {
		t.Errorf("a second run: %+v (-want +got):\n%s", again, diff)
	}
}

// askAsStranger sends DHCP requests from another machine on the bridge, while swdt answers the guest. The
// channel gets the result, which must be an error.
func askAsStranger(t *testing.T, container netspace.Station) <-chan error {
	t.Helper()
	const while = 20 * time.Second // long enough for the guest to ask for its address
	answered := make(chan error, 1)
	go func() {
		answered <- container.Do(func() error {
			client, err := nclient4.New("eth0", nclient4.WithTimeout(while/4), nclient4.WithRetry(4))
			if err != nil {
				return err
			}
			defer client.Close()
			ctx, cancel := context.WithTimeout(context.Background(), while)
			defer cancel()
			_, err = client.Request(ctx)
			return err
		})
	}()
	return answered
}

// guestReaches checks that guest and container can connect to each other at their own addresses.
func guestReaches(t *testing.T, container netspace.Station, key string) {
	t.Helper()
	greeting, err := container.Read(netip.MustParseAddrPort(vmAddress+":22"), 10*time.Second)
	if err != nil || !strings.HasPrefix(greeting, "SSH-") {
		t.Errorf("the container reads %q from the guest's SSH server: %v", greeting, err)
	}
	signer, err := ssh.ParsePrivateKey([]byte(readText(t, key)))
	if err != nil {
		t.Fatal(err)
	}
	client, err := ssh.Dial("tcp", vmAddress+":22", &ssh.ClientConfig{
		User: vmguest.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(),
		Timeout: 30 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn, err := client.Dial("tcp", kindAPI+":6443") // from the guest
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if seen, err := io.ReadAll(conn); err != nil || string(seen) != vmAddress {
		t.Errorf("the API server sees %q (%v), want %s", seen, err, vmAddress)
	}
}

// restartsByItself restarts the guest, which asks for its address again. No swdt runs meanwhile.
func restartsByItself(t *testing.T, folder string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client, err := qmp.Dial(ctx, filepath.Join(folder, "run", "look.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.Run(ctx, "system_reset", nil, nil); err != nil {
		t.Fatal(err)
	}
}

// warnsOfTheFirewall checks that swdt says when the rules of this machine see the frames of the bridge.
func warnsOfTheFirewall(t *testing.T, file string) {
	t.Helper()
	sysctl := func(value string) {
		t.Helper()
		if err := os.WriteFile("/proc/sys/net/bridge/bridge-nf-call-iptables", []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := func(text string) {
		t.Helper()
		if got := checkNetwork(t, file, 0).find("firewall"); len(got) != 1 || !strings.Contains(got[0], text) {
			t.Errorf("%q, want one with %s", got, text)
		}
	}
	sysctl("1")
	want("sudo sysctl net.bridge.bridge-nf-call-iptables=0")
	sysctl("0")
	if open := checkNetwork(t, file, 0); len(open.find("firewall")) != 0 {
		t.Errorf("rules that see no bridges: %q", open.find("firewall"))
	}
	netspace.ReplaceRuleset(t, "table bridge company {\nchain c {\ntype filter hook forward priority 0; policy accept;\n}\n}\n")
	want("sudo nft list table bridge company")
	netspace.ReplaceRuleset(t, "")
}
