package windows

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc"

	"github.com/swdt-dev/swdt/internal/platform/platformtest"
)

// The test binary acts as every program that the tests need: a service, the
// programs it runs, and Windows' own tools.
func TestMain(m *testing.M) {
	word := ""
	if len(os.Args) > 1 {
		word = os.Args[1]
	}
	switch word {
	case "service":
		os.Exit(playService(os.Args[2:]))
	case "program":
		os.Exit(playProgram(os.Args[2:]))
	}
	if script := os.Getenv("SWDT_TEST_TOOL"); script != "" {
		os.Exit(playTool(script, os.Args))
	}
	os.Exit(m.Run())
}

func executable(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func playService(args []string) int {
	var b platformtest.Behaviour
	if len(args) < 2 {
		return 3
	}
	if err := json.Unmarshal([]byte(args[1]), &b); err != nil {
		return 3
	}
	if b.CrashAtStart {
		return 3
	}
	if err := svc.Run(args[0], player{b}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 4
	}
	return 0
}

type player struct{ platformtest.Behaviour }

func (p player) Execute(args []string, requests <-chan svc.ChangeRequest, status chan<- svc.Status) (bool, uint32) {
	if p.Record != "" {
		line, _ := json.Marshal(args)
		file, err := os.OpenFile(p.Record, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return true, 5
		}
		fmt.Fprintf(file, "%s\n", line)
		file.Close()
	}
	status <- svc.Status{State: svc.StartPending}
	<-time.After(p.SlowStart)
	current := svc.Status{State: svc.Running, Accepts: svc.AcceptStop | svc.AcceptShutdown}
	status <- current
	var exit <-chan time.Time
	if p.ExitAfter > 0 {
		exit = time.After(p.ExitAfter)
	}
	for {
		select {
		case <-exit:
			os.Exit(7)
		case request := <-requests:
			switch request.Cmd {
			case svc.Interrogate:
				status <- current
			case svc.Stop, svc.Shutdown:
				current = svc.Status{State: svc.StopPending, WaitHint: 60_000}
				status <- current
				if !p.HangOnStop {
					return p.ExitCode != 0, p.ExitCode
				}
			}
		}
	}
}

// playProgram performs its words one after the other.
func playProgram(words []string) int {
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		switch word {
		case "args": // the rest, one to a line, as JSON
			for _, arg := range words {
				line, _ := json.Marshal(arg)
				fmt.Println(string(line))
			}
			return 0
		case "stderr":
			fmt.Fprintln(os.Stderr, words[0])
			words = words[1:]
		case "stdin": // copied to stdout
			if _, err := io.Copy(os.Stdout, os.Stdin); err != nil {
				return 9
			}
		case "env":
			fmt.Println(os.Getenv(words[0]))
			words = words[1:]
		case "folder":
			folder, _ := os.Getwd()
			fmt.Println(folder)
		case "lock":
			return playLocker(words)
		case "scan":
			return playScanner(words[0])
		case "exit":
			code, _ := strconv.Atoi(words[0])
			return code
		case "child": // starts the rest as a child that shares stdout, prints its PID
			child := exec.Command(os.Args[0], append([]string{"program"}, words...)...)
			child.Stdout = os.Stdout
			if err := child.Start(); err != nil {
				return 9
			}
			fmt.Println(child.Process.Pid)
			return 0
		case "childandwait":
			child := exec.Command(os.Args[0], append([]string{"program"}, words...)...)
			if err := child.Start(); err != nil {
				return 9
			}
			fmt.Println(child.Process.Pid)
			_ = child.Wait()
			return 0
		case "suspendedchild": // starts itself as a child that never runs, prints its PID, and waits for the end of stdin
			if err := EndChildrenWithThisProcess(); err != nil {
				fmt.Println("failed:", err)
				return 9
			}
			child := exec.Command(os.Args[0])
			child.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_SUSPENDED}
			if err := child.Start(); err != nil {
				return 9
			}
			fmt.Println(child.Process.Pid)
			_, _ = io.Copy(io.Discard, os.Stdin)
		case "forever":
			ctrlC := make(chan os.Signal, 1)
			signal.Notify(ctrlC, os.Interrupt)
			<-ctrlC
		case "hang":
			time.Sleep(time.Hour) // until it is killed
		case "size":
			fmt.Println(consoleSize())
		case "awaitsize":
			for consoleSize() != words[0] {
				time.Sleep(10 * time.Millisecond) // another process changes it
			}
			fmt.Println("resized")
			words = words[1:]
		case "line":
			var line string
			if _, err := fmt.Scanln(&line); err != nil {
				return 9
			}
			fmt.Println("got", line)
		case "count":
			n, _ := strconv.Atoi(words[0])
			for i := range n {
				fmt.Println("number", i+1)
			}
			words = words[1:]
		}
	}
	return 0
}

// consoleSize returns the size of this process's console.
func consoleSize() string {
	var info windows.ConsoleScreenBufferInfo
	if err := windows.GetConsoleScreenBufferInfo(windows.Handle(os.Stdout.Fd()), &info); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%dx%d", info.Window.Right-info.Window.Left+1, info.Window.Bottom-info.Window.Top+1)
}

// playLocker acquires a lock, prints that it has it, and holds it until stdin
// ends.
func playLocker(args []string) int {
	lock, err := New().Files.Lock(args[0], []byte(args[1]))
	if err != nil {
		fmt.Println("failed:", err)
		return 1
	}
	fmt.Println("locked")
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = lock // never unlocked: the end of the process does it
	return 0
}

// playScanner holds a file as a virus scanner does.
func playScanner(path string) int {
	if _, err := open(path, windows.GENERIC_READ, windows.FILE_SHARE_READ, windows.OPEN_EXISTING, 0); err != nil {
		fmt.Println("failed:", err)
		return 1
	}
	fmt.Println("scanning")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// playTool records its arguments in the file script, and prints the reply in
// script.answer.
func playTool(script string, args []string) int {
	line, _ := json.Marshal(args[1:])
	file, err := os.OpenFile(script, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return 99
	}
	defer file.Close()
	fmt.Fprintf(file, "%s\n", line)
	var answer struct {
		Output   string
		ExitCode int
	}
	if content, err := os.ReadFile(script + ".answer"); err == nil {
		if err := json.Unmarshal(content, &answer); err != nil {
			return 98
		}
	}
	fmt.Print(answer.Output)
	return answer.ExitCode
}
