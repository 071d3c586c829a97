package qemu_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/testing/deadline"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/qemu"
	"github.com/swdt-dev/swdt/internal/wait"
)

// fakeName is the name of a link by which this test binary acts as QEMU. Beside the link is the file script: a
// command and how it fails (error, die, hang), separated by a space. A command hangs once for each VM; while it
// does, the VM has the file hung. A command of mode kill kills the swdt that the file swdt.pid beside the script names,
// once, and is then carried out; start does so before it writes its pid file, for which it waits until the script has
// the line go, and listen after that, before it listens.
const fakeName = "qemu-system-x86_64"

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == fakeName {
		fakeQEMU(filepath.Join(filepath.Dir(os.Args[0]), "script"))
		return
	}
	if text := os.Getenv(actMark); text != "" {
		actAsSwdt(text)
		return
	}
	os.Exit(m.Run())
}

// fakeDriver returns a driver whose QEMU is this test binary, and a function that has a
// command fail from then on.
func fakeDriver(t *testing.T) (*qemu.Driver, func(script string)) {
	t.Helper()
	need(t, "qemu-img")
	folder := t.TempDir()
	script, program := filepath.Join(folder, "script"), filepath.Join(folder, fakeName)
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// A link, since a program that was just written may be busy: another test may start a process meanwhile.
	if err := os.Symlink(binary, program); err != nil {
		t.Fatal(err)
	}
	fail := func(text string) {
		if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fail("")
	return qemu.New(qemu.Options{QEMU: program, Cache: folder, Firmware: []string{"/usr/share/qemu/firmware"}}), fail
}

// fakeRecord returns the record of a VM of a fake driver.
func fakeRecord(t *testing.T, d *qemu.Driver, name string) vm.Machine {
	t.Helper()
	m := record(t, d, name)
	m.Accelerator = "tcg"
	return m
}

// fakeQEMU performs QEMU's part: pid file, sockets, commands.
func fakeQEMU(script string) {
	options := map[string][]string{}
	for i, word := range os.Args[1:] {
		if strings.HasPrefix(word, "-") && i+2 < len(os.Args) {
			options[word] = append(options[word], os.Args[i+2])
		}
	}
	switch {
	case len(os.Args) == 2: // --version
		fmt.Println("QEMU emulator version 7.2.22 (fake)")
		return
	case options["-machine"][0] == "help":
		fmt.Println("q35  Standard PC (alias of pc-q35-7.2)")
		return
	}
	f := &fake{script: script, pid: options["-pidfile"][0], events: make(chan string, 8)}
	const longest = 2 * time.Minute // a leftover of a failed test ends
	switch f.mode("start") {
	case "die":
		fmt.Fprintln(os.Stderr, "qemu-system-x86_64: it cannot start")
		os.Exit(1)
	case "hang":
		time.Sleep(longest)
		return
	case "kill":
		f.killSwdt()
		_ = wait.Condition{Name: "the test", Interval: time.Millisecond, Limit: longest, // a leftover goes on
			Look: func(context.Context) error {
				if f.mode("go") == "" {
					return errors.New("it has not gone on")
				}
				return nil
			}}.Wait(context.Background())
	}
	if err := os.WriteFile(f.pid, []byte(fmt.Sprintln(os.Getpid())), 0o600); err != nil {
		panic(err)
	}
	if f.mode("listen") == "kill" {
		f.killSwdt()
	}
	// Like QEMU, the fake listens on all sockets before it answers on one.
	var serve []func()
	for _, chardev := range options["-chardev"] {
		if _, path, found := strings.Cut(chardev, ",path="); found && strings.Contains(chardev, "server=on") {
			path, _, _ = strings.Cut(path, ",logappend")
			listener, err := net.Listen("unix", strings.ReplaceAll(path, ",,", ","))
			if err != nil {
				panic(err)
			}
			if filepath.Base(path) == "qga.sock" {
				serve = append(serve, func() { f.serveAgent(listener) })
			} else {
				serve = append(serve, func() { f.serve(listener) })
			}
		}
	}
	for _, answer := range serve {
		go answer()
	}
	time.Sleep(longest)
}

// hung returns the path of the file that exists once a command of a VM hangs, from the path of the VM's pid file.
func hung(pid string) string { return filepath.Dir(filepath.Dir(pid)) + ".hung" }

// untilHung returns a context whose deadline passes once a command of a VM hangs.
func untilHung(t *testing.T, m vm.Machine) context.Context {
	t.Helper()
	ctx, pass := deadline.Context(t.Context())
	go func() {
		_ = wait.Condition{Name: "a command to hang", Interval: 5 * time.Millisecond, Look: func(context.Context) error {
			_, err := os.Stat(m.Folder + ".hung")
			return err
		}}.Wait(t.Context())
		pass()
	}()
	return ctx
}

type fake struct {
	script, pid string
	events      chan string
}

// mode returns how a command fails now, or "".
func (f *fake) mode(command string) string {
	text, err := os.ReadFile(f.script)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if name, mode, _ := strings.Cut(strings.TrimSpace(line), " "); name == command {
			return mode
		}
	}
	return ""
}

