package simulated_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/platformtest"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wait"
)

const playerPath = `C:\hosttest\player.exe`

func TestContract(t *testing.T) {
	platformtest.Run(t, func(t *testing.T) platformtest.Fixture {
		m := newMachine(t, simulated.Options{Preset: simulated.Minimal, Programs: []simulated.Program{player()}})
		m.WriteFile(playerPath, simulated.Binary(simulated.BinarySpec{Name: "hosttest-player"}))
		p := m.Spawn("hosttest.exe")
		if err := p.Platform.Files.MakeFolder(`C:\hosttest\folder`); err != nil {
			t.Fatal(err)
		}
		return platformtest.Fixture{
			Platform: p.Platform, Folder: `C:\hosttest\folder`, Program: playerPath, Feature: "TelnetClient",
			InstallService: func(t *testing.T, config platform.ServiceConfig, b platformtest.Behaviour) {
				text, err := json.Marshal(b)
				if err != nil {
					t.Fatal(err)
				}
				config.CommandLine = playerPath + ` ` + quote(string(text))
				if err := p.Platform.Services.Create(t.Context(), config); err != nil {
					t.Fatal(err)
				}
			},
			ServeHTTP: func(t *testing.T, handler http.Handler) string {
				if err := p.HandleHTTP("127.0.0.1:8080", handler); err != nil {
					t.Fatal(err)
				}
				return "http://127.0.0.1:8080"
			},
			ServePipe: func(t *testing.T) string { return echoPipe(t, p) },
			Has: platformtest.Capabilities{
				ACL: true, Inheritance: true, Recovery: true, Restarts: true, StartDependencies: true,
				ServiceEnvironment: true, DeletePending: true, Features: true, Firewall: true, ParentPID: true, RunningReplace: true,
				SpecificExit: true, Respelling: true, PortOwner: true, PlantedHNS: true,
				Terminal: true, Holders: true,
			},
		}
	})
}

func echoPipe(t *testing.T, p *simulated.Process) string {
	t.Helper()
	const path = `\\.\pipe\hosttest`
	listener, err := p.ListenPipe(path)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			}()
		}
	}()
	return path
}

// quote quotes an argument that contains quotes, as Windows programs do.
func quote(arg string) string { return `"` + strings.ReplaceAll(arg, `"`, `\"`) + `"` }

// player returns the contract suite's program and service.
func player() simulated.Program {
	return simulated.Program{
		Name:  "player",
		Match: func(image *simulated.Image) bool { return image.Name == "hosttest-player" },
		Main: func(ctx context.Context, p *simulated.Process) int {
			if p.Service != nil {
				return playService(ctx, p)
			}
			return playWords(ctx, p, p.Args)
		},
	}
}

func playService(ctx context.Context, p *simulated.Process) int {
	var b platformtest.Behaviour
	if err := json.Unmarshal([]byte(p.Args[0]), &b); err != nil || b.CrashAtStart {
		return 3
	}
	if b.Record != "" {
		line, _ := json.Marshal(append([]string{p.Service.Name}, p.Service.Args...))
		w, err := p.Platform.Files.Create(b.Record, platform.CreateAppend)
		if err != nil {
			return 5
		}
		fmt.Fprintf(w, "%s\n", line)
		_ = w.Close()
	}
	p.Service.Connect()
	var exit <-chan time.Time
	select {
	case <-time.After(b.SlowStart):
	case <-ctx.Done():
		return 1
	}
	p.Service.Running()
	if b.ExitAfter > 0 {
		exit = time.After(b.ExitAfter)
	}
	select {
	case <-exit:
		return 7
	case <-ctx.Done():
		return 1
	case <-p.Service.StopRequested():
	}
	if b.HangOnStop {
		<-ctx.Done()
		return 1
	}
	if b.ExitCode != 0 {
		p.Service.Stopped(1066, b.ExitCode)
	} else {
		p.Service.Stopped(0, 0)
	}
	return 0
}

func playWords(ctx context.Context, p *simulated.Process, words []string) int {
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		switch word {
		case "args":
			for _, arg := range words {
				line, _ := json.Marshal(arg)
				fmt.Fprintln(p.Stdout, string(line))
			}
			return 0
		case "stderr":
			fmt.Fprintln(p.Stderr, words[0])
			words = words[1:]
		case "stdin":
			if _, err := io.Copy(p.Stdout, p.Stdin); err != nil {
				return 9
			}
		case "env":
			i := slices.IndexFunc(p.Environment, func(e string) bool { return strings.HasPrefix(e, words[0]+"=") })
			if i < 0 {
				return 9
			}
			fmt.Fprintln(p.Stdout, p.Environment[i][len(words[0])+1:])
			words = words[1:]
		case "folder":
			fmt.Fprintln(p.Stdout, p.Folder)
		case "exit":
			code, _ := strconv.Atoi(words[0])
			return code
		case "child", "childandwait":
			return playParent(ctx, p, words, word == "childandwait")
		case "lock":
			if _, err := p.Platform.Files.Lock(words[0], []byte(words[1])); err != nil {
				return 9
			}
			fmt.Fprintln(p.Stdout, "locked")
			_, _ = io.Copy(io.Discard, p.Stdin)
			return 0
		case "scan":
			if _, err := p.Scan(words[0]); err != nil {
				return 9
			}
			fmt.Fprintln(p.Stdout, "scanning")
			_, _ = io.Copy(io.Discard, p.Stdin)
			return 0
		case "forever", "hang":
			<-ctx.Done()
			return 1
		case "size":
			fmt.Fprintln(p.Stdout, sizeOf(p))
		case "awaitsize":
			if !awaitSize(ctx, p, words[0]) {
				return 9
			}
			words = words[1:]
		case "line":
			line, err := bufio.NewReader(p.Stdin).ReadString('\n')
			if err != nil {
				return 9
			}
			fmt.Fprint(p.Stdout, "got ", line)
		case "count":
			n, _ := strconv.Atoi(words[0])
			for i := range n {
				fmt.Fprintln(p.Stdout, "number", i+1)
			}
			words = words[1:]
		}
	}
	return 0
}

func sizeOf(p *simulated.Process) string {
	size := p.Terminal.Size()
	return fmt.Sprintf("%dx%d", size.Columns, size.Rows)
}

func awaitSize(ctx context.Context, p *simulated.Process, size string) bool {
	err := wait.Condition{Name: "the size " + size, Interval: time.Millisecond, Look: func(context.Context) error {
		if now := sizeOf(p); now != size {
			return errors.New(now)
		}
		return nil
	}}.Wait(ctx)
	fmt.Fprintln(p.Stdout, "resized")
	return err == nil
}

// playParent starts a child and prints its PID.
func playParent(ctx context.Context, p *simulated.Process, words []string, wait bool) int {
	ended := make(chan int, 1)
	go func() {
		code, _ := p.Platform.Processes.Run(ctx, platform.Command{Path: p.Executable, Args: words})
		ended <- code
	}()
	for ctx.Err() == nil {
		list, err := p.Platform.Processes.List(ctx)
		if err != nil {
			return 9
		}
		for _, child := range list {
			if child.ParentPID == p.PID() {
				fmt.Fprintln(p.Stdout, child.PID)
				if wait {
					return <-ended
				}
				return 0
			}
		}
	}
	return 1
}
