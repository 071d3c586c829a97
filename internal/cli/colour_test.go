//go:build linux || darwin

package cli_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/cli"
	"github.com/swdt-dev/swdt/internal/ui"
)

// environment returns an environment with an agent and these variables.
func environment(variables map[string]string) cli.Environment {
	return cli.Environment{Agent: agent, Getenv: func(name string) string { return variables[name] }}
}

// Colours are for terminals that support them and users who want them.
func TestColours(t *testing.T) {
	w, _, unplugs := diagnosed(t, "n1", "n2")
	w.write("pod.yaml", []byte("kind: Pod\n"))
	if code, out := w.swdt(t.Context(), &lines{}, "cp", filepath.Join(w.folder, "pod.yaml"),
		`node:C:\var\lib\kubelet\config.yaml`, "-n", "n1"); code != 0 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	unplugs["n2"]()
	file := filepath.Join(w.folder, "swdt.yaml")
	for command, c := range map[string]struct{ args, coloured []string }{
		"status": {[]string{"status"}, []string{"n2: \x1b[31m"}},
		"doctor": {[]string{"doctor", "--rule", "kubelet-config"}, []string{"\x1b[31m✗ kubelet-config\x1b[0m"}},
	} {
		for _, on := range []struct {
			name      string
			terminal  bool
			variables map[string]string
			colours   bool
		}{
			{"a pipe", false, nil, false},
			{"a terminal", true, map[string]string{"TERM": "xterm"}, true},
			{"a terminal with NO_COLOR", true, map[string]string{"TERM": "xterm", "NO_COLOR": "1"}, false},
			{"a dumb terminal", true, map[string]string{"TERM": "dumb"}, false},
		} {
			t.Run(command+" on "+on.name, func(t *testing.T) {
				var pipe bytes.Buffer
				streams, shown := ui.Streams{Out: &pipe, Err: &lines{}}, pipe.String
				if on.terminal {
					screen := newTerminal(t, 50, 200)
					streams.Out, shown = screen.File, screen.hangUp
				}
				cli.Run(t.Context(), streams, append(c.args, "-c", file), environment(on.variables))
				text := shown()
				if !strings.Contains(text, "n1") {
					t.Fatalf("this is not the result: %q", text)
				}
				if got := strings.Contains(text, "\x1b"); got != on.colours {
					t.Errorf("escape sequences: %v, want %v: %q", got, on.colours, text)
				}
				for _, want := range c.coloured {
					if on.colours && !strings.Contains(text, want) {
						t.Errorf("no %q in %q", want, text)
					}
				}
			})
		}
	}
}

// A terminal that cannot move its cursor, or that has no width, gets plain lines.
func TestTerminalsThatCannotDraw(t *testing.T) {
	for _, c := range []struct {
		name    string
		columns uint16
		term    string
	}{
		{"dumb", 100, "dumb"}, {"no width", 0, "xterm"},
	} {
		t.Run(c.name, func(t *testing.T) {
			screen := newTerminal(t, 12, c.columns)
			code := cli.Run(t.Context(), ui.Streams{Out: screen.File, Err: screen.File}, []string{
				"stats", "watch", "--source", "summary", "--kubeconfig", clusterOf(t, "0"), "--interval", "50ms",
				"--for", "700ms",
			}, environment(map[string]string{"TERM": c.term}))
			text := screen.hangUp()
			switch {
			case code != 0:
				t.Errorf("code = %v, want 0", code)
			case !strings.Contains(text, "default/burner/burn"):
				t.Errorf("text lacks %q:\n%s", "default/burner/burn", text)
			case strings.Contains(text, "\x1b"):
				t.Errorf("text contains %q:\n%s; exit code %d\n%q", "\x1b", text, code, text)
			}
		})
	}
	t.Run("steps", func(t *testing.T) {
		w, _, _ := diagnosed(t, "n1")
		screen := newTerminal(t, 12, 0)
		code := cli.Run(t.Context(), ui.Streams{Out: &lines{}, Err: screen.File},
			[]string{"status", "-c", filepath.Join(w.folder, "swdt.yaml")},
			environment(map[string]string{"TERM": "xterm"}))
		if text := screen.hangUp(); code != 0 || strings.Contains(text, "\x1b") {
			t.Errorf("exit code %d\n%q", code, text)
		}
	})
}

// A terminal shows neither a picture nor packets: swdt says how to write them to a file, before it asks a node.
func TestNoPictureOnATerminal(t *testing.T) {
	for _, args := range [][]string{{"hns", "graph"}, {"capture", "-w", "-"}} {
		var stderr bytes.Buffer
		screen := newTerminal(t, 12, 100)
		code := cli.Run(t.Context(), ui.Streams{Out: screen.File, Err: &stderr}, append(args, "-c", "missing.yaml"),
			environment(nil))
		if text := screen.hangUp(); code != 2 || text != "" || !strings.Contains(stderr.String(), "`swdt "+args[0]) {
			t.Errorf("swdt %q: exit code %d\n%q\n%s", args, code, text, stderr.String())
		}
	}
}
