package sandbox_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node/agentbin"
	"github.com/swdt-dev/swdt/internal/sandbox"
)

// Only a node that proves to be a simulated sandbox gets an agent from AgentOf.
func TestAgentOf(t *testing.T) {
	info := up(t, options(t)) // by a process whose agent is standIn()
	docs, err := config.Load([]string{info.Config}, nil)
	if err != nil {
		t.Fatal(err)
	}
	credentials := docs[0].Node.Spec.Credentials
	mine := sandbox.Access{PrivateKey: credentials.PrivateKey, HostKey: credentials.HostKey}
	other, err := sandbox.StandIn()
	if err != nil {
		t.Fatal(err)
	}
	if agent, ok, err := sandbox.AgentOf(mine, standIn()); err != nil || !ok || agent.Hash != standIn().Hash {
		t.Errorf("with the agent of the sandbox: %v, %t, %v", agent.Hash, ok, err)
	}
	if agent, ok, err := sandbox.AgentOf(mine, agentbin.Agent{}); err != nil || !ok || agent.Hash != other.Hash {
		t.Errorf("without an agent: %v, %t, %v", agent.Hash, ok, err)
	}
	if err := connectWith(t, info, other); err != nil {
		t.Errorf("use the stand-in: %v", err)
	}

	copied := filepath.Join(t.TempDir(), "client_key")
	key, err := os.ReadFile(mine.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(copied, key, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*sandbox.Access){
		"another host key": func(a *sandbox.Access) { a.HostKey += "x" },
		"no host key":      func(a *sandbox.Access) { a.HostKey = "" },
		"a copied key":     func(a *sandbox.Access) { a.PrivateKey = copied },
	} {
		real := mine
		change(&real)
		if _, ok, err := sandbox.AgentOf(real, agentbin.Agent{}); ok || err != nil {
			t.Errorf("%s: got the stand-in, %v", name, err)
		}
	}
}
