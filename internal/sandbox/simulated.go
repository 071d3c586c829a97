package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/agent"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// AgentMain makes a simulated machine run the real agent's code for the
// executable with this hash:
//
//	simulated.New(simulated.Options{Agent: &simulated.Agent{Hash: hash, Main: sandbox.AgentMain(hash)}})
func AgentMain(hash string) simulated.AgentMain {
	return func(ctx context.Context, p *platform.Platform, executable string, args []string,
		stdin io.Reader, stdout, stderr io.Writer) int {
		return agent.Main(ctx, agent.Machine{Platform: p, Executable: executable, Hash: hash}, args,
			stdin, stdout, stderr)
	}
}

// otherAgent is the program that runs in place of an agent that is none of these. A simulated
// machine cannot run such an agent: it contains the code of this build's agent only.
func otherAgent(hashes ...string) simulated.Program {
	return simulated.Program{
		Name: "another swdt-agent",
		Match: func(image *simulated.Image) bool {
			ours := slices.Contains(hashes, image.SHA256())
			name := image.Path[strings.LastIndex(image.Path, `\`)+1:] // the name of an uploaded agent is longer
			agent := strings.TrimSuffix(layout.AgentName, ".exe")
			return !ours && strings.HasPrefix(strings.ToLower(name), agent)
		},
		Main: func(_ context.Context, p *simulated.Process) int {
			fmt.Fprintln(p.Stderr, "this sandbox was started by another build of swdt: end it with swdt sandbox down, "+
				"and start it anew")
			return 1
		},
	}
}

// simulatedMachine is an in-memory Windows machine behind the SSH server.
type simulatedMachine struct {
	machine *simulated.Machine
	shell   defaultShell
}

func (m *simulatedMachine) up() (context.Context, bool) { return m.machine.Up() }

// session creates a process for the channel, a child of sshd. When that process ends, all processes
// that were started through it end.
func (m *simulatedMachine) session() (session, error) {
	if _, ok := m.machine.Up(); !ok {
		return nil, errors.New("the machine is down")
	}
	return &simulatedSession{process: m.machine.Spawn("sshd-session.exe"), shell: m.shell}, nil
}

type simulatedSession struct {
	process *simulated.Process
	shell   defaultShell
}

func (s *simulatedSession) run(ctx context.Context, c command) int {
	p := s.process.Platform
	shell := &shell{
		defaultShell: s.shell, disk: p.Files, program: p.Processes.Run, builtin: s.builtin, command: c,
		about: "a simulated Windows, held in memory; it knows a few commands (echo, ver, cmd, hostname, whoami)",
	}
	return shell.run(ctx)
}

// builtin runs the commands that are part of Windows and not programs of the machine.
func (s *simulatedSession) builtin(ctx context.Context, sub *shell, words []string) (int, bool) {
	switch strings.TrimSuffix(strings.ToLower(words[0]), ".exe") {
	case "ver":
		facts, err := s.process.Platform.Machine.Facts(ctx)
		if err != nil {
			return 1, true
		}
		fmt.Fprintf(sub.stdout, "\r\nMicrosoft Windows [Version 10.0.%s]\r\n", facts.Build)
		return 0, s.shell.kind == shellCmd
	}
	return 0, false
}

func (s *simulatedSession) disk() disk { return s.process.Platform.Files }
func (s *simulatedSession) close()     { s.process.Kill() }
