//go:build linux || darwin

package cli_test

import (
	"os"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/cli"
	"github.com/swdt-dev/swdt/internal/ui"
)

// On a terminal, swdt shows what a found file uses, and asks. The answer yes is kept, and a change is shown and asked
// about. A character that reverses the direction of writing does not reach the terminal.
func TestTheQuestionAboutAFoundFile(t *testing.T) {
	s := newStranger(t)
	write := func(user string) {
		text := "apiVersion: windows.k8s.io/v1alpha1\nkind: Node\nmetadata: {name: win-1}\nspec: {credentials: {hostname: '" +
			s.address + "', username: " + user + ", password: hunter2}}\n"
		if err := os.WriteFile("swdt.yaml", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(answer string) (code int, text string) {
		screen := newTerminal(t, 24, 120)
		ended := make(chan int, 1)
		go func() {
			ended <- cli.Run(t.Context(), ui.Streams{In: screen.File, Out: &lines{}, Err: screen.File}, []string{"status"},
				cli.Environment{Agent: agent, Drivers: drivers})
		}()
		if answer != "" {
			screen.await("the question", func(text string) bool { return strings.Contains(text, "(yes/no) ") })
			screen.typed(answer + "\n")
		}
		return <-ended, screen.hangUp()
	}
	write(`"me\u202ekcatta"`)
	code, text := ask("no")
	if code != 2 || s.hadItsWay() || strings.Contains(text, "\u202e") || strings.Contains(text, "hunter2") ||
		!strings.Contains(text, "credentials.hostname: "+s.address+" (node win-1)") {
		t.Errorf("no: exit code %d, %q", code, text)
	}
	write("me")
	if code, text := ask("yes"); code != 3 || !s.hadItsWay() {
		t.Errorf("yes: exit code %d, %s", code, text)
	}
	if code, text := ask(""); code != 3 || strings.Contains(text, "rust it") {
		t.Errorf("after yes: exit code %d, %s", code, text)
	}
	s.contacts.Store(0)
	write("you")
	if code, text := ask("no"); code != 2 || s.hadItsWay() || strings.Contains(text, s.address) ||
		!strings.Contains(text, "credentials.username of node win-1 is you, and was me") {
		t.Errorf("a change: exit code %d, %s", code, text)
	}
}
