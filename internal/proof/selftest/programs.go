package selftest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node/command"
	"github.com/swdt-dev/swdt/internal/wait"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
	"github.com/swdt-dev/swdt/internal/wire/throwaway"
)

// trickyArguments are arguments that shells and quoting rules often change.
func trickyArguments() []string {
	return []string{"plain", "two words", `a "quoted" word`, `ends with \`, `C:\a b\`, "%PATH%", "^&|<>", "日本語", ""}
}

// tryPrograms runs a program with arguments, streams and an exit code.
func tryPrograms(ctx context.Context, t *trial) error {
	if err := t.installed(ctx); err != nil {
		return err
	}
	const code, input = 42, "a line for stdin\n"
	args := append([]string{throwaway.Argument, throwaway.Echo, fmt.Sprint(code)}, trickyArguments()...)
	result, err := t.run(ctx, input, programPath, args...)
	if err != nil {
		return err
	}
	if err := expect("the exit code", result.code, code); err != nil {
		return err
	}
	if err := expect("stderr", strings.ReplaceAll(result.stderr, "\r", ""), throwaway.EchoError); err != nil {
		return err
	}
	want := strings.Join(trickyArguments(), "\n") + "\n" + input
	if err := expect("the arguments and stdin that came back", result.stdout, want); err != nil {
		return err
	}
	_, err = t.run(ctx, "", folder+`\missing.exe`)
	return expectError("the start of a program that does not exist", err, fault.ErrNotExist)
}

// sleeper is a program on the node that waits for the end of its stdin.
type sleeper struct {
	process *agentv1.Process
	input   *io.PipeWriter
	ended   chan error
}

// sleep starts the program, and returns once the node's list of processes has it.
func (t *trial) sleep(ctx context.Context, path string) (*sleeper, error) {
	return t.begin(ctx, path, throwaway.Echo, "0", sleepMark)
}

// begin starts the program with arguments of which one is sleepMark, and returns once the node's list of processes has it.
func (t *trial) begin(ctx context.Context, path string, args ...string) (*sleeper, error) {
	stdin, input := io.Pipe()
	s := &sleeper{input: input, ended: make(chan error, 1)}
	go func() {
		_, err := command.Run(ctx, t.node.Processes, &agentv1.RunCommand{Path: path,
			Args: append([]string{throwaway.Argument}, args...)}, command.Streams{Stdin: stdin})
		stdin.CloseWithError(io.ErrClosedPipe)
		s.ended <- err
	}()
	err := wait.Condition{
		Name: "the started program among the processes", Interval: 50 * time.Millisecond, MaxInterval: time.Second,
		Limit: startLimit,
		Look: func(ctx context.Context) error {
			select {
			case err := <-s.ended:
				return wait.Stop(fmt.Errorf("the program ended: %w", errors.Join(err, errors.New("too early"))))
			default:
			}
			var err error
			s.process, err = t.find(ctx, func(p *agentv1.Process) bool {
				return strings.Contains(p.GetCommandLine(), sleepMark) && strings.EqualFold(p.GetImage(), path)
			})
			return err
		},
	}.Wait(ctx)
	if err != nil {
		_ = input.Close()
	}
	return s, err
}

// sleepMark identifies the program in the list of processes.
const sleepMark = "swdt-selftest-sleeper"

// wake ends the program.
func (s *sleeper) wake(ctx context.Context) error {
	_ = s.input.Close()
	select {
	case err := <-s.ended:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// errNotListed reports a process that the node does not list.
var errNotListed = errors.New("the node does not list the process")

// gone reports whether the node lists its processes, but none for which f returns true.
func (t *trial) gone(ctx context.Context, f func(*agentv1.Process) bool) (bool, error) {
	_, err := t.find(ctx, f)
	if errors.Is(err, errNotListed) {
		return true, nil
	}
	return false, err
}

// find returns the first process for which f returns true. The error is errNotListed if there is none.
func (t *trial) find(ctx context.Context, f func(*agentv1.Process) bool) (*agentv1.Process, error) {
	list, err := t.node.Processes.List(ctx, &agentv1.ListProcessesRequest{})
	if err != nil {
		return nil, wait.Stop(err)
	}
	if len(list.GetProcesses()) == 0 {
		return nil, wait.Stop(errors.New("the node lists no process"))
	}
	for _, p := range list.GetProcesses() {
		if f(p) {
			return p, nil
		}
	}
	return nil, errNotListed
}

// tryRunning renames a program that runs, and tries to remove it.
func tryRunning(ctx context.Context, t *trial) error {
	if err := t.installed(ctx); err != nil {
		return err
	}
	s, err := t.sleep(ctx, programPath)
	if err != nil {
		return err
	}
	moved := folder + `\moved.exe`
	err = t.whileRunning(ctx, moved)
	woke := s.wake(ctx)
	if _, back := t.node.Files.Rename(ctx, &agentv1.RenameRequest{From: moved, To: programPath}); back != nil &&
		!errors.Is(back, fault.ErrNotExist) {
		return errors.Join(err, woke, back)
	}
	return errors.Join(err, woke)
}

// The answers to the removal of a program that runs.
const (
	removalDenied = "removal of a running program: access denied"
	removalInUse  = "removal of a running program: in use"
)

func (t *trial) whileRunning(ctx context.Context, moved string) error {
	_, err := t.node.Files.Remove(ctx, &agentv1.RemoveRequest{Path: programPath})
	if err == nil {
		return errors.New("a program that runs can be removed")
	}
	t.answer(removalDenied, errors.Is(err, fault.ErrPermission))
	t.answer(removalInUse, errors.Is(err, fault.ErrInUse))
	if err := t.rename(ctx, programPath, moved); err != nil {
		return fmt.Errorf("rename a program that runs: %w", err)
	}
	return t.rename(ctx, moved, programPath)
}

// scanLimit is how long another program of the node, such as a virus scanner, may have a new file open.
const scanLimit = 15 * time.Second

// rename renames a file that another program may have open for a moment.
func (t *trial) rename(ctx context.Context, from, to string) error {
	return wait.Condition{
		Name: "the file to be free", Interval: 100 * time.Millisecond, MaxInterval: time.Second, Limit: scanLimit,
		Look: func(ctx context.Context) error {
			_, err := t.node.Files.Rename(ctx, &agentv1.RenameRequest{From: from, To: to})
			if err == nil || errors.Is(err, fault.ErrInUse) {
				return err
			}
			return wait.Stop(err)
		},
	}.Wait(ctx)
}

const heldPath = folder + `\held.txt`

// holderNamed is the answer whether swdt's error names the program that holds a file.
const holderNamed = "the program that holds a file is named"

// tryHeld renames a file while another program does not let it, and after that.
func tryHeld(ctx context.Context, t *trial) error {
	if err := t.installed(ctx); err != nil {
		return err
	}
	s, err := t.begin(ctx, programPath, throwaway.Hold, heldPath, sleepMark)
	if err != nil {
		return err
	}
	held := t.whileHeld(ctx, s.process)
	if err := errors.Join(held, s.wake(ctx)); err != nil {
		return err
	}
	return t.rename(ctx, heldPath, heldPath+".moved")
}

func (t *trial) whileHeld(ctx context.Context, holder *agentv1.Process) error {
	err := wait.Condition{
		Name: "the program to hold the file", Interval: 50 * time.Millisecond, MaxInterval: time.Second, Limit: startLimit,
		Look: func(ctx context.Context) error {
			info, err := t.node.Files.Stat(ctx, &agentv1.StatRequest{Path: heldPath})
			if err != nil {
				return wait.StopIf(!errors.Is(err, fault.ErrNotExist), err)
			}
			return expect("the size of the held file", info.GetSize(), int64(len(sleepMark)))
		},
	}.Wait(ctx)
	if err != nil {
		return err
	}
	_, err = t.node.Files.Rename(ctx, &agentv1.RenameRequest{From: heldPath, To: heldPath + ".moved"})
	if err := expectError("the rename of a file that a program holds", err, fault.ErrInUse); err != nil {
		return err
	}
	t.answer(holderNamed, strings.Contains(err.Error(), fmt.Sprintf("(PID %d)", holder.GetPid())))
	return nil
}

// tryProcesses looks at the list of processes.
func tryProcesses(ctx context.Context, t *trial) error {
	if err := t.installed(ctx); err != nil {
		return err
	}
	s, err := t.sleep(ctx, programPath)
	if err != nil {
		return err
	}
	t.answer("memory is known", s.process.GetMemoryBytes() > 0)
	t.answer("handles are known", s.process.GetHandles() > 0)
	t.answer("threads are known", s.process.GetThreads() > 0)
	t.answer("start is known", s.process.GetStarted() != nil)
	if err := errors.Join(t.startedByAgent(ctx, s.process), t.managers(ctx)); err != nil {
		return errors.Join(err, s.wake(ctx))
	}
	pid := s.process.GetPid()
	if woke := s.wake(ctx); woke != nil {
		return woke
	}
	gone, err := t.gone(ctx, func(p *agentv1.Process) bool { return p.GetPid() == pid && p.GetImage() == programPath })
	if err == nil && !gone {
		return errors.New("the node lists a program that has ended")
	}
	return err
}

const managersInSession0 = "services.exe in session 0"

// managers counts the Service Control Managers, if containers have some of their own.
func (t *trial) managers(ctx context.Context) error {
	list, err := t.node.Processes.List(ctx, &agentv1.ListProcessesRequest{})
	if err != nil {
		return err
	}
	all, ofNode := 0, 0
	for _, p := range list.GetProcesses() {
		if strings.EqualFold(p.GetName(), "services.exe") {
			all++
			if p.GetSession() == 0 {
				ofNode++
			}
		}
	}
	if all > 1 {
		t.answer(managersInSession0, ofNode)
	}
	return nil
}

// startedByAgent returns an error if the list of processes has no parent of the process, or one that is not the agent.
func (t *trial) startedByAgent(ctx context.Context, process *agentv1.Process) error {
	parent, err := t.find(ctx, func(p *agentv1.Process) bool { return p.GetPid() == process.GetParentPid() })
	if errors.Is(err, errNotListed) {
		return fmt.Errorf("the node lists process %d, but not its parent %d", process.GetPid(), process.GetParentPid())
	}
	if err != nil {
		return err
	}
	if !strings.EqualFold(parent.GetImage(), layout.Agent(t.agent.Hash)) {
		return fmt.Errorf("the parent of process %d is listed with the image %q, not that of swdt's agent",
			process.GetPid(), parent.GetImage())
	}
	return nil
}
