package qmp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/testing/deadline"
)

const greeting = `{"QMP": {"version": {"qemu": {"micro": 22, "minor": 2, "major": 7}, "package": ""}, ` +
	`"capabilities": ["oob"]}}` + "\r\n"

// server answers each command by a function; nil: it closes the connection. It sends what
// the function returns as it is, with $ID for the command's id. As QEMU's socket does, it takes the next command
// although the client has not read the last reply.
func server(t *testing.T, answer func(command string, arguments map[string]any) string) net.Conn {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _ = ours.Close() })
	replies := make(chan string, 100)
	go func() {
		defer theirs.Close()
		for reply := range replies {
			if _, err := io.WriteString(theirs, reply); err != nil {
				return
			}
		}
	}()
	go func() {
		defer close(replies)
		replies <- greeting
		lines := bufio.NewScanner(theirs)
		for lines.Scan() {
			var request struct {
				Execute   string         `json:"execute"`
				Arguments map[string]any `json:"arguments"`
				ID        int            `json:"id"`
			}
			if err := json.Unmarshal(lines.Bytes(), &request); err != nil {
				return
			}
			reply := `{"return": {}, "id": $ID}` + "\n"
			if request.Execute != "qmp_capabilities" {
				reply = answer(request.Execute, request.Arguments)
			}
			if reply == "" {
				return
			}
			replies <- strings.ReplaceAll(reply, "$ID", fmt.Sprint(request.ID))
		}
	}()
	return ours
}

func client(t *testing.T, answer func(string, map[string]any) string) *Client {
	t.Helper()
	c, err := New(t.Context(), server(t, answer))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCommandsAndEvents(t *testing.T) {
	c := client(t, func(command string, arguments map[string]any) string {
		if command == "refused" {
			return `{"error": {"class": "GenericError", "desc": "no"}, "id": $ID}` + "\n"
		}
		return `{"event": "RESET", "data": {"guest": true}, "timestamp": {}}` + "\n" +
			`{"return": {"status": "late"}, "id": 4711}` + "\n" + // of a command that was given up
			`{"return": {"status": "` + fmt.Sprint(arguments["want"]) + `"}, "id": $ID}` + "\n"
	})
	if c.Version.String() != "7.2.22" {
		t.Errorf("version %s", c.Version)
	}
	var got struct{ Status string }
	err := c.Run(t.Context(), "query-status", map[string]any{"want": "running"}, &got)
	if err != nil || got.Status != "running" {
		t.Errorf("%+v, %v", got, err)
	}
	if diff := cmp.Diff([]string{"RESET"}, c.Events()); diff != "" {
		t.Error(diff)
	}
	err = c.Run(t.Context(), "refused", nil, nil)
	var refused *Error
	if !errors.As(err, &refused) {
		t.Fatalf("error %v, want an Error", err)
	}
	if refused.Command != "refused" || refused.Desc != "no" {
		t.Errorf("command %q, description %q; want refused, no", refused.Command, refused.Desc)
	}
}

// Whatever QEMU does, a command ends with an error.
func TestFaults(t *testing.T) {
	for name, test := range map[string]struct {
		reply  string
		closed bool
	}{
		"the connection ends":       {"", true},
		"no JSON":                   {"hello\n", true},
		"half a message":            {`{"return": `, true},
		"another type":              {`{"return": 3, "id": $ID}` + "\n", false},
		"no result":                 {`{"id": $ID}` + "\n", false},
		"a message without end":     {strings.Repeat("x", maxMessage+1) + "\n", true},
		"an id that is no number":   {`{"return": {}, "id": "x"}` + "\n", true},
		"nothing but another reply": {`{"return": {}, "id": 99}` + "\n" + `{"error": 1}` + "\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			c := client(t, func(string, map[string]any) string {
				if calls++; calls > 1 || test.reply == `{"return": ` {
					return ""
				}
				return test.reply
			})
			var got struct{ Status string }
			err := c.Run(t.Context(), "query-status", nil, &got)
			if err == nil || errors.Is(err, ErrClosed) != test.closed {
				t.Errorf("got %v", err)
			}
			if test.closed {
				if err := c.Run(t.Context(), "query-status", nil, nil); !errors.Is(err, ErrClosed) {
					t.Errorf("after the end: %v", err)
				}
			}
		})
	}
}

// A QEMU that answers nothing is given up after CommandLimit, or with the context.
func TestEveryWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client(t, func(string, map[string]any) string { return "\n{}\n"[1:] })
		begun := time.Now()
		if err := c.Run(context.Background(), "query-status", nil, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if waited := time.Since(begun); waited != CommandLimit {
			t.Errorf("gave up after %v", waited)
		}
		bounded, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Run(bounded, "query-status", nil, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}

		silent, theirs := net.Pipe()
		if _, err := New(bounded, silent); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a silent greeting: %v", err)
		}
		_ = silent.Close()
		_ = theirs.Close()
	})
}

// A guest that resets itself without end fills no memory, and delays no command.
func TestEventsAreBounded(t *testing.T) {
	var flood strings.Builder
	for i := range 3 * maxEvents {
		fmt.Fprintf(&flood, `{"event": "RESET %d"}`+"\n", i)
	}
	c := client(t, func(string, map[string]any) string { return flood.String() + `{"return": {}, "id": $ID}` + "\n" })
	if err := c.Run(t.Context(), "query-status", nil, nil); err != nil {
		t.Fatal(err)
	}
	events := c.Events()
	if len(events) != maxEvents {
		t.Fatalf("%d events wait", len(events))
	}
	if want := fmt.Sprint("RESET ", 2*maxEvents); events[0] != want {
		t.Errorf("the first event is %s, want %s: the oldest ones were to be dropped", events[0], want)
	}
}

