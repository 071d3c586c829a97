package windows

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// outputGrace is how long the output of a command may stay open after the
// command has ended, for example because a child continues to write.
const outputGrace = 2 * time.Second

func (processes) Run(ctx context.Context, c platform.Command) (int, error) {
	if err := ctx.Err(); err != nil {
		return -1, fmt.Errorf("run %s: %w", c.Path, err)
	}
	path, err := findProgram(c.Path)
	if err != nil {
		return -1, err
	}
	job, err := newJob()
	if err != nil {
		return -1, err
	}
	defer job.close() // ends all processes that the command has left running
	if c.Terminal != nil {
		return runOnTerminal(ctx, path, c, job)
	}

	cmd := command(ctx, path, c, job)
	if err := start(cmd, c.Stdin, job); err != nil {
		return -1, failed(err, "start %s", path)
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay) && ctx.Err() == nil:
		return cmd.ProcessState.ExitCode(), nil
	case ctx.Err() != nil:
		return -1, fmt.Errorf("run %s: %w", path, ctx.Err())
	case errors.As(err, &exit):
		return exit.ExitCode(), nil
	}
	return cmd.ProcessState.ExitCode(), failed(err, "run %s", path)
}

func command(ctx context.Context, path string, c platform.Command, job job) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, c.Args...)
	cmd.Dir = c.Folder
	if cmd.Dir == "" {
		cmd.Dir = profile()
	}
	cmd.Env = append(os.Environ(), c.Environment...) // if a name occurs twice, the last value wins
	cmd.Stdout, cmd.Stderr = c.Stdout, c.Stderr
	cmd.Cancel = job.kill
	cmd.WaitDelay = outputGrace
	cmd.SysProcAttr = &syscall.SysProcAttr{
		HideWindow: true,
		// The process is suspended until it is in the job, so that no child can escape.
		// CREATE_NO_WINDOW gives the process a console of its own without a window, so that no
		// Ctrl-C reaches the process.
		CreationFlags: windows.CREATE_SUSPENDED | windows.CREATE_NO_WINDOW,
	}
	if isCommandShell(path) {
		cmd.SysProcAttr.CmdLine = shellCommandLine(path, c.Args)
	}
	return cmd
}

func shellCommandLine(path string, args []string) string {
	return `"` + path + `" ` + strings.Join(args, " ")
}

// isCommandShell reports whether path is cmd.exe, which needs its command line
// unchanged, quotes included.
func isCommandShell(path string) bool { return strings.EqualFold(filepath.Base(path), "cmd.exe") }

func start(cmd *exec.Cmd, stdin io.Reader, job job) error {
	var input io.WriteCloser
	if stdin != nil {
		// cmd.Stdin is not used, because cmd.Wait would then wait for the
		// reader, which may be a terminal that sends no more input.
		pipe, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		input = pipe
	}
	if err := cmd.Start(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return windows.ERROR_FILE_NOT_FOUND
		}
		return err
	}
	if err := job.adopt(cmd.Process); err != nil {
		return errors.Join(err, cmd.Process.Kill(), ignoreExit(cmd.Wait()))
	}
	if input != nil {
		go func() {
			_, _ = io.Copy(input, stdin) // an error is ignored: a command need not read all of its input
			_ = input.Close()
		}()
	}
	return nil
}

func ignoreExit(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}

// job is a set of processes that end together. They end when the job is killed,
// when its handle is closed, or when this process ends, which closes the
// handle.
type job struct{ handle windows.Handle }

func newJob() (job, error) {
	handle, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return job{}, failed(err, "create a job object")
	}
	var limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(handle, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err != nil {
		return job{}, errors.Join(failed(err, "limit a job object"), windows.CloseHandle(handle))
	}
	return job{handle}, nil
}

