//go:build e2e && linux

package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// clusterReport has the promised fields of `swdt cluster create -o json`.
type clusterReport struct {
	Name, Result, Context, Server, Version string
	Containers                             []struct{ Name, Role, Address string }
	Changes                                []string
}

// clusterFile writes the document of a cluster of kind. The parts of more, joined, are more fields of
// the control plane. A comma must be before each field.
func clusterFile(t *testing.T, more ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cluster.yaml")
	text := "apiVersion: windows.k8s.io/v1alpha1\nkind: Cluster\nmetadata: {name: dev}\n" +
		"spec: {controlPlane: {kind: {image: '" + kindImage + "'" + strings.Join(more, "") + "}}, network: {plugin: none}}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestANodeJoinsAClusterOfKind makes a real cluster in real Docker, joins a Wine node to it, and
// deletes the cluster.
func TestANodeJoinsAClusterOfKind(t *testing.T) {
	if !inDocker(t) {
		return
	}
	loadKindImage(t)
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	before := inventory(t)
	file, kubeconfig := clusterFile(t), filepath.Join(t.TempDir(), "kubeconfig")
	made := decoded[clusterReport](t, ok(t, "cluster", "create", "-c", file, "--kubeconfig", kubeconfig, "-o", "json"))
	if made.Result != "changed" || made.Version != "v1.36.3" || len(made.Containers) != 1 {
		t.Fatalf("create: %+v", made)
	}
	again := decoded[clusterReport](t, ok(t, "cluster", "create", "-c", file, "--kubeconfig", kubeconfig, "-o", "json"))
	made.Result, made.Changes = "unchanged", []string{}
	if diff := cmp.Diff(made, again); diff != "" {
		t.Errorf("a second create (-first +second):\n%s", diff)
	}
	status := decoded[clusterReport](t, ok(t, "cluster", "status", "-c", file, "-o", "json"))
	made.Result = "ok"
	if diff := cmp.Diff(made, status); diff != "" {
		t.Errorf("status (-create +status):\n%s", diff)
	}
	joinKind(t, file, made)
	ok(t, "cluster", "delete", "-c", file, "--yes")
	if diff := cmp.Diff(before, inventory(t)); diff != "" {
		t.Errorf("Docker (-before +after):\n%s", diff)
	}
	text, err := os.ReadFile(kubeconfig)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if strings.Contains(string(text), "kind-dev") {
		t.Errorf("the kubeconfig still has the cluster:\n%s", text)
	}
}

// joinKind joins a Wine node to the cluster, and resets the node. The node's address is this
// machine's address on kind's bridge.
func joinKind(t *testing.T, file string, made clusterReport) {
	t.Helper()
	control := made.Containers[0]
	ownHosts(t, fmt.Sprintf("127.0.0.1 localhost\n%s %s\n", control.Address, control.Name))
	gateway := strings.TrimSpace(run(t, "docker", "network", "inspect", "kind", "--format",
		`{{range .IPAM.Config}}{{if .Gateway}}{{.Gateway}} {{end}}{{end}}`))
	gateway = firstIPv4(t, gateway)
	kubeconfig := filepath.Join(t.TempDir(), "internal.conf")
	text := ok(t, "cluster", "kubeconfig", "--internal", "-c", file).stdout
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := cluster{wineSandbox(t)}
	c.Kubeconfig = kubeconfig
	node := c.joinFile(t, credentialsOf(t, c.sandboxInfo), joinWith{more: fmt.Sprintf(
		"    join: {nodeName: wine-1, nodeIP: %s, controlPlaneAlias: {name: %s, ip: %s}}\n", gateway, control.Name,
		control.Address)})
	ok(t, "join", "-c", node, "--kubeconfig", kubeconfig, "--allow-reboot")
	c.expectNode(t, "wine-1", "Ready", "v1.36.3", "Windows Server 2022 Datacenter")
	ok(t, "reset", "--yes", "-c", node, "--kubeconfig", kubeconfig, "--delete-node")
}

// firstIPv4 returns the first IPv4 address of a list whose items are separated by spaces.
func firstIPv4(t *testing.T, list string) string {
	t.Helper()
	for _, address := range strings.Fields(list) {
		if !strings.Contains(address, ":") {
			return address
		}
	}
	t.Fatalf("no IPv4 address in %q", list)
	return ""
}

// TestKilledClusterCommands kills swdt at each stage of a create, and during a delete. The same
// command, run again, ends as if swdt had never been killed.
func TestKilledClusterCommands(t *testing.T) {
	if !inDocker(t) {
		return
	}
	loadKindImage(t)
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	before := inventory(t)
	file, kubeconfig := clusterFile(t), filepath.Join(t.TempDir(), "kubeconfig")
	create := []string{"cluster", "create", "-c", file, "--kubeconfig", kubeconfig}
	for _, stage := range []string{"Preparing nodes", "Writing configuration", "Starting control-plane"} {
		killAt(t, stage, create...)
	}
	status := swdt(t, "cluster", "status", "-c", file)
	if status.code != 1 || !strings.Contains(status.stderr, "its create was interrupted") {
		t.Errorf("status after a killed create: %s", status)
	}
	made := decoded[clusterReport](t, ok(t, append(create, "-o", "json")...))
	if made.Result != "changed" || made.Version != "v1.36.3" {
		t.Errorf("create after three that were killed: %+v", made)
	}
	killAt(t, "deleting cluster", "cluster", "delete", "--yes", "-c", file)
	ok(t, "cluster", "delete", "--yes", "-c", file)
	if diff := cmp.Diff(before, inventory(t)); diff != "" {
		t.Errorf("Docker (-before +after):\n%s", diff)
	}
}

// killAt runs swdt and kills it as soon as it has printed a text.
func killAt(t *testing.T, text string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), commandLimit)
	defer cancel()
	command := exec.CommandContext(ctx, environment(t, "SWDT_BIN"), args...)
	stderr, err := command.StderrPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	seen := false
	for lines := bufio.NewScanner(stderr); !seen && lines.Scan(); {
		t.Log(lines.Text())
		seen = strings.Contains(lines.Text(), text)
	}
	_ = command.Process.Kill()
	err = command.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !seen {
		t.Fatalf("swdt %s was not killed at %q: %v", strings.Join(args, " "), text, err)
	}
}
