package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/swdt-dev/swdt/internal/agent"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/host/simulated"
	"github.com/swdt-dev/swdt/internal/layout"
)

// AgentMain makes a simulated machine run the real agent's code for the
// executable with this hash:
//
//	simulated.New(simulated.Options{Agent: &simulated.Agent{Hash: hash, Main: sandbox.AgentMain(hash)}})
func AgentMain(hash string) simulated.AgentMain {
	return func(ctx context.Context, h *host.Host, executable string, args []string,
		stdin io.Reader, stdout, stderr io.Writer) int {
		return agent.Main(ctx, agent.Machine{Host: h, Executable: executable, Hash: hash}, args, stdin, stdout, stderr)
	}
}

// otherAgent answers for agents that are not this build's, which a simulated
// machine cannot run: it has the agent's code within itself.
func otherAgent(hash string) simulated.Program {
	return simulated.Program{
		Name: "another swdt-agent",
		Match: func(image *simulated.Image) bool {
			ours := strings.EqualFold(image.SHA256(), hash)
			name := image.Path[strings.LastIndex(image.Path, `\`)+1:] // uploaded, it has a longer one
			agent := strings.TrimSuffix(layout.AgentName, ".exe")
			return !ours && strings.HasPrefix(strings.ToLower(name), agent)
		},
		Main: func(_ context.Context, p *simulated.Process) int {
			fmt.Fprintln(p.Stderr, "this sandbox was started by another build of swdt: end it with swdt sandbox down, and start it anew")
			return 1
		},
	}
}

// simulatedMachine is an in-memory Windows behind the SSH server.
type simulatedMachine struct {
	machine *simulated.Machine
	shell   shellKind
}

func (m *simulatedMachine) up() (context.Context, bool) { return m.machine.Up() }

// session gives the channel a process of its own, sshd's child, whose end takes
// everything along that was run through it.
func (m *simulatedMachine) session() (session, error) {
	if _, ok := m.machine.Up(); !ok {
		return nil, errors.New("the machine is down")
	}
	return &simulatedSession{process: m.machine.Spawn("sshd-session.exe"), shell: m.shell}, nil
}

type simulatedSession struct {
	process *simulated.Process
	shell   shellKind
}

func (s *simulatedSession) run(ctx context.Context, c command) int {
	h := s.process.Host
	shell := &shell{
		kind: s.shell, disk: h.Files, program: h.Processes.Run, builtin: s.builtin, command: c,
		about: "a simulated Windows, held in memory; it knows a few commands (echo, ver, cmd, hostname, whoami)",
	}
	return shell.run(ctx)
}

// builtin is what comes with Windows and is not a program of the machine.
func (s *simulatedSession) builtin(ctx context.Context, sub *shell, words []string) (int, bool) {
	switch strings.TrimSuffix(strings.ToLower(words[0]), ".exe") {
	case "ver":
		facts, err := s.process.Host.Machine.Facts(ctx)
		if err != nil {
			return 1, true
		}
		fmt.Fprintf(sub.stdout, "\r\nMicrosoft Windows [Version 10.0.%s]\r\n", facts.Build)
		return 0, s.shell == shellCmd
	}
	return 0, false
}

func (s *simulatedSession) disk() disk { return s.process.Host.Files }
func (s *simulatedSession) close()     { s.process.Kill() }