// EndChildrenWithThisProcess makes each process that this process starts from now on end together with this process, also
// if this process is killed. A child is in this process's job from its first moment, while the job of its command has it
// only after adopt: a child of an agent that was killed between the two would stay suspended, and its file in use, until
// the next boot.
func EndChildrenWithThisProcess() error {
	job, err := newJob()
	if err != nil {
		return err
	}
	if err := windows.AssignProcessToJobObject(job.handle, windows.CurrentProcess()); err != nil {
		job.close()
		return failed(err, "put this process into a job object")
	}
	return nil // the handle stays open for as long as this process lives
}

// adopt adds a suspended process to the job and lets it run.
func (j job) adopt(process *os.Process) error {
	var err error
	handleErr := process.WithHandle(func(handle uintptr) {
		err = j.adoptHandle(windows.Handle(handle), process.Pid)
	})
	return errors.Join(handleErr, err)
}

func (j job) adoptHandle(process windows.Handle, pid int) error {
	if err := windows.AssignProcessToJobObject(j.handle, process); err != nil {
		return failed(err, "put process %d into a job object", pid)
	}
	return failed(resume(process), "resume process %d", pid)
}

func (j job) kill() error { return windows.TerminateJobObject(j.handle, 1) }
func (j job) close()      { windows.CloseHandle(j.handle) }

// resume lets every thread of a suspended process run. It needs this native
// call, since os/exec has closed the handle of the process's only thread.
func resume(process windows.Handle) error {
	proc := windows.NewLazySystemDLL("ntdll.dll").NewProc("NtResumeProcess")
	if err := proc.Find(); err != nil {
		return err
	}
	if status, _, _ := proc.Call(uintptr(process)); status != 0 {
		return windows.NTStatus(status)
	}
	return nil
}

// findProgram converts a name to a full path. It also reads the machine's PATH
// from the registry, since this process got its PATH from sshd, and that PATH
// is as old as sshd's process.
func findProgram(name string) (string, error) {
	if filepath.IsAbs(filepath.FromSlash(name)) {
		path := filepath.FromSlash(name)
		if found := withExtension(path); found != "" {
			return found, nil
		}
		return "", fmt.Errorf("find %s: %w", name, fault.ErrNotExist)
	}
	if strings.ContainsAny(name, `\/:`) {
		return "", fmt.Errorf("find %s: neither a full path nor a bare name: %w", name, fault.ErrNotExist)
	}
	for _, list := range []string{os.Getenv("PATH"), machinePath()} {
		for _, folder := range filepath.SplitList(list) {
			if !filepath.IsAbs(folder) {
				continue // skip folders that are relative to the working directory
			}
			if found := withExtension(filepath.Join(folder, name)); found != "" {
				return found, nil
			}
		}
	}
	return "", fmt.Errorf("find %s on the machine's PATH: %w", name, fault.ErrNotExist)
}

func withExtension(path string) string {
	endings := append([]string{""}, strings.Split(".com;.exe;.bat;.cmd", ";")...)
	if filepath.Ext(path) == "" {
		endings = append(endings[1:], "")
	}
	for _, ending := range endings {
		if info, err := os.Stat(path + ending); err == nil && !info.IsDir() {
			return path + ending
		}
	}
	return ""
}

const environmentKey = `SYSTEM\CurrentControlSet\Control\Session Manager\Environment`

func machinePath() string {
	key, err := openKey(`HKLM\`+environmentKey, registry.QUERY_VALUE)
	if err != nil {
		return ""
	}
	defer key.Close()
	value, err := readValue(key, "Path")
	if err != nil {
		return ""
	}
	expanded, err := registry.ExpandString(value.String)
	if err != nil {
		return value.String
	}
	return expanded
}

// profile returns the default working directory of a command: the user's own
// folder, as in a login shell.
func profile() string {
	home, err := os.UserHomeDir()
	if err == nil {
		if info, statErr := os.Stat(home); statErr == nil && info.IsDir() {
			return home
		}
	}
	return filepath.Dir(systemFile("x")) // LocalSystem may have no profile
}