// The rest of a message may come after the wait for it has ended.
func TestAMessageInTwoParts(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	ctx, pass := deadline.Context(t.Context())
	goOn := make(chan struct{})
	go func() {
		defer theirs.Close()
		_, _ = io.WriteString(theirs, `{"event": "RESET"}`+"\n"+`{"event": "SHUT`)
		pass()
		<-goOn
		_, _ = io.WriteString(theirs, `DOWN"}`+"\n")
	}()
	c := &Client{lines: newLines(ours, maxMessage)}
	if err := c.Await(ctx, "SHUTDOWN"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("before the rest: %v", err)
	}
	close(goOn)
	if err := c.Await(t.Context(), "SHUTDOWN"); err != nil {
		t.Error(err)
	}
	if err := c.Await(t.Context(), "SHUTDOWN"); !errors.Is(err, ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}

func TestAnotherProgramAtTheSocket(t *testing.T) {
	for _, first := range []string{`{"return": {}}` + "\n", "SSH-2.0-OpenSSH\r\n", "", strings.Repeat("\xff", 100)} {
		ours, theirs := net.Pipe()
		go func() {
			_, _ = io.WriteString(theirs, first)
			_ = theirs.Close()
		}()
		if _, err := New(t.Context(), ours); err == nil {
			t.Errorf("%q was taken for QEMU", first)
		}
		_ = ours.Close()
	}
	if _, err := Dial(t.Context(), filepath.Join(t.TempDir(), "absent")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestJobs(t *testing.T) {
	for name, test := range map[string]struct {
		states []string // of query-jobs, one after the other
		fail   string   // the command that is refused
		err    string
	}{
		"success":       {[]string{"running", "waiting", "concluded"}, "", ""},
		"failure":       {[]string{"running", `concluded", "error": "no room`}, "", "no room"},
		"refused":       {nil, "snapshot-save", "refused it"},
		"lost":          {[]string{"gone"}, "", "lost"},
		"query refused": {[]string{"running"}, "query-jobs", "refused it"},
		"QEMU dies":     {[]string{"running", ""}, "", ErrClosed.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			var commands []string
			c := client(t, func(command string, arguments map[string]any) string {
				commands = append(commands, command)
				if command == test.fail {
					return `{"error": {"class": "GenericError", "desc": "refused it"}, "id": $ID}` + "\n"
				}
				if command != "query-jobs" {
					return `{"return": {}, "id": $ID}` + "\n"
				}
				state := test.states[0]
				test.states = append(test.states[1:], state)
				switch state {
				case "":
					return ""
				case "gone":
					return `{"return": [{"id": "other", "status": "running"}], "id": $ID}` + "\n"
				}
				return `{"return": [{"id": "job", "status": "` + state + `"}], "id": $ID}` + "\n"
			})
			err := c.RunJob(t.Context(), "snapshot-save", "job", map[string]any{"tag": "t"})
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("got %v", err)
			}
			if last := commands[len(commands)-1]; test.fail != "snapshot-save" && name != "QEMU dies" && last != "job-dismiss" {
				t.Errorf("the job was not dismissed: %q", commands)
			}
		})
	}
}

// Jobs of a client that has gone are dismissed once they have ended.
func TestJobsThatAnotherClientLeft(t *testing.T) {
	var dismissed []string
	looks := 0
	c := client(t, func(command string, arguments map[string]any) string {
		if command == "job-dismiss" {
			dismissed = append(dismissed, arguments["id"].(string))
			return `{"return": {}, "id": $ID}` + "\n"
		}
		looks++
		return map[int]string{
			1: `{"return": [{"id": "a", "status": "concluded"}, {"id": "b", "status": "running"}], "id": $ID}`,
			2: `{"return": [{"id": "b", "status": "concluded"}], "id": $ID}`,
		}[looks] + "\n"
	})
	if err := c.EndJobs(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b"}, dismissed); diff != "" {
		t.Error(diff)
	}
}

// A job whose context ends is canceled and dismissed.
func TestACanceledJobIsRemoved(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var commands []string
	c := client(t, func(command string, _ map[string]any) string {
		commands = append(commands, command)
		if command == "query-jobs" {
			cancel()
			return `{"return": [{"id": "job", "status": "running"}], "id": $ID}` + "\n"
		}
		return `{"return": {}, "id": $ID}` + "\n"
	})
	if err := c.RunJob(ctx, "snapshot-save", "job", map[string]any{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff([]string{"snapshot-save", "query-jobs", "job-cancel", "job-dismiss"}, commands); diff != "" {
		t.Error(diff)
	}
}

func FuzzReadMessage(f *testing.F) {
	for _, seed := range []string{
		greeting, `{"event":"RESET"}` + "\n", `{"return":{},"id":1}` + "\n", "{}", `{"error":{"desc":"x"},"id":2}` + "\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		ours, theirs := net.Pipe()
		defer ours.Close()
		go func() {
			defer theirs.Close()
			_, _ = theirs.Write(stream)
		}()
		c := &Client{lines: newLines(ours, maxMessage)}
		for range len(stream) + 1 {
			m, err := c.next(t.Context())
			if err != nil {
				return
			}
			var result map[string]any
			if err := m.decode("command", &result); err == nil && m.Error != nil {
				t.Error("a refusal was taken for a result")
			}
		}
		t.Error("reading did not end")
	})
}
