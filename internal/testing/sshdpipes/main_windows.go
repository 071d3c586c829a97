// sshdpipes starts a program as the sshd of Windows does, with the pipes that it gives to programs: named pipes with
// buffers of 4096 bytes, of which both ends are opened for overlapped I/O (fileio_pipe in contrib/win32/win32compat of
// PowerShell/openssh-portable, 7.7 to 9.8). It copies its own stdin and stdout from and to them. Tests run it under Wine.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sshdpipes:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("name a program and its arguments")
	}
	childIn, near, err := pipe("in")
	if err != nil {
		return err
	}
	in := os.NewFile(uintptr(near), "in")
	near, childOut, err := pipe("out")
	if err != nil {
		return err
	}
	out := os.NewFile(uintptr(near), "out")
	// The program's ends never become an os.File here: that would add them to the completion port of this process.
	_, process, err := syscall.StartProcess(args[0], args, &syscall.ProcAttr{
		Files: []uintptr{uintptr(childIn), uintptr(childOut), os.Stderr.Fd()},
	})
	if err != nil {
		return fmt.Errorf("start %s: %w", args[0], err)
	}
	if err := errors.Join(windows.CloseHandle(childIn), windows.CloseHandle(childOut)); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(in, os.Stdin)
		_ = in.Close() // the program sees the end of its stdin
	}()
	_, copied := io.Copy(os.Stdout, out)
	return errors.Join(ended(windows.Handle(process)), copied)
}

// ended waits for the end of a process.
func ended(process windows.Handle) error {
	defer windows.CloseHandle(process)
	if _, err := windows.WaitForSingleObject(process, windows.INFINITE); err != nil {
		return fmt.Errorf("wait for the program: %w", err)
	}
	var code uint32
	if err := windows.GetExitCodeProcess(process, &code); err != nil {
		return fmt.Errorf("read the program's exit code: %w", err)
	}
	if code != 0 {
		return fmt.Errorf("the program ended with code %d", code)
	}
	return nil
}

// pipe returns the handles of both ends of a pipe.
func pipe(name string) (read, write windows.Handle, err error) {
	const buffer = 4096
	path, err := windows.UTF16PtrFromString(fmt.Sprintf(`\\.\pipe\sshdpipes-%d-%s`, os.Getpid(), name))
	if err != nil {
		return 0, 0, err
	}
	read, err = windows.CreateNamedPipe(path, windows.PIPE_ACCESS_INBOUND|windows.FILE_FLAG_OVERLAPPED,
		windows.PIPE_TYPE_BYTE|windows.PIPE_WAIT, 1, buffer, buffer, 0, nil)
	if err != nil {
		return 0, 0, fmt.Errorf("make the pipe: %w", err)
	}
	write, err = windows.CreateFile(path, windows.GENERIC_WRITE, 0, nil, windows.OPEN_EXISTING,
		windows.FILE_FLAG_OVERLAPPED, 0)
	if err != nil {
		return 0, 0, errors.Join(fmt.Errorf("open the pipe: %w", err), windows.CloseHandle(read))
	}
	return read, write, nil
}
