package windows

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf16"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// screenGrace limits how long the last output of a terminal may take to arrive after its console
// was closed.
const screenGrace = 5 * time.Second

// pseudoConsole is a console of Windows whose keyboard and screen are pipes of this process (ConPTY,
// since Windows 10 1809 and Windows Server 2019).
type pseudoConsole struct {
	handle windows.Handle
	// keys and screen are this process's ends of the pipes, theirs are the console's ends.
	keys, screen, theirKeys, theirScreen windows.Handle
}

func hasPseudoConsole() bool {
	return windows.NewLazySystemDLL("kernel32.dll").NewProc("CreatePseudoConsole").Find() == nil
}

func coordinates(size platform.TerminalSize) windows.Coord {
	return windows.Coord{X: int16(size.Columns), Y: int16(size.Rows)}
}

func newPseudoConsole(size platform.TerminalSize) (*pseudoConsole, error) {
	if !size.Valid() {
		return nil, fmt.Errorf("a terminal has no %d columns and %d rows", size.Columns, size.Rows)
	}
	if !hasPseudoConsole() {
		return nil, fmt.Errorf("a terminal needs Windows 10 1809 or Windows Server 2019, or a later version: %w",
			fault.ErrNotSupported)
	}
	c := &pseudoConsole{}
	err := windows.CreatePipe(&c.theirKeys, &c.keys, nil, 0)
	if err == nil {
		err = windows.CreatePipe(&c.screen, &c.theirScreen, nil, 0)
	}
	if err == nil {
		err = windows.CreatePseudoConsole(coordinates(size), c.theirKeys, c.theirScreen, 0, &c.handle)
	}
	if err != nil {
		closeHandles(&c.theirKeys, &c.theirScreen, &c.keys, &c.screen)
		return nil, failed(err, "create a pseudoconsole")
	}
	return c, nil
}

func closeHandles(handles ...*windows.Handle) {
	for _, handle := range handles {
		if *handle != 0 {
			_ = windows.CloseHandle(*handle)
			*handle = 0
		}
	}
}

// runOnTerminal runs a program on a terminal of its own.
func runOnTerminal(ctx context.Context, path string, c platform.Command, job job) (int, error) {
	console, err := newPseudoConsole(c.Terminal.Size)
	if err != nil {
		return -1, fmt.Errorf("run %s: %w", path, err)
	}
	process, err := console.start(path, c, job)
	// The console has its own duplicates of these ends. As long as this process has them too, the
	// screen never ends.
	closeHandles(&console.theirKeys, &console.theirScreen)
	shown := console.show(c.Stdout)
	if err != nil {
		closeHandles(&console.keys)
		console.end(ctx, shown)
		return -1, err
	}
	defer process.Close()

	hungUp := console.typeKeys(c.Stdin)
	stopFollowing := console.follow(c.Terminal.Resized)
	var code uint32
	if err = waitOrKill(ctx, process, job, hungUp); err == nil {
		err = failed(windows.GetExitCodeProcess(process.handle, &code), "read the exit code of %s", path)
	}
	_ = job.kill() // ends the processes that the command has left running
	stopFollowing()
	console.end(ctx, shown)
	if ctx.Err() != nil {
		return -1, fmt.Errorf("run %s: %w", path, ctx.Err())
	}
	return int(code), err
}

// end closes the console and waits until the last output has been written. Before Windows 11 24H2
// closing waits until the console's output was read, so it runs beside the reader.
func (c *pseudoConsole) end(ctx context.Context, shown <-chan struct{}) {
	go windows.ClosePseudoConsole(c.handle)
	grace := time.NewTicker(screenGrace)
	defer grace.Stop()
	for {
		select {
		case <-shown:
			return
		case <-ctx.Done():
			return // the reader discards the rest, since writes fail from now on
		case <-grace.C:
			select {
			case <-shown: // the handle is closed then
				return
			default:
				_ = windows.CancelIoEx(c.screen, nil) // the console did not close its end
			}
		}
	}
}

// waitOrKill waits until the process has ended. It ends the process and its children when ctx ends
// or the person hangs up.
func waitOrKill(ctx context.Context, process *processHandle, job job, hungUp <-chan struct{}) error {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	gone := make(chan struct{})
	go func() {
		select {
		case <-hungUp:
			_ = job.kill()
		case <-ctx.Done():
			_ = job.kill()
		case <-gone:
		}
	}()
	defer close(gone)
	return process.Wait(waiting)
}

