package selftest_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/agent"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node/agentbin"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/proof/selftest"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// agentSize makes the agent as large as is needed for a difference to be worth its while.
const agentSize = 3 << 20

// session begins the name of the process that serves a connection to the simulated node.
const session = "session"

// bench is a simulated node, and the options of a run on it.
type bench struct {
	*nodetest.Node
	options selftest.Options
}

func newBench(t *testing.T) *bench {
	t.Helper()
	executable := simulated.Binary(simulated.BinarySpec{Name: "swdt-agent", Size: agentSize})
	b := &bench{Node: nodetest.Start(t, "win-1", simulated.Options{Hostname: "WIN-SECRET"}),
		options: selftest.Options{Agent: agentbin.FromBytes(executable), Swdt: "v0.0.0-test", ChangeSettings: true}}
	hash := b.options.Agent.Hash
	b.Machine.WriteFile(layout.Agent(hash), executable)
	b.Machine.Register(simulated.AgentProgram(simulated.Agent{Hash: hash, Main: agentMain(hash)}))
	b.defect(func(simulated.Operation) simulated.Verdict { return simulated.Verdict{} })
	b.Tamper(func(_ string, _ int, reply proto.Message, send func(proto.Message) error) error { return send(reply) })
	return b
}

// Tamper makes tamper decide on the agent's replies. No file is behind the process of a session: it is listed with
// the path of the agent whose code it runs.
func (b *bench) Tamper(tamper nodetest.Tamper) {
	agent := layout.Agent(b.options.Agent.Hash)
	b.Node.Tamper(func(method string, number int, reply proto.Message, send func(proto.Message) error) error {
		if list, ok := reply.(*agentv1.ListProcessesReply); ok {
			for _, p := range list.GetProcesses() {
				if strings.HasPrefix(p.GetName(), session) {
					p.Image = agent
				}
			}
		}
		return tamper(method, number, reply, send)
	})
}

// defect makes hook decide on the machine's operations. A session whose process was killed also loses
// its connection, as a real one does.
func (b *bench) defect(hook func(simulated.Operation) simulated.Verdict) {
	b.Machine.OnOperation(func(op simulated.Operation) simulated.Verdict {
		if op.Kind == simulated.OpProcessKill && op.Phase == simulated.After && strings.HasPrefix(op.Target, session) {
			go b.Cut()
		}
		return hook(op)
	})
}

// agentMain is the code of the agent with that hash.
func agentMain(hash string) simulated.AgentMain {
	return func(ctx context.Context, p *platform.Platform, executable string, args []string, stdin io.Reader,
		stdout, stderr io.Writer) int {
		return agent.Main(ctx, agent.Machine{Platform: p, Executable: executable, Hash: hash}, args, stdin, stdout, stderr)
	}
}

func document() config.Document {
	return config.Document{Node: v1alpha1.Node{Metadata: v1alpha1.Metadata{Name: "win-1"}}}
}

func (b *bench) run(t *testing.T) (selftest.Report, error) {
	t.Helper()
	return selftest.Run(t.Context(), b.Node.Node, document(), b.options, ui.Discard{})
}

// failures returns the reasons of the claims that did not pass, by ID.
func failures(r selftest.Report, outcomes ...selftest.Outcome) map[string]string {
	all := map[string]string{}
	for _, c := range r.Claims {
		for _, outcome := range outcomes {
			if c.Outcome == outcome {
				all[c.ID] = strings.TrimSpace(c.Reason)
			}
		}
	}
	return all
}
