package setup_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/agentbin"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/sandbox"
	"github.com/swdt-dev/swdt/internal/setup"
	"github.com/swdt-dev/swdt/internal/ui"
)

// lab is a simulated Windows that swdt reaches like a real one: by SSH, with the
// real agent.
type lab struct {
	t       *testing.T
	machine *simulated.Machine
	node    *node.Node
}

func newLab(t *testing.T, options simulated.Options) *lab {
	t.Helper()
	executable := simulated.Binary(simulated.BinarySpec{Name: "swdt-agent", Version: "test"})
	sum := sha256.Sum256(executable)
	hash := hex.EncodeToString(sum[:])
	options.Agent = &simulated.Agent{Hash: hash, Main: sandbox.AgentMain(hash)}
	machine := simulated.New(options)
	t.Cleanup(machine.Close)

	hostKey, _, err := sandbox.NewKey("host")
	if err != nil {
		t.Fatal(err)
	}
	clientKey, private, err := sandbox.NewKey("client")
	if err != nil {
		t.Fatal(err)
	}
	if block, _ := pem.Decode(private); block == nil {
		t.Fatal("the private key is not PEM")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() {
		served <- sandbox.Serve(ctx, listener, sandbox.ServerOptions{
			Machine: machine, HostKey: hostKey, AuthorizedKeys: []ssh.PublicKey{clientKey.PublicKey()},
		})
	}()
	t.Cleanup(func() { cancel(); <-served })

	home := t.TempDir()
	keyFile := filepath.Join(home, "key")
	if err := os.WriteFile(keyFile, private, 0o600); err != nil {
		t.Fatal(err)
	}
	document := config.Document{File: config.Stdin, Node: v1alpha1.Node{
		Metadata: v1alpha1.Metadata{Name: "win"},
		Spec: v1alpha1.NodeSpec{Credentials: v1alpha1.Credentials{
			Username: "Administrator", Hostname: listener.Addr().String(), PrivateKey: keyFile,
			HostKey: ssh.FingerprintSHA256(hostKey.PublicKey()),
		}},
	}}
	n, err := node.Connect(ctx, document, node.Options{
		HomeDir:   home,
		LookupEnv: func(string) (string, bool) { return "", false },
		Agent: agentbin.Agent{Hash: hash, Size: int64(len(executable)), Open: func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(executable)), nil
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return &lab{t: t, machine: machine, node: n}
}

func (l *lab) setup(spec v1alpha1.Setup, options plan.Options) ([]plan.StepResult, error) {
	l.t.Helper()
	options.Machine = l.node
	return plan.Run(l.t.Context(), setup.Steps(l.node, spec, setup.Options{}), options, ui.Discard{})
}

// changes runs f and returns the changes that it made on the machine.
func (l *lab) changes(f func()) []simulated.Operation {
	l.t.Helper()
	l.machine.ForgetOperations()
	f()
	return l.machine.Operations()
}

func states(results []plan.StepResult) map[string]plan.State {
	states := map[string]plan.State{}
	for _, result := range results {
		states[result.Name] = result.State
	}
	return states
}