// killSwdt kills the swdt that works on the VM, unless it was killed before.
func (f *fake) killSwdt() {
	name := filepath.Join(filepath.Dir(f.script), "swdt.pid")
	text, err := os.ReadFile(name)
	if err != nil || os.Remove(name) != nil {
		return
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		panic(err)
	}
	swdt, err := os.FindProcess(pid)
	if err == nil {
		err = swdt.Kill()
	}
	if err != nil {
		panic(err)
	}
}

// exit ends the process in order.
func (f *fake) exit() {
	_ = os.Remove(f.pid)
	os.Exit(0)
}

func (f *fake) serve(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		f.talk(conn)
	}
}

func (f *fake) talk(conn net.Conn) {
	defer conn.Close()
	say := func(text string) { _, _ = io.WriteString(conn, text+"\n") }
	say(`{"QMP": {"version": {"qemu": {"major": 7, "minor": 2, "micro": 22}}}}`)
	jobs := ""
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		var request struct {
			Execute   string
			Arguments map[string]any
			ID        int
		}
		if json.Unmarshal(lines.Bytes(), &request) != nil {
			return
		}
		switch f.mode(request.Execute) {
		case "die":
			os.Exit(1)
		case "hang":
			if _, err := os.Stat(hung(f.pid)); err != nil {
				_ = os.WriteFile(hung(f.pid), nil, 0o600)
				continue
			}
		case "kill":
			f.killSwdt()
		case "error":
			say(fmt.Sprintf(`{"error": {"class": "GenericError", "desc": "as scripted"}, "id": %d}`, request.ID))
			continue
		}
		result := "{}"
		switch request.Execute {
		case "query-status":
			result = `{"status": "running", "running": true}`
			if state := f.mode("state"); state != "" {
				result = `{"status": "` + state + `"}`
			}
		case "query-chardev":
			result = fmt.Sprintf(`[{"label": "agent", "frontend-open": %t}]`, f.mode("agent") != "")
		case "snapshot-save", "snapshot-load", "snapshot-delete":
			jobs = fmt.Sprintf(`{"id": %q, "status": "concluded", "error": %q}`, request.Arguments["job-id"], f.mode("job"))
		case "query-jobs":
			result = "[" + jobs + "]"
		case "query-blockstats":
			result = `[{"node-name": "disk0", "stats": {"rd_bytes": 1, "wr_bytes": 20}},
				{"node-name": "cd0", "stats": {"rd_bytes": 300}}, {"node-name": "cd1", "stats": {"rd_bytes": 4000}},
				{"node-name": "vars", "stats": {"wr_bytes": 50000}}]`
			result = strings.ReplaceAll(result, "\n", "")
			if f.mode("reset") != "" {
				say(`{"event": "RESET", "data": {"guest": true}}`)
			}
		case "screendump":
			_ = os.WriteFile(request.Arguments["filename"].(string), []byte(f.mode("screen")), 0o600)
		}
		say(fmt.Sprintf(`{"return": %s, "id": %d}`, result, request.ID))
		switch request.Execute {
		case "quit":
			f.exit()
		case "system_powerdown":
			say(`{"event": "POWERDOWN"}`)
			say(`{"event": "SHUTDOWN", "data": {"guest": true}}`)
			f.exit()
		}
	}
}

// serveAgent acts as the guest agent; the script's line "agent" is its reply to all but
// the synchronisation and the shutdown.
func (f *fake) serveAgent(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		lines := bufio.NewScanner(conn)
		for lines.Scan() {
			var request struct {
				Execute   string
				Arguments struct{ ID int64 }
			}
			_ = json.Unmarshal(bytes.TrimPrefix(lines.Bytes(), []byte{0xff}), &request)
			switch request.Execute {
			case "guest-sync-delimited":
				_, _ = fmt.Fprintf(conn, "\xff{\"return\": %d}\n", request.Arguments.ID)
			case "guest-shutdown":
				f.exit()
			default:
				_, _ = io.WriteString(conn, f.mode("agent")+"\n")
			}
		}
		_ = conn.Close()
	}
}