// start starts a program on the console, in the job.
func (c *pseudoConsole) start(path string, command platform.Command, job job) (*processHandle, error) {
	attributes, err := windows.NewProcThreadAttributeList(1)
	if err != nil {
		return nil, failed(err, "start %s", path)
	}
	defer attributes.Delete()
	// The value of this attribute is the handle itself, not its address.
	value := *(*unsafe.Pointer)(unsafe.Pointer(&c.handle))
	err = attributes.Update(windows.PROC_THREAD_ATTRIBUTE_PSEUDOCONSOLE, value, unsafe.Sizeof(c.handle))
	if err != nil {
		return nil, failed(err, "start %s", path)
	}
	startup := &windows.StartupInfoEx{ProcThreadAttributeList: attributes.List()}
	startup.Cb = uint32(unsafe.Sizeof(*startup))
	// Without this flag, a program would get the streams of this process, which are pipes. With
	// invalid handles, Windows opens those of the console.
	startup.Flags = windows.STARTF_USESTDHANDLES
	const none = windows.InvalidHandle
	startup.StdInput, startup.StdOutput, startup.StdErr = none, none, none

	line := windows.ComposeCommandLine(append([]string{path}, command.Args...))
	if isCommandShell(path) {
		line = shellCommandLine(path, command.Args)
	}
	folder := command.Folder
	if folder == "" {
		folder = profile()
	}
	path16, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, failed(err, "start %s", path)
	}
	line16, err := windows.UTF16PtrFromString(line)
	if err != nil {
		return nil, failed(err, "start %s", path)
	}
	folder16, err := windows.UTF16PtrFromString(folder)
	if err != nil {
		return nil, failed(err, "start %s in %s", path, folder)
	}
	environment, err := environmentBlock(append(os.Environ(), command.Environment...))
	if err != nil {
		return nil, failed(err, "start %s", path)
	}
	handleCtrlC()
	var info windows.ProcessInformation
	// The process is suspended until it is in the job, so that no child can escape.
	err = windows.CreateProcess(path16, line16, nil, nil, false, windows.CREATE_SUSPENDED|
		windows.CREATE_UNICODE_ENVIRONMENT|windows.EXTENDED_STARTUPINFO_PRESENT, environment, folder16,
		&startup.StartupInfo, &info)
	if err != nil {
		return nil, failed(err, "start %s", path)
	}
	_ = windows.CloseHandle(info.Thread)
	process := &processHandle{pid: info.ProcessId, handle: info.Process}
	if err := job.adoptHandle(info.Process, int(info.ProcessId)); err != nil {
		_ = windows.TerminateProcess(info.Process, 1)
		_ = process.Close()
		return nil, err
	}
	return process, nil
}

// handleCtrlC ends a state in which this process and all its children ignore Ctrl-C. A program that
// sshd starts in a new process group inherits that state. Elsewhere this has no effect.
func handleCtrlC() {
	proc := windows.NewLazySystemDLL("kernel32.dll").NewProc("SetConsoleCtrlHandler")
	if proc.Find() == nil {
		_, _, _ = proc.Call(0, 0)
	}
}

// environmentBlock returns the variables as CreateProcess takes them: sorted by name, in capitals. Of two variables of
// one name, the last one wins. A name such as =C:, by which Windows remembers a drive's current folder, begins with an
// equals sign.
func environmentBlock(variables []string) (*uint16, error) {
	last := map[string]string{}
	for _, variable := range variables {
		if strings.ContainsRune(variable, 0) {
			return nil, windows.ERROR_INVALID_PARAMETER
		}
		end := strings.Index(variable[min(1, len(variable)):], "=") + 1
		last[strings.ToUpper(variable[:end])] = variable
	}
	var block []uint16
	for _, name := range slices.Sorted(maps.Keys(last)) {
		block = append(append(block, utf16.Encode([]rune(last[name]))...), 0)
	}
	block = append(block, 0, 0)
	return &block[0], nil
}

// show copies what the terminal shows to the writer, until the console has closed its end. After an
// error of the writer it discards the rest: a console whose output is not read cannot be closed. It
// closes this process's end of the screen.
func (c *pseudoConsole) show(to io.Writer) (shown <-chan struct{}) {
	done := make(chan struct{})
	go func() {
		defer windows.CloseHandle(c.screen)
		defer close(done) // before the handle is closed, since end uses it until then
		if to == nil {
			to = io.Discard
		}
		buffer := make([]byte, 32<<10)
		for {
			var n uint32
			if err := windows.ReadFile(c.screen, buffer, &n, nil); err != nil {
				return // ERROR_BROKEN_PIPE: the console is closed
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				to = io.Discard
			}
		}
	}()
	return done
}

// typeKeys copies keys to the console and closes hungUp at their end. It closes this process's end
// of the keyboard. It may outlive the command: it ends when keys ends, or when a write to the closed
// console fails.
func (c *pseudoConsole) typeKeys(keys io.Reader) (hungUp <-chan struct{}) {
	done := make(chan struct{})
	go func() {
		defer windows.CloseHandle(c.keys)
		defer close(done)
		if keys == nil {
			return
		}
		buffer := make([]byte, 4096)
		for {
			n, err := keys.Read(buffer)
			for part := buffer[:n]; len(part) > 0; {
				var written uint32
				if windows.WriteFile(c.keys, part, &written, nil) != nil {
					return
				}
				part = part[written:]
			}
			if err != nil {
				return
			}
		}
	}()
	return done
}

// follow gives the console each new size until stop is called.
func (c *pseudoConsole) follow(sizes <-chan platform.TerminalSize) (stop func()) {
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case size, ok := <-sizes:
				if !ok {
					return
				}
				if size.Valid() {
					_ = windows.ResizePseudoConsole(c.handle, coordinates(size))
				}
			case <-ended:
				return
			}
		}
	}()
	return func() {
		close(ended)
		<-done // a closed console must not be resized
	}
}
