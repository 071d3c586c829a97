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

	"github.com/swdt-dev/swdt/internal/host"
)

// outputGrace is how long a command that has ended may leave its output open,
// as it does when something that it started goes on writing.
const outputGrace = 2 * time.Second

func (processes) Run(ctx context.Context, c host.Command) (int, error) {
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
	defer job.close() // whatever the command has left running ends here

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

func command(ctx context.Context, path string, c host.Command, job job) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, c.Args...)
	cmd.Dir = c.Folder
	if cmd.Dir == "" {
		cmd.Dir = profile()
	}
	cmd.Env = append(os.Environ(), c.Environment...) // of two, the last one counts
	cmd.Stdout, cmd.Stderr = c.Stdout, c.Stderr
	cmd.Cancel = job.kill
	cmd.WaitDelay = outputGrace
	cmd.SysProcAttr = &syscall.SysProcAttr{
		HideWindow: true,
		// Suspended until it is in the job: nothing it starts can escape. Without
		// a window it has a console of its own, so that nobody's Ctrl-C hits it.
		CreationFlags: windows.CREATE_SUSPENDED | windows.CREATE_NO_WINDOW,
	}
	if isCommandShell(path) {
		cmd.SysProcAttr.CmdLine = `"` + path + `" ` + strings.Join(c.Args, " ")
	}
	return cmd
}

// isCommandShell: cmd.exe takes its command line as it is, quotes and all.
func isCommandShell(path string) bool { return strings.EqualFold(filepath.Base(path), "cmd.exe") }

func start(cmd *exec.Cmd, stdin io.Reader, job job) error {
	var input io.WriteCloser
	if stdin != nil {
		// Not cmd.Stdin: Wait would wait for the reader, which is a person's
		// terminal and may never say anything again.
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
			_, _ = io.Copy(input, stdin) // a command need not read all of it
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

// job is a set of processes that ends as one: when it is killed, when its
// handle is closed, or when this process is gone, which closes it too.
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

// adopt takes a suspended process in and lets it run.
func (j job) adopt(process *os.Process) error {
	var err error
	handleErr := process.WithHandle(func(handle uintptr) {
		if err = windows.AssignProcessToJobObject(j.handle, windows.Handle(handle)); err != nil {
			err = failed(err, "put process %d into a job object", process.Pid)
			return
		}
		err = failed(resume(windows.Handle(handle)), "resume process %d", process.Pid)
	})
	return errors.Join(handleErr, err)
}

func (j job) kill() error { return windows.TerminateJobObject(j.handle, 1) }
func (j job) close()      { windows.CloseHandle(j.handle) }

// resume lets every thread of a suspended process run. os/exec closes the
// handle of the one thread there is, which leaves the native call.
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

// findProgram turns a name into a full path. The machine's PATH is read from
// the registry as well: that of this process is as old as sshd.
func findProgram(name string) (string, error) {
	if filepath.IsAbs(filepath.FromSlash(name)) {
		path := filepath.FromSlash(name)
		if found := withExtension(path); found != "" {
			return found, nil
		}
		return "", fmt.Errorf("find %s: %w", name, host.ErrNotExist)
	}
	if strings.ContainsAny(name, `\/:`) {
		return "", fmt.Errorf("find %s: neither a full path nor a bare name: %w", name, host.ErrNotExist)
	}
	for _, list := range []string{os.Getenv("PATH"), machinePath()} {
		for _, folder := range filepath.SplitList(list) {
			if !filepath.IsAbs(folder) {
				continue // it would depend on the working directory
			}
			if found := withExtension(filepath.Join(folder, name)); found != "" {
				return found, nil
			}
		}
	}
	return "", fmt.Errorf("find %s on the machine's PATH: %w", name, host.ErrNotExist)
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

// profile is where a command runs that was not told where: the user's own
// folder, as in a login shell.
func profile() string {
	home, err := os.UserHomeDir()
	if err == nil {
		if info, statErr := os.Stat(home); statErr == nil && info.IsDir() {
			return home
		}
	}
	return filepath.Dir(systemFile("x")) // LocalSystem may have none
}
