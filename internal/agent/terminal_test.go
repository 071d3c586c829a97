package agent_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
)

// onTerminal is cmd on a terminal.
func onTerminal(columns, rows uint32, args ...string) *agentv1.RunCommand {
	return &agentv1.RunCommand{Path: "cmd", Args: args, Terminal: &agentv1.TerminalSize{Columns: columns, Rows: rows}}
}

// The last of many sizes counts, invalid ones are ignored, and no number of them blocks the keys.
func TestATerminalIsResized(t *testing.T) {
	_, c := tester(t)
	call := c.run(t, t.Context(), onTerminal(80, 24))
	for i := range uint32(500) {
		if err := call.Send(&agentv1.RunRequest{Resize: &agentv1.TerminalSize{Columns: 100 + i, Rows: 50}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, size := range []*agentv1.TerminalSize{
		{}, {Columns: math.MaxUint32, Rows: math.MaxUint32}, {Columns: 1001, Rows: 1},
	} {
		if err := call.Send(&agentv1.RunRequest{Resize: size}); err != nil {
			t.Fatal(err)
		}
	}
	var shown strings.Builder
	for !strings.Contains(shown.String(), "Columns:        599") {
		if err := call.Send(&agentv1.RunRequest{Stdin: []byte("mode con\r")}); err != nil {
			t.Fatal(err)
		}
		before := strings.Count(shown.String(), "Columns:")
		for strings.Count(shown.String(), "Columns:") == before || !strings.HasSuffix(shown.String(), ">") {
			reply, err := call.Recv()
			if err != nil {
				t.Fatal(err)
			}
			shown.Write(reply.GetStdout())
		}
	}
	if err := call.Send(&agentv1.RunRequest{Stdin: []byte("exit 9\r")}); err != nil {
		t.Fatal(err)
	}
	if _, _, code, err := collect(call); err != nil || code != 9 {
		t.Errorf("exit code %d, %v", code, err)
	}
}

func TestATerminalOfNoSize(t *testing.T) {
	_, c := tester(t)
	for _, command := range []*agentv1.RunCommand{onTerminal(0, 24), onTerminal(80, 0), onTerminal(math.MaxUint32, 24)} {
		if _, _, _, err := collect(c.run(t, t.Context(), command)); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%v: %v", command.GetTerminal(), err)
		}
	}
}

// The program and its children end with the call, and when the caller's keyboard ends.
func TestATerminalEndsWithTheCall(t *testing.T) {
	for _, way := range []string{"cancel", "hang up", "the keyboard ends"} {
		t.Run(way, func(t *testing.T) {
			m, c := tester(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			call := c.run(t, ctx, onTerminal(80, 24))
			if err := call.Send(&agentv1.RunRequest{Stdin: []byte("ping -t localhost\r")}); err != nil {
				t.Fatal(err)
			}
			await(t, func() bool { return running(t, m, "ping.exe") })
			switch way {
			case "cancel":
				cancel()
			case "hang up":
				c.stream.Close()
			default:
				if err := call.Send(&agentv1.RunRequest{StdinClosed: true}); err != nil {
					t.Fatal(err)
				}
			}
			await(t, func() bool { return !running(t, m, "ping.exe") && !running(t, m, "cmd.exe") })
			_, _, code, err := collect(call)
			if ended := err == nil && code != 0; ended != (way == "the keyboard ends") {
				t.Errorf("exit code %d, %v", code, err)
			}
		})
	}
}
