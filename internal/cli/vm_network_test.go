package cli_test

import (
	"bytes"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/swdt-dev/swdt/internal/cli"
	"github.com/swdt-dev/swdt/internal/testing/dockertest"
	"github.com/swdt-dev/swdt/internal/testing/netspace"
	"github.com/swdt-dev/swdt/internal/ui"
)

// bridgedNode is a node file of a VM on the network of kind.
const bridgedNode = `apiVersion: windows.k8s.io/v1alpha1
kind: Node
metadata: {name: vm-1}
spec:
  credentials: {username: Administrator}
  machine:
    image: {disk: base.qcow2}
    network: {mode: bridge, bridge: kind}
  kubernetes:
    join:
      controlPlaneAlias: {name: kind-control-plane, ip: 172.18.0.2}
`

// networkPrints returns a test that compares all documents of a command of vm network with their schema,
// from a machine without a network of kind to one without it again. Bridge and taps are the kernel's, in
// a network of the test's own; Docker's engine is imitated.
func networkPrints(file string) func(*testing.T) {
	return func(t *testing.T) {
		if !netspace.Enter(t) {
			return
		}
		engine := dockertest.Start(t)
		engine.OnMake(func(n dockertest.Network) {
			subnet := netip.MustParsePrefix(n.Subnet)
			netspace.MakeBridge(t, n.BridgeName(), netip.PrefixFrom(netip.MustParseAddr(n.Gateway), subnet.Bits()))
		})
		schema, err := jsonschema.NewCompiler().Compile(filepath.Join(schemas, file))
		if err != nil {
			t.Fatal(err)
		}
		node := newBridgedNode(t)
		var codes []int
		for _, step := range []struct {
			file string
			args []string
		}{
			{"vm-network-check.json", []string{"check"}},
			{"vm-network-prepare.json", []string{"prepare", "--dry-run"}},
			{"vm-network-prepare.json", []string{"prepare"}},
			{"vm-network-prepare.json", []string{"prepare"}},
			{"vm-network-check.json", []string{"check"}},
			{"vm-network-remove.json", []string{"remove", "--dry-run"}},
			{"vm-network-remove.json", []string{"remove", "--yes"}},
			{"vm-network-remove.json", []string{"remove", "--yes"}},
		} {
			code, output := node.network(t, engine.Host(), append(step.args, "-o", "json")...)
			codes = append(codes, code)
			if step.file != file {
				continue
			}
			if n, err := documentsThatFit(schema, output); err != nil || n != 1 {
				t.Errorf("%q: %d documents: %v:\n%s", step.args, n, err, output)
			}
		}
		if diff := cmp.Diff([]int{5, 0, 0, 0, 0, 0, 0, 0}, codes); diff != "" {
			t.Errorf("the exit codes (-want +got):\n%s", diff)
		}
		if left := engine.Networks(); len(left) != 0 {
			t.Errorf("the engine still has %v", left)
		}
	}
}

// nodeFile is the path of a node file.
type nodeFile string

// newBridgedNode writes bridgedNode, and gives swdt an empty home.
func newBridgedNode(t *testing.T) nodeFile {
	t.Helper()
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	file := filepath.Join(t.TempDir(), "node.yaml")
	if err := os.WriteFile(file, []byte(bridgedNode), 0o600); err != nil {
		t.Fatal(err)
	}
	return nodeFile(file)
}

// network runs a command of vm network and returns its exit code and output.
func (f nodeFile) network(t *testing.T, docker string, args ...string) (code int, output string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	environment := cli.Environment{Getenv: func(name string) string {
		if name == "DOCKER_HOST" {
			return docker
		}
		return os.Getenv(name)
	}}
	args = slices.Concat([]string{"vm", "network"}, args, []string{"-c", string(f)})
	code = cli.Run(t.Context(), ui.Streams{Out: &stdout, Err: &stderr}, args, environment)
	t.Logf("swdt %q: exit code %d\n%s%s", args, code, stderr.String(), stdout.String())
	return code, stdout.String()
}
