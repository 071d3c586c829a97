//go:build windows

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	tasktypes "github.com/containerd/containerd/api/types/task"
	"golang.org/x/sys/windows"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/swdt-dev/swdt/lab/pods/pipe"
)

// outputLimit is the maximum time for which the output of a process that has ended is still
// read, since a child may hold the output open.
const outputLimit = 5 * time.Second

// processSpec has the needed fields of the OCI runtime's specification of a process.
type processSpec struct {
	Args        []string `json:"args"`
	CommandLine string   `json:"commandLine"`
	Env         []string `json:"env"`
}

// streams are the pipes that containerd serves for a process; empty: none.
type streams struct {
	stdin, stdout, stderr string
	oneOutput             bool // stderr is written to stdout, as on a terminal
}

// process is one process of a container, from before its start until after its end.
type process struct {
	execID  string
	spec    processSpec
	streams streams

	mu      sync.Mutex
	started bool
	handle  windows.Handle
	stdin   io.Closer

	pid        uint32        // set when the process starts
	ended      chan struct{} // closed when the process has ended and the fields below are set
	exitStatus uint32
	exitedAt   time.Time
}

func newProcess(execID string, spec processSpec, streams streams) *process {
	return &process{execID: execID, spec: spec, streams: streams, ended: make(chan struct{})}
}

// state is the state of a process, as containerd requests it.
type state struct {
	pid        uint32
	status     tasktypes.Status
	exitStatus uint32
	exitedAt   *timestamppb.Timestamp
}

func (p *process) now() state {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.ended:
		return state{p.pid, tasktypes.Status_STOPPED, p.exitStatus, timestamppb.New(p.exitedAt)}
	default:
	}
	if p.started {
		return state{pid: p.pid, status: tasktypes.Status_RUNNING}
	}
	return state{status: tasktypes.Status_CREATED}
}

// start starts the process suspended, and resumes it in the job, so that all children of the
// process are in the job too.
func (p *process) start(c *container) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.started {
		return errors.New("it was started before")
	}
	args, err := p.spec.arguments()
	if err != nil {
		return err
	}
	environment := append(os.Environ(), p.spec.Env...)
	if c.view != nil {
		environment = append(environment, mountPoint+"="+c.view.root)
		for i, arg := range args {
			args[i] = c.view.expand(arg)
		}
	}
	cmd := exec.Command(c.path(args[0]))
	for _, arg := range args[1:] {
		cmd.Args = append(cmd.Args, mounted(c.mounts, arg))
	}
	cmd.Dir = `C:\`
	cmd.Env = environment
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_SUSPENDED | windows.CREATE_NEW_PROCESS_GROUP}
	cmd.WaitDelay = outputLimit
	outputs, stop := context.WithCancel(context.Background())
	var lost func()
	if p.execID == "" && planted(mortal) {
		lost = func() { c.kill(killed) }
	}
	stdout, stderr := openSink(outputs, p.streams.stdout, lost), openSink(outputs, p.streams.stderr, lost)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if p.streams.oneOutput {
		cmd.Stderr = stdout
	}
	closeOutputs := func() {
		stop()
		stdout.close()
		stderr.close()
	}
	if err := p.connectStdin(cmd); err != nil {
		closeOutputs()
		return err
	}
	if err := cmd.Start(); err != nil {
		closeOutputs()
		return err
	}
	p.started, p.pid = true, uint32(cmd.Process.Pid)
	resumeErr := p.resumeIn(c.job)
	if resumeErr != nil {
		_ = cmd.Process.Kill()
	}
	go func() {
		_ = cmd.Wait() // the exit code is in the state
		closeOutputs()
		p.closeStdin() // so that containerd does not wait until the process reads more
		p.end(uint32(cmd.ProcessState.ExitCode()))
	}()
	return resumeErr
}

func (s processSpec) arguments() ([]string, error) {
	if s.CommandLine != "" {
		return windows.DecomposeCommandLine(s.CommandLine)
	}
	if len(s.Args) == 0 {
		return nil, errors.New("it has no command")
	}
	return s.Args, nil
}

// resumeIn assigns the suspended process to the job and resumes it.
func (p *process) resumeIn(j *job) error {
	const suspendResume = 0x0800 // PROCESS_SUSPEND_RESUME
	handle, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE|suspendResume, false, p.pid)
	if err != nil {
		return fmt.Errorf("open process %d: %w", p.pid, err)
	}
	p.handle = handle
	if err := windows.AssignProcessToJobObject(j.handle, handle); err != nil {
		return fmt.Errorf("put process %d into its job: %w", p.pid, err)
	}
	resume := windows.NewLazySystemDLL("ntdll.dll").NewProc("NtResumeProcess")
	if result, _, _ := resume.Call(uintptr(handle)); result != 0 {
		return fmt.Errorf("resume process %d: %w", p.pid, windows.NTStatus(result))
	}
	return nil
}

func (p *process) end(exitStatus uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.exitStatus, p.exitedAt = exitStatus, time.Now()
	if p.handle != 0 {
		_ = windows.CloseHandle(p.handle)
		p.handle = 0
	}
	close(p.ended)
}

func (p *process) kill(exitStatus uint32) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.handle == 0 {
		return nil // the process has ended
	}
	return windows.TerminateProcess(p.handle, exitStatus)
}

// connectStdin connects the pipe to the process's standard input. The end of the process does
// not wait for the end of the copying.
func (p *process) connectStdin(cmd *exec.Cmd) error {
	if p.streams.stdin == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), dialLimit)
	defer cancel()
	from, err := pipe.Dial(ctx, p.streams.stdin)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", p.streams.stdin, err)
	}
	to, err := cmd.StdinPipe()
	if err != nil {
		return errors.Join(err, from.Close())
	}
	p.stdin = from
	go func() {
		_, _ = io.Copy(to, from) // either end may have closed
		_ = to.Close()
	}()
	return nil
}

func (p *process) closeStdin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stdin != nil {
		_ = p.stdin.Close()
		p.stdin = nil
	}
}
