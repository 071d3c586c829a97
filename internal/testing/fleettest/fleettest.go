// Package fleettest has simulated Windows nodes for tests of a fleet, and a server of binaries for them.
//
//   - fleettest.go: the nodes
//   - fileserver.go: the server, and contents that name its files
package fleettest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
)

// Machine is a simulated Windows on which a test runs the program of the fleet.
type Machine struct {
	*nodetest.Node
	First  []byte // its kubelet at first
	copies string // a folder with copies of the machine's files, since the program runs outside of the machine
}

// NewMachine starts a machine, which ends with the test.
func NewMachine(t testing.TB, name string) *Machine {
	m := &Machine{Node: nodetest.Start(t, name, simulated.Options{}), copies: t.TempDir()}
	m.First = m.Get(simulated.KubeletPath)
	return m
}

// Machines starts the machines w0, w1 and so on.
func Machines(t testing.TB, count int) (all []*Machine) {
	for i := range count {
		all = append(all, NewMachine(t, fmt.Sprintf("w%d", i)))
	}
	return all
}

// Open connects to the agent on the machine, as a program on the machine does.
func (m *Machine) Open(ctx context.Context) (*node.Node, error) {
	if err := m.Reconnect(ctx); err != nil {
		return nil, err
	}
	return m.Node.Node, nil
}

// Local returns the path of a copy of a file of the machine; no file is there if the machine has none.
func (m *Machine) Local(path string) string {
	name := filepath.Join(m.copies, filepath.Base(strings.ReplaceAll(path, `\`, "/")))
	content, err := m.Machine.ReadFile(path)
	if err == nil {
		_ = os.WriteFile(name, content, 0o600) // without the copy, there is no base for a patch
	}
	return name
}

// Runs reports whether the machine has this kubelet.
func (m *Machine) Runs(kubelet []byte) bool {
	content, err := m.Machine.ReadFile(simulated.KubeletPath) // a power cut ends the process behind m.Files
	return err == nil && string(content) == string(kubelet)
}
